"""Values that were equal in all replicas of a process (MirroredStrategy), and then are not."""

from __future__ import annotations

from collections.abc import Iterator

from pyfunc_debug.analysis.replicas import compare_replicas, replicas_in
from pyfunc_debug.doctor import across
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = across.NAMES


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body, with the replicas that differ."""
    if replicas_in(facts.reader):
        found = compare_replicas([("", facts.reader)])
        yield from (finding for finding, _ in across.diverged(found, [facts.reader.path], facts.front))
