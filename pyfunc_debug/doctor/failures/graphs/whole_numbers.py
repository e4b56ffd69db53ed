"""An op that takes whole numbers gets floats: labels of a generator or of NumPy in `tf.one_hot`, `tf.gather`."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, dtype_of, lookup, root_is

RULE = "mixed-dtypes"
_SAID = re.compile(
    r"(?:Value passed to parameter '\w+' has DataType (\w+) not in list of allowed values: (.*)"
    r"|Value for attr '\w+' of (\w+) is not in the list of allowed values: (.*))"
)
_FLOATS = {"float": "float32", "double": "float64", "half": "float16"}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if one argument of an op is of floats where whole numbers belong."""
    found, spot = _SAID.search(situation.message), situation.last
    statement = situation.statement
    if found is None or spot is None or statement is None:
        return None
    got, allowed = _FLOATS.get(found[1] or found[3], found[1] or found[3]), found[2] or found[4]
    if not got.startswith("float") or "float" in allowed or not re.search(r"\bint(32|64)\b", allowed):
        return None
    for call in calls(statement):
        if not root_is(call.func, spot, "tensorflow"):
            continue
        floats = [one for one in call.args if _dtype(one, spot) == got]
        if len(floats) == 1:
            return _explanation(spot, call, floats[0], got, "int32" if re.search(r"\bint32\b", allowed) else "int64")
    return None


def _dtype(node: ast.expr, spot: Spot) -> str:
    value = lookup(node, spot)
    return dtype_of(value) if hasattr(value, "dtype") else ""


def _explanation(spot: Spot, call: ast.Call, given: ast.expr, got: str, wanted: str) -> Explanation:
    text, name, tf = spot.source.text(given), dotted(call.func), alias(spot, "tensorflow")
    placed = spot.source.replaced({given: f"{tf}.cast({text}, {tf}.{wanted})"})
    edit = edit_of(spot.file, placed)
    cause = f"{text} is {got}, and {name} takes whole numbers: TensorFlow does not convert between them by itself."
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Cast {text} to {tf}.{wanted}.")
