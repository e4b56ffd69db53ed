"""A connection to SQLite in a body: only the thread that made it may use it, and TensorFlow runs bodies on others."""

from __future__ import annotations

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "thread-bound"
_SAID = "SQLite objects created in a thread can only be used in that same thread"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if SQLite refused the thread of a body or a generator."""
    spot = situation.last
    if _SAID not in situation.message or spot is None:
        return None
    made = [
        (file, source, one) for file, source in situation.sources() for one in calls(source.tree)
        if dotted(one.func) in ("sqlite3.connect", "connect") and one.args
        and all(keyword.arg not in (None, "check_same_thread") for keyword in one.keywords)
    ]  # fmt: skip
    where = f" (line {made[0][2].lineno})" if len(made) == 1 and made[0][0] == spot.file else ""
    cause = (
        f"SQLite lets only the thread that made a connection{where} use it, and TensorFlow runs bodies and generators "
        "on threads of its own."
    )
    if len(made) != 1:
        return Explanation(RULE, spot.file, spot.line, cause, None, "Make it with check_same_thread=False.")
    file, source, call = made[0]
    edit = edit_of(file, source.replaced({call: source.with_argument(call, "check_same_thread=False")}))
    cause += " check_same_thread=False lets all of them use it. Where they write, hold a lock of yours."
    return Explanation(RULE, spot.file, spot.line, cause, edit)
