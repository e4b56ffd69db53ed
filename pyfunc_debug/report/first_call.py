"""Where a reader begins: the first call that failed, else the first that gave a NaN, else the slowest."""

from __future__ import annotations

import sqlite3

import numpy as np

from pyfunc_debug.analysis.columns import ERROR, RUNNING, Columns
from pyfunc_debug.analysis.facts import ProgramFacts

_MOST_READ = 200_000
"""Of a recording with more calls, values are not searched: that would take seconds."""


def look_now(facts: ProgramFacts, columns: Columns) -> int | None:
    """What matters while a recording grows: the call at a stop, else the first that failed, or that runs."""
    held = [stop.call for stop in columns.stops if stop.open and columns.find(stop.call) is not None]
    if held:
        return held[-1]
    own = np.isin(columns.node, [node.id for node in facts.nodes.values() if node.origin == "user"])
    for status in (ERROR, RUNNING):
        found = np.flatnonzero(own & (columns.status == status))
        if len(found):
            return int(columns.id[found[0]])
    return None


def first_call(connection: sqlite3.Connection, facts: ProgramFacts, columns: Columns) -> int | None:
    """The number of that call, among those of the user's own nodes; None if they have no calls."""
    own = [node.id for node in facts.nodes.values() if node.origin == "user"]
    mine = np.isin(columns.node, own)
    failed = np.flatnonzero(mine & (columns.status == ERROR))
    if len(failed):
        return int(columns.id[failed[0]])
    if len(columns) <= _MOST_READ:
        wanted = set(own)
        rows = connection.execute(
            "SELECT value.call, call.node FROM value JOIN call ON call.id = value.call WHERE value.nan > 0"
            " ORDER BY value.call"
        )
        for call, node in rows:
            if node in wanted:
                return int(call)
    places = np.flatnonzero(mine)
    return int(columns.id[places[np.argmax(columns.duration[places])]]) if len(places) else None
