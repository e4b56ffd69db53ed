"""What the GIL did to each node: how long its calls waited, for whom, and what they did with the GIL themselves.

Pure functions from a recording. Every number carries its grade; a call without a measurement counts as not measured,
never as a wait of 0.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfunc_debug.analysis.blames import blame, entries
from pyfunc_debug.analysis.groups import same_line
from pyfunc_debug.analysis.integers import Integers, chunks, integers
from pyfunc_debug.analysis.tallies import Tally, tallies
from pyfunc_debug.gil import RESOLUTION_NS, WORDS, Grade
from pyfunc_debug.gil.blame import NOBODY, OURS
from pyfunc_debug.gil.whatif import percent
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.pfrec.stopped import QUERY, held_ns, stops_of, without
from pyfunc_debug.records import Node


@dataclass(frozen=True)
class Culprit:
    """Who held the GIL while a node's calls waited.

    `node` and `thread` are set when it was a body: `thread` only if most of the time was on one thread.
    """

    label: str
    node: int | None
    thread: str | None
    ns: int


@dataclass(frozen=True)
class NodeContention:
    """What the GIL did to a node. Sums are over its measured calls; None is not known at this grade.

    Attributes:
      calls: Calls of the node that ended, gradient calls too.
      measured: How many of them were measured.
      wait_ns: Waiting before the body.
      worst_ns: The longest wait of one call.
      body_ns: Time in the body.
      held_ns, released_ns, reacquire_ns: What it is made of.
      held_share: Share of the body's own time (without waiting) that holds the GIL.
      held_samples: When that share is estimated: from how many samples.
    """

    node: Node
    grade: Grade
    calls: int
    measured: int
    wait_ns: int
    worst_ns: int
    body_ns: int
    held_ns: int | None
    released_ns: int | None
    reacquire_ns: int | None
    held_share: float | None
    held_samples: int | None
    culprits: tuple[Culprit, ...]
    shared: bool = False
    """Whether other nodes with calls have the same body: then sentences name the op as well."""

    @property
    def wait_share(self) -> float | None:
        """Share of its time that it waits for the GIL, before and inside the body."""
        total = self.wait_ns + self.body_ns
        return (self.wait_ns + (self.reacquire_ns or 0)) / total if self.measured and total else None

    @property
    def mean_wait_ns(self) -> float | None:
        """Mean wait before the body."""
        return self.wait_ns / self.measured if self.measured else None

    @property
    def program_culprits(self) -> tuple[Culprit, ...]:
        """Those of the program: without us, and without waits while nobody held it."""
        return tuple(one for one in self.culprits if one.label != NOBODY and not _is_ours(one))

    @property
    def ours_ns(self) -> int:
        """How long it waited for threads of pyfunc_debug itself."""
        return sum(one.ns for one in self.culprits if _is_ours(one))

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        return _sentence(self)


@dataclass(frozen=True)
class WorstCall:
    """A call that waited long. `blame` as recorded."""

    call: int
    node: int
    wait_ns: int
    reacquire_ns: int | None
    blame: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Contention:
    """The GIL of a recording.

    Attributes:
      grade: How it was measured.
      why: Why this grade, in words.
      nodes: One answer for each node with calls, the most waiting first.
      matrix: Nanoseconds by waiting body and by who ran meanwhile.
      worst: The calls that waited longest.
      process: Lines about the process as a whole.
    """

    grade: Grade
    why: str
    nodes: tuple[NodeContention, ...]
    matrix: dict[tuple[str, str], int]
    worst: tuple[WorstCall, ...]
    process: tuple[str, ...]

    def __str__(self) -> str:
        head = f"GIL: {WORDS[self.grade]} ({self.grade}; {self.why})"
        return "\n".join([head, *(node.sentence for node in self.nodes), *self.process])

    def __repr__(self) -> str:
        return str(self)


def wait_text(ns: float | None, grade: Grade) -> str:
    """A wait for people: `0.31 ms`, `< 50 us` below what the grade resolves, `<= 3.20 ms` for a bound, or in words."""
    if ns is None:
        return "not measured"
    if ns < RESOLUTION_NS[grade]:
        return f"< {RESOLUTION_NS[grade] // 1000} us"
    ms = ns / 1e6
    text = f"{ms:.2f} ms" if ms < 100 else f"{ms:,.0f} ms"
    return f"<= {text}" if grade == "bound" else text


def make_contention(reader: Reader, worst: int = 10, sums: dict[int, Waits] | None = None) -> Contention:
    """The GIL of a recording.

    Args:
      reader: The recording.
      worst: How many of the longest waits to list.
      sums: What `waits_by_node` gave, if it was asked already.
    """
    reported = reader.meta.get("gil") or {}
    nodes, held_at_stops = _first_of_line(reader), held_ns(stops_of(reader.rows(f"{QUERY} ORDER BY id")))
    sums = waits_by_node(reader) if sums is None else sums
    matrix = _add_blame(reader, nodes, sums)
    longest = _longest(reader, held_at_stops, worst)
    estimates = reported.get("held") or {}
    bodies = Counter(nodes[number].body for number in sums)
    answers = [_answer(nodes[n], one, estimates, bodies[nodes[n].body] > 1) for n, one in sums.items()]
    answers.sort(key=lambda one: -(one.wait_ns + (one.reacquire_ns or 0)))
    grade = grade_of(reported.get("grade", "none"))
    why = str(reported.get("why") or "recorded with gil=False")
    return Contention(grade, why, tuple(answers), dict(matrix), longest, process_lines(reported))


def waits_by_node(reader: Reader, known: Mapping[tuple[int, str], Tally] | None = None) -> dict[int, Waits]:
    """How long the calls of each node waited, and not yet for whom.

    Args:
      reader: The recording.
      known: What `tallies` gave, if it was asked already.
    """
    nodes = _first_of_line(reader)
    sums: dict[int, Waits] = defaultdict(Waits)
    held_at_stops = held_ns(stops_of(reader.rows(f"{QUERY} ORDER BY id")))
    for (node, _), one in (tallies(reader, held_at_stops) if known is None else known).items():
        if one.ended:
            sums[nodes[node].id].calls += one.ended
        if one.measured:
            sums[nodes[node].id].add(one.grade, one.measured, one.wait_ns, one.worst_ns, one.body_ns, *one.inside)
    _add_stopped(reader, nodes, sums, held_at_stops)
    return sums


def _first_of_line(reader: Reader) -> dict[int, Node]:
    """A retrace makes the nodes of a function again: the first stands for all of them."""
    return {node.id: group[0] for group in same_line(reader.nodes(), reader.functions()) for node in group}


_MEASURED = "FROM gil JOIN call ON call.id = gil.call WHERE wait_ns IS NOT NULL AND end_ns IS NOT NULL"


def _add_stopped(
    reader: Reader, nodes: dict[int, Node], sums: dict[int, Waits], held_at_stops: Mapping[int, float]
) -> None:
    """Adds the measured calls that a person held, without that time."""
    stopped = ",".join(map(str, held_at_stops))
    for call, node, duration, grade, wait, held, released, reacquire in reader.rows(
        "SELECT gil.call, node, end_ns - start_ns, grade, wait_ns, held_ns, released_ns, reacquire_ns "
        f"{_MEASURED} AND gil.call IN ({stopped})"
    ):
        by_hand = held_at_stops[call]
        inside = without(by_hand, held, released, reacquire)
        sums[nodes[node].id].add(grade, 1, wait, wait, max(0, duration - by_hand), *inside)


def _add_blame(reader: Reader, nodes: dict[int, Node], sums: dict[int, Waits]) -> Counter[tuple[str, str]]:
    """Adds who was waited for; returns that by the bodies of both."""
    threads = {thread.id: thread.name for thread in reader.threads()}
    matrix: Counter[tuple[str, str]] = Counter()
    if not reader.rows(f"SELECT 1 {_MEASURED} AND blame <> '[]' LIMIT 1"):
        return matrix
    calls = integers(reader, ("id", "node", "thread", "end_ns IS NOT NULL"), "call NOT INDEXED", "id")
    for waiting, body, holder_node, thread, ns in _blamed(reader, calls):
        holder = nodes.get(holder_node)
        sums[nodes[waiting].id].blame[body, None if holder is None else holder.id, threads.get(thread)] += ns
        matrix[nodes[waiting].body, body] += ns
    return matrix


_LOW = (1 << 32) - 1


def _blamed(reader: Reader, calls: Integers) -> Iterator[tuple[int, str, int, int, int]]:
    """Node that waited, name of who held the GIL meanwhile, its node and thread (-1: not known), and nanoseconds."""
    numbers, node, thread, ended = calls
    waiters, waiter = np.unique(node, return_inverse=True)
    holders, held_by = np.unique(np.append(node << 32 | thread, -1 << 32 | -1 & _LOW), return_inverse=True)
    for part in chunks(reader, "gil WHERE wait_ns IS NOT NULL AND blame <> '[]'", "call"):
        waited, text = reader.rows(f"SELECT group_concat(call), group_concat(blame, char(10)) FROM {part}")[0]
        if not text:
            continue
        row = np.searchsorted(numbers, np.fromstring(waited, np.int64, sep=","))
        found = entries(text, len(row))
        waiting = row[found.blame]
        place = np.searchsorted(numbers, found.call)
        known = numbers[np.minimum(place, len(numbers) - 1)] == found.call
        holder = held_by[np.where(known, place, len(numbers))]
        key = (waiter[waiting] * len(found.bodies) + found.body) * len(holders) + holder
        over = ended[waiting] > 0
        keys, which = np.unique(key[over], return_inverse=True)
        ns = np.zeros(len(keys), np.int64)
        np.add.at(ns, which, found.ns[over])
        for both, total in zip(keys.tolist(), ns.tolist()):
            first, holder_at = divmod(both, len(holders))
            who, body = divmod(first, len(found.bodies))
            pair = int(holders[holder_at])
            yield int(waiters[who]), found.bodies[body], pair >> 32, pair & _LOW, total


def _longest(reader: Reader, held_at_stops: Mapping[int, float], count: int) -> tuple[WorstCall, ...]:
    """The calls that waited longest; waits below what the grade resolves are none."""
    found = []
    for call, node, grade, wait, held, released, reacquire, text in reader.rows(
        f"SELECT gil.call, node, grade, wait_ns, held_ns, released_ns, reacquire_ns, blame {_MEASURED} "
        "ORDER BY wait_ns + coalesce(reacquire_ns, 0) DESC, gil.call LIMIT ?",
        (count + len(held_at_stops),),
    ):
        if call in held_at_stops:
            reacquire = without(held_at_stops[call], held, released, reacquire)[2]
        if wait + (reacquire or 0) >= RESOLUTION_NS[grade_of(grade)]:
            found.append(WorstCall(call, node, wait, reacquire, blame(text)))
    return tuple(sorted(found, key=lambda one: -(one.wait_ns + (one.reacquire_ns or 0)))[:count])


def mean_wait(ns: float | None, grade: Grade) -> str:
    """A mean wait in ms for narrow tables: `0.31`, `<0.05`, `<=3.20`; `-` where it was not measured."""
    if ns is None:
        return "-"
    if ns < RESOLUTION_NS[grade]:
        return f"<{RESOLUTION_NS[grade] / 1e6:.2f}"
    return ("<=" if grade == "bound" else "") + (f"{ns / 1e6:.2f}" if ns < 1e8 else f"{ns / 1e6:,.0f}")


def gil_line(reader: Reader) -> list[str]:
    """What to say of the grade under a table of waits; nothing without calls, or when it was not measured."""
    reported = reader.meta.get("gil") or {}
    if not reported:
        return []
    grade = grade_of(reported.get("grade", "none"))
    calls = reader.rows("SELECT count(*) FROM call WHERE end_ns IS NOT NULL")[0][0]
    if not calls:
        return []
    if grade == "none":
        return [f"GIL: {reported.get('why')}"]
    measured = reader.rows("SELECT count(*) FROM gil WHERE wait_ns IS NOT NULL")[0][0]
    inside = " and inside" if grade == "native" else ""
    line = f"GIL: mean wait before{inside} a call, {WORDS[grade]} ({grade}), of {measured:,} of {calls:,} calls"
    if measured < calls:
        line += "; -: not measured"
    return [line if grade == "native" else f"{line}; {reported.get('why')}"]


def over_time(reader: Reader, buckets: int = 100) -> list[tuple[int, float]]:
    """Contention over the recording: begin of each bucket in ns, and how many calls waited for the GIL on average.

    Waits before bodies only: where inside a body it waited is not stored. Not for the bound: that is not a measurement.
    """
    rows = reader.rows(
        "SELECT start_ns - wait_ns, start_ns FROM gil JOIN call ON call.id = gil.call "
        "WHERE wait_ns IS NOT NULL AND grade != 'bound' ORDER BY start_ns"
    )
    if not rows:
        return []
    first = min(begin for begin, _ in rows)
    width = max(1, -(-(rows[-1][1] - first) // buckets))
    waiting = [0] * buckets
    for begin, end in rows:
        for bucket in range((begin - first) // width, min(buckets - 1, (end - first) // width) + 1):
            left = first + bucket * width
            waiting[bucket] += max(0, min(end, left + width) - max(begin, left))
    return [(first + i * width, ns / width) for i, ns in enumerate(waiting)]


class Waits:
    """Sums over the measured calls of a node, in ns."""

    def __init__(self) -> None:
        self.grade = "none"
        self.calls = self.measured = self.wait = self.worst = self.body = 0
        self.inside: list[int | None] = [None, None, None]
        self.blame: Counter[tuple[str, int | None, str | None]] = Counter()

    def add(self, grade: str, calls: int, wait: int, worst: int, duration: int, *inside: int | None) -> None:
        """Adds measured calls: sums in ns, and the longest wait."""
        self.grade = grade
        self.measured += calls
        self.wait += wait
        self.worst = max(self.worst, worst)
        self.body += duration
        for i, ns in enumerate(inside):
            if ns is not None:
                self.inside[i] = (self.inside[i] or 0) + ns


def grade_of(text: str) -> Grade:
    """A grade as recorded; "none" for what this version does not know."""
    grades: dict[str, Grade] = {grade: grade for grade in WORDS}
    return grades.get(text, "none")


def _answer(node: Node, sums: Waits, estimates: dict[str, Any], shared: bool) -> NodeContention:
    held, released, reacquire = sums.inside
    own = (held or 0) + (released or 0)
    share = held / own if held is not None and own else None
    samples = None
    if share is None and node.body in estimates:
        share, samples = estimates[node.body]
    return NodeContention(
        node, grade_of(sums.grade), sums.calls, sums.measured, sums.wait, sums.worst, sums.body, held, released,
        reacquire, share, samples, culprits(sums.blame.items()), shared,
    )  # fmt: skip


def culprits(blame: Iterable[tuple[tuple[str, int | None, str | None], int]]) -> tuple[Culprit, ...]:
    """Who held the GIL, by label and node, the largest first.

    Args:
      blame: Nanoseconds by label, node and name of the thread, as far as these are known.
    """
    by_thread: dict[tuple[str, int | None], Counter[str | None]] = defaultdict(Counter)
    for (label, node, thread), ns in blame:
        by_thread[label, node][thread] += ns
    found = []
    for (label, node), shares in by_thread.items():
        total = sum(shares.values())
        thread, most = shares.most_common(1)[0]
        found.append(Culprit(label, node, thread if most > total / 2 else None, total))
    return tuple(sorted(found, key=lambda one: -one.ns))


def _sentence(one: NodeContention) -> str:
    name = f"`{one.node.body}`"
    if one.shared:
        name += f" ({one.node.name or f'node {one.node.id}'})"
    share, mean = one.wait_share, one.mean_wait_ns
    if share is None or mean is None:
        return f"{name}: not measured"
    some = "" if one.measured == one.calls else f" ({one.measured:,} of {one.calls:,} calls measured)"
    holds = ""
    if one.held_share is not None and one.held_samples is None:
        holds = f"; {percent(one.held_share)} of its own time holds the GIL"
    elif one.held_share is not None:
        holds = f"; an estimated {percent(one.held_share)} of its time holds the GIL ({one.held_samples} samples)"
    if one.grade == "bound":
        return f"{name} waits at most {percent(share)} of its time (executor queue + GIL){some}{holds}"
    inside = (one.reacquire_ns or 0) / one.measured
    if mean < RESOLUTION_NS[one.grade] and inside < RESOLUTION_NS[one.grade]:
        return f"{name} does not wait for the GIL ({wait_text(mean, one.grade)} a call){some}{holds}"
    return f"{name} waits {percent(share)} of its time for the GIL{_mostly(one)}{some}{holds}"


def _mostly(one: NodeContention) -> str:
    total = sum(culprit.ns for culprit in one.culprits)
    ours = f", {percent(one.ours_ns / total)} of that for pyfunc_debug itself" if one.ours_ns >= 0.1 * total > 0 else ""
    if not one.program_culprits:
        return ours
    worst = one.program_culprits[0]
    who = worst.label
    if worst.node is not None:
        who = "other calls of its own" if worst.node == one.node.id else f"`{worst.label}`"
    thread = f" ({worst.thread})" if worst.thread else ""
    most = "" if worst.ns >= 0.95 * total else "mostly "
    return f", {most}for {who}{thread}{ours}"


def _is_ours(culprit: Culprit) -> bool:
    return culprit.node is None and culprit.label.startswith(OURS)


def process_lines(reported: dict[str, Any]) -> tuple[str, ...]:
    """What the recording's facts about the GIL (`meta["gil"]`) say of the process as a whole."""
    lines = []
    canary = reported.get("canary")
    if canary:
        lines.append(
            f"process: the GIL was taken at {percent(canary['share'])} of {canary['samples']:,} random moments "
            f"(asking cost {canary['cost_ns'] / 1e6:.1f} ms CPU)"
        )
    waited = reported.get("waited_outside_ns") or {}
    theirs = {name: ns for name, ns in waited.items() if not name.startswith(OURS) and ns >= 1_000_000}
    for name, ns in sorted(theirs.items(), key=lambda item: -item[1])[:3]:
        lines.append(f"{name} waited {ns / 1e6:,.0f} ms for the GIL, outside of bodies")
    own = sum(ns for name, ns in waited.items() if name.startswith(OURS))
    if own >= 1_000_000:
        lines.append(f"not the program's: threads of pyfunc_debug itself waited {own / 1e6:,.0f} ms for the GIL")
    if reported.get("lost_rows"):
        lines.append(f"{reported['lost_rows']:,} samples found no room: some calls are not measured")
    if reported.get("broken"):
        lines.append(f"{reported['broken']:,} calls are not measured: their parts did not sum to their time")
    return tuple(lines)
