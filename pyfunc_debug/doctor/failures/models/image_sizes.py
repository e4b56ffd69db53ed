"""Images of another height and width than a model was built for: Keras says both, and not how they become alike."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.failed_layers import other_class
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    is_dataset,
    is_keras,
    is_keras_class,
    is_ndarray,
    lookup,
    of_keras,
    shape_of,
)

RULE = "structure"
_SHAPE = re.compile(r"expected shape=\(None, (\d+, \d+, \d+)\), found shape=\((?:None|\d+), (\d+, \d+, \d+)\)")
_ROW = re.compile(r"expected axis -1 of input shape to have value \d+, but received input with shape")
_PARTS = ("x", "y", "w")
_CHANNELS = 4
"""An image has no more of them, and more rows of pixels."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a model got images of another size than it takes."""
    said, spot, statement = situation.message, situation.last, situation.statement
    if spot is None or statement is None or situation.body or not (_SHAPE.search(said) or _ROW.search(said)):
        return None
    for fit_spot, call in failed_fits(situation):
        found = _fitted(fit_spot, call)
        if found is not None:
            return found
    shapes = _SHAPE.search(said)
    wanted, got = ([_numbers(one) for one in shapes.groups()]) if shapes is not None else ([], [])
    if not _scaled(wanted, got):
        return None
    for call in calls(statement):
        if _is_model(lookup(call.func, spot)) and len(call.args) == 1 and is_keras(lookup(call.args[0], spot)):
            given = call.args[0]
            new = f"{_resizing(spot)}({wanted[0]}, {wanted[1]})({spot.source.text(given)})"
            return _told(spot, given, _cause(spot.source.text(call.func), wanted, got), new)
    return _in_a_list(spot, statement, wanted, got)


def _numbers(text: str) -> list[int]:
    return [int(one) for one in text.split(",")]


def _scaled(wanted: Sequence[int | None], got: Sequence[int | None]) -> bool:
    """Whether two shapes are those of images with as many channels and another height or width."""
    known = len(wanted) == len(got) == 3 and None not in (*wanted, *got)
    if known and wanted[1] == got[1] and min(wanted[0] or 0, got[0] or 0) <= _CHANNELS:
        return False  # channels may come first
    return known and wanted[2] == got[2] and list(wanted[:2]) != list(got[:2])


def _cause(name: str, wanted: Sequence[int | None], got: Sequence[int | None]) -> str:
    return (
        f"{name} is for images of {wanted[0]} x {wanted[1]}, and gets {got[0]} x {got[1]}: Keras does not scale them."
    )


def _fitted(spot: Spot, call: ast.Call) -> Explanation | None:
    """What `fit`, `evaluate` or `predict` got."""
    model: Any = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
    node, inputs = argument(call, 0, "x"), getattr(model, "inputs", None) if _is_model(model) else None
    wanted = shape_of(inputs[0]) if inputs is not None and len(inputs) == 1 else None
    if node is None or wanted is None or not isinstance(call.func, ast.Attribute):
        return None
    also = next((one.value for one in call.keywords if one.arg == "validation_data"), None)
    also = also.elts[0] if isinstance(also, (ast.Tuple, ast.List)) and also.elts else also
    nodes = [node] if also is None else [node, also]
    texts = {one: text for one in nodes if (text := _resized(spot, one, wanted[1:]))}
    if not texts:
        return None
    got = _shape(spot, next(iter(texts))) or ()
    cause = _cause(spot.source.text(call.func.value), wanted[1:], got)
    edit = edit_of(spot.file, spot.source.replaced(texts))
    return Explanation(RULE, spot.file, next(iter(texts)).lineno, cause, edit, "", "likely")


def _shape(spot: Spot, node: ast.expr) -> Sequence[int | None] | None:
    """The shape of an example of an array or of a dataset's inputs."""
    value: Any = lookup(node, spot)
    spec = value.element_spec if is_dataset(value) else value
    shape = shape_of(spec[0] if isinstance(spec, tuple) else spec) if is_ndarray(value) or is_dataset(value) else None
    return shape[1:] if shape is not None else None


def _resized(spot: Spot, node: ast.expr, wanted: Sequence[int | None]) -> str:
    """Data in the size that a model takes; "" where it has that, or holds no images."""
    got, value = _shape(spot, node), lookup(node, spot)
    if got is None or not _scaled(wanted, got):
        return ""
    resize, size = f"{alias(spot, 'tensorflow')}.image.resize", f"({wanted[0]}, {wanted[1]})"
    if not is_dataset(value):
        return f"{resize}({spot.source.text(node)}, {size})"
    spec: Any = value.element_spec
    names = _PARTS[: len(spec)] if isinstance(spec, tuple) else _PARTS[:1]
    result = ", ".join([f"{resize}(x, {size})", *names[1:]])
    result = f"({result})" if len(names) > 1 else result
    return f"{spot.source.atom(node)}.map(lambda {', '.join(names)}: {result})"


def _in_a_list(spot: Spot, statement: ast.stmt, wanted: list[int], got: list[int]) -> Explanation | None:
    """`Sequential([Input((64, 64, 3)), base, ...])`."""
    listed = [
        one for part in ast.walk(statement) if isinstance(part, ast.List) for one in part.elts
        if _is_model(lookup(one, spot))
    ]  # fmt: skip
    if len(listed) != 1:
        return None
    name = spot.source.text(listed[0])
    new = f"{_resizing(spot)}({wanted[0]}, {wanted[1]}), {name}"
    return _told(spot, listed[0], _cause(name, wanted, got), new)


def _is_model(value: Any) -> bool:
    return value is not None and is_keras_class(type(value)) and of_keras(type(value), "Model")


def _resizing(spot: Spot) -> str:
    return other_class(ast.Name("Resizing"), "Resizing", spot)


def _told(spot: Spot, node: ast.expr, cause: str, new: str) -> Explanation:
    edit = edit_of(spot.file, spot.source.replaced({node: new}))
    return Explanation(RULE, spot.file, node.lineno, cause, edit, "", "likely")
