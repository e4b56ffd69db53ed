"""A loss that adds up over axis 0, the rows of the batch: it gives a number for each output, and Keras takes one a row.

Without weights Keras takes the mean of whatever it is given, and nothing is said. With weights of rows, of classes or
of a mask the sizes do not fit.
"""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, names, parameters

RULE = "batch-loss"
_SAID = re.compile(r"Dimensions must be equal, but are (\d+) and (\d+) for '\{\{node .*?compile_loss/(\w+)/")
_SUMS = ("sum", "reduce_sum")
_REDUCES = (*_SUMS, "mean", "reduce_mean", "max", "min", "reduce_max", "reduce_min", "norm")
_EACH = ("sqrt", "abs", "log", "square", "exp", "pow", "negative", "cast", "log1p", "multiply", "clip", "maximum")
"""Functions that leave the shape as it is."""
_MOST = 6


class Reduced(NamedTuple):
    """What a loss returns: a reduction over axis 0, perhaps with functions of each number around it.

    Attributes:
      call: The reduction.
      axis: The 0.
      bent: Whether a function is around it whose mean is another than that of its mean, as a root.
    """

    call: ast.Call
    axis: ast.expr
    bent: bool

    @property
    def sums(self) -> bool:
        """Whether it is a sum, which is as large as the batch."""
        return dotted(self.call.func).rpartition(".")[2] in _SUMS


def over_batch(function: ast.FunctionDef) -> Reduced | None:
    """The reduction over the rows that a loss returns, of what it computes from its labels and predictions.

    Args:
      function: The loss: its last two parameters are these.
    """
    given = set(parameters(function)[-2:])
    returned = [one for one in ast.walk(function) if isinstance(one, ast.Return)]
    if len(given) != 2 or len(returned) != 1 or returned[0].value is None:
        return None
    node: ast.expr = returned[0].value
    bent = False
    for _ in range(_MOST):
        if isinstance(node, ast.Name):
            made = [
                one for one in ast.walk(function)
                if isinstance(one, ast.Assign) and [dotted(target) for target in one.targets] == [node.id]
            ]  # fmt: skip
            if len(made) != 1:
                return None
            node = made[0].value
        elif isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant):
            bent = bent or isinstance(node.op, ast.Pow)
            node = node.left
        elif isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant):
            node = node.right
        elif isinstance(node, ast.UnaryOp):
            node = node.operand
        elif isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _EACH and node.args:
            node, bent = node.args[0], True
        else:
            break
    if not isinstance(node, ast.Call) or dotted(node.func).rpartition(".")[2] not in _REDUCES or not node.args:
        return None
    axis = argument(node, 1, "axis")
    kept = [one for one in node.keywords if one.arg in ("keepdims", "keep_dims")]
    if axis is None or kept or ast.unparse(axis) not in ("0", "[0]", "(0,)"):
        return None
    computed = given | {
        name for one in ast.walk(function) if isinstance(one, ast.Assign) and set(names(one.value)) & given
        for target in one.targets for name in names(target)
    }  # fmt: skip
    return Reduced(node, axis, bent) if computed & set(names(node.args[0])) else None


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the weights of a batch's rows met what such a loss gave."""
    said = _SAID.search(situation.message)
    if situation.body or said is None or any(spot.code == said[3] for spot in situation.spots):
        return None
    for file, source in situation.sources():
        for one in ast.walk(source.tree):
            if not isinstance(one, ast.FunctionDef) or one.name != said[3]:
                continue
            found = over_batch(one)
            if found is None:
                continue
            cause = (
                f"{one.name} reduces over axis 0, the rows of the batch: it gives {said[1]} numbers, one for each "
                f"output, where the {said[2]} rows of the batch each have a weight. Keras takes one number a row."
            )
            edit = edit_of(file, source.replaced({found.axis: "-1"}))
            return Explanation(RULE, file, found.call.lineno, cause, edit, "" if edit else "Reduce over axis -1.")
    return None
