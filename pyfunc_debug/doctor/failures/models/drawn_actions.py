"""`np.random.choice(n, p=model.predict(state))`: a model gives a row of probabilities for each state, and p is one."""

from __future__ import annotations

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup, shape_of

RULE = "structure"
_SAID = "'p' must be 1-dimensional"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the p of the failing line is the one row of a matrix."""
    spot, statement = situation.last, situation.statement
    if _SAID not in situation.message or spot is None or statement is None:
        return None
    for call in calls(statement):
        given = argument(call, 3, "p") if dotted(call.func).endswith("choice") else None
        shape = shape_of(lookup(given, spot)) if given is not None else None
        if given is None or shape is None or len(shape) != 2 or shape[0] != 1:
            continue
        text = spot.source.text(given)
        cause = f"{text} has the shape {list(shape)}, one row for each example, and p takes the row."
        edit = edit_of(spot.file, spot.source.replaced({given: f"{text}[0]"}))
        return Explanation(RULE, spot.file, call.lineno, cause, edit)
    return None
