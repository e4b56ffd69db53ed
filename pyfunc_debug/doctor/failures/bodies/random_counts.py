"""A tensor as the number of things that Python's `random.sample` draws: it multiplies a list by it."""

from __future__ import annotations

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup

_SAID = "Attempt to convert a value (None) with an unsupported type"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if `random.sample` of the failing line got a tensor with a value as its k."""
    spot, statement = situation.last, situation.statement
    if _SAID not in situation.message or spot is None or statement is None:
        return None
    for call in calls(statement):
        function, count = lookup(call.func, spot), argument(call, 1, "k")
        of_python = getattr(getattr(function, "__func__", None), "__qualname__", "") == "Random.sample"
        if count is None or not of_python or type(lookup(count, spot)).__name__ != "EagerTensor":
            continue
        text = spot.source.text(count)
        edit = in_place(spot, {count: f"int({text})"})
        cause = f"{text} is a tensor, and random.sample makes a list of as many places: it takes a number."
        return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else f"Give it int({text}).")
    return None
