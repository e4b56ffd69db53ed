"""Windows of more rows than a series has: `TimeseriesGenerator(data, targets, length=120)` of 100 rows."""

from __future__ import annotations

import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "argument"
_SAID = re.compile(r"`start_index\+length=(\d+) > end_index=(\d+)` is disallowed")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if Keras' TimeseriesGenerator has no window."""
    spot, statement, said = situation.last, situation.statement, _SAID.search(situation.message)
    if spot is None or statement is None or said is None:
        return None
    for call in calls(statement):
        if dotted(call.func).rpartition(".")[2] != "TimeseriesGenerator":
            continue
        data, length = argument(call, 0, "data"), argument(call, 2, "length")
        if data is None or length is None:
            return None
        text = spot.source.text
        cause = (
            f"a window of {text(length)} rows, with the row behind it as its target, ends at row {said[1]}, and "
            f"{text(data)} ends at row {said[2]} (counted from 0): there is not one window."
        )
        advice = f"Give it longer data, or a length of at most {int(said[2])} less start_index."
        return Explanation(RULE, spot.file, call.lineno, cause, None, advice)
    return None
