"""tf.data stages whose function holds a node: where an element's time goes, and what num_parallel_calls can bring.

Pure functions from a recording, but for `verify`, which runs a dataset that the user gives. The pool is not recorded:
by default tf.data has as many threads as there are cores; with another private_threadpool_size, say so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfunc_debug.analysis.contention import NodeContention, make_contention
from pyfunc_debug.analysis.groups import same_line
from pyfunc_debug.gil import Ceiling, Stage, ceiling
from pyfunc_debug.gil.whatif import percent
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.records import Function

Numbers = np.ndarray[Any, Any]
CALLS = (1, 2, 4, 8)


@dataclass(frozen=True)
class StageAnswer:
    """One stage.

    Attributes:
      contention: What the GIL did to its node.
      function: Name of the function given to `map`.
      at_once: Mean number of its ops in progress while it worked.
      python_share, wait_share, pool_share: Of its threads' time: in the body, waiting for the GIL (None is not
        measured; where some calls are not, estimated from those that are), and the rest: waiting for input, room, or
        a place in the pool.
      stage: What one element costs.
      ceilings: What num_parallel_calls of 1, 2, 4, 8 can bring over 1.
    """

    contention: NodeContention
    function: str
    at_once: float
    python_share: float
    wait_share: float | None
    pool_share: float | None
    stage: Stage
    ceilings: tuple[Ceiling, ...]

    def __str__(self) -> str:
        wait = "not measured" if self.wait_share is None else percent(self.wait_share)
        if self.wait_share is not None and self.contention.measured < self.contention.calls:
            wait += f" (from {self.contention.measured:,} of {self.contention.calls:,} calls)"
        pool = "not known" if self.pool_share is None else percent(self.pool_share)
        head = (
            f"`{self.contention.node.body}` in `{self.function}`: {self.at_once:.1f} at once; "
            f"Python {percent(self.python_share)}, GIL wait {wait}, pool {pool}"
        )
        return "\n".join([head, *(f"  num_parallel_calls={one.calls}: {one}" for one in self.ceilings)])

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Verified:
    """Measured beside predicted: num_parallel_calls=n against 1."""

    predicted: Ceiling
    measured: float
    one_ns: float
    many_ns: float

    def __str__(self) -> str:
        return (
            f"num_parallel_calls={self.predicted.calls}: predicted {self.predicted}; measured x{self.measured:.2f} "
            f"({self.one_ns / 1e6:.2f} -> {self.many_ns / 1e6:.2f} ms an element)"
        )

    def __repr__(self) -> str:
        return str(self)


def make_stages(
    reader: Reader, pool: int | None = None, cores: int | None = None, calls: Iterable[int] = CALLS
) -> list[StageAnswer]:
    """The tf.data stages of a recording that call Python.

    Args:
      reader: The recording.
      pool: Threads of the dataset's pool (`private_threadpool_size`); by default as many as cores.
      cores: CPUs of the process; by default as recorded.
      calls: Values of num_parallel_calls to ask about.
    """
    cores = cores or int(reader.meta.get("cores") or 1)
    pool, calls = pool or cores, tuple(calls)
    functions = {function.id: function for function in reader.functions()}
    groups = {group[0].id: group for group in same_line(reader.nodes())}
    answers = []
    for one in make_contention(reader).nodes:
        function = functions.get(one.node.function or 0)
        if function is not None and is_stage(one, function):
            ids = ", ".join(str(node.id) for node in groups[one.node.id])
            rows = reader.rows(
                "SELECT start_ns, end_ns, wait_ns, reacquire_ns, thread, cpu_ns FROM call "
                f"LEFT JOIN gil ON gil.call = call.id WHERE node IN ({ids}) AND end_ns IS NOT NULL"
            )
            if not rows:  # all its calls still run
                continue
            start, end, wait, reacquire, thread, cpu = np.array(rows, np.float64).T
            threads = len(np.unique(thread))
            times = start, end, wait, reacquire
            answers.append(stage_answer(one, function.name, times, threads, mean_cpu_ns(cpu), pool, cores, calls))
    return answers


def mean_cpu_ns(cpu: Numbers) -> float | None:
    """Mean CPU time in ns of a node's calls, NaN is not measured; None when that of more than a tenth is not.

    Which ones were measured is not a fair sample: without GIL timing, short calls rarely are (docs/costs.md).
    """
    known = cpu[~np.isnan(cpu)]
    return float(known.mean()) if len(known) and len(known) >= 0.9 * len(cpu) else None


def waits_ns(duration: Numbers, wait: Numbers, reacquire: Numbers) -> tuple[Numbers, Numbers]:
    """What each call waited for the GIL before its body and inside it, in ns: measured, or estimated from the others.

    The one estimate of waits: what a stage says of them is made of these, so that its parts sum. A call that was not
    measured (NaN) waited before its body as long as the measured ones did on average, for that does not depend on how
    long the body takes; and inside for the same share of its time, so never longer than it ran.

    Args:
      duration: Of the calls, in ns.
      wait: Their waits before the body; NaN is not measured.
      reacquire: Their waits inside the body; NaN is not measured.

    Returns:
      Waits before and inside, zeros where no call at all was measured.
    """
    known = ~np.isnan(wait)
    before = np.where(known, wait, wait[known].mean() if known.any() else 0.0)
    known = ~np.isnan(reacquire)
    inside = np.minimum(np.where(known, reacquire, 0.0), duration)  # two clocks: they may differ by some ns
    spent = float(duration[known].sum())
    share = float(inside[known].sum()) / spent if spent > 0 else 0.0
    return before, np.where(known, inside, share * duration)


def body_ns(duration: Numbers, reacquire: Numbers) -> tuple[float, float]:
    """How long the bodies of calls ran, and how long they waited for the GIL inside, in ns; see `waits_ns`.

    At least a nanosecond a call was work: nothing can be faster than no time at all.
    """
    total = float(duration.sum())
    inside = float(waits_ns(duration, np.zeros(len(duration)), reacquire)[1].sum())
    body = max(total - inside, float(len(duration)))
    return body, max(0.0, total - body)


def is_stage(one: NodeContention, function: Function) -> bool:
    """Whether a node of this function is asked once for each element of a dataset."""
    return function.kind == "tf.data" and one.node.origin == "user" and one.calls > 0


def stage_answer(
    one: NodeContention,
    function: str,
    times: tuple[Numbers, Numbers, Numbers, Numbers],
    threads: int,
    cpu_ns: float | None,
    pool: int,
    cores: int,
    calls: Iterable[int] = CALLS,
) -> StageAnswer:
    """The answer for one stage.

    Args:
      one: What the GIL did to its node.
      function: Name of the function given to `map`.
      times: Of its finished calls in ns: begins, ends, waits before and inside the body (NaN is not measured).
      threads: How many threads ran them.
      cpu_ns: Mean time on a CPU, if known.
      pool: Threads of the dataset's pool.
      cores: CPUs of the process.
      calls: Values of num_parallel_calls to ask about.
    """
    start, end, wait, reacquire = times
    known = one.measured > 0 and one.grade in ("native", "op-start")
    before = waits_ns(end - start, wait, reacquire)[0] if known else np.zeros(len(start))
    begin = start - before
    body, inside = body_ns(end - start, reacquire)
    waited = float(before.sum()) + inside
    busy = body + waited
    room = max(busy, min(threads, pool) * float(end.max() - begin.min()))
    work = _covered(begin, end)
    held = None if one.held_share is None else one.held_share * body / len(start)
    stage = Stage(body / len(start), held, cpu_ns)
    return StageAnswer(
        contention=one,
        function=function,
        at_once=busy / work if work else 1.0,
        python_share=body / room if room else 0.0,
        wait_share=waited / room if known and room else None,
        pool_share=(room - busy) / room if known and room else None,
        stage=stage,
        ceilings=tuple(ceiling(stage, n, pool, cores) for n in calls),
    )


def _covered(begin: Numbers, end: Numbers) -> float:
    """Time in which at least one span was open."""
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], end[order]
    until = np.maximum.accumulate(np.concatenate([begin[:1], end[:-1]]))
    return float(np.maximum(0, end - np.maximum(begin, until)).sum())


def verify(predicted: Ceiling, dataset_fn: Callable[[int], Iterable[Any]], repeat: int = 3) -> Verified:
    """Runs a dataset with num_parallel_calls of 1 and of n, in turn, and compares with what was predicted.

    Args:
      predicted: For n.
      dataset_fn: Given num_parallel_calls, makes the dataset; all its elements are taken.
      repeat: How often each is run; the fastest counts.
    """

    def element_ns(calls: int) -> float:
        start = time.perf_counter_ns()
        elements = sum(1 for _ in dataset_fn(calls))
        return (time.perf_counter_ns() - start) / max(1, elements)

    element_ns(predicted.calls)  # tracing, threads
    one, many = float("inf"), float("inf")
    for _ in range(repeat):
        one, many = min(one, element_ns(1)), min(many, element_ns(predicted.calls))
    return Verified(predicted, one / many, one, many)
