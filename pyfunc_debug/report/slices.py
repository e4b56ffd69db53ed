"""A recording as a timeline for other tools: slices on tracks of threads, arrows between them, counters."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pyfunc_debug.pfrec import Reader
from pyfunc_debug.pfrec.stopped import HELD_SQL, without
from pyfunc_debug.places import source_line

WAIT = "GIL wait"
HELD = "GIL held"
RELEASED = "GIL released"
AT_STOP = "at a breakpoint"
_PAGE = 5000
_SUMS = (("when", "not recorded: each drawn in one piece"),)

Facts = tuple[tuple[str, Any], ...]


class Slice(NamedTuple):
    """A stretch of time on a thread, or a moment; one that lies in another of its thread comes after it.

    Attributes:
      thread: The thread's number in the recording.
      start_ns: When it begins.
      duration_ns: 0 is a moment.
      name: What it is called, and coloured by.
      category: What kind of slice it is.
      facts: What is known of it besides, each with its name; None is not.
      flow: The forward call whose arrows it has: from the graph to its body, and from there to its gradient calls.
      arrives: Whether an arrow ends here.
      leaves: Whether one begins here.
    """

    thread: int
    start_ns: int
    duration_ns: int
    name: str
    category: str
    facts: Facts
    flow: int | None = None
    arrives: bool = False
    leaves: bool = False


COUNTERS = {
    "bodies running": ("c.start_ns", "c.end_ns", "1", "call c WHERE c.end_ns IS NOT NULL"),
    "waiting for the GIL": (
        "c.start_ns - g.wait_ns", "c.start_ns", "1",
        "call c JOIN gil g ON g.call = c.id WHERE g.wait_ns > 0 AND c.end_ns IS NOT NULL",
    ),
    "waiting in bodies (mean)": (
        "c.start_ns", "c.end_ns", "1.0 * g.reacquire_ns / (c.end_ns - c.start_ns)",
        "call c JOIN gil g ON g.call = c.id WHERE g.reacquire_ns > 0 AND c.end_ns > c.start_ns",
    ),
}  # fmt: skip
"""By name of the counter, the stretches of time that it counts: from, to, as how many each, and where all that is.

When in a body it waited is not recorded: a call that waited for a third of its time counts as a third, all the time.
"""


def slices(reader: Reader) -> Iterator[Slice]:
    """Graph traces, runs, then calls: each with what it waited for the GIL before, and what it did with it inside."""
    functions = {one.id: one.name for one in reader.functions()}
    for row in reader.traces():
        name = f"trace {functions.get(row.function)}"
        yield Slice(row.thread, row.start_ns, row.duration_ns, name, "graph trace", (("signature", row.signature),))
    yield from _runs(reader, functions)
    yield from _calls(reader)


def changes(reader: Reader, counter: str) -> Iterator[tuple[list[int], list[float]]]:
    """When a counter changes, in order, and what it is from then on; some thousand at a time."""
    begin, until, share, where = COUNTERS[counter]
    query = (
        f"SELECT {begin} AS at, {share} AS change FROM {where} UNION ALL SELECT {until}, -({share}) FROM {where} "
        "ORDER BY at"
    )
    last: list[int] = []
    count: float = 0
    for page in reader.pages(query, _PAGE):
        times, change = zip(*page, strict=True)
        at = np.array([*last, *times], np.int64)
        counts = np.cumsum([count, *change])[-len(at) :]
        (done,) = np.nonzero(np.diff(at))  # the last one may change once more at the same time
        yield at[done].tolist(), (np.round(counts[done], 6) + 0).tolist()  # no -0.0
        last, count = at[-1:].tolist(), counts[-1]
    yield last, [round(count, 6) + 0] * len(last)


def _runs(reader: Reader, functions: dict[int, str]) -> Iterator[Slice]:
    sites = {
        number: source_line(*json.loads(frames)[-1][:2])
        for number, frames in reader.rows("SELECT id, frames FROM stack WHERE id IN (SELECT site FROM run)")
    }
    query = "SELECT thread, start_ns, duration_ns, function, name, id, site FROM run WHERE duration_ns IS NOT NULL"
    for thread, start, duration, function, own, number, site in _rows(reader, query):
        facts = ("run", number), ("called at", sites.get(site))
        yield Slice(thread, start, duration, f"run {functions.get(function, own)}", "run", facts)


def _calls(reader: Reader) -> Iterator[Slice]:
    sites: dict[int, Facts] = {}
    for node in reader.nodes():
        made = source_line(node.stack[-1].file, node.stack[-1].line) if node.stack else None
        sites[node.id] = ("body", source_line(node.file, node.line) or None), ("node made at", made)
    query = (
        "SELECT c.thread, c.start_ns, c.end_ns, c.node, n.body, c.kind, c.id, c.status, c.run, c.forward, x.type, "
        "g.wait_ns, g.held_ns, g.released_ns, g.reacquire_ns, coalesce(held.ns, 0), "
        "(SELECT group_concat(v.path || ' ' || v.text, '; ') FROM value v WHERE v.call = c.id AND v.role = 'input'), "
        "c.kind = 'forward' AND EXISTS (SELECT 1 FROM call o WHERE o.forward = c.id), "
        "r.thread, r.start_ns "
        "FROM call c JOIN node n ON n.id = c.node LEFT JOIN gil g ON g.call = c.id LEFT JOIN failure x "
        f"ON x.id = c.failure LEFT JOIN {HELD_SQL} held ON held.call = c.id LEFT JOIN run r ON r.id = c.run AND "
        "c.kind = 'forward' AND r.duration_ns IS NOT NULL WHERE c.end_ns IS NOT NULL ORDER BY c.id"
    )
    for (
        thread, start, end, node, body, kind, number, status, run, forward, failure, wait, held, released, again,
        stopped, inputs, differentiated, caller, since,
    ) in _rows(reader, query):  # fmt: skip
        known, places = ("call", number), sites[node]
        if caller is not None:
            asked = max(start - (wait or 1), since)
            yield Slice(caller, asked, 0, f"calls {body}", "graph", (known, places[1]), number, leaves=True)
        if wait:
            yield Slice(thread, start - wait, wait, WAIT, "gil", (known,))
        facts = known, ("status", status), ("failure", failure), ("run", run), ("inputs", inputs), *places
        name, arrives = f"∇ {body}" if kind == "gradient" else body, caller is not None or forward is not None
        flow = forward or number if arrives or differentiated else None
        yield Slice(thread, start, end - start, name, kind, facts, flow, arrives, bool(differentiated))
        if held is None:
            continue
        if stopped:
            held, released, again = without(stopped, held, released, again)
        # in the order in which the panel's timeline draws them
        lasting = [one for one in ((HELD, held), (AT_STOP, stopped), (RELEASED, released), (WAIT, again)) if one[1]]
        sums = _SUMS if len(lasting) > 1 else ()
        for name, ns in lasting:
            ns = min(ns, end - start)
            yield Slice(thread, start, ns, name, "gil", sums)
            start += ns


def _rows(reader: Reader, query: str) -> Iterator[tuple[Any, ...]]:
    return itertools.chain.from_iterable(reader.pages(query, _PAGE))
