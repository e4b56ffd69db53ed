"""Names for other values than Keras gives: `loss, acc = model.evaluate(...)`, `out, state = LSTM(...)(x)`."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.models.keras_calls import compiled
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup, of_keras

RULE = "structure"
_MANY = re.compile(r"too many values to unpack \(expected (\d+)\)")
_COUNT = re.compile(r"(?:too many|not enough) values to unpack")
_ALONE = "cannot unpack non-iterable float object"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line has names for fewer values than `evaluate` or an LSTM with its states gives."""
    spot, statement = situation.last, situation.statement
    many = _MANY.search(situation.message)
    if spot is None or not isinstance(statement, ast.Assign) or not (many or _ALONE in situation.message):
        return None
    target, call = statement.targets[0], statement.value
    if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(call, ast.Call) or len(target.elts) < 2:
        return None
    if any(isinstance(one, ast.Starred) for one in target.elts):
        return None
    owner = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
    if dotted(call.func).endswith(".evaluate") and of_keras(type(owner), "Model"):
        return _evaluated(spot, target, call, bool(many))
    layer = call.func if isinstance(call.func, ast.Call) else None
    if many and layer is not None and dotted(layer.func).rpartition(".")[2] == "LSTM" and len(target.elts) == 2:
        if not any(one.arg == "return_state" for one in layer.keywords):
            return None
        text = spot.source.text(target.elts[1])
        cause = f"An LSTM gives its output and two states, h and c. With a star {text} is the list of both."
        edit = edit_of(spot.file, spot.source.replaced({target.elts[1]: f"*{text}"}))
        return Explanation(RULE, spot.file, call.lineno, cause, edit)
    return None


def rows(situation: Situation) -> Explanation | None:
    """The explanation, if a list of tuples, as of a replay buffer, was unpacked into a name for each part of them."""
    spot, statement = situation.last, situation.statement
    if not _COUNT.search(situation.message) or spot is None or not isinstance(statement, ast.Assign):
        return None
    target, value = statement.targets[0], lookup(statement.value, spot)
    if not isinstance(target, (ast.Tuple, ast.List)) or type(value) not in (list, tuple) or not value:
        return None
    count, plain = len(target.elts), not any(isinstance(one, ast.Starred) for one in target.elts)
    if not plain or len(value) == count or any(type(one) not in (tuple, list) or len(one) != count for one in value):
        return None
    text = spot.source.text(statement.value)
    cause = f"{text} has {len(value)} rows of {count} values each. zip gives each name its value of all rows."
    edit = edit_of(spot.file, spot.source.replaced({statement.value: f"zip(*{spot.source.atom(statement.value)})"}))
    return Explanation(RULE, spot.file, statement.lineno, cause, edit)


def _evaluated(spot: Spot, target: ast.Tuple | ast.List, call: ast.Call, many: bool) -> Explanation | None:
    metrics, text = compiled(spot, call, "metrics"), spot.source.text
    last = target.elts[-1]
    if many:
        if not isinstance(metrics, (ast.List, ast.Tuple)) or len(metrics.elts) < len(target.elts):
            return None
        cause = (
            f"evaluate gives the loss and {len(metrics.elts)} metrics of compile, in their order, and this line takes "
            f"{len(target.elts)} values. The star takes the others."
        )
        edit = edit_of(spot.file, spot.source.replaced({last: f"{text(last)}, *_"}))
        return Explanation(RULE, spot.file, call.lineno, cause, edit)
    compiles = [one for one in calls(spot.source.tree) if dotted(one.func).endswith(".compile")]
    if metrics is not None or len(compiles) != 1 or len(target.elts) != 2:
        return None
    cause = "evaluate gives the loss alone, as a number: compile has no metrics."
    if "acc" not in text(last).lower():
        edit = edit_of(spot.file, spot.source.replaced({target: text(target.elts[0])}))
        return Explanation(RULE, spot.file, call.lineno, cause, edit)
    loss = compiled(spot, call, "loss")
    name = "accuracy" if loss is not None and "crossentropy" in text(loss).lower() else "mae"
    new = spot.source.with_argument(compiles[0], f'metrics=["{name}"]')
    edit = edit_of(spot.file, spot.source.replaced({compiles[0]: new}))
    return Explanation(RULE, spot.file, compiles[0].lineno, cause, edit)
