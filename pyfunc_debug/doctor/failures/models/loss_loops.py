"""A loss with loops of Python's over the rows of its batch, or with writes into it: the whole of it as graph code."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.models.keras_calls import given, is_loss
from pyfunc_debug.doctor.failures.ops.batch_loops import in_graph
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.pastes.traced_text import RULE, when
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short, tapes_around
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_keras, is_symbolic, of_weights


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a loss or a layer that needs values could be wholly in the graph."""
    spot = _traced(situation)
    function = spot.function if spot is not None else None
    if spot is None or situation.body or not isinstance(function, ast.FunctionDef):
        return None
    statement = spot.statement
    held = [value for value in spot.variables.values() if is_symbolic(value)]
    if statement is None or isinstance(statement, (ast.Raise, ast.Assert)) or not held or any(map(is_keras, held)):
        return None
    loss = _is_loss(situation, spot, function)
    lines = in_graph(function, spot) if loss or _is_layer(situation, spot, function) else None
    if lines is None:
        return None
    what = "A loss needs a gradient" if loss else "The layers before need a gradient"
    why = f"{what} too, and NumPy and Python give none. TensorFlow's ops have it."
    if not loss and not any(map(of_weights, held)):
        why = "TensorFlow's ops compute the same in the graph."
    code = short(spot.source.text(statement).split("\n")[0], 44)
    cause = f"`{code}` ran once, {when(situation)}, on tensors without values. {why}"
    return Explanation(RULE, spot.file, spot.line, cause, _trimmed(spot, function, lines), "", "likely")


def _traced(situation: Situation) -> Spot | None:
    """The frame of the function that Keras traced, or that a lambda of a layer called; of another the innermost."""
    index, by = wrapping.entry(situation)
    if by != "Keras" or not situation.spots:
        return situation.last
    inside = [one for one in situation.spots[index:] if isinstance(one.function, ast.FunctionDef)]
    return inside[0] if inside and inside[0] in situation.spots[index : index + 2] else situation.last


def _is_layer(situation: Situation, spot: Spot, function: ast.FunctionDef) -> bool:
    """Whether what failed is a layer's `call`, or what a Lambda layer was given."""
    if wrapping.entry(situation)[1] != "Keras":
        return False
    kinds = [one.__name__ for one in type(spot.variables.get("self")).__mro__]
    if function.name == "call" and "Layer" in kinds and "Model" not in kinds:
        return True
    given = [
        one.args[0] for one in calls(spot.source.tree) if dotted(one.func).endswith("Lambda") and one.args
    ]  # fmt: skip
    return any(isinstance(part, ast.Name) and part.id == function.name for one in given for part in ast.walk(one))


def _is_loss(situation: Situation, spot: Spot, function: ast.FunctionDef) -> bool:
    """Whether what failed is a loss: Keras' own, or a function that is called under a tape."""
    index, by = wrapping.entry(situation)
    if by == "Keras" and situation.spots[index] is spot:
        kinds = [one.__name__ for one in type(spot.variables.get("self")).__mro__]
        return is_loss(situation) or "Loss" in kinds or _made(spot, function)
    outer = situation.outer(spot)
    return outer is not None and by == "tf.function" and bool(tapes_around(outer.source, outer.line))


def _made(spot: Spot, function: ast.FunctionDef) -> bool:
    """Whether a function is what `compile(loss=make_loss(0.5))` makes."""
    maker = next((one for one in spot.source.around(function) if isinstance(one, ast.FunctionDef)), None)
    losses = [
        one for call in ast.walk(spot.source.tree)
        if isinstance(call, ast.Call) and dotted(call.func).endswith("compile")
        for one in [*call.args[1:2], *(part.value for part in call.keywords if part.arg == "loss")]
    ]  # fmt: skip
    called = [dotted(one.func) for each in losses for one in ast.walk(each) if isinstance(one, ast.Call)]
    return maker is not None and maker.name in called and bool(given(spot))


def _trimmed(spot: Spot, function: ast.FunctionDef, lines: tuple[str, ...]) -> Edit:
    """The lines of a function's body that are others than before."""
    first, last = function.body[0].lineno, function.body[-1].end_lineno or function.body[-1].lineno
    old, new = list(spot.source.lines[first - 1 : last]), list(lines)
    while old and new and old[0] == new[0]:
        old, new, first = old[1:], new[1:], first + 1
    while old and new and old[-1] == new[-1]:
        old, new, last = old[:-1], new[:-1], last - 1
    return Edit(spot.file, first, last, tuple(new))
