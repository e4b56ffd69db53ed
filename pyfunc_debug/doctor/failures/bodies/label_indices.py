"""A number that is counted from 1, as labels of data sets are, taken for an index: NumPy and Python count from 0."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.nodes import failed_node
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.symbols import lookup

_SAID = re.compile(r"index (\d+) is out of bounds for axis \d+ with size (\d+)")
_OF_LISTS = ("list index out of range", "tuple index out of range")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an input of the body is the index one past the last, and was 1 or more in all calls."""
    spot, statement = situation.last, situation.statement
    if not situation.body or situation.kind != "IndexError" or spot is None or statement is None:
        return None
    found = _SAID.search(situation.message)
    if found is None and situation.message not in _OF_LISTS:
        return None
    asked = [one for one in ast.walk(statement) if isinstance(one, ast.Subscript)]
    sizes = {one: int(found[2]) if found is not None else _length(one.value, spot) for one in asked}
    asked = [one for one in asked if sizes[one] and _is_past(one.slice, spot, sizes[one])]
    node = failed_node(situation) if len(asked) == 1 else None
    if node is None:
        return None
    size, index = sizes[asked[0]], asked[0].slice
    rows = situation.rows(
        "SELECT v.path, min(v.min), max(v.max), count(DISTINCT c.id) FROM value v JOIN call c ON c.id = v.call "
        "WHERE c.node = ? AND c.kind = 'forward' AND v.role = 'input' AND v.dtype LIKE '%int%' GROUP BY v.position",
        (node.id,),
    )
    counted = [(path, calls) for path, least, most, calls in rows if least == 1 and most == size and calls > 1]
    edit = in_place(spot, {index: f"{spot.source.atom(index)} - 1"}) if len(counted) == 1 else None
    if edit is None:
        return None
    path, calls = counted[0]
    return Explanation(
        RULE, spot.file, spot.line,
        f"{path} was 1 to {size} in the {calls} calls so far, and indices of {size} are 0 to {size - 1}: it is counted "
        f"from 1. If 0 comes as well, {size + 1} are needed instead.", edit, "", "likely",
    )  # fmt: skip


def _length(owner: ast.expr, spot: Spot) -> int:
    """The length of a list or tuple; 0 of all else."""
    value = lookup(owner, spot)
    return len(value) if type(value) in (list, tuple) else 0


def _is_past(index: ast.expr, spot: Spot, size: int) -> bool:
    """Whether `label`, `int(label)` or `label.numpy()` is the first index that is not there."""
    inside = index
    if isinstance(index, ast.Call):
        inside = index.args[0] if len(index.args) == 1 else getattr(index.func, "value", index)
    value = lookup(inside, spot)
    if type(value).__name__ == "EagerTensor" or type(value).__module__ == "numpy":
        value = int(value) if value.shape == () and value.dtype.name != "string" else None
    return type(value) is int and value == size
