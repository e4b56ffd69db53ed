"""Bodies that raised; and StopIteration, which TensorFlow turns into the end of the data."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pyfunc_debug.recording import Reader
from pyfunc_debug.records import Finding


def check(reader: Reader) -> Iterator[Finding]:
    """One finding a node and exception type."""
    rows = reader.rows(  # a gradient without a tape is told by wrong_tapes
        "SELECT n.id, n.body, n.file, n.line, f.type, count(*), min(c.id), min(f.id) FROM call c "
        "JOIN failure f ON f.id = c.failure JOIN node n ON n.id = c.node WHERE n.origin = 'user' "
        "AND NOT (c.kind = 'gradient' AND c.forward IS NOT NULL AND c.tape IS NULL AND f.type = 'KeyError') "
        "GROUP BY n.id, f.type ORDER BY n.id"
    )
    for node, body, file, line, kind, count, first, failure in rows:
        message, frames = reader.rows("SELECT message, frames FROM failure WHERE id = ?", (failure,))[0]
        inner = json.loads(frames)
        if inner:
            file, line = inner[-1][0], inner[-1][1]
        times = "once" if count == 1 else f"{count:,} times"
        if kind == "StopIteration":
            yield Finding(
                "stop-iteration", "error", node, (first,),
                f"StopIteration left {body} {times} (first in call #{first}): TensorFlow takes it for the end of the "
                "data and may end a loop or an epoch without an error",
                "catch it in the body, or give next() a default", file, line,
            )  # fmt: skip
        else:
            yield Finding(
                "body-raised", "error", node, (first,),
                f"{body} raised {kind} {times} (first in call #{first}): {message}"[:500],
                f"see its inputs and traceback: `pyfunc-debug show FILE --call {first}`, `%pyfunc_show {first}`",
                file, line,
            )  # fmt: skip
