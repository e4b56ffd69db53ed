"""Calls whose values somebody changed at a stop: what was recorded of them and after is not the program's own doing."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = ("changed-by-hand",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a call."""
    reader = facts.reader
    for node, call, told, body, file, line in reader.rows(
        "SELECT t.node, t.call, t.facts, n.body, n.file, n.line FROM notice t JOIN node n ON n.id = t.node "
        "WHERE t.rule = 'changed_by_hand' ORDER BY t.id"
    ):
        names = json.loads(told)["names"]
        yield Finding(
            "changed-by-hand", "note", node, () if call is None else (call,),
            f"somebody changed {', '.join(names)} at a stop in {body}: what follows in this recording is not the "
            "program's own doing",
            "record again without changing anything, to compare", file, line,
        )  # fmt: skip
