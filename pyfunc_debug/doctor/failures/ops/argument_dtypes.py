"""Two dtypes among the arguments of one op: `tf.where(x > 0, x, y)`, `tf.stack([1.0, n])`, `tf.logical_and(a, b)`."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import KERNELS
from pyfunc_debug.doctor.failures.reading.refused_ops import Refused, each
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias

_SAID = re.compile(
    r"cannot compute (\w+) as input #(\d+)\(zero-based\) was expected to be an? (\w+) tensor but is an? (\w+) tensor"
)
_CALLED = {
    "SelectV2": "where", "Pack": "stack", "LogicalAnd": "logical_and", "LogicalOr": "logical_or", "Maximum": "maximum",
    "Minimum": "minimum", "ClipByValue": "clip_by_value", "SquaredDifference": "squared_difference",
}  # fmt: skip
_KNOWN = frozenset((*KERNELS.values(), "bool", "uint8", "int8", "int16"))
_WHOLE = re.compile(r"u?int\d+|bool")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the function that the line calls says which argument is of another dtype."""
    said = _SAID.search(situation.message)
    if said is None or said[1] not in _CALLED:
        return None
    wanted, got = (KERNELS.get(one, one) for one in said.groups()[2:])
    if wanted not in _KNOWN or got not in _KNOWN:
        return None
    return each(situation, _told, _CALLED[said[1]], int(said[2]), wanted, got)


def _told(place: Refused, name: str, at: int, wanted: str, got: str) -> Explanation | None:
    found = place.calls_of(name)
    call = found[0] if len(found) == 1 and not found[0].keywords else None
    if call is None or not call.args:
        return None
    listed = call.args[0] if name == "stack" else None
    given = listed.elts if isinstance(listed, (ast.List, ast.Tuple)) else call.args if listed is None else []
    first = 1 if name == "where" else 0
    if not first <= at < len(given):
        return None
    tf, text, called = alias(place.spot, "tensorflow"), place.text, dotted(call.func)
    other, own = given[first], given[at]
    cause = f"{short(text(own), 30)} is {got}, and "
    if wanted == "bool" and name.startswith("logical"):
        return place.told(f"{cause}{called} takes bools.", {own: f"{tf}.cast({text(own)}, {tf}.bool)"}, measured=True)
    cause += f"{short(text(other), 30)} {wanted}: {called} takes one dtype, and converts nothing."
    if _WHOLE.fullmatch(wanted) and "float" in got:
        if at - first != 1:
            return None
        return place.told(cause, {other: f"{tf}.cast({text(other)}, {tf}.{got})"}, measured=True)
    return place.told(cause, {own: f"{tf}.cast({text(own)}, {tf}.{wanted})"}, measured=True)
