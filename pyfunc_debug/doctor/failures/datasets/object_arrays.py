"""Arrays of Python objects, as NumPy makes of rows of mixed types, where a tensor is wanted: in `fit`, in a dataset."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.datasets import generator_calls
from pyfunc_debug.doctor.failures.models.keras_calls import fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_ndarray, keras_name, lookup
from pyfunc_debug.doctor.failures.reading.tables import is_array, valued

RULE = "mixed-dtypes"
_SAID = re.compile(r"Invalid dtype: object|Unsupported object type|unsupported type \(<class 'numpy.ndarray'>\)")
_LOOKED_AT = 10_000


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line gives such arrays away, and all that is in them are numbers."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or not _SAID.search(situation.message):
        return None
    pieces: dict[ast.expr, str] = {}
    for call in calls(statement):
        for one in (*call.args, *(keyword.value for keyword in call.keywords)):
            for part in one.elts if isinstance(one, (ast.Tuple, ast.List)) else [one]:
                dtype = _numbers(lookup(part, spot)) if isinstance(part, (ast.Name, ast.Attribute)) else None
                if dtype is not None:
                    pieces[part] = f'{spot.source.text(part)}.astype("{dtype}")'
    if not pieces:
        return _sequences(spot, statement) or _arrays(spot, statement) or _yielded(spot, statement)
    names = list(dict.fromkeys(spot.source.text(one) for one in pieces))
    found = spot.source.replaced(pieces)
    several = len(names) > 1
    cause = (
        f"{' and '.join(names[:2])} {'are arrays' if several else 'is an array'} of Python objects (dtype object), as "
        "NumPy makes of rows of mixed types: no tensor has that. All that is in "
        f"{'them' if several else 'it'} are numbers."
    )
    edit = edit_of(spot.file, found)
    advice = "" if edit else f"Give it {pieces[next(iter(pieces))]}."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _sequences(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """Rows of numbers that differ in length, given to Keras: padded, they are one array."""
    for call in fits(statement):
        for one in (*call.args, *(keyword.value for keyword in call.keywords)):
            value: Any = lookup(one, spot) if isinstance(one, (ast.Name, ast.Attribute)) else None
            lengths = _lengths(value)
            if not lengths:
                continue
            text, keras = spot.source.text(one), keras_name(spot)
            kind = ', dtype="float32"' if any(isinstance(part, float) for row in value for part in row) else ""
            found = spot.source.replaced({one: f'{keras}.utils.pad_sequences({text}, padding="post"{kind})'})
            cause = (
                f"{text} holds rows of {min(lengths)} to {max(lengths)} numbers as Python objects (dtype object): a "
                "tensor has rows of one length. Padded with zeros at their ends they have."
            )
            if any(part == 0 for row in value for part in row):
                cause += " 0 is a number of their own, too."
            edit = edit_of(spot.file, found)
            return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else "Pad the rows.")
    return None


def _yielded(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """Rows of several lengths that a generator makes an array of objects of: `np.array(rows[i:j], dtype=object)`."""
    for call in fits(statement):
        function = generator_calls.function_of(spot.source, argument(call, 0, "x"))
        found = [
            (one, one.args[0]) for one in (calls(function) if function is not None else ())
            if dotted(one.func).rpartition(".")[2] in ("array", "asarray") and one.args
            and "object" in {_word(word.value) for word in one.keywords if word.arg == "dtype"}
        ]  # fmt: skip
        if len(found) != 1:
            continue
        made, rows = found[0]
        root = next((one for one in ast.walk(rows) if isinstance(one, ast.Name)), rows)
        shapes, whole = _row_shapes(lookup(root, spot))
        if len({shape[0] for shape in shapes}) < 2 or len({shape[1:] for shape in shapes}) != 1:
            continue
        lengths, text = sorted(shape[0] for shape in shapes), spot.source.text
        kind = "" if whole else ', dtype="float32"'
        new = f'{keras_name(spot)}.utils.pad_sequences({text(rows)}, padding="post"{kind})'
        cause = (
            f"the generator makes an array of Python objects (dtype object) of rows that are {lengths[0]} to "
            f"{lengths[-1]} long: a tensor has rows of one length. Padded with zeros at their ends they have."
        )
        edit = edit_of(spot.file, spot.source.replaced({made: new}))
        return Explanation(RULE, spot.file, made.lineno, cause, edit, "" if edit else "Pad the rows.", "likely")
    return None


def _word(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else dotted(node).rpartition(".")[2].rstrip("_")


def _row_shapes(rows: Any) -> tuple[list[tuple[int, ...]], bool]:
    """The shapes of a list's arrays or lists of numbers, and whether all are whole numbers; none of any other."""
    import numpy

    array = is_ndarray(rows) and rows.dtype == object and rows.ndim == 1
    every = list(rows[:_LOOKED_AT]) if array or type(rows) in (list, tuple) else []
    found = []
    for one in every:
        if type(one) not in (list, numpy.ndarray):
            return [], False
        try:
            made = numpy.asarray(one)
        except ValueError:
            return [], False
        if not made.ndim or made.dtype.kind not in "biuf":
            return [], False
        found.append(made)
    return [one.shape for one in found], all(one.dtype.kind != "f" for one in found)


def _arrays(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """Rows that are arrays or lists of one shape: stacked, they are one array."""
    for call in calls(statement):
        for given in (*call.args, *(keyword.value for keyword in call.keywords)):
            for part in given.elts if isinstance(given, (ast.Tuple, ast.List)) else [given]:
                value: Any = valued(part, spot)
                objects = (
                    is_array(value) and getattr(getattr(value, "dtype", None), "kind", "") == "O" and value.ndim == 1
                )
                rows = value.tolist() if objects else []
                shape = _one_shape(rows) if rows else None
                if shape is None:
                    continue
                np, text = alias(spot, "numpy"), spot.source.text(part)
                cause = f"{text} holds {len(rows):,} arrays of shape {list(shape)} as Python objects (dtype object), "
                cause += "and a tensor is one array. stack makes it."
                edit = edit_of(spot.file, spot.source.replaced({part: f"{np}.stack({text})"}))
                return Explanation(RULE, spot.file, spot.line, cause, edit)
    return None


def _one_shape(rows: list[Any]) -> tuple[int, ...] | None:
    """The shape that rows of numbers have in common."""
    import numpy

    if not all(type(one) in (list, tuple, numpy.ndarray) for one in rows[:_LOOKED_AT]):
        return None
    try:
        arrays = [numpy.asarray(one) for one in rows[:_LOOKED_AT]]
    except ValueError:  # lists of different lengths
        return None
    shapes = {one.shape for one in arrays}
    numbers = all(one.dtype.kind in "biuf" for one in arrays)
    return shapes.pop() if len(shapes) == 1 and numbers else None


def _lengths(value: Any) -> list[int]:
    """The lengths of a list's or an array's rows of numbers; empty for any other value, and for one length of all."""
    array = is_ndarray(value) and value.dtype == object and value.ndim == 1
    rows = list(value) if (array or type(value) is list) and len(value) <= _LOOKED_AT else []
    if not rows or not all(type(row) is list for row in rows):
        return []
    plain = all(type(part) in (int, float) for row in rows for part in row)
    lengths = [len(row) for row in rows]
    return lengths if plain and len(set(lengths)) > 1 else []


def _numbers(value: Any) -> str | None:
    """The dtype for an array of objects that are numbers; None for any other value."""
    if not is_ndarray(value) or value.dtype != object or value.size > _LOOKED_AT:
        return None
    kinds = {type(one) for one in value.ravel().tolist()}
    if not kinds or not kinds <= {int, float, bool}:  # tolist() leaves NumPy's own numbers as they are
        return None
    return "float32" if float in kinds else "int64" if int in kinds else "bool"
