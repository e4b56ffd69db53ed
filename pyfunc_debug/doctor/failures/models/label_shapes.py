"""Labels in another form than the loss takes: one-hot ones for a sparse loss, class numbers for one that is not.

Keras says ranks and shapes (`keras/src/backend/tensorflow/nn.py`), and not which loss takes such labels.
"""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.models.keras_calls import compiled, fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls, keras_name, sizes_of

RULE = "structure"
_SAID = re.compile(
    r"Arguments? (?:`target` and )?`output` must have .*?target\.shape=\(([^)]*)\), output\.shape=\(([^)]*)\)",
    re.DOTALL,
)
_Shape = tuple[int | None, ...]


def said(message: str) -> tuple[_Shape, _Shape] | None:
    """The shapes of labels and predictions that a loss did not take."""
    found = _SAID.search(message)
    return (_sizes(found[1]), _sizes(found[2])) if found is not None else None


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a loss did not take the shape of its labels."""
    both_shapes, spot = said(situation.message), situation.last
    statement = situation.statement
    if both_shapes is None or spot is None or statement is None:
        return None
    labels, outputs = both_shapes
    fitted = [one for one in fits(statement) if isinstance(one.func, ast.Attribute) and one.func.attr != "predict"]
    loss = _assigned(spot, compiled(spot, fitted[0], "loss")) if fitted else _called(spot, statement)
    text = spot.source.text(loss) if loss is not None else ""
    if loss is None or isinstance(loss, (ast.Dict, ast.List)) or not outputs:
        return None
    both = f"the labels are {sizes_of(labels)}, the predictions {sizes_of(outputs)}"
    sparse = "sparse_categorical" in text.lower() or "SparseCategorical" in text
    if sparse and len(labels) == len(outputs) > 1 and _alike(labels[-1], outputs[-1]):
        cause = f"The labels are one-hot: {both}. A sparse loss takes the numbers of the classes instead."
        new = text.replace("sparse_categorical", "categorical").replace("SparseCategorical", "Categorical")
        return _told(spot, loss, cause, new)
    if len(outputs) > len(labels) + 1 or (len(outputs) > 2 and labels[1:] == (1,)):
        return unflattened(spot, f"{both[0].upper()}{both[1:]}: a row has several predictions.")
    numbers = len(outputs) == len(labels) + 1 or (len(labels) == len(outputs) and labels[-1:] == (1,))
    classes = outputs[-1]
    if not numbers or sparse or classes is None or classes < 2:
        return None
    if "categorical" in text.lower():
        cause = f"The labels are numbers of classes: {both}. A sparse loss takes those; this one takes one-hot labels."
        new = text.replace("categorical", "sparse_categorical").replace("Categorical", "SparseCategorical")
        return _told(spot, loss, cause, new)
    if "binary" in text.lower() and "softmax" in "\n".join(spot.source.lines):
        cause = f"{both[0].upper()}{both[1:]}. A model with a unit for each class (softmax) takes a sparse loss."
        new = text.replace("binary", "sparse_categorical").replace("Binary", "SparseCategorical")
        return _told(spot, loss, cause, new)
    if "binary" in text.lower() and classes == 2 and fitted:
        return _one_unit(spot, both)
    return None


def _one_unit(spot: Spot, both: str) -> Explanation | None:
    """Two units, and labels 0 and 1 for a binary loss."""
    last = spot.source.calls_of(frozenset({"Dense"}))[-1:]
    units = argument(last[0], 0, "units") if last else None
    if units is None or computed(units, spot) != 2 or "sigmoid" not in spot.source.text(last[0]):
        return None
    cause = (
        f"{both[0].upper()}{both[1:]}: a binary loss compares each unit with a label of its own. Two classes of one "
        "label take one unit, which is the probability of label 1."
    )
    return Explanation(RULE, spot.file, units.lineno, cause, Edit(spot.file, *spot.source.kept_lines({units: "1"})))


def _told(spot: Spot, loss: ast.expr, cause: str, new: str) -> Explanation:
    return Explanation(RULE, spot.file, loss.lineno, cause, Edit(spot.file, *spot.source.kept_lines({loss: new})))


def _sizes(text: str) -> _Shape:
    return tuple(None if one.strip() == "None" else int(one) for one in text.split(",") if one.strip())


def _alike(one: int | None, other: int | None) -> bool:
    return one == other and one != 1


def _assigned(spot: Spot, loss: ast.expr | None) -> ast.expr | None:
    """The loss itself, where compile has a name for it."""
    if not isinstance(loss, (ast.Name, ast.Attribute)):
        return loss
    found = spot.source.given_to(dotted(loss))
    return found[0] if len(found) == 1 else loss


def _called(spot: Spot, statement: ast.stmt) -> ast.expr | None:
    """The loss that a line of the user's own calls: what makes it, or its function's name."""
    for one in calls(statement):
        loss = _assigned(spot, one.func)
        if loss is not None and "crossentropy" in spot.source.text(loss).lower():
            return loss
    return None


def unflattened(spot: Spot, cause: str) -> Explanation | None:
    """A Sequential model whose first Dense gets more than rows.

    Args:
      spot: A frame of the file that makes it.
      cause: The first sentence.
    """
    lists = [
        one.args[0] for one in spot.source.calls_of(frozenset({"Sequential"}))
        if one.args and isinstance(one.args[0], ast.List)
    ]  # fmt: skip
    cause += " A Dense layer keeps all axes but the last: Flatten makes rows."
    if any(dotted(one.func).endswith(("Flatten", "Pooling2D", "Pooling1D")) for one in calls(spot.source.tree)):
        return None
    dense = [one for part in lists for one in part.elts if isinstance(one, ast.Call) and _is_dense(one)]
    if len(lists) == 1 and dense:
        return _told(spot, dense[0], cause, f"{_flatten(spot, dense[0])}, {spot.source.text(dense[0])}")
    added = [
        (one, one.args[0]) for one in spot.source.calls_of(frozenset({"add"}))
        if one.args and isinstance(one.args[0], ast.Call) and _is_dense(one.args[0])
    ]  # fmt: skip
    if lists or not added:
        return None
    call, layer = added[0]
    text = f"{' ' * call.col_offset}{dotted(call.func)}({_flatten(spot, layer)})"
    return Explanation(RULE, spot.file, call.lineno, cause, Edit(spot.file, call.lineno, call.lineno - 1, (text,)))


def _flatten(spot: Spot, dense: ast.Call) -> str:
    """A Flatten layer, as the file calls layers."""
    name = dotted(dense.func).removesuffix("Dense")
    known = name or spot.value("Flatten") is not None
    return f"{name}Flatten()" if known else f"{keras_name(spot)}.layers.Flatten()"


def _is_dense(call: ast.Call) -> bool:
    return dotted(call.func).rpartition(".")[2] == "Dense"
