"""Calls whose values somebody changed at a stop: what was recorded from then on is not the program's own doing."""

from __future__ import annotations

from collections.abc import Iterator

from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = ("changed-by-hand",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a call."""
    for node, call, noticed in facts.notices["changed-by-hand"]:
        if node is None:
            continue
        known = facts.nodes[node]
        yield Finding(
            "changed-by-hand", "note", node, () if call is None else (call,),
            f"somebody changed {', '.join(noticed['names'])} at a stop in {known.body}: what follows in this recording "
            "is not the program's own doing",
            "record again without changing anything, to compare", known.file, known.line,
        )  # fmt: skip
