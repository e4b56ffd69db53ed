"""Scores of sklearn's in a loss: they count classes or ranks, which has no gradient. Of probabilities they have one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.models import epoch_metrics
from pyfunc_debug.doctor.failures.models.keras_calls import given, is_loss
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, parameters
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, dtype_of, is_symbolic, keras_name, shape_of

RULE = "symbolic-value"
_OVER = {
    "f1_score": "2 * both / (tf.reduce_sum({true}{axis}) + tf.reduce_sum({pred}{axis}) + 1e-7)",
    "precision_score": "both / (tf.reduce_sum({pred}{axis}) + 1e-7)",
    "recall_score": "both / (tf.reduce_sum({true}{axis}) + 1e-7)",
    "balanced_accuracy_score": "both / (tf.reduce_sum({true}{axis}) + 1e-7)",
    "jaccard_score": "both / (tf.reduce_sum({true}{axis}) + tf.reduce_sum({pred}{axis}) - both + 1e-7)",
}  # fmt: skip
"""Scores of what is true and foretold alike (both), of what is true, and of what is foretold: for each class."""
_OTHERS = ("accuracy_score", "roc_auc_score", "matthews_corrcoef")
_CALLED = {
    "f1_score": "F1", "precision_score": "precision", "recall_score": "recall", "jaccard_score": "Jaccard score",
    "balanced_accuracy_score": "recall", "accuracy_score": "accuracy", "roc_auc_score": "AUC",
    "matthews_corrcoef": "correlation", "zero_one_loss": "accuracy", "hamming_loss": "accuracy",
}  # fmt: skip
_COUNTS = (
    *_OVER, *_OTHERS, "fbeta_score", "cohen_kappa_score", "average_precision_score", "hamming_loss", "zero_one_loss",
    "confusion_matrix", "precision_recall_fscore_support", "classification_report", "ndcg_score",
)  # fmt: skip
_HARMLESS = {
    "round", "rint", "argmax", "cast", "constant", "reshape", "numpy_function", "py_function", "py_func", "eval",
    "convert_to_tensor", "convert_to_numpy", "squeeze", "greater", "greater_equal", "numpy", "astype", "array",
    "asarray", "int", "float", "where", "ravel", "flatten", "float32", "float64", "int32", "int64", "ensure_shape",
    "set_shape", "get_value", "print", "to_numpy", "tolist", "clip", "one_hot", "run", "Session", "get_session",
    "threshold", "stop_gradient", "int_", "bool", "identity",
}  # fmt: skip
"""Calls that only make a score's arguments, or hand on what it gives."""
_WANTED = re.compile(
    r"symbolic|SymbolicTensor|eager|to a NumPy|<tf\.Tensor|has no attribute 'numpy'|array-like|unknown rank"
    r"|No gradients provided|must feed a value|Unknown label type|argmax|not understood|sequence"
)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a loss that Keras traced asks sklearn for a score."""
    if situation.body or not _WANTED.search(situation.message):
        return None
    for spot, function in _losses(situation):
        score = _score(function, spot)
        if score is None or len(parameters(function)) != 2:
            continue
        name, line = score
        cause = (
            f"{name} is sklearn's: it takes values, and counts. A count has no gradient, in a py_function neither, "
            "and a loss needs one."
        )
        lines = _soft(name, function, spot, parameters(function))
        called = [one for one in calls(function) if dotted(one.func).rpartition(".")[2] not in _HARMLESS]
        only = all(_is_own(one, spot, name) for one in called)
        if lines is None or not only:
            edit = _crossentropy(function, spot)
            said = "" if edit is not None else (
                f"Train with a crossentropy, or write the score of probabilities; {name} can be a metric, in "
                "tf.numpy_function."
            )  # fmt: skip
            cause += " Below, a crossentropy is the loss and the score a metric." if edit is not None else ""
            return Explanation(RULE, spot.file, line, cause, edit, said, "likely")
        cause += f" This is the soft {_CALLED[name]}, of probabilities. As a metric {name} may stay, in numpy_function."
        source, first = spot.source, function.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(function.body) > 1:
            first = function.body[1]  # below its docstring
        blanks = indent_of(source.lines[first.lineno - 1])
        last = function.body[-1].end_lineno or function.body[-1].lineno
        edit = Edit(spot.file, first.lineno, last, tuple(f"{blanks}{one}" for one in lines))
        return Explanation(RULE, spot.file, line, cause, edit, "", "likely")
    return None


def soft_lines(name: str, inputs: list[str], spot: Spot, tensors: tuple[Any, Any], average: str) -> list[str] | None:
    """The body of a loss that is one less a score, of probabilities; None for a score that has no such form.

    Args:
      name: The score's name.
      inputs: What the loss calls labels and predictions.
      spot: Where it is written.
      tensors: Both, as Keras gave them.
      average: What the score was given as `average`.
    """
    tf, (true, pred) = alias(spot, "tensorflow"), inputs
    shapes = [shape_of(one) for one in tensors]
    if shapes[1] is None or not shapes[1] or not dtype_of(tensors[1]).startswith("float"):
        return None
    classes = shapes[1][-1] if len(shapes[1]) > 1 else 1
    if classes is None:
        return None
    floats = f"{tf}.cast({true}, {pred}.dtype)"
    if classes == 1:
        lines = [f"{true}, {pred} = {tf}.reshape({floats}, [-1]), {tf}.reshape({pred}, [-1])"]
    elif shapes[0] is not None and len(shapes[0]) == len(shapes[1]) and shapes[0][-1] == classes:
        lines = [f"{true} = {floats}"]
    elif len(shapes[1]) == 2:
        lines = [f"{true} = {tf}.one_hot({tf}.cast({tf}.reshape({true}, [-1]), {tf}.int32), {classes})"]
    else:
        return None
    if name in ("accuracy_score", "zero_one_loss", "hamming_loss"):
        both = f"{true} * {pred}"
        hit = f"{both} + (1 - {true}) * (1 - {pred})" if classes == 1 else f"{tf}.reduce_sum({both}, -1)"
        return [*lines, f"return 1 - {tf}.reduce_mean({hit})"]
    if name == "roc_auc_score" and classes == 1:
        return [
            *lines,
            f"pairs = {true}[:, None] * (1 - {true})[None, :]  # of one that is, and one that is not",
            f"wrong = {tf}.sigmoid(10 * ({pred}[None, :] - {pred}[:, None]))",
            f"return {tf}.reduce_sum(pairs * wrong) / ({tf}.reduce_sum(pairs) + 1e-7)",
        ]
    if name == "matthews_corrcoef" and classes == 1:
        return [
            *lines,
            f"a, b = {true} - {tf}.reduce_mean({true}), {pred} - {tf}.reduce_mean({pred})",
            f"return 1 - {tf}.reduce_sum(a * b) / ({tf}.norm(a) * {tf}.norm(b) + 1e-7)",
        ]
    if name not in _OVER:
        return None
    over = classes == 1 or average == "micro"
    axis = "" if over else ", 0"
    score = _OVER[name].format(true=true, pred=pred, axis=axis).replace("tf.", f"{tf}.")
    lines.append(f"both = {tf}.reduce_sum({true} * {pred}{axis})")
    if over:
        return [*lines, f"return 1 - {score}"]
    if average == "weighted":
        weights = f"{tf}.reduce_sum({true}, 0)"
        return [*lines, f"score = {score}", f"return 1 - {tf}.reduce_sum(score * {weights}) / {tf}.reduce_sum({true})"]
    return [*lines, f"return 1 - {tf}.reduce_mean({score})"]


def _soft(name: str, function: ast.FunctionDef, spot: Spot, inputs: list[str]) -> list[str] | None:
    tensors = [spot.value(one) for one in inputs]
    if not all(map(is_symbolic, tensors)):
        return None
    words = [one.value for one in ast.walk(function) if isinstance(one, ast.keyword) and one.arg == "average"]
    average = str(words[0].value) if words and isinstance(words[0], ast.Constant) else ""
    return soft_lines(name, inputs, spot, (tensors[0], tensors[1]), average)


def _losses(situation: Situation) -> Iterator[tuple[Spot, ast.FunctionDef]]:
    """The loss that Keras traced, with its frame; where it went through the trace, those that `compile` was given."""
    index, by = wrapping.entry(situation)
    if by == "Keras":
        spot = situation.spots[index]
        kinds = [one.__name__ for one in type(spot.variables.get("self")).__mro__]
        if isinstance(spot.function, ast.FunctionDef) and (is_loss(situation) or "Loss" in kinds):
            yield spot, spot.function


def _score(function: ast.FunctionDef, spot: Spot, deep: bool = True) -> tuple[str, int] | None:
    """Name and line of the score of sklearn's that a function uses, itself or in another function of the file."""
    own = {one.name: one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef)}
    for one in ast.walk(function):
        if not isinstance(one, (ast.Name, ast.Attribute)) or not isinstance(one.ctx, ast.Load):
            continue
        name = _counting(one, spot)
        if name:
            return name, one.lineno
        inner = own.get(one.id) if deep and isinstance(one, ast.Name) else None
        found = _score(inner, spot, deep=False) if inner is not None and inner is not function else None
        if found is not None:
            return found
    return None


def counts(function: ast.AST, spot: Spot) -> bool:
    """Whether a function asks sklearn for a score that counts."""
    return any(_counting(one, spot) for one in ast.walk(function))


def _counting(node: ast.AST, spot: Spot) -> str:
    """The name of sklearn's score that an expression stands for; "" for any other."""
    value = spot.value(node.id) if isinstance(node, ast.Name) else None
    if isinstance(node, ast.Attribute):
        owner = _object(node.value, spot)
        value = vars(owner).get(node.attr) if type(owner).__name__ == "module" else None
    name = str(getattr(value, "__name__", ""))
    return name if name in _COUNTS and str(getattr(value, "__module__", "")).startswith("sklearn.") else ""


def _object(node: ast.AST, spot: Spot) -> Any:
    if isinstance(node, ast.Name):
        return spot.value(node.id)
    owner = _object(node.value, spot) if isinstance(node, ast.Attribute) else None
    return vars(owner).get(node.attr) if isinstance(node, ast.Attribute) and type(owner).__name__ == "module" else None


def _is_own(call: ast.Call, spot: Spot, name: str) -> bool:
    """Whether a call is that of the score, or of a function of the file that gives it."""
    if _counting(call.func, spot) == name:
        return True
    own = {one.name: one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef)}
    inner = own.get(dotted(call.func))
    return inner is not None and _score(inner, spot, deep=False) is not None


def _crossentropy(function: ast.FunctionDef, spot: Spot) -> Edit | None:
    """`compile` with a crossentropy for the loss that it is given, where the labels and shapes say which."""
    found = [one for one in given(spot) if dotted(one).rpartition(".")[2] == function.name]
    shapes = [shape_of(spot.value(one)) for one in parameters(function)]
    if len(found) != 1 or shapes[1] is None or len(shapes[1]) != 2 or shapes[1][-1] is None:
        return None
    sparse = shapes[0] is not None and (len(shapes[0]) < 2 or shapes[0][-1] != shapes[1][-1])
    kind = "binary_crossentropy" if shapes[1][-1] == 1 else "sparse_" * sparse + "categorical_crossentropy"
    call = next(one for one in calls(spot.source.tree) if any(part is found[0] for part in ast.walk(one)))
    metrics = [one.value for one in call.keywords if one.arg == "metrics"]
    listed = metrics[0] if metrics and isinstance(metrics[0], ast.List) else None
    scored = epoch_metrics.gives_score(function, spot)
    new, metric = f'"{kind}"', _metric(function, spot, scored)
    pieces: dict[ast.expr, str] = {found[0]: new}
    if listed is not None:
        kept = [*map(spot.source.text, listed.elts), metric]
        pieces[listed] = f"[{', '.join(kept)}]"
    elif not metrics and len(call.args) < 3 and found[0] in (*call.args, *(one.value for one in call.keywords)):
        pieces[found[0]] = f"{new}, metrics=[{metric}]"
    if scored and any(metric in one for one in pieces.values()):
        return epoch_metrics.with_class(spot, pieces)
    placed = spot.source.replaced(pieces)
    return edit_of(spot.file, placed)


def _metric(function: ast.FunctionDef, spot: Spot, scored: bool) -> str:
    """The function as a metric: Python on each batch, or on an epoch's rows if its score is not a mean over rows."""
    tf = alias(spot, "tensorflow")
    asks = any(dotted(one.func).rpartition(".")[2] in ("numpy", "eval") for one in calls(function))
    body = function.name if asks else f"lambda *x: {function.name}(*[one.numpy() for one in x])"
    whole = f"{tf}.py_function({body}, [y_true, y_pred], {tf}.float32)"
    if scored:
        return f'OfEpoch(lambda y_true, y_pred: {whole}, "{function.name}")'
    vector = f"{tf}.reshape({whole}, [-1])"
    return f'{keras_name(spot)}.metrics.MeanMetricWrapper(lambda y_true, y_pred: {vector}, "{function.name}")'
