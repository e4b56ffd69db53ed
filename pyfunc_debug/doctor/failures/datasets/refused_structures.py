"""An element that `Dataset.from_generator` refused for its form: how it is said, and the signature that has it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np

from pyfunc_debug.doctor.failures.datasets import generator_calls, generator_counts, yielded_keys
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import shapes
from pyfunc_debug.doctor.failures.reading.dtypes import assignments
from pyfunc_debug.doctor.failures.reading.situation import Situation, frames
from pyfunc_debug.doctor.failures.reading.source import Source, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, described, is_ndarray, is_tensor, shape_of_data

RULE = "generator"
_WORDS = ("output_types", "output_shapes", "output_signature")
_PLAIN = {bool: "bool", int: "int64", float: "float32", str: "string", bytes: "string"}
_SHOWN = 3
_MOST = 8
"""A paste changes no more lines; and names no more values."""
_NAMES = "abcdefgh"


def said(values: Any) -> str:
    """`(float32[4, 32], float32[4])`: an element by the dtypes and shapes of its arrays; "" where it has none."""
    return _said(values) if any(is_ndarray(one) or is_tensor(one) for one in _leaves(values, lists=True)) else ""


def _said(value: Any) -> str:
    if isinstance(value, dict):
        parts = [f"{key!r}: {_said(one)}" for key, one in list(value.items())[:_SHOWN]]
        return f"{{{', '.join([*parts, *['...'] * (len(value) > _SHOWN)])}}}"
    if type(value) in (list, tuple):
        parts = [*map(_said, value[:_SHOWN]), *["..."] * (len(value) > _SHOWN)]
        return f"[{', '.join(parts)}]" if type(value) is list else f"({', '.join(parts)}{',' * (len(parts) == 1)})"
    return described(value) if is_ndarray(value) or is_tensor(value) else type(value).__name__


def _leaves(value: Any, lists: bool = False) -> Iterator[Any]:
    """The values in nested tuples and dicts, and, where that is asked for, in lists."""
    if isinstance(value, dict) or type(value) is tuple or (lists and type(value) is list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _leaves(one, lists)
    else:
        yield value


def explain(situation: Situation, file: str, source: Source, call: ast.Call) -> Explanation | None:
    """The explanation, if a tuple of plain values was yielded, and tuples in a tuple are declared.

    Args:
      situation: The failure.
      file: The file of the call of from_generator.
      source: Its text.
      call: The call.
    """
    values, declared = yielded_keys.element(situation)
    if type(values) is not tuple or type(declared) is not tuple or not any(type(one) is tuple for one in declared):
        return None
    if any(isinstance(one, (dict, tuple, list)) for one in values) or len(values) < 2:
        return None
    leaves = list(_leaves(declared))
    function = generator_calls.function_of(source, generator_calls.given(call))
    line = yielded_keys.line_of(generator_calls.yields_of(function), situation, call)
    shown = short(said(values) or f"{len(values)} values", 70)
    cause = f"the generator yields {shown}, {len(values)} values side by side, and its signature has {len(leaves)} in "
    cause += f"{len(declared)} groups"
    if len(leaves) == len(values):
        edit = _regrouped(declared, file, source, call)
        if edit is not None:
            return Explanation(RULE, file, edit.first, f"{cause}. The paste groups them so.", edit, "", "likely")
    edit = _flat(situation, values, file, source, call) if _is_read(situation, len(values)) else None
    if edit is not None:
        cause += ". The paste declares the element that was yielded."
        return Explanation(RULE, file, edit.first, cause, edit, "", "likely")
    advice = "Declare what is yielded, or yield the groups: a tuple in the tuple."
    return Explanation(RULE, file, line, f"{cause}: both must nest alike.", None, advice)


def _is_read(situation: Situation, count: int) -> bool:
    """Whether the failing line takes elements of this number of values; Keras takes inputs and targets."""
    statement, (read, _) = situation.statement, generator_counts.read(situation)
    whole = isinstance(statement, ast.For) and isinstance(statement.target, ast.Name)
    plain = whole and isinstance(statement.iter, ast.Name) if isinstance(statement, ast.For) else False
    return read == count or (read < 0 and count == 2) or (plain and not generator_counts.is_mapped(situation))


def _regrouped(declared: tuple[Any, ...], file: str, source: Source, call: ast.Call) -> Edit | None:
    """`lambda: (((a, b), c) for a, b, c in rows())`: the values in the groups of the signature."""
    given, count = generator_calls.given(call), len(list(_leaves(declared)))
    if given is None or count > _MOST or any(one.arg == "args" for one in call.keywords) or len(call.args) > 3:
        return None
    if isinstance(given, ast.Lambda):
        if given.args.args:
            return None
        rows = source.atom(given.body)
    elif isinstance(given, (ast.Name, ast.Attribute)):
        rows = f"{source.text(given)}()"
    else:
        return None
    names = [source.unused_name(one) for one in _NAMES[:count]]
    new = f"lambda: ({_like(declared, iter(names))} for {', '.join(names)} in {rows})"
    return edit_of(file, source.replaced({given: new}))


def _like(declared: Any, names: Iterator[str]) -> str:
    if isinstance(declared, dict):
        return f"{{{', '.join(f'{key!r}: {_like(one, names)}' for key, one in declared.items())}}}"
    if type(declared) is tuple:
        return f"({', '.join(_like(one, names) for one in declared)}{',' * (len(declared) == 1)})"
    return next(names)


def _flat(situation: Situation, values: tuple[Any, ...], file: str, source: Source, call: ast.Call) -> Edit | None:
    """The signature of this element: its dtypes, and its shapes with their first sizes open."""
    spot = next((one for one in situation.spots if one.file == file), situation.last)
    tf = alias(spot, "tensorflow") if spot is not None else "tf"
    words = {one.arg: one.value for one in call.keywords if one.arg in _WORDS}
    words.update(zip(_WORDS, call.args[1:3]))
    dtypes, sizes = [_dtype(one) for one in values], [_sizes(one, situation) for one in values]
    if None in dtypes or (None in sizes and words.keys() != {"output_types"}):
        return None
    made = {
        "output_types": [f"{tf}.{one}" for one in dtypes],
        "output_shapes": [str(one) for one in sizes],
        "output_signature": [f"{tf}.TensorSpec({size}, {tf}.{dtype})" for size, dtype in zip(sizes, dtypes)],
    }
    own, pieces = assignments(source.tree), dict[ast.expr, str]()
    for word, value in words.items():
        written = own.get(value.id) if isinstance(value, ast.Name) else value
        if not isinstance(written, (ast.Tuple, ast.List)):
            return None
        pieces[written] = f"({', '.join(made[str(word)])})"
    if not pieces:
        return None
    edit = Edit(file, *source.kept_lines(pieces))
    return edit if edit.last - edit.first < _MOST else None


def _dtype(value: Any) -> str | None:
    if type(value) in _PLAIN:
        return _PLAIN[type(value)]
    if not (is_ndarray(value) or is_tensor(value) or isinstance(value, np.generic)):
        return None
    name = str(value.dtype.name)
    text = name.startswith(("str", "bytes"))
    return "string" if text else None if name == "object" else name


def _sizes(value: Any, situation: Situation) -> str | None:
    """The shape that is declared for such a value, or its own with an open first size."""
    shape = shape_of_data(value, texts=True)
    if shape is None:
        return None
    every = (one.f_locals for one in frames(situation.inner.__traceback__) if one.f_code.co_name == "generator_py_func")
    declared = next((one.get("flattened_shapes") for one in every), None) or ()
    for one in declared:
        if one.rank == len(shape) and one.is_compatible_with(shape):
            return shapes.written(tuple(one.as_list()))
    return shapes.written((None, *shape[1:]) if shape else ())
