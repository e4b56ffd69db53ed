"""Bodies that raised; and StopIteration, which TensorFlow turns into the end of the data."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pyfunc_debug.doctor.bodies import several, spread, times, together
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = ("body-raised", "stop-iteration")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body and exception type."""
    reader = facts.reader
    rows = reader.rows(  # wrong_tapes reports a gradient without a tape
        "SELECT n.id, n.body, n.file, n.line, f.type, count(*), min(c.id), min(f.id) FROM call c "
        "JOIN failure f ON f.id = c.failure JOIN node n ON n.id = c.node WHERE n.origin = 'user' "
        "AND NOT (c.kind = 'gradient' AND c.forward IS NOT NULL AND c.tape IS NULL AND f.type = 'KeyError') "
        "GROUP BY n.id, f.type ORDER BY n.id"
    )
    for group in together(rows, 4):
        node, body, file, line, kind, _, first, failure = min(group, key=lambda row: int(row[6]))
        counts = {row[0]: row[5] for row in group}
        message, frames = reader.rows("SELECT message, frames FROM failure WHERE id = ?", (failure,))[0]
        inner = json.loads(frames)
        if inner:
            file, line = inner[-1][0], inner[-1][1]
        often = f"{times(sum(counts.values()))}{spread(counts)}"
        if kind == "StopIteration":
            yield Finding(
                "stop-iteration", "error", node, (first,),
                f"StopIteration left {body} {often} (first in call #{first}): TensorFlow takes it for the end of the "
                "data and may end a loop or an epoch without an error",
                "catch it in the body, or give next() a default", file, line, several(counts),
            )  # fmt: skip
        else:
            yield Finding(
                "body-raised", "error", node, (first,),
                f"{body} raised {kind} {often} (first in call #{first}): {message}"[:500],
                f"see its inputs and traceback: `pyfunc-debug show FILE --call {first}`, `%pyfunc_show {first}`",
                file, line, several(counts),
            )  # fmt: skip
