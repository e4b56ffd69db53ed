"""Scores that are not a mean over rows, such as AUC or F1, as metrics: of all rows of an epoch at once."""

from __future__ import annotations

import ast
from collections.abc import Container

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import indent_of
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, keras_name, lookup

SAID = " Keras would show the mean of its batches: OfEpoch asks it for all rows of an epoch."
"""What is added to a cause whose paste has the class."""
_CLASS = """class OfEpoch({keras}.metrics.Metric):  # of an epoch's rows, kept until its end: no mean over its batches
    def __init__(self, function, name=None):
        super().__init__(name=name or function.__name__)
        self.function, self.rows = function, []
    def update_state(self, *pair, sample_weight=None):
        {tf}.py_function(lambda *values: self.rows.append(values), pair, [])
    def result(self):
        if {tf}.inside_function() or not self.rows:  # Keras asks in its step, too: nan until the epoch ends
            return {tf}.constant(float("nan"))
        return {tf}.reduce_mean(self.function(*({tf}.concat(column, 0) for column in zip(*self.rows))))
    def reset_state(self):
        self.rows.clear()"""
_SCORES = {
    "sklearn": {
        "roc_auc_score", "average_precision_score", "auc", "r2_score", "explained_variance_score", "f1_score",
        "fbeta_score", "precision_score", "recall_score", "jaccard_score", "balanced_accuracy_score",
        "matthews_corrcoef", "cohen_kappa_score", "precision_recall_fscore_support", "median_absolute_error",
        "root_mean_squared_error",
    },
    "scipy": {"pearsonr", "spearmanr", "kendalltau", "weightedtau", "ks_2samp", "linregress"},
    "numpy": {"corrcoef", "median"},
}  # fmt: skip
"""By package, functions whose value for all rows is not the mean of their values for parts of them."""
_SUMS = ("reduce_sum", "sum", "count_nonzero")
_DIVIDES = ("divide", "divide_no_nan", "truediv")


def class_lines(keras: str, tf: str) -> tuple[str, ...]:
    """The class, by what a file calls Keras and TensorFlow."""
    return tuple(_CLASS.format(keras=keras, tf=tf).split("\n"))


def is_score(value: object) -> bool:
    """Whether a library's function is known to be no mean over rows."""
    package = str(getattr(value, "__module__", "")).partition(".")[0]
    return getattr(value, "__name__", "") in _SCORES.get(package, ())


def gives_score(function: ast.AST, spot: Spot) -> bool:
    """Whether a function of the user's, or one of its file that it calls, gives such a score."""
    own = {one.name: one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef)}
    waiting, seen = [function], {id(function)}
    while waiting:
        one = waiting.pop()
        if divides_sums(one) is not None:
            return True
        for part in ast.walk(one):
            if not isinstance(part, (ast.Name, ast.Attribute)) or not isinstance(part.ctx, ast.Load):
                continue
            if is_score(lookup(part, spot)):
                return True
            inner = own.get(part.id) if isinstance(part, ast.Name) else None
            if inner is not None and id(inner) not in seen:
                seen.add(id(inner))
                waiting.append(inner)
    return False


def divides_sums(own: ast.AST) -> int | None:
    """The line that divides a sum over rows by another; None where there is none."""
    sums: set[str] = set()
    for one in sorted(pastes.walk(own, ast.Assign), key=lambda each: each.lineno):
        target = one.targets[0]
        if isinstance(target, ast.Name) and _has_sum(one.value, sums):
            sums.add(target.id)
    for node in ast.walk(own):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            sides = [node.left, node.right]
        elif isinstance(node, ast.Call) and pastes.last_name(node.func) in _DIVIDES and len(node.args) == 2:
            sides = list(node.args)
        else:
            continue
        if all(_has_sum(one, sums) for one in sides):
            return node.lineno
    return None


def _has_sum(value: ast.expr, sums: Container[str]) -> bool:
    """Whether an expression holds a sum over the rows, or a name of one."""
    for one in ast.walk(value):
        if isinstance(one, ast.Name) and one.id in sums:
            return True
        if isinstance(one, ast.Call) and pastes.last_name(one.func) in _SUMS:
            axis = pastes.argument(one, 1, "axis")
            if axis is None or (isinstance(axis, ast.Constant) and axis.value in (0, None)):
                return True
    return False


def of_epoch(spot: Spot, given: ast.expr, text: str, name: str = "") -> Edit | None:
    """The class above the call of `compile`, which is given `OfEpoch(text, name)` in the place of a function."""
    named = f', "{name}"' if name else ""
    return with_class(spot, {given: f"OfEpoch({text}{named})"})


def with_class(spot: Spot, pieces: dict[ast.expr, str]) -> Edit | None:
    """The class above the call of `compile` that holds some expressions, with others in their place."""
    source = spot.source
    around = [one for one in calls(source.tree) if pastes.last_name(one.func) == "compile"]
    held = [one for one in around if all(part in ast.walk(one) for part in pieces)]
    statement = source.statement(held[0].lineno) if len(held) == 1 else None
    if statement is None or "OfEpoch" in spot.module:
        return None
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    blanks = indent_of(source.lines[first - 1])
    lines = tuple(f"{blanks}{line}" for line in class_lines(keras_name(spot), alias(spot, "tensorflow")))
    return Edit(spot.file, first, last, (*lines, *source.spliced(pieces, first, last)))
