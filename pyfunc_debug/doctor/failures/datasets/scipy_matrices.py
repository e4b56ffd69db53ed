"""A sparse matrix of SciPy's where TensorFlow wants an array: it takes neither its length nor its numbers."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.datasets import generator_calls, text_arguments
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import lookup

RULE = "structure"
_SAID = re.compile(
    r"sparse (?:array|matrix) length is ambiguous"
    r"|[Uu]nsupported (?:object )?type.*(?:csr|csc|coo|lil|dok)_?(?:matrix|array)"
)
_OF_MATRICES = {"row", "col", "rows", "data", "indices", "indptr", "nnz", "format", "tocoo", "tocsr", "tocsc", "tolil",
                "todok", "toarray", "todense", "getrow", "getcol", "getnnz", "getformat", "has_sorted_indices",
                "sort_indices", "sum_duplicates", "eliminate_zeros", "multiply", "power", "maximum"}  # fmt: skip
"""What arrays of NumPy's have not, or something else by that name."""
_LARGE = 1e9
"""Bytes of an array that is not pasted."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line reads such a matrix."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or not _SAID.search(situation.message):
        return None
    found: dict[ast.expr, Any] = {}
    for one in ast.walk(statement):
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load):
            value = lookup(one, spot)
            if is_matrix(value):
                found[one] = value
    return (_handed_over(situation, spot, found) or _told(spot, found)) if found else None


def yielded(place: tuple[str, Source, int], given: ast.expr, element: Any, failed: Any, cause: str) -> Explanation:
    """A yielded sparse matrix as an array; one row of a table as a vector.

    Args:
      place: The file, and the line of the yield.
      given: What it yields.
      element: The element that was yielded.
      failed: The matrix in it.
      cause: What is said of it.
    """
    file, source, line = place
    parts = given.elts if isinstance(given, ast.Tuple) and isinstance(element, tuple) else [given]
    values = element if isinstance(element, tuple) and isinstance(given, ast.Tuple) else (element,)
    own = [part for part, value in zip(parts, values) if value is failed]
    advice = "Yield its `.toarray()`."
    if len(own) != 1:
        return Explanation(RULE, file, line, f"{cause}: it is a sparse matrix of SciPy's.", None, advice)
    row = failed.shape[0] == 1 and isinstance(own[0], ast.Subscript)
    new = f"{source.atom(own[0])}.toarray(){'[0]' if row else ''}"
    kind = "As an array it is one row" if row else "An array of it has its zeros, too"
    said = f"{cause}: it is a sparse matrix of SciPy's. {kind}."
    edit = edit_of(file, source.replaced({own[0]: new}))
    return Explanation(RULE, file, line, said, edit, "" if edit is not None else advice, "likely")


def is_matrix(value: object) -> bool:
    """Whether it is one of SciPy's sparse matrices or arrays."""
    kind = type(value)
    return kind.__module__.startswith("scipy.sparse.") and hasattr(kind, "toarray")


def _handed_over(situation: Situation, spot: Spot, found: dict[ast.expr, Any]) -> Explanation | None:
    """`from_generator(gen, args=(a,))` whose generator asks for what only such a matrix has: a lambda hands it over."""
    for file, source, call in generator_calls.calls(situation):
        given = next((one.value for one in call.keywords if one.arg == "args"), None)
        generator = generator_calls.given(call)
        function = generator_calls.function_of(source, generator)
        inside = [one for one in getattr(given, "elts", ()) if one in found]
        if file != spot.file or not inside or function is None or generator is None:
            continue
        taken = [one for one in parameters(function) if one not in ("self", "cls")]
        place = given.elts.index(inside[0])  # type: ignore[union-attr]
        name = taken[place] if place < len(taken) else ""
        asked = [
            one.attr for one in ast.walk(function)
            if isinstance(one, ast.Attribute) and dotted(one.value) == name and one.attr in _OF_MATRICES
        ]  # fmt: skip
        if not asked:
            continue
        edit = text_arguments.handed_over(call, source, file)
        text, kind = short(source.text(inside[0]), 30), type(found[inside[0]]).__name__
        cause = (
            f"from_generator makes tensors of args, and {text} is a {kind} of SciPy's, of which TensorFlow can make "
            f"none. {function.name} asks it for .{asked[0]}: a lambda hands over {text} itself."
        )
        advice = "" if edit else f"Pass lambda: {source.text(generator)}({text}) as the generator, without args."
        return Explanation(RULE, file, edit.first if edit else inside[0].lineno, cause, edit, advice)
    return None


def _told(spot: Spot, found: dict[ast.expr, Any]) -> Explanation:
    first, value = next(iter(found.items()))
    rows, columns = (int(one) for one in value.shape)
    nbytes = rows * columns * value.dtype.itemsize
    shown = f"{nbytes / 1e6:,.1f} MB" if nbytes >= 1e5 else f"{nbytes / 1e3:,.1f} kB"
    cause = (
        f"{short(spot.source.text(first), 30)} is a {type(value).__name__} of SciPy's, [{rows}, {columns}], which "
        f"TensorFlow does not take. As an array, with its zeros, it has {shown}."
    )
    if nbytes > _LARGE:
        advice = "Give Keras' fit the matrix itself, which makes an array of each batch only."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    pieces = {one: f"{spot.source.atom(one)}.toarray()" for one in found}
    return Explanation(RULE, spot.file, first.lineno, cause, edit_of(spot.file, spot.source.replaced(pieces)))
