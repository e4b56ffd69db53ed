"""tf.data stages whose function holds a node: where an element's time goes, and what num_parallel_calls can bring.

Pure functions from a recording, but for `verify`, which runs a dataset that the user gives. num_parallel_calls and
private_threadpool_size are recorded where Python makes the iterator; else the pool is taken to have as many threads as
there are cores, which is tf.data's default.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfunc_debug.analysis.contention import Contention, NodeContention, make_contention
from pyfunc_debug.analysis.groups import same_line
from pyfunc_debug.analysis.inputs import AUTOTUNE, Setting, settings
from pyfunc_debug.analysis.integers import integers
from pyfunc_debug.gil import Ceiling, Stage, ceiling
from pyfunc_debug.gil.blame import NOBODY, thread_name
from pyfunc_debug.gil.whatif import percent
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.pfrec.stopped import QUERY, Stop, held_ns, stops_of
from pyfunc_debug.records import Function

Numbers = np.ndarray[Any, Any]
CALLS = (1, 2, 4, 8)
_SHARED = 0.25
"""Share of the CPUs' time that other processes had."""


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
      ceilings: What num_parallel_calls of 1, 2, 4, 8 and the present number can bring over the present one; over 1 if
        that is not known.
      setting: How the stage is set up; None if that is not known.
      pool: Threads of the pipeline's pool.
      without: Threads that held the GIL while the stage waited, and how much faster it would be without each, at most.
      cures: What would help this stage, in words with its numbers.
      wider: num_parallel_calls and the size of the pool at which a larger pool pays, and what it brings; None where it
        does not.
    """

    contention: NodeContention
    function: str
    at_once: float
    python_share: float
    wait_share: float | None
    pool_share: float | None
    stage: Stage
    ceilings: tuple[Ceiling, ...]
    setting: Setting | None = None
    pool: int = 1
    without: tuple[tuple[str, float], ...] = ()
    cures: tuple[str, ...] = ()
    wider: Ceiling | None = None

    @property
    def present(self) -> str:
        """How many of its calls may run at once now, in words."""
        if self.setting is None:
            return "num_parallel_calls not known"
        if self.setting.parallel == AUTOTUNE:
            return f"num_parallel_calls=AUTOTUNE ({self.at_once:.1f} at once)"
        return f"num_parallel_calls={self.setting.parallel}"

    def __str__(self) -> str:
        wait = "not measured" if self.wait_share is None else percent(self.wait_share)
        if self.wait_share is not None and self.contention.measured < self.contention.calls:
            wait += f" (from {self.contention.measured:,} of {self.contention.calls:,} calls)"
        pool = "not known" if self.pool_share is None else percent(self.pool_share)
        head = (
            f"`{self.contention.node.body}` in `{self.function}`: {self.present}, {self.pool} "
            f"thread{'s' if self.pool > 1 else ''} in the pool; "
            f"{self.at_once:.1f} at once; Python {percent(self.python_share)}, GIL wait {wait}, idle {pool}"
        )
        now = None if self.setting is None else self.setting.parallel
        lines = [head]
        lines += [f"  num_parallel_calls={one.calls}: {'as now' if one.calls == now else one}" for one in self.ceilings]
        lines += [f"  without {name}: up to x{speedup:.1f}" for name, speedup in self.without]
        return "\n".join([*lines, *(f"  {cure}" for cure in self.cures)])

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Verified:
    """Measured next to predicted: num_parallel_calls=n against the present one, or 1 where that is not known."""

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


_TIMES = (
    "call.id", "thread", "start_ns", "end_ns", "ifnull(wait_ns, -1)", "ifnull(reacquire_ns, -1)", "ifnull(cpu_ns, -1)",
)  # fmt: skip


def make_stages(
    reader: Reader,
    pool: int | None = None,
    cores: int | None = None,
    calls: Iterable[int] = CALLS,
    contention: Contention | None = None,
) -> list[StageAnswer]:
    """The tf.data stages of a recording that call Python.

    Args:
      reader: The recording.
      pool: Threads of the dataset's pool (`private_threadpool_size`); by default as recorded, else as many as cores.
      cores: CPUs of the process; by default as recorded.
      calls: Values of num_parallel_calls to ask about.
      contention: The recording's, if it is known already.
    """
    cores, calls = cores or int(reader.meta.get("cores") or 1), tuple(calls)
    known = settings(reader.meta, reader.nodes())
    functions = {function.id: function for function in reader.functions()}
    groups = {group[0].id: group for group in same_line(reader.nodes(), functions.values())}
    stops = stops_of(reader.rows(f"{QUERY} ORDER BY id"))
    held = held_ns(stops)
    answers = []
    for one in (contention or make_contention(reader)).nodes:
        function = functions.get(one.node.function or 0)
        group = [node.id for node in groups[one.node.id]]
        setting = setting_of(group, known)
        if function is not None and is_stage(one, function, setting):
            ids = ", ".join(map(str, group))
            columns = integers(
                reader, _TIMES, "call NOT INDEXED LEFT JOIN gil ON gil.call = call.id "
                f"WHERE node IN ({ids}) AND end_ns IS NOT NULL", "call.id",
            )  # fmt: skip
            if not columns.size:  # all its calls still run
                continue
            number, thread = columns[:2]
            start, end, *unknown = columns[2:].astype(np.float64)
            wait, reacquire, cpu = (np.where(part < 0, np.nan, part) for part in unknown)
            threads = len(np.unique(thread))
            end = (
                end - np.array([held.get(one, 0) for one in number.tolist()]) if held else end
            )  # as if it had not been held at a stop
            times = start, end, wait, reacquire
            threads_of_pool = pool or (setting.pool if setting else None) or cores
            answers.append(
                stage_answer(
                    one,
                    function.name,
                    times,
                    threads,
                    mean_cpu_ns(cpu),
                    threads_of_pool,
                    cores,
                    calls,
                    setting,
                    at_stops_ns(stops, start, end),
                    shares_cpus(reader.meta),
                )
            )
    return answers


def shares_cpus(meta: Mapping[str, Any]) -> bool:
    """Whether other processes had the CPUs for much of the time of a recording; not where nobody knows."""
    others = meta.get("others")
    return isinstance(others, (int, float)) and others >= _SHARED


def setting_of(group: Iterable[int], known: dict[int, Setting]) -> Setting | None:
    """How the stage of a line of code is set up: each graph trace makes a new node for it, the last one counts."""
    found = [known[node] for node in group if node in known]
    return found[-1] if found else None


def at_stops_ns(stops: Iterable[Stop], start: Numbers, end: Numbers) -> float:
    """For how long between the first begin and the last end any call was held at a stop, in ns of the same clock."""
    spans = [(asked, until) for stop in stops for asked, _, until in stop.spans if until is not None]
    if not spans or not len(start):
        return 0.0
    begin, finish = (np.clip(np.array(part, np.float64), start.min(), end.max()) for part in zip(*spans))
    return _covered(begin, finish)


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


def is_stage(one: NodeContention, function: Function, setting: Setting | None) -> bool:
    """Whether a node of this function is asked once for each element of a dataset.

    Args:
      one: What the GIL did to the node.
      function: In which it was made: that of a map, or one that this calls.
      setting: How the stage is set up whose function has it; None where none is known.
    """
    return (function.kind == "tf.data" or setting is not None) and one.node.origin == "user" and one.calls > 0


def stage_answer(
    one: NodeContention,
    function: str,
    times: tuple[Numbers, Numbers, Numbers, Numbers],
    threads: int,
    cpu_ns: float | None,
    pool: int,
    cores: int,
    calls: Iterable[int] = CALLS,
    setting: Setting | None = None,
    at_stops_ns: float = 0.0,
    shared: bool = False,
) -> StageAnswer:
    """The answer for one stage.

    Args:
      one: What the GIL did to its node.
      function: Name of the function given to `map`.
      times: Of its finished calls in ns: begins, ends, waits before and inside the body (NaN is not measured). An end
        is that of a call that was not held at a stop.
      threads: How many threads ran them.
      cpu_ns: Mean time on a CPU, if known.
      pool: Threads of the dataset's pool.
      cores: CPUs of the process.
      calls: Values of num_parallel_calls to ask about.
      setting: How the stage is set up.
      at_stops_ns: For how long calls were held at stops meanwhile: then its threads did not idle, somebody looked.
      shared: Whether other processes had the CPUs for a part of the time: a body that was off a CPU may have waited for
        one then, and a pool with more threads has no more CPUs.
    """
    start, end, wait, reacquire = times
    known = one.measured > 0 and one.grade in ("native", "op-start")
    before = waits_ns(end - start, wait, reacquire)[0] if known else np.zeros(len(start))
    begin = start - before
    body, inside = body_ns(end - start, reacquire)
    waited = float(before.sum()) + inside
    busy = body + waited
    room = max(busy, min(threads, pool) * max(0.0, float(end.max() - begin.min()) - at_stops_ns))
    work = _covered(begin, end)
    held = None if one.held_share is None else one.held_share * body / len(start)
    at_once = busy / work if work else 1.0
    stage = Stage(body / len(start), held, cpu_ns, _parallel_now(setting, at_once, pool))
    present = {setting.parallel} if setting is not None and setting.parallel > 0 else set()
    ceilings = tuple(ceiling(stage, n, pool, cores) for n in sorted({*calls, *present}))
    wider = None if shared else _wider(stage, ceilings, pool, cores)
    return StageAnswer(
        contention=one,
        function=function,
        at_once=at_once,
        python_share=body / room if room else 0.0,
        wait_share=waited / room if known and room else None,
        pool_share=(room - busy) / room if known and room else None,
        stage=stage,
        ceilings=ceilings,
        setting=setting,
        pool=pool,
        without=_without(one, busy * one.measured / len(start)) if known else (),
        cures=_cures(one, stage, ceilings, wider, pool, cores, setting),
        wider=wider,
    )


def _parallel_now(setting: Setting | None, at_once: float, pool: int) -> float:
    """How many calls run at once now, as far as that is set; 1 if it is not known."""
    if setting is None:
        return 1.0
    return float(min(at_once if setting.parallel == AUTOTUNE else setting.parallel, pool))


def _without(one: NodeContention, busy_ns: float) -> tuple[tuple[str, float], ...]:
    """Who else held the GIL while this stage waited, from a tenth of its time on, and what it costs.

    Args:
      one: What the GIL did to the stage's node.
      busy_ns: Time of its measured calls, waits included.
    """
    found = []
    for culprit in one.culprits:
        share = culprit.ns / busy_ns if busy_ns else 0.0
        if culprit.node is None and culprit.label != NOBODY and 0.1 <= share < 1:
            found.append((thread_name(culprit.label), 1 / (1 - share)))
    return tuple(found)


def _wider(stage: Stage, ceilings: Iterable[Ceiling], pool: int, cores: int) -> Ceiling | None:
    """What a pool with more threads brings, with as few of them as bring it; None where that is not a tenth more."""
    options = list(ceilings)
    largest = max((one.calls for one in options), default=1)
    most = ceiling(stage, largest, largest, cores).speedup
    if pool >= largest or most < 1.1 * max((one.speedup for one in options), default=1.0):
        return None
    every = (ceiling(stage, n, n, cores) for n in range(1, largest + 1))
    return next(one for one in every if one.speedup >= 0.99 * most)


def _cures(
    one: NodeContention,
    stage: Stage,
    ceilings: Iterable[Ceiling],
    wider: Ceiling | None,
    pool: int,
    cores: int,
    setting: Setting | None,
) -> tuple[str, ...]:
    """What TensorFlow offers to make this stage faster, each with its number for this program; the best first."""
    options = list(ceilings)
    best = max((one.speedup for one in (*options, *([wider] if wider else ()))), default=1.0)
    largest = max((one.calls for one in options), default=1)
    cures: list[tuple[float, str]] = []
    if wider is not None:
        text = f"options.threading.private_threadpool_size={wider.calls} with num_parallel_calls={wider.calls}"
        cures.append((wider.speedup, f"{text}: up to x{wider.speedup:.1f}"))
    outside = ceiling(dataclasses.replace(stage, held_ns=None), largest, max(pool, largest), cores)
    inside = ceiling(stage, largest, max(pool, largest), cores)  # else the threads are what brings it
    if stage.held_ns and outside.speedup >= 1.1 * max(best, inside.speedup):
        text = "the body in TensorFlow ops, or in C that lets the GIL go, with as many threads"
        cures.append((outside.speedup, f"{text}: up to x{outside.speedup:.1f}"))
    lines = [text for _, text in sorted(cures, key=lambda item: -item[0])]
    if setting is not None and not setting.batched and one.calls >= 64:
        size = setting.batch or 32
        many = f"{one.calls:,} calls become {-(-one.calls // size):,}"
        lines.append(f"batch({size}) before {one.node.body}, if it can take a batch: {many}")
    return tuple(lines)


def _covered(begin: Numbers, end: Numbers) -> float:
    """Time in which at least one span was open."""
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], end[order]
    until = np.maximum.accumulate(np.concatenate([begin[:1], end[:-1]]))
    return float(np.maximum(0, end - np.maximum(begin, until)).sum())


def verify(predicted: Ceiling, dataset_fn: Callable[[int], Iterable[Any]], repeat: int = 3, now: int = 1) -> Verified:
    """Runs a dataset with num_parallel_calls of now and of n, in turn, and compares with what was predicted.

    Args:
      predicted: For n, over now.
      now: num_parallel_calls to compare with.
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
        one, many = min(one, element_ns(now)), min(many, element_ns(predicted.calls))
    return Verified(predicted, one / many, one, many)
