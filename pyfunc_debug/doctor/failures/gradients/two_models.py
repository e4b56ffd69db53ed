"""A gradient for what a layer of a Keras model gives, as Grad-CAM asks it: of another call, or of no value at all.

Each call of a model computes its layers again. Only one model that gives both, the layer's output and its own, has the
gradient of the one for the other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.gradients.below_tape import all_none
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, together
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import asked_of_tape, names, short, tapes
from pyfunc_debug.doctor.failures.reading.symbols import is_keras, keras_name, lookup, of_keras

RULE = "untaped"
_NO_VALUE = "'KerasTensor' object has no attribute '_id'"
_NAMES = ("features", "layer_features", "features_of_layer")
_FARTHEST = 25
"""Lines from the first to the last that one paste changes."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a tape is asked for such a gradient."""
    symbolic = _NO_VALUE in situation.message
    if situation.body or not (symbolic or "None" in situation.message):
        return None
    for spot in reversed(situation.spots):
        if not symbolic and not all_none(spot):
            continue
        for block, asked in _asked(spot):
            found = _of_symbol(spot, block, asked) if symbolic else _of_another_call(spot, block, asked)
            if found is not None:
                return found
    return None


def _asked(spot: Spot) -> Iterator[tuple[ast.With, ast.Call]]:
    """The blocks of tapes in a frame's function, each with the one call that asks it for a gradient."""
    source = spot.source
    for block in tapes(source):
        targets = asked_of_tape(source, block) if source.function(block.lineno) is source.function(spot.line) else []
        parent = source.parent(targets[0]) if len(targets) == 1 else None
        if isinstance(parent, ast.Call) and len(parent.args) == 2 and parent.lineno <= spot.line:
            yield block, parent


def _of_symbol(spot: Spot, block: ast.With, asked: ast.Call) -> Explanation | None:
    """`tape.gradient(loss, model.get_layer("conv").output)`."""
    wanted, source = asked.args[1], spot.source
    models = [one for one in _models(spot, block) if is_keras(lookup(wanted, spot)) or ".output" in source.text(wanted)]
    name = next((one for one in _NAMES if one not in spot.variables and one not in spot.module), "")
    if len(models) != 1 or not name:
        return None
    cause = (
        f"`{short(source.text(wanted), 40)}` only describes what the layer gives, and a tape knows values. One model "
        "gives both, the layer's values and its own."
    )
    statement, call = models[0]
    both = _both(spot, name, source.text(wanted), statement, call)
    edits = [
        Edit(spot.file, statement.lineno, statement.end_lineno or statement.lineno, (both,)),
        Edit(spot.file, asked.lineno, asked.end_lineno or asked.lineno,
             source.spliced({wanted: name}, asked.lineno, asked.end_lineno or asked.lineno)),
    ]  # fmt: skip
    return _explanation(spot, asked.lineno, cause, edits)


def _of_another_call(spot: Spot, block: ast.With, asked: ast.Call) -> Explanation | None:
    """`conv = conv_model(image); preds = model(image)`, and a gradient of what is made of the second for the first."""
    target, wanted = asked.args
    every = _models(spot, block)
    first = [one for one in every if isinstance(wanted, ast.Name) and one[0].targets[0].id == wanted.id]  # type: ignore[attr-defined]
    others = [one for one in every if one not in first]
    if len(first) != 1 or len(others) != 1 or not isinstance(wanted, ast.Name):
        return None
    (layer, inner), (whole, outer) = first[0], others[0]
    inputs = [getattr(lookup(one.func, spot), "inputs", [None])[0] for one in (inner, outer)]
    made = _made_of(block, wanted.id)
    if inputs[0] is not inputs[1] or set(names(target)) & made or set(names(whole.value)) & made:
        return None
    text = spot.source.text
    cause = (
        f"`{short(text(inner), 30)}` and `{short(text(outer), 30)}` are two calls, and each computes its layers again: "
        f"`{short(text(target), 30)}` is not made of {wanted.id}. One model gives both."
    )
    both = _both(spot, wanted.id, f"{text(inner.func)}.output", whole, outer)
    early, late = sorted((layer, whole), key=lambda one: one.lineno)
    edits = [
        Edit(spot.file, early.lineno, early.end_lineno or early.lineno, (both,)),
        Edit(spot.file, late.lineno, late.end_lineno or late.lineno, ()),
    ]
    return _explanation(spot, asked.lineno, cause, edits)


def _models(spot: Spot, block: ast.With) -> list[tuple[ast.Assign, ast.Call]]:
    """`name = model(x)` in a block, of Keras models that are made of layers."""
    found = []
    for one in block.body:
        call = one.value if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
        if (
            not isinstance(one, ast.Assign)
            or not isinstance(call, ast.Call)
            or not isinstance(one.targets[0], ast.Name)
        ):
            continue
        model: Any = lookup(call.func, spot)
        if of_keras(type(model), "Functional") or of_keras(type(model), "Sequential"):
            found.append((one, call))
    return found


def _made_of(block: ast.With, name: str) -> set[str]:
    """A name, and what the lines of a block make of it."""
    known = {name}
    for one in block.body:
        if isinstance(one, ast.Assign) and known & set(names(one.value)):
            known |= {part for target in one.targets for part in names(target)}
    return known


def _both(spot: Spot, name: str, layer: str, statement: ast.Assign, call: ast.Call) -> str:
    """The line that calls one model for both."""
    source = spot.source
    model = source.text(call.func)
    line = source.lines[statement.lineno - 1]
    blanks = line[: len(line) - len(line.lstrip())]
    given = source.text(call)[len(model) :]
    whole = f"{keras_name(spot)}.Model({model}.inputs, [{layer}, {model}.output]){given}"
    return f"{blanks}{name}, {source.text(statement.targets[0])} = {whole}"


def _explanation(spot: Spot, line: int, cause: str, edits: list[Edit]) -> Explanation | None:
    first, last = min(one.first for one in edits), max(one.last for one in edits)
    if last - first > _FARTHEST or any(_several(spot, one) for one in edits):
        return None
    return Explanation(RULE, spot.file, line, cause, together(edits, spot.source.lines))


def _several(spot: Spot, edit: Edit) -> bool:
    """Whether lines hold more than one statement."""
    return any(";" in spot.source.lines[line - 1] for line in range(edit.first, edit.last + 1))
