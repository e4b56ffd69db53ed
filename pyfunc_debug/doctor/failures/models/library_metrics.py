"""A function of another library, such as sklearn's, given to `compile` as it is: it got symbolic tensors."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from types import CodeType
from typing import Any

from pyfunc_debug.doctor.failures.gradients.score_losses import counts, soft_lines
from pyfunc_debug.doctor.failures.models.epoch_metrics import SAID, gives_score, is_score, of_epoch
from pyfunc_debug.doctor.failures.models.keras_calls import given, is_metric
from pyfunc_debug.doctor.failures.models.measured_losses import by_differences
from pyfunc_debug.doctor.failures.ops.rewrites import as_ops
from pyfunc_debug.doctor.failures.ops.slopes import COST
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import NODE_CALLS
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, parameters
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_symbolic, keras_name, root_is, shape_of
from pyfunc_debug.program import syntax

RULE = "symbolic-value"
_OWN = ("tensorflow", "keras", "tf_keras")
_KINDS = ("NotImplementedError", "TypeError", "ValueError", "AttributeError", "OperatorNotAllowedInGraphError")
_WANTED = re.compile(r"symbolic|SymbolicTensor|to a NumPy|<tf\.Tensor '")
"""What is said where a value was wanted and a tensor was there."""
_SAID = re.compile(f"{_WANTED.pattern}|has no attribute '\\w+'|using a `tf.Tensor` as a Python")
_OF_LABELS = {
    "accuracy_score", "balanced_accuracy_score", "f1_score", "fbeta_score", "precision_score", "recall_score",
    "jaccard_score", "cohen_kappa_score", "matthews_corrcoef", "hamming_loss", "zero_one_loss",
}  # fmt: skip
"""Of sklearn's, those that take classes, not their probabilities."""
_PAIRS = {"pearsonr", "spearmanr", "kendalltau"}
"""Of scipy's, those that give a number of two vectors, and with it how sure it is."""
_LOSSES = {
    "mean_squared_error": "mse", "mean_absolute_error": "mae", "brier_score_loss": "mse",
    "mean_absolute_percentage_error": "mape", "mean_squared_log_error": "msle", "hinge_loss": "hinge",
}  # fmt: skip
"""Keras' names for losses that sklearn has, too."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a function that `compile` was given, and that another library has, failed on a tensor."""
    spot = situation.last
    if spot is None or situation.body or situation.kind not in _KINDS or not _WANTED.search(situation.message):
        return None
    ran = {frame.f_code for frame in frames(situation.inner.__traceback__)}
    found = [(one, value) for one in given(spot) if (value := _foreign(one, spot)) is not None and _codes(value) & ran]
    held = _tensors(situation, found[0][1]) if len(found) == 1 else {}
    if not held:
        return None
    expression, value = found[0]
    name = dotted(expression)
    package = value.__module__.partition(".")[0]
    cause = (
        f"{name} is {package}'s: it needs values, and Keras called it once, while it traced the model, on "
        f"{'symbols' if len(held) > 1 else 'a symbol'} without values."
    )
    if not _is_loss(expression, spot):
        edit = _of_epoch(expression, value, spot, held) if is_score(value) else None
        if edit is not None:
            return Explanation(RULE, spot.file, expression.lineno, f"{cause}{SAID}", edit)
        cause += " A py_function calls it on each batch."
        return Explanation(RULE, spot.file, expression.lineno, cause, _as_metric(expression, value, spot, held))
    cause += " A loss needs a gradient: TensorFlow's ops have one."
    known = _crossentropy(held) if value.__name__ == "log_loss" else _LOSSES.get(value.__name__)
    if known is not None:
        edit = wrapping.replace_expression(spot, expression, f'"{known}"')
        return Explanation(RULE, spot.file, expression.lineno, cause, edit)
    soft = _soft(expression, value, spot, held)
    if soft is not None:
        cause += " This is close to it, of probabilities."
        return Explanation(RULE, spot.file, expression.lineno, cause, soft, "", "likely")
    held_here = dataclasses.replace(spot, variables={**spot.variables, **held})
    text = as_ops(syntax.expression(f"{dotted(expression)}(y_true, y_pred)"), held_here)
    if text is not None:
        edit = wrapping.replace_expression(spot, expression, f"lambda y_true, y_pred: {text}")
        return Explanation(RULE, spot.file, expression.lineno, cause, edit)
    slopes = None if counts(expression, spot) else by_differences(expression, spot)
    advice = COST if slopes is not None else "Write it with TensorFlow's ops."
    return Explanation(RULE, spot.file, expression.lineno, cause, slopes, advice, "likely")


def of_own(situation: Situation) -> Explanation | None:
    """The explanation, if a metric of the user's that gives a score, not a mean over rows, failed on symbols."""
    last = situation.last
    if last is None or situation.body or situation.kind not in _KINDS or not _SAID.search(situation.message):
        return None
    index, by = wrapping.entry(situation)
    spot = situation.spots[index]
    function = spot.function
    if by != "Keras" or not isinstance(function, ast.FunctionDef) or spot.generated:
        return None
    inputs = parameters(function)
    found = [one for one in given(spot) if dotted(one) == function.name and is_metric(one, spot)]
    symbols = len(inputs) == 2 and all(is_symbolic(spot.value(one)) for one in inputs)
    if len(found) != 1 or not symbols or not gives_score(function, spot) or _makes_nodes(function):
        return None
    asks = any(dotted(one.func).rpartition(".")[2] in ("numpy", "eval") for one in calls(function))
    own = asks or any(root_is(one.func, spot, "tensorflow") for one in calls(function))
    body = function.name if own else f"lambda *x: {function.name}(*[one.numpy() for one in x])"
    listed, tf = ", ".join(inputs), alias(spot, "tensorflow")
    text = f"lambda {listed}: {tf}.py_function({body}, [{listed}], {tf}.float32)"
    edit = of_epoch(spot, found[0], text, function.name)
    cause = (
        f"{function.name} needs values, and Keras called it once, while it traced the model, on symbols without "
        f"values.{SAID}"
    )
    return Explanation(RULE, last.file, last.line, cause, edit) if edit is not None else None


def _makes_nodes(function: ast.FunctionDef) -> bool:
    """Whether a function calls py_function itself."""
    return any(dotted(one.func).rpartition(".")[2] in NODE_CALLS for one in calls(function))


def _crossentropy(held: dict[str, Any]) -> str:
    """Keras' name for the crossentropy of labels and probabilities of these shapes."""
    true, pred = (shape_of(held.get(one)) for one in ("y_true", "y_pred"))
    if not pred or len(pred) < 2 or pred[-1] == 1:
        return "binary_crossentropy"
    return "categorical_crossentropy" if true == pred else "sparse_categorical_crossentropy"


def _soft(expression: ast.expr, value: Any, spot: Spot, held: dict[str, Any]) -> Edit | None:
    """A loss that is one less the score, of probabilities, above the call of `compile` that is given the score."""
    statement = spot.source.statement(expression.lineno)
    inputs = ["y_true", "y_pred"]
    lines = soft_lines(value.__name__, inputs, spot, (held["y_true"], held["y_pred"]), "") if len(held) == 2 else None
    name = f"soft_{value.__name__}"
    if lines is None or statement is None or name in spot.module:
        return None
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    blanks = indent_of(spot.source.lines[first - 1])
    made = (f"{blanks}def {name}(y_true, y_pred):", *(f"{blanks}    {one}" for one in lines))
    return Edit(spot.file, first, last, (*made, *spot.source.spliced({expression: name}, first, last)))


def _as_metric(expression: ast.expr, value: Any, spot: Spot, held: dict[str, Any]) -> Edit | None:
    whole = f"{alias(spot, 'tensorflow')}.reshape({_in_python(expression, value, spot, held)}, [-1])"
    name = dotted(expression).rpartition(".")[2]
    new = f'{keras_name(spot)}.metrics.MeanMetricWrapper(lambda y_true, y_pred: {whole}, "{name}")'
    return wrapping.replace_expression(spot, expression, new)


def _of_epoch(expression: ast.expr, value: Any, spot: Spot, held: dict[str, Any]) -> Edit | None:
    """A metric that asks the function for all rows of an epoch."""
    text = f"lambda y_true, y_pred: {_in_python(expression, value, spot, held)}"
    return of_epoch(spot, expression, text, dotted(expression).rpartition(".")[2])


def _in_python(expression: ast.expr, value: Any, spot: Spot, held: dict[str, Any]) -> str:
    """The py_function that calls the function on `y_true` and `y_pred`."""
    tf, name = alias(spot, "tensorflow"), dotted(expression)
    body = name
    if value.__name__ in _OF_LABELS and value.__module__.startswith("sklearn"):
        sides = []
        for one in ("y_true", "y_pred"):
            shape = shape_of(held.get(one))
            many = bool(shape) and shape is not None and len(shape) > 1 and (shape[-1] or 0) > 1
            sides.append(f"{one[2:]}.numpy().{'argmax(-1)' if many else 'round()'}")
        body = f"lambda true, pred: {name}({', '.join(sides)})"
    if value.__name__ in _PAIRS:
        body = f"lambda true, pred: {name}(true.numpy().ravel(), pred.numpy().ravel())[0]"
    return f"{tf}.py_function({body}, [y_true, y_pred], {tf}.float32)"


def _foreign(expression: ast.expr, spot: Spot) -> Any:
    """The function of another library that a name stands for; None for any other expression."""
    if isinstance(expression, ast.Name):
        value = spot.value(expression.id)
    elif isinstance(expression, ast.Attribute) and isinstance(expression.value, ast.Name):
        owner = spot.value(expression.value.id)
        value = vars(owner).get(expression.attr) if inspect.ismodule(owner) else None
    else:
        return None
    module = str(getattr(value, "__module__", "")).partition(".")[0]
    own = module in ("", "__main__", *_OWN) or not inspect.isfunction(value)
    return (
        None if own or spot.first_line(value.__code__) is not None or spot.module.get("__name__") == module else value
    )


def _codes(function: Any) -> set[CodeType]:
    """The code of a function, and of those that it wraps."""
    found: set[CodeType] = set()
    while inspect.isfunction(function):
        found.add(function.__code__)
        function = getattr(function, "__wrapped__", None)
    return found


def _tensors(situation: Situation, function: Any) -> dict[str, Any]:
    """`y_true` and `y_pred` as the function got them, where they are symbolic."""
    found: dict[str, Any] = {}
    codes = _codes(function)
    for frame in frames(situation.inner.__traceback__):
        if frame.f_code not in codes:
            continue
        given = [frame.f_locals.get(name) for name in frame.f_code.co_varnames[: frame.f_code.co_argcount]]
        given += frame.f_locals.get("args", ()) if not given else ()
        found |= {name: value for name, value in zip(("y_true", "y_pred"), given) if is_symbolic(value)}
    return found


def _is_loss(expression: ast.expr, spot: Spot) -> bool:
    for call in calls(spot.source.tree):
        if dotted(call.func).endswith("compile"):
            named = [*call.args[1:2], *(one.value for one in call.keywords if one.arg == "loss")]
            if any(part is expression for one in named for part in ast.walk(one)):
                return True
    return False
