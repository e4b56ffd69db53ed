"""One ledger over the recordings of several processes: each body once, with the process in which it is slowest.

Numbers of calls, nodes and threads belong to one recording. Bodies are the same where they are the same line of code.
Only durations are compared between processes; what is known of their machines' clocks is said (clocks.py).
"""

from __future__ import annotations

import os
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyfunc_debug.analysis.clocks import ProcessClock, make_clocks, process_clock
from pyfunc_debug.analysis.contention import grade_of
from pyfunc_debug.analysis.death import died_in_calls, how_it_ended
from pyfunc_debug.analysis.facts import read_facts
from pyfunc_debug.analysis.footer import is_interrupted
from pyfunc_debug.analysis.ledger import CallSums, NodeRow, Times, make_ledger, shows
from pyfunc_debug.analysis.replicas import first_names
from pyfunc_debug.analysis.sums import added, summary, sums_row
from pyfunc_debug.pfrec import Reader

_STRAGGLES = 1.5
"""A process is a straggler in a body from this many times the median of the others."""
_LEAST_CALLS = 5
"""With fewer calls in a process its mean says little."""
_LEAST_NS = 100_000
"""A mean that lies less above the others' is not worth a sentence."""


@dataclass(frozen=True)
class ProcessRow:
    """A process of the job.

    Attributes:
      name: Its role, with host and process id where two have the same.
      state: `complete`, `recording`, `died` (in a call), `unfinished` (it ended outside any call without completing
        its recording: os._exit, or a kill), or `SIGTERM` (that ended it, as multiprocessing's pools end their workers).
      calls, errors: Calls of all bodies that the ledger shows, gradient calls too.
      total_ns: Time in these calls, summed.
      grade: How the GIL was measured.
      folder_full: The bytes for all recordings in its folder, where these were used up; else None.
    """

    name: str
    path: str
    host: str
    pid: int | None
    state: str
    calls: int
    errors: int
    total_ns: int
    grade: str
    folder_full: int | None = None


@dataclass(frozen=True)
class BodyRow:
    """A body over all processes. `by` has the calls of each process that has any, by its number in the ledger."""

    body: str
    kind: str
    file: str | None
    line: int | None
    by: dict[int, CallSums]

    @property
    def calls(self) -> int:
        """Forward calls in all processes, stored and dropped."""
        return sum(one.calls for one in self.by.values())

    @property
    def errors(self) -> int:
        """Those that failed."""
        return sum(one.errors for one in self.by.values())

    @property
    def mean_ns(self) -> float | None:
        """Mean duration of the calls that ended."""
        ended = sum(one.times.count for one in self.by.values())
        return sum(one.times.total_ns for one in self.by.values()) / ended if ended else None

    @property
    def slowest(self) -> int | None:
        """The process whose calls take longest on average."""
        means = {number: one.times.mean_ns for number, one in self.by.items() if one.times.mean_ns is not None}
        return max(means, key=lambda number: means[number]) if means else None


@dataclass(frozen=True)
class JobLedger:
    """What the processes of a job did. Prints as tables. `left_out` has a sentence for each file that was not read."""

    processes: tuple[ProcessRow, ...]
    rows: tuple[BodyRow, ...]
    remarks: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        from pyfunc_debug.analysis.tables import job_text

        return job_text(self)

    def __repr__(self) -> str:
        return str(self)


def make_job_ledger(paths: Sequence[str], include_internal: bool = False) -> JobLedger:
    """The ledger of a job.

    Args:
      paths: Its recordings.
      include_internal: Whether to show TensorFlow's and Keras' own nodes.
    """
    processes: list[ProcessRow] = []
    roles: list[str] = []
    by_body: dict[tuple[str, str, str | None, int | None], dict[int, CallSums]] = defaultdict(dict)
    clocks: list[ProcessClock] = []
    for number, reader in enumerate(each_open(paths)):
        nodes = _node_rows(reader, include_internal)
        for node in nodes:
            same = by_body[(node.node.body, node.node.kind, node.node.file, node.node.line)]
            same[number] = added([same[number], node.forward]) if number in same else node.forward
        processes.append(_process(reader, nodes))
        clocks.append(process_clock(reader, steps=False))
        roles.append(_role(reader))
    names = _names([(role, one.host, one.pid) for one, role in zip(processes, roles, strict=True)])
    named = tuple(replace(process, name=name) for process, name in zip(processes, names, strict=True))
    rows = tuple(BodyRow(*key, by) for key, by in by_body.items())
    rows = tuple(sorted(rows, key=lambda row: -sum(one.times.total_ns for one in row.by.values())))
    about_clocks = make_clocks(clocks, each_open([one.path for one in named])).remarks() if clocks else []
    return JobLedger(named, rows, (*_remarks(named, rows), *about_clocks))


def each_open(paths: Sequence[str]) -> Iterator[Reader]:
    """One at a time: a job may have more recordings than this process may have open files."""
    for path in paths:
        reader = Reader(path)
        try:
            yield reader
        finally:
            reader.close()


def process_names(paths: Sequence[str]) -> list[str]:
    """The names of processes as the ledger of their job has them."""
    return _names([(_role(reader), *_host_and_pid(reader)) for reader in each_open(paths)])


def _names(processes: Sequence[tuple[str, str, int | None]]) -> list[str]:
    """Of role, host and process id: the role, with the others where two have the same."""
    roles = Counter(role for role, _, _ in processes)
    return [f"{role} ({host}, {pid})" if roles[role] > 1 else role for role, host, pid in processes]


def _role(reader: Reader) -> str:
    return str(reader.meta.get("role") or os.path.splitext(reader.name)[0])


def _host_and_pid(reader: Reader) -> tuple[str, int | None]:
    meta = reader.meta
    pid = meta.get("pid")
    return str(meta.get("host", "?")), pid if isinstance(pid, int) else None


def _node_rows(reader: Reader, include_internal: bool) -> Sequence[NodeRow]:
    """The nodes that the ledger shows, without their 95th percentiles where a recording has sums of its calls."""
    sums = summary(reader)
    if sums is None:
        return [node for row in make_ledger(reader, include_internal).rows for node in row.nodes]
    facts = read_facts(reader)
    return [
        row for group in facts.groups.values()
        if shows(row := sums_row([facts.nodes[number] for number in group], sums), facts.functions, include_internal)
    ]  # fmt: skip


def _process(reader: Reader, nodes: Sequence[NodeRow]) -> ProcessRow:
    meta = reader.meta
    sums = [one for node in nodes for one in (node.forward, node.gradient)]
    state = str(meta.get("state", "?"))
    if is_interrupted(reader.path, meta):
        outside = "SIGTERM" if "SIGTERM" in how_it_ended(reader) else "unfinished"
        state = "died" if died_in_calls(reader) and outside == "unfinished" else outside
    return ProcessRow(
        "", reader.path, *_host_and_pid(reader), state,
        sum(one.calls for one in sums), sum(one.errors for one in sums), sum(one.times.total_ns for one in sums),
        str((meta.get("gil") or {}).get("grade", "none")),
        meta.get("folder_budget") if meta.get("folder_full") else None,
    )  # fmt: skip


def _remarks(processes: Sequence[ProcessRow], rows: Sequence[BodyRow]) -> list[str]:
    found = [text for row in rows if (text := _straggler(processes, row)) is not None]
    found += [
        f"{one.name} died: `pyfunc-debug show {os.path.relpath(one.path)}` says in which call"
        for one in processes if one.state == "died"
    ]  # fmt: skip
    if full := [one for one in processes if one.folder_full is not None]:
        names = first_names([one.name for one in full])
        found.append(
            f"the budget of {full[0].folder_full:,} bytes for the folder was used up: values or calls of {names} are "
            "counted and not stored"
        )
    missing = Counter(one.state for one in processes)["recording"]
    if missing:
        found.append(f"{missing} of {len(processes)} processes {'is' if missing == 1 else 'are'} still recording")
    return found


def _straggler(processes: Sequence[ProcessRow], row: BodyRow) -> str | None:
    """In words, the process in which a body takes much longer than in the others, and what the time is spent on."""
    means = {
        number: one.times.mean_ns for number, one in row.by.items()
        if one.times.mean_ns is not None and one.times.count >= _LEAST_CALLS
    }  # fmt: skip
    if len(means) < 2:
        return None
    slow = max(means, key=lambda number: means[number])
    others = [number for number in means if number != slow]
    median = statistics.median(means[number] for number in others)
    usual = {number: _without_longest(row.by[number].times) for number in means}
    compared = means[slow], median, usual[slow], statistics.median(usual[number] for number in others)
    if any(mine < _STRAGGLES * theirs or mine - theirs < _LEAST_NS for mine, theirs in (compared[:2], compared[2:])):
        return None
    times = "" if median < 1 else f", {means[slow] / median:.3g} times"
    whom = f"{processes[others[0]].name}'s" if len(others) == 1 else f"the median of the {len(others)} other processes"
    text = (
        f"{processes[slow].name} is the straggler in {row.body}: {_ms(means[slow])} a call{times} {whom} "
        f"({_ms(median)})"
    )
    why = _why(processes, row, slow, others, means[slow] - median)
    return f"{text}; {why}" if why else text


def _without_longest(times: Times) -> float:
    """The mean without the one call that took longest: a first call that sets things up makes no straggler."""
    return (times.total_ns - (times.max_ns or 0)) / (times.count - 1)


def _why(processes: Sequence[ProcessRow], row: BodyRow, slow: int, others: Sequence[int], more_ns: float) -> str | None:
    """Which part of the calls' time makes the difference, where all of it was measured in all of them."""
    parts = {number: _parts(row.by[number], processes[number].grade) for number in (slow, *others)}
    if any(one is None for one in parts.values()):
        return None
    mine = parts[slow]
    assert mine is not None
    gain = [
        mine[index] - statistics.median(one[index] for number, one in parts.items() if number != slow and one)
        for index in range(3)
    ]
    worst = max(range(3), key=lambda index: gain[index])
    if gain[worst] < 0.5 * more_ns:
        return None
    words = (
        "its body holds the GIL longer: it computes more in Python",
        "its body waits or computes with the GIL released: C code, files, network, sleep",
        "it waits for the GIL inside the body: other Python threads of that process run",
    )[worst]
    return f"{_ms(gain[worst])} of the difference: {words}"


def _parts(sums: CallSums, grade: str) -> tuple[float, float, float] | None:
    """Held, released and waiting inside, in ns a call; None where not every call was measured."""
    parts, calls = sums.parts, sums.stored - sums.running
    if grade_of(grade) != "native" or parts is None or not calls:
        return None
    found = (parts.held_ns, parts.released_ns, parts.inside_ns)
    if None in found or abs(sum(one or 0.0 for one in found) - parts.body_ns) > 0.05 * parts.body_ns:
        return None
    held, released, inside = ((one or 0.0) / calls for one in found)
    return held, released, inside


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.2f} ms" if ns < 1e8 else f"{ns / 1e6:,.0f} ms"
