"""A loss that computes outside of TensorFlow, by SciPy or scikit-learn: given to `compile` with a measured gradient."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.gradients.score_losses import counts
from pyfunc_debug.doctor.failures.models.keras_calls import given, is_loss, loses_gradient
from pyfunc_debug.doctor.failures.ops.slopes import NAME, computes, with_helper
from pyfunc_debug.doctor.failures.ops.smooth import in_steps
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, dotted, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_symbolic, root_is


def measured(situation: Situation) -> Edit | None:
    """`compile(loss=f)` with the gradient of f by differences, if f is a function of the file that only computes."""
    spot = situation.spots[wrapping.entry(situation)[0]]
    function = spot.function
    if not isinstance(function, ast.FunctionDef) or function.decorator_list or not is_loss(situation):
        return None
    inputs = parameters(function)
    if len(inputs) != 2 or not all(is_symbolic(spot.value(one)) for one in inputs) or not loses_gradient(situation):
        return None
    own = {one.name: one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef)}
    called = [own[name] for name in {dotted(one.func) for one in calls(function)} if name in own]
    found = [one for one in given(spot) if dotted(one).rpartition(".")[2] == function.name]
    if len(found) != 1 or not all(_smooth(one, spot) for one in (function, *called)):
        return None
    tensors = any(isinstance(one, ast.Attribute) and one.attr == "numpy" for one in ast.walk(function))
    return by_differences(found[0], spot, tensors)


def stepped(situation: Situation) -> str:
    """Why no differences are the gradient of a loss that ranks or counts places; "" for any other function."""
    spot = situation.spots[wrapping.entry(situation)[0]]
    function = spot.function
    flat = in_steps(function) if isinstance(function, ast.FunctionDef) and is_loss(situation) else None
    if flat is None or not loses_gradient(situation):
        return ""
    return (
        f"`{short(spot.source.text(flat), 30)}` (line {flat.lineno}) moves in steps, which have no gradient. Take "
        "something smooth for the loss, and this as a metric."
    )


def by_differences(loss: ast.expr, spot: Spot, tensors: bool = False) -> Edit | None:
    """What `compile` is given as a loss, with a gradient by differences.

    Args:
      loss: The expression.
      spot: A frame of its file.
      tensors: Whether the loss asks tensors for their values: it gets arrays else.
    """
    tf, np = alias(spot, "tensorflow"), alias(spot, "numpy")
    xs = f"*map({tf}.constant, xs)" if tensors else "*xs"
    body = f"lambda *xs: {np}.float32({spot.source.text(loss)}({xs}))"
    text = f"lambda y_true, y_pred: {tf}.reshape({NAME}({body}, {tf}.float32)(y_true, y_pred), [-1])"
    return with_helper(spot.file, spot.source, loss, text, tf, np)


def _smooth(function: Function, spot: Spot) -> bool:
    """Whether a function only computes, and neither counts nor ranks, which moves in steps. OpenCV takes no batches."""
    does = [one for one in ast.walk(function) if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)]
    if does or any(root_is(one.func, spot, "cv2") for one in calls(function)):
        return False
    return computes(function) and in_steps(function) is None and not counts(function, spot)
