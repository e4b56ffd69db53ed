"""What a recording says of its nodes in sums: the ledger of many recordings need not read one call after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyfunc_debug.analysis.ledger import CallSums, NodeRow, Parts, Times
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.pfrec.sums import CallSum
from pyfunc_debug.records import Node

Sums = Mapping[tuple[int, str], CallSums]
_NONE = CallSums(0, 0, 0, 0, 0, Times(0, None, None, 0), None)


def summary(reader: Reader) -> Sums | None:
    """Sums by node and kind: those that a completed recording keeps, else over its calls.

    None where calls were held at stops: that time is in the sums, and in no call's time that is shown.
    """
    if reader.rows("SELECT 1 FROM notice WHERE rule IN ('stop', 'held') LIMIT 1"):
        return None
    stored = _kept(reader) or reader.call_sums()
    lost = {
        (node, kind): numbers
        for node, kind, *numbers in reader.rows("SELECT node, kind, calls, errors, total_ns FROM dropped")
    }
    found = {key: _call_sums(one, *lost.pop(key, (0, 0, 0))) for key, one in stored.items()}
    for key, (calls, errors, _) in lost.items():
        found[key] = CallSums(0, calls, errors, 0, 0, Times(0, None, None, 0), None)
    return found


def _kept(reader: Reader) -> dict[tuple[int, str], CallSum]:
    """The table `summary`; empty in a file of before there was one, while it is recorded, and where it lacks calls."""
    state = reader.meta.get("state")
    if state == "recording" or not reader.rows("SELECT 1 FROM sqlite_master WHERE name = 'summary'"):
        return {}
    found = {
        (node, kind): CallSum(calls, errors, 0, calls, total, longest, measured, tuple(gil))
        for node, kind, calls, errors, total, longest, measured, *gil in reader.rows(
            "SELECT node, kind, calls, errors, total_ns, max_ns, measured, wait_ns, held_ns, released_ns, reacquire_ns "
            "FROM summary"
        )
    }
    if found and state == "interrupted":
        for key, running in reader.running_calls().items():
            one = found.setdefault(key, CallSum())
            one.calls, one.running = one.calls + running, running
    return found


def _call_sums(one: CallSum, lost: int, lost_errors: int, lost_ns: int) -> CallSums:
    wait, held, released, inside = one.gil
    times, parts = Times(0, None, None, 0), None
    if one.ended:
        ended, total = one.ended + lost, one.total_ns + lost_ns
        times = Times(ended, total / ended, None, total, one.max_ns)
    if one.measured:
        assert wait is not None
        parts = Parts(wait, held, released, inside, float(one.total_ns))
    return CallSums(one.calls, lost, one.errors + lost_errors, one.errors, one.running, times, parts)


def sums_row(nodes: Sequence[Node], sums: Sums) -> NodeRow:
    """The row of the nodes that one line made, as `ledger.make_ledger` makes it."""
    busiest = max(nodes, key=lambda node: sums.get((node.id, "forward"), _NONE).stored)
    forward, gradient = (
        added([sums.get((node.id, kind), _NONE) for node in nodes]) for kind in ("forward", "gradient")
    )
    return NodeRow(busiest, tuple(nodes), forward, gradient)


def added(several: Sequence[CallSums]) -> CallSums:
    """Calls of several nodes as those of one."""
    several = [one for one in several if one.calls] or several[:1]
    if len(several) == 1:
        return several[0]
    count, total = (sum(getattr(one.times, key) for one in several) for key in ("count", "total_ns"))
    longest = max((one.times.max_ns for one in several if one.times.max_ns is not None), default=None)
    return CallSums(
        stored=sum(one.stored for one in several),
        dropped=sum(one.dropped for one in several),
        errors=sum(one.errors for one in several),
        failed=sum(one.failed for one in several),
        running=sum(one.running for one in several),
        times=Times(count, total / count if count else None, None, total, longest),
        parts=_parts([one.parts for one in several]),
        interrupted=sum(one.interrupted for one in several),
    )


def _parts(several: Sequence[Parts | None]) -> Parts | None:
    known = [one for one in several if one is not None]
    if len(known) < len(several):
        return None
    both = [[getattr(one, key) for one in known] for key in Parts.__dataclass_fields__]
    sums: list[Any] = [None if None in values else sum(values) for values in both]
    return Parts(*sums)
