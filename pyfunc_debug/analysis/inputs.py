"""The program's loops over datasets: how each pipeline is set up, and whether the training waits for its input at all.

Pure functions from a recording. Where Python asks an iterator, the time in `next` was measured. Where the graph takes
its input itself, as under Keras' fit, it is bounded: the steps can have waited for Python's part of the pipeline only
while that ran.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfunc_debug.gil.whatif import percent
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.places import source_line
from pyfunc_debug.program.frames import is_tensorflow
from pyfunc_debug.records import Frame, Node

AUTOTUNE = -1
_SMALL = 0.1
"""A share of waiting below which it is not worth making the input faster."""

Spans = np.ndarray[Any, Any]
Rows = Callable[..., Iterable[Any]]


@dataclass(frozen=True, slots=True)
class Setting:
    """How one stage of a pipeline is set up.

    Attributes:
      parallel: Its num_parallel_calls; 1 where it has none, -1 for AUTOTUNE.
      pool: The pipeline's private_threadpool_size; None is TensorFlow's default, as many threads as cores.
      batched: Whether its elements are batches.
      batch: Size of the batches made after it; None without.
      asked: Whether its num_parallel_calls was given.
    """

    parallel: int
    pool: int | None
    batched: bool
    batch: int | None
    asked: bool = False

    @property
    def in_turn(self) -> bool:
        """Whether its author wants one call at a time: num_parallel_calls=1 is more than nothing said of it."""
        return self.asked and self.parallel == 1


@dataclass(frozen=True, slots=True)
class Loop:
    """A line of the user's that loops over a dataset, or hands it to Keras. Times in ns.

    Attributes:
      site: The line; None where no line of the user's made the iterator.
      bodies: Bodies of the user's that its pipeline calls, generators included.
      taken: Elements that Python took; 0 where the graph takes them.
      steps: Steps after each iterator's first element, or runs of the functions that take elements themselves.
      step_ns: Their whole time.
      wait_ns: The part of it that waited for input.
      at_most: Whether that is a bound and not measured.
      kinds: Its pipeline's transformations, such as `ParallelMap` and `Prefetch`, the last first.
      nodes: The numbers of the nodes of `bodies`.
      passes: Iterators that were made; 0 where it does not matter.
    """

    site: Frame | None
    bodies: tuple[str, ...]
    taken: int
    steps: int
    step_ns: int
    wait_ns: int
    at_most: bool
    kinds: tuple[str, ...] = ()
    nodes: tuple[int, ...] = ()
    passes: int = 0

    @property
    def wait_share(self) -> float | None:
        """Share of the steps' time that waited for input; None without steps."""
        return self.wait_ns / self.step_ns if self.step_ns else None

    @property
    def sentence(self) -> str:
        """The answer in words."""
        where = f"the loop at {source_line(self.site.file, self.site.line)}" if self.site else "a loop"
        share = self.wait_share
        if share is None:
            return f"{where}: too few steps to know whether it waits for its input"
        wait, step = (f"{ns / self.steps / 1e6:.2f}" for ns in (self.wait_ns, self.step_ns))
        text = f"{where} waits for its input {'at most ' if self.at_most else ''}{percent(share)} of its time"
        text += f" ({wait} of {step} ms a step, {self.steps:,} steps"
        if self.at_most:
            text += "; the graph takes the input, so this is when Python worked on it"
        elif self.passes > 1 and self.taken - self.steps >= _SMALL * self.taken:
            text += f"; {self.taken:,} elements in {self.passes:,} passes, and the first of each pass is left out"
        text += ")"
        if share < _SMALL:
            text += f": a faster input can make it x{1 / (1 - share):.2f} faster at most"
        return text


def make_loops(reader: Reader) -> list[Loop]:
    """The loops over datasets of a recording, those that wait longest first."""
    return loops_of(reader.meta, reader.nodes(), reader.rows)


def loops_of(meta: Mapping[str, Any], all_nodes: Iterable[Node], rows: Rows, bounds: bool = True) -> list[Loop]:
    """The same from a recording's parts.

    Args:
      meta: Its table `meta`.
      all_nodes: Its nodes.
      rows: Asks it with SQL and the statement's parameters.
      bounds: Whether to look at loops inside graphs too: for these all calls of their nodes are read.
    """
    nodes = {node.token: node for node in all_nodes if node.token is not None}
    found = []
    entries = meta.get("inputs")
    for entry in entries if isinstance(entries, list) else ():
        own = [nodes[token] for stage in entry["stages"] for token in stage["tokens"] if token in nodes]
        site = None if not entry["site"] else Frame(entry["site"][0], entry["site"][1], entry["site"][2])
        named = [node for node in own if node.origin == "user" or not (node.file is None or is_tensorflow(node.file))]
        bodies, numbers = tuple(dict.fromkeys(node.body for node in named)), tuple(node.id for node in named)
        kinds = tuple(str(stage["kind"]) for stage in entry["stages"])
        if entry["taken"]:
            times = entry["steps"], entry["step_ns"], entry["wait_ns"]
            found.append(Loop(site, bodies, entry["taken"], *times, False, kinds, numbers, entry["iterators"]))
        elif own and bounds:
            times = _bound(rows, [node.id for node in own], _runs_of(rows, entry["site"], entries))
            found.append(Loop(site, bodies, 0, *times, True, kinds, numbers))
    return sorted(found, key=lambda loop: -loop.wait_ns)


def settings(meta: Mapping[str, Any], nodes: Iterable[Node]) -> dict[int, Setting]:
    """How the stage of each node is set up, by node; nodes of pipelines without an iterator made in Python are missing.

    Args:
      meta: The recording's.
      nodes: Its nodes.
    """
    ids = {node.token: node.id for node in nodes if node.token is not None}
    found: dict[int, Setting] = {}
    for entry in meta.get("inputs") or ():
        stages: Sequence[Any] = entry["stages"]
        for index, stage in enumerate(stages):  # the last stage comes first
            after = next((other["batch"] for other in stages[:index] if other["batch"]), None)
            batched = any("Batch" in other["kind"] for other in stages[index + 1 :])
            parallel = 1 if stage["parallel"] is None else int(stage["parallel"])
            for token in stage["tokens"]:
                if token in ids:
                    found[ids[token]] = Setting(parallel, entry["pool"], batched, after, stage["parallel"] is not None)
    return found


def _runs_of(rows: Rows, site: Sequence[Any] | None, entries: Any) -> str:
    """Which runs may be steps of a loop, in SQL: those of its line; else those of no other loop's line."""
    of_line: dict[tuple[str, int], list[str]] = {}
    called = "SELECT site FROM run WHERE kind = 'forward'"
    for number, frames in rows(f"SELECT id, frames FROM stack WHERE id IN ({called})"):
        for file, line, *_ in json.loads(frames)[-1:]:
            of_line.setdefault((file, line), []).append(str(number))
    own = of_line.get((site[0], site[1])) if site else None
    if own:
        return f"site IN ({', '.join(own)})"
    lines = {(one["site"][0], one["site"][1]) for one in entries if one["site"] and not one["taken"]}
    others = [number for line, numbers in of_line.items() if line in lines for number in numbers]
    return f"(site IS NULL OR site NOT IN ({', '.join(others)}))"


def _bound(rows: Rows, nodes: Sequence[int], which: str) -> tuple[int, int, int]:
    """Number and time of the runs while calls of these nodes were made, and for how long of it one was going on.

    Without each function's first run, in which TensorFlow prepares the graph.

    Args:
      rows: Asks the recording.
      nodes: Those of the loop.
      which: A condition in SQL for the runs that may be its steps.
    """
    ids = ",".join(map(str, nodes))
    calls = np.array(
        list(
            rows(
                "SELECT start_ns - ifnull(wait_ns, 0), end_ns FROM call LEFT JOIN gil ON gil.call = call.id "
                f"WHERE node IN ({ids}) AND end_ns IS NOT NULL"
            )
        ),
        np.float64,
    ).reshape(-1, 2)
    if not len(calls):
        return 0, 0, 0
    rows_of_runs = rows(
        "SELECT start_ns, start_ns + duration_ns FROM run WHERE duration_ns IS NOT NULL AND kind = 'forward' "
        "AND start_ns <= ? AND start_ns + duration_ns >= ? "
        f"AND id NOT IN (SELECT min(id) FROM run WHERE kind = 'forward' GROUP BY function) AND {which}",
        (int(calls[:, 1].max()), int(calls[:, 0].min())),
    )
    runs = np.array(list(rows_of_runs), np.float64).reshape(-1, 2)
    if not len(runs):
        return 0, 0, 0
    return (len(runs), *together(runs, calls))


def together(runs: Spans, calls: Spans) -> tuple[int, int]:
    """For how long runs went on, and for how much of it calls did: rows of begin and end, one at least of each."""
    runs, calls = _union(runs), _union(calls)
    both = _length(runs) + _length(calls) - _length(_union(np.concatenate([runs, calls])))
    return int(_length(runs)), int(both)


def _length(spans: Spans) -> float:
    return float((spans[:, 1] - spans[:, 0]).sum())


def _union(spans: Spans) -> Spans:
    """Spans in order, those that overlap made one."""
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    until = np.maximum.accumulate(spans[:, 1])
    first = np.concatenate([[True], spans[1:, 0] > until[:-1]])
    return np.stack([spans[first, 0], until[np.concatenate([first[1:], [True]])]], 1)
