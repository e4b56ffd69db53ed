"""Shapes that only an element can tell: a paste that reads the first one, where a line needs those of a dataset."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.models import keras_calls
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import indent_of
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_batched, is_dataset

_NAMES = ("shaped", "with_shapes")
_BATCH = "[None, *s.shape[1:]]"
"""Of what Keras is given: its batches may have any size."""
_RANK = "[None] * s.shape.rank"


def shaped(situation: Situation) -> Edit | None:
    """The datasets of the line that failed, with their shapes: those that Keras is given, or what is padded."""
    for spot in reversed(situation.spots):
        statement = spot.source.statement(spot.line)
        for call in keras_calls.fits(statement) if statement is not None else ():
            given = [*call.args[:1], *(one.value for one in call.keywords if one.arg in ("x", "validation_data"))]
            found = [(one, value) for one in given if is_dataset(value := _value(one, spot))]
            if found and statement is not None:
                size = next((one.value for one in call.keywords if one.arg == "batch_size"), None)
                return _handed(spot, statement, found, size)
    spot = situation.last  # type: ignore[assignment]
    statement = spot.source.statement(spot.line) if spot is not None else None
    padded = [
        one for one in calls(statement) if isinstance(one.func, ast.Attribute) and one.func.attr == "padded_batch"
    ] if statement is not None else []  # fmt: skip
    if statement is None or len(padded) != 1:
        return None
    held = [one.f_locals.get("input_dataset") for one in frames(situation.error.__traceback__)]
    dataset = next((one for one in held if is_dataset(one)), None)
    func = padded[0].func
    assert isinstance(func, ast.Attribute)
    return None if dataset is None else _defined(spot, statement, {func.value: "{0}.apply({1})"}, dataset, _RANK)


def _value(node: ast.expr, spot: Spot) -> Any:
    return spot.value(node.id) if isinstance(node, ast.Name) else None


def _handed(spot: Spot, statement: ast.stmt, found: list[tuple[ast.expr, Any]], size: ast.expr | None) -> Edit | None:
    """What Keras is given, with its shapes; batched where only an argument of Keras says how, which it leaves out."""
    if len({type(value.element_spec) is tuple for _, value in found}) > 1:
        return None
    single = size is not None and not any(is_batched(value) for _, value in found)
    new = f"{{1}}({{0}}).batch({spot.source.text(size)})" if single and size is not None else "{1}({0})"
    pieces = dict.fromkeys((one for one, _ in found), new)
    return _defined(spot, statement, pieces, found[0][1], "s.shape" if single else _BATCH)


def _defined(spot: Spot, statement: ast.stmt, pieces: dict[ast.expr, str], dataset: Any, shape: str) -> Edit | None:
    """A function that gives a dataset its shapes, and the statement that uses it."""
    source, tf = spot.source, alias(spot, "tensorflow")
    taken = {one.id for one in ast.walk(source.tree) if isinstance(one, ast.Name)}
    name = next((one for one in _NAMES if one not in taken), None)
    if name is None:
        return None
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    blanks, x = indent_of(source.lines[first - 1]), "*x" if type(dataset.element_spec) is tuple else "x"
    new = {one: text.format(source.text(one), name) for one, text in pieces.items()}
    pasted = (
        f"{blanks}def {name}(ds):  # its first element says the shapes",
        f"{blanks}    spec = {tf}.data.Dataset.from_tensors(next(iter(ds))).element_spec",
        f"{blanks}    fit = lambda y, s: {tf}.ensure_shape(y, {shape})",
        f"{blanks}    return ds.map(lambda {x}: {tf}.nest.map_structure(fit, x, spec))",
        *source.spliced(new, first, last),
    )
    return Edit(spot.file, first, last, pasted)
