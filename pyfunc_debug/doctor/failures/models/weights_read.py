"""Weights that a graph asks for as arrays, `model.get_weights()`, and weights made as large as a batch."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, lookup

RULE = "symbolic-value"
SHAPE_RULE = "unknown-shape"
_NO_ARRAYS = re.compile(r"numpy\(\) is only available when eager execution|Cannot convert a symbolic \S+ .*numpy array")
_NOT_KNOWN = "Shapes used to initialize variables must be fully-defined"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if one of these is why the program failed."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body:
        return None
    if _NOT_KNOWN in situation.message:
        return _as_large_as_a_batch(spot, statement)
    return _as_arrays(spot, statement) if _NO_ARRAYS.search(situation.message) else None


def _as_arrays(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`target.get_weights()` while a graph is built: as tensors."""
    pieces: dict[ast.expr, str] = {
        one: f"[{alias(spot, 'tensorflow')}.convert_to_tensor(w) for w in {spot.source.text(one.func.value)}.weights]"
        for one in calls(statement)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "get_weights" and not one.args
        and hasattr(lookup(one.func.value, spot), "get_weights")
    }  # fmt: skip
    placed = spot.source.replaced(pieces) if pieces else None
    if placed is None:
        return None
    cause = (
        f"`{short(spot.source.text(next(iter(pieces))), 40)}` gives arrays, and ran while a graph was built, when "
        "there are no values. A graph reads the weights as tensors, each time that it runs."
    )
    return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, placed[0], placed[1], (placed[2],)))


def _as_large_as_a_batch(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`add_weight(shape=input_shape)` in `build`: the first size is that of the batch, which is not known."""
    function = spot.function
    if not isinstance(function, ast.FunctionDef) or function.name != "build" or not parameters(function):
        return None
    given = parameters(function)[0]
    shapes = [
        one.value for call in calls(statement) for one in call.keywords
        if one.arg == "shape" and dotted(call.func).endswith("add_weight")
    ]  # fmt: skip
    if len(shapes) != 1:
        return None
    batch = [one for one in ast.walk(shapes[0]) if isinstance(one, ast.Subscript) and ast.unparse(one) == f"{given}[0]"]
    pieces: dict[ast.expr, str]
    if dotted(shapes[0]) == given:
        pieces = {shapes[0]: f"{given}[1:]"}
    elif len(batch) == 1:
        pieces = {batch[0]: f"{given}[-1]"}
    else:
        return None
    placed = spot.source.replaced(pieces)
    if placed is None:
        return None
    cause = (
        f"`{given}` begins with the size of a batch, which is None: a layer takes batches of any size, and its weights "
        "have one shape. The sizes behind it are those of one example."
    )
    edit = Edit(spot.file, placed[0], placed[1], (placed[2],))
    return Explanation(SHAPE_RULE, spot.file, spot.line, cause, edit, "", "likely")
