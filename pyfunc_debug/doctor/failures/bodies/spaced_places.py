"""Places that `np.linspace(0, count, n)` spreads over `count` rows: its last one is behind the last row."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import lookup

_SAID = re.compile(r"index (\d+) is out of bounds for axis \d+ with size (\d+)|list index out of range")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an index is the number of rows, and the function spreads places up to that."""
    said = _SAID.search(situation.message) if situation.kind == "IndexError" and situation.data else None
    if said is None or (said[1] is not None and said[1] != said[2]):
        return None
    for spot in reversed(situation.spots):
        function = spot.function
        for call in own_nodes(function) if function is not None else ():
            if not isinstance(call, ast.Call):
                continue
            end = argument(call, 1, "stop")
            open_end = argument(call, 3, "endpoint")
            if not dotted(call.func).endswith("linspace") or end is None or open_end is not None:
                continue
            size = _count(end, spot)
            if size is None or (said[2] is not None and size != int(said[2])):
                continue
            text = spot.source.text(end)
            cause = (
                f"`{spot.source.text(call)}` ends with {text}, which is {size}: there are {size} rows, and the last "
                f"has the number {size - 1}."
            )
            edit = edit_of(spot.file, spot.source.replaced({end: f"{text} - 1"}))
            return Explanation(RULE, spot.file, call.lineno, cause, edit)
    return None


def _count(end: ast.expr, spot: Spot) -> int | None:
    """The number that an expression stands for: `total`, `len(frames)`, `video.shape[0]`."""
    if isinstance(end, ast.Call) and dotted(end.func) == "len" and len(end.args) == 1:
        rows = lookup(end.args[0], spot)
        return len(rows) if hasattr(rows, "__len__") else None
    value = lookup(end, spot)
    return value if type(value) is int else None
