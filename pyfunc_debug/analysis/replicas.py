"""Values of the same node in the same step of several processes: which are equal in all, and who differs since when.

Replicas inside one process (MirroredStrategy) are known by their nodes' names and compared in the same way.

Steps are runs of a tf.function counted from the first (steps.py); calls that no such run holds, those of tf.data, have
no step. Values are compared by their digests, so they need not be stored.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from pyfunc_debug.analysis.steps import first_runs
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.places import source_line

_MOST_STEPS = 20_000
"""Of each function: so that memory stays bounded."""
_SHOWN = 3
_REPLICA = re.compile(r"(?:^|/)replica_([1-9]\d*)/")
"""In the name of a node: TensorFlow's scope of each replica but the first (distribute/mirrored_run.py)."""

Place = tuple[str, str | None, int | None, str, int, str]
"""Body, file, line, role (input or output), position, path."""
_When = tuple[int, int, bool]
"""Step, number of the call in it, and whether each replica makes one."""
_Seen = tuple[int, str]
"""Process or replica, and what tells whether values are equal: dtype, shape and digest."""


@dataclass(frozen=True)
class ReplicaValue:
    """An input or output of a body over the processes of a job, or their replicas, where several ran the same step.

    Attributes:
      body, file, line, role, path: What it is.
      steps: In how many steps two of them or more were compared.
      among: "processes", or "replicas" where a process has several.
      equal: In how many of them it was equal in all.
      first: The first step (from 1) in which it was not; None if there is none.
      groups: In that step, those with equal values: the largest group first.
      texts: What the values of these groups were.
    """

    body: str
    file: str | None
    line: int | None
    role: str
    path: str
    among: str
    steps: int
    equal: int
    first: int | None
    groups: tuple[tuple[str, ...], ...]
    texts: tuple[str, ...]

    @property
    def diverged(self) -> bool:
        """Whether it was equal in all, and then no more."""
        return self.first is not None and self.first > 1 and self.equal > 0

    def __str__(self) -> str:
        what = f"{self.role} {self.path} of {self.body} ({source_line(self.file, self.line)})"
        if self.first is None:
            return f"{what}: equal in all {self.steps:,} steps"
        if not self.equal:
            each = "process" if self.among == "processes" else "replica"
            return f"{what}: different in all {self.steps:,} steps, as where each {each} has its own data"
        lines = [f"{what}: equal in {self.equal:,} of {self.steps:,} steps, first different in step {self.first:,}"]
        for names, text in zip(self.groups, self.texts, strict=True):
            lines.append(f"  {first_names(names)}: {text}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Replicas:
    """The values of a job's processes compared: those that were equal and then were not first."""

    values: tuple[ReplicaValue, ...]
    remarks: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether a value was equal in all processes, and then no more."""
        return any(one.diverged for one in self.values)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.values), *self.remarks])

    def __repr__(self) -> str:
        return str(self)


def compare_replicas(named: Iterable[tuple[str, Reader]]) -> Replicas:
    """Compares the values of processes, and of their replicas.

    Args:
      named: Their names and recordings, open one at a time; the name of a single one may be empty.
    """
    names: list[str] = []
    of_replicas = False
    seen: dict[Place, dict[_When, list[_Seen]]] = defaultdict(lambda: defaultdict(list))
    texts: dict[tuple[Place, str], str] = {}
    without: list[str] = []
    for name, reader in named:
        numbers: dict[int | None, int] = {}
        for replica, place, step, same, text in _values(reader):
            if replica not in numbers:
                numbers[replica] = len(names)
                names.append(name if replica is None else f"{name} replica {replica}".strip())
            seen[place][step].append((numbers[replica], same))
            texts.setdefault((place, same), text)
        if not numbers:
            without.append(name)
        of_replicas = of_replicas or any(replica is not None for replica in numbers)
    among = "replicas" if of_replicas else "processes"
    rows = [row for place, steps in seen.items() if (row := _row(place, among, steps, names, texts)) is not None]
    rows.sort(key=lambda row: (not row.diverged, row.first is None, row.first or 0))
    remarks = []
    if without:
        remarks.append(f"Without a value in a step that can be counted from the first: {', '.join(without)}")
    if not rows:
        remarks.append(f"No two {among} have a value of the same node in the same step")
    return Replicas(tuple(rows), tuple(remarks))


def _row(
    place: Place, among: str, steps: dict[_When, list[_Seen]], names: Sequence[str],
    texts: dict[tuple[Place, str], str],
) -> ReplicaValue | None:  # fmt: skip
    compared = {step: values for step, values in sorted(steps.items()) if len(values) > 1}
    if not compared:
        return None
    unequal = [step for step, values in compared.items() if len({same for _, same in values}) > 1]
    groups: list[tuple[tuple[str, ...], str]] = []
    if unequal:
        values = compared[unequal[0]]
        for same, _ in Counter(same for _, same in values).most_common():
            groups.append((tuple(names[number] for number, one in values if one == same), texts[place, same]))
    body, file, line, role, _, path = place
    return ReplicaValue(
        body, file, line, role, path, among, len(compared), len(compared) - len(unequal),
        unequal[0][0] if unequal else None, tuple(group for group, _ in groups), tuple(text for _, text in groups),
    )  # fmt: skip


def replicas_in(reader: Reader) -> dict[int, int]:
    """By node, the replica of its process that it belongs to: of what is built once for each of several replicas.

    The first replica's nodes have names without a scope: they are the others' counterparts, called at the same lines.
    """
    made: dict[tuple[object, ...], dict[int, int]] = defaultdict(dict)
    for number, name, *where in reader.rows("SELECT id, name, function, stack, body, file, line FROM node"):
        scope = _REPLICA.search(name or "")
        made[tuple(where)][number] = int(scope[1]) if scope else 0
    return {number: replica for own in made.values() if any(own.values()) for number, replica in own.items()}


def _values(reader: Reader) -> Iterator[tuple[int | None, Place, _When, str, str]]:
    """Replica, place, when, what tells whether it is equal, and its text."""
    if reader.version < 2:
        return
    steps = {
        run: number
        for first in first_runs(reader).values()
        for number, (run, _, _) in enumerate(first.runs[:_MOST_STEPS], 1)
    }
    if not steps:
        return
    replicas = replicas_in(reader)
    count: Counter[tuple[int | None, Place, int]] = Counter()
    rows = reader.rows(
        "SELECT c.run, n.id, n.body, n.file, n.line, v.role, v.position, v.path, v.dtype, v.shape, hex(v.digest), "
        "v.text FROM value v JOIN call c ON c.id = v.call JOIN node n ON n.id = c.node WHERE v.digest IS NOT NULL AND "
        "c.kind = 'forward' AND c.run IS NOT NULL AND n.origin = 'user' ORDER BY 1, 2, 6, 7, c.id"
    )
    for (run, node, *where), group in groupby(rows, key=itemgetter(slice(0, 8))):
        step = steps.get(run)
        if step is not None:
            place: Place = tuple(where)
            replica = replicas.get(node)
            count[replica, place, step] += 1
            calls = list(group)  # of a loop, say: in whatever order they ran
            same = " ".join(sorted(f"{dtype} {shape} {digest}" for *_, dtype, shape, digest, _ in calls))
            yield replica, place, (step, count[replica, place, step], replica is not None), same, calls[0][-1]


def first_names(names: Sequence[str]) -> str:
    """Processes in a sentence: `worker-0, worker-1, worker-2 and 5 more`."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
