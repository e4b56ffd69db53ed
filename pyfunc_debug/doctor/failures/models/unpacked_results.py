"""Names for other values than Keras gives: `loss, acc = model.evaluate(...)`, `out, state = LSTM(...)(x)`."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.models.keras_calls import compiled
from pyfunc_debug.doctor.failures.models.monitored import logs_of
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup, of_keras
from pyfunc_debug.doctor.text import listed

RULE = "structure"
_MANY = re.compile(r"too many values to unpack \(expected (\d+)\)")
_COUNT = re.compile(r"(?:too many|not enough) values to unpack")
_NO_NUMBER = re.compile(
    r"must be real number, not list|format string passed to list"
    r"|between instances of '(?:list' and '\w+|\w+' and 'list)'"
    r"|unsupported operand type\(s\) for [^:]+: '(?:list' and '(?:float|int)|(?:float|int)' and 'list)'"
)
_GIVE_LISTS = ("train_on_batch", "test_on_batch", "evaluate")
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
    if dotted(call.func).rpartition(".")[2] in _GIVE_LISTS and of_keras(type(owner), "Model"):
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


def as_number(situation: Situation) -> Explanation | None:
    """The explanation, if a list of the loss and the metrics stands where a number is wanted: `"%.3f" % loss`."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or not _NO_NUMBER.search(situation.message):
        return None
    holder = spot.source.function(spot.line) or spot.source.tree
    for one in ast.walk(statement):
        value = lookup(one, spot) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) else None
        if not isinstance(one, ast.Name) or type(value) is not list or not value:
            continue
        made = [
            part.value for part in ast.walk(holder)
            if isinstance(part, ast.Assign) and one.id in map(dotted, part.targets) and isinstance(part.value, ast.Call)
            and dotted(part.value.func).rpartition(".")[2] in _GIVE_LISTS
        ]  # fmt: skip
        owner = made[0].func.value if len(made) == 1 and isinstance(made[0].func, ast.Attribute) else None
        if owner is None or isinstance(spot.source.parent(one), ast.Subscript):
            continue
        model = lookup(owner, spot)
        if not of_keras(type(model), "Model"):
            continue
        names = logs_of(spot, made[0])
        cause = (
            f"{one.id} is a list of {len(value)} numbers: {dotted(made[0].func).rpartition('.')[2]} gives the loss and "
            f"the metrics of compile{f' ({short(listed(names), 60)})' if len(names) == len(value) else ''}."
        )
        indexed = any(
            isinstance(part, ast.Subscript) and dotted(part.value) == one.id for part in ast.walk(holder)
        )  # other lines take parts of the list
        new: dict[ast.expr, str] = {one: f"{one.id}[0]"} if indexed else {made[0]: f"{spot.source.text(made[0])}[0]"}
        first = next(iter(new))
        return Explanation(RULE, spot.file, first.lineno, cause, edit_of(spot.file, spot.source.replaced(new)))
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
    method = dotted(call.func).rpartition(".")[2]
    last = target.elts[-1]
    if many:
        if not isinstance(metrics, (ast.List, ast.Tuple)) or len(metrics.elts) < len(target.elts):
            return None
        cause = (
            f"{method} gives the loss and {len(metrics.elts)} metrics of compile, in their order, and this line takes "
            f"{len(target.elts)} values. The star takes the others."
        )
        edit = edit_of(spot.file, spot.source.replaced({last: f"{text(last)}, *_"}))
        return Explanation(RULE, spot.file, call.lineno, cause, edit)
    compiles = [one for one in calls(spot.source.tree) if dotted(one.func).endswith(".compile")]
    if metrics is not None or len(compiles) != 1 or len(target.elts) != 2:
        return None
    cause = f"{method} gives the loss alone, as a number: compile has no metrics."
    if "acc" not in text(last).lower():
        edit = edit_of(spot.file, spot.source.replaced({target: text(target.elts[0])}))
        return Explanation(RULE, spot.file, call.lineno, cause, edit)
    loss = compiled(spot, call, "loss")
    name = "accuracy" if loss is not None and "crossentropy" in text(loss).lower() else "mae"
    new = spot.source.with_argument(compiles[0], f'metrics=["{name}"]')
    edit = edit_of(spot.file, spot.source.replaced({compiles[0]: new}))
    return Explanation(RULE, spot.file, compiles[0].lineno, cause, edit)
