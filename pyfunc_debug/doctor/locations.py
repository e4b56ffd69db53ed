"""Where a node was made, and where a call was started, in words."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyfunc_debug.pfrec import Reader
from pyfunc_debug.places import source_line

_LINES = 4
"""More lines than these, among which a call may have been started, say nothing."""


def sites(reader: Reader, nodes: Sequence[int]) -> str:
    """` (called at train.py:12)`: the user's lines that put nodes into their graphs; empty when none is known."""
    marks = ", ".join("?" * len(nodes))
    rows = reader.rows(f"SELECT s.frames FROM node n JOIN stack s ON s.id = n.stack WHERE n.id IN ({marks})", nodes)
    lines = list(dict.fromkeys(_line(frames) for (frames,) in rows))
    more = f" and {len(lines) - _LINES} other lines" if len(lines) > _LINES else ""
    return f" (called at {' and '.join(lines[:_LINES])}{more})" if lines else ""


def started(reader: Reader, call: int) -> str:
    """` of the run started at train.py:30`: the user's line that started the run of a call, or made the eager call.

    Where several runs may be the call's, their lines are all named; empty when none is known, as in tf.data.
    """
    rows = reader.rows(
        "SELECT c.run, c.runs, f.kind, s.frames FROM call c JOIN node n ON n.id = c.node "
        "LEFT JOIN function f ON f.id = n.function LEFT JOIN stack s ON s.id = n.stack WHERE c.id = ?",
        (call,),
    )
    if not rows:
        return ""
    run, candidates, kind, frames = rows[0]
    if kind == "eager":
        return f" made at {_line(frames)}" if frames else ""
    runs = json.loads(candidates) if candidates else [] if run is None else [run]
    marks = ", ".join("?" * len(runs))
    sites = reader.rows(f"SELECT s.frames FROM run r JOIN stack s ON s.id = r.site WHERE r.id IN ({marks})", runs)
    lines = sorted({_line(frames) for (frames,) in sites})
    which = "the" if run is not None else "a"
    return f" of {which} run started at {' or '.join(lines)}" if 0 < len(lines) <= _LINES else ""


def _line(frames: str) -> str:
    file, line, *_ = json.loads(frames)[-1]
    return source_line(file, line)


def path(reader: Reader, node: int | None, position: int) -> str:
    """Name of a node's input."""
    rows = reader.rows("SELECT paths FROM node WHERE id = ?", (node,))
    paths = json.loads(rows[0][0]) if rows else []
    return repr(paths[position]) if position < len(paths) else f"number {position}"
