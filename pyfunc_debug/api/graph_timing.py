"""How long a body takes: as Python in a graph, as graph code, alone, in a map, one call an element or one a batch."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_ROUNDS = 5
_ROUND_NS = 30_000_000
_MOST = 3000
_LEAST = 5
_BATCH = 32
_CHAIN = 16


@dataclass(frozen=True)
class Measured:
    """Times of one call, in ns: medians of rounds that took turns, and in how many of them graph code was faster."""

    python_ns: float
    graph_ns: float
    won: float = 1.0

    @property
    def ratio(self) -> float:
        """How many times as fast graph code is."""
        return self.python_ns / self.graph_ns


@dataclass(frozen=True)
class Staying:
    """The ways to call Python, for a body that needs it. Times of one element in ns; None where that did not work.

    Attributes:
      numpy_ns: In a tf.numpy_function.
      eager_ns: In a tf.py_function.
      batch_ns: An element of a batch of `batch`, in a call of whichever of the two it is now.
    """

    kind: str
    numpy_ns: float | None
    eager_ns: float | None
    batch_ns: float | None
    batch: int = _BATCH

    @property
    def sentences(self) -> list[str]:
        """What follows from the times."""
        found = []
        if self.numpy_ns is not None and self.eager_ns is not None:
            own, other = (
                (self.numpy_ns, self.eager_ns) if self.kind == "numpy_function" else (self.eager_ns, self.numpy_ns)
            )
            name = "py_function" if self.kind == "numpy_function" else "numpy_function"
            text = f"tf.{self.kind} takes {own / 1e3:.0f} us a call, tf.{name} {other / 1e3:.0f} us"
            better = f"use tf.{name}" + (", if no gradient is needed" if name == "numpy_function" else "")
            found.append(f"{text}: {'stay with it' if own <= other * 1.1 else better}")
        own_ns = self.numpy_ns if self.kind == "numpy_function" else self.eager_ns
        if self.batch_ns is not None and own_ns is not None:
            found.append(
                f"it gives the same on a batch: {self.batch} elements in one call take {self.batch_ns / 1e3:.1f} us "
                f"each, x{own_ns / self.batch_ns:.1f} as fast: dataset.batch({self.batch}) before the map"
            )
        return found


def measure(
    tf: Any, function: Any, eager: bool, tout: Sequence[str], graph: Callable[..., list[Any]], arrays: Sequence[Any]
) -> tuple[Measured, Measured]:
    """Python and graph code on the same inputs, alone in a tf.function and in a map with AUTOTUNE."""
    tensors = [tf.constant(one) for one in arrays]
    python = _through(tf, function, eager, tout)
    one, other = _chain(tf, python), _chain(tf, graph)
    many = tensors * _CHAIN
    chained = _in_turns(lambda n: _loop(one, many, n), lambda n: _loop(other, many, n))
    alone = Measured(chained[0] / _CHAIN, chained[1] / _CHAIN)
    mapped = Measured(*_in_turns(lambda n: _map(tf, python, tensors, n), lambda n: _map(tf, graph, tensors, n)))
    return alone, mapped


def measure_alone(
    tf: Any, function: Any, eager: bool, tout: Sequence[str], graph: Callable[..., list[Any]], arrays: Sequence[Any],
    budget_ns: int,
) -> Measured:  # fmt: skip
    """Python and graph code in turns, each a call at a time in a tf.function, for at most about `budget_ns`."""
    tensors = [tf.constant(one) for one in arrays]
    sides = [tf.function(one, autograph=False) for one in (_through(tf, function, eager, tout), graph)]
    for one in sides:
        one(*tensors)  # traces
    begin = time.perf_counter_ns()
    times: list[list[float]] = [[], []]
    while len(times[0]) < _LEAST or (len(times[0]) < _MOST and time.perf_counter_ns() - begin < budget_ns):
        for side, took in zip(sides, times):
            started = time.perf_counter_ns()
            side(*tensors)
            took.append(time.perf_counter_ns() - started)
    won = sum(python > ops for python, ops in zip(*times)) / len(times[0])
    return Measured(statistics.median(times[0]), statistics.median(times[1]), won)


def measure_staying(
    tf: Any, function: Any, eager: bool, tout: Sequence[str], inputs: Sequence[Sequence[Any]]
) -> Staying:
    """The body as numpy_function, as py_function, and on a batch, as far as it gives the same there."""
    arrays = inputs[len(inputs) // 2]
    expected = _tried(tf, function, eager, tout, arrays)
    if expected is None:
        return Staying("py_function" if eager else "numpy_function", None, None, None)
    times: list[float | None] = []
    for way in (False, True):
        found = expected if way is eager else _tried(tf, function, way, tout, arrays)
        if found is None or not _same(found, expected):
            times.append(None)
            continue
        times.append(_chained(tf, _through(tf, function, way, tout), arrays))
    return Staying(
        "py_function" if eager else "numpy_function", times[0], times[1],
        _batched(tf, function, eager, tout, inputs),
    )  # fmt: skip


def _batched(tf: Any, function: Any, eager: bool, tout: Sequence[str], inputs: Sequence[Sequence[Any]]) -> float | None:
    """Time of an element of a batch, if the body gives for a batch what it gives for its elements."""
    if not inputs or not inputs[0] or len(inputs) < 2:
        return None
    chosen = [inputs[number % len(inputs)] for number in range(_BATCH)]
    single = [_tried(tf, function, eager, tout, one) for one in chosen]
    stacked = [np.stack([one[position] for one in chosen]) for position in range(len(chosen[0]))]
    together = _tried(tf, function, eager, tout, stacked)
    if together is None or any(one is None for one in single):
        return None
    try:
        wanted = [np.stack([one[position] for one in single if one]) for position in range(len(together))]
    except (ValueError, IndexError):
        return None
    if not wanted or not _same(together, wanted):
        return None
    return _chained(tf, _through(tf, function, eager, tout), stacked) / _BATCH


def _same(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    return len(found) == len(wanted) and all(
        one.shape == other.shape and np.allclose(one, other, 1e-5, 1e-7, equal_nan=True)
        if one.dtype.kind in "fc"
        else np.array_equal(one, other)
        for one, other in zip(found, wanted)
    )


def _through(tf: Any, function: Any, eager: bool, tout: Sequence[str]) -> Callable[..., Any]:
    make = tf.py_function if eager else tf.numpy_function
    dtypes = [tf.as_dtype(one) for one in tout]
    return lambda *tensors: make(function, list(tensors), dtypes)


def _tried(tf: Any, function: Any, eager: bool, tout: Sequence[str], arrays: Sequence[Any]) -> list[Any] | None:
    try:
        found = _through(tf, function, eager, tout)(*[tf.constant(one) for one in arrays])
        return [np.asarray(one) for one in tf.nest.flatten(found)]
    except Exception:  # the body does not take such inputs
        return None


def _chain(tf: Any, body: Callable[..., Any]) -> Callable[..., Any]:
    """A tf.function that calls a body some times, one after the other: its own start counts for little then."""

    def calls(*tensors: Any) -> list[Any]:
        width = len(tensors) // _CHAIN
        found: list[Any] = []
        last: list[Any] = []
        for number in range(_CHAIN):
            with tf.control_dependencies(last):
                given = [tf.identity(one) for one in tensors[number * width : (number + 1) * width]]
                last = tf.nest.flatten(body(*given))
            found += last
        return found

    made: Callable[..., Any] = tf.function(calls, autograph=False)
    return made


def _chained(tf: Any, body: Callable[..., Any], arrays: Sequence[Any]) -> float:
    run, tensors = _chain(tf, body), [tf.constant(one) for one in arrays] * _CHAIN
    times = _times(lambda n: _loop(run, tensors, n))
    return statistics.median(_clocked(lambda n: _loop(run, tensors, n), times) for _ in range(_ROUNDS)) / _CHAIN


def _loop(run: Callable[..., Any], tensors: Sequence[Any], times: int) -> None:
    for _ in range(times):
        run(*tensors)


def _map(tf: Any, body: Callable[..., Any], tensors: Sequence[Any], times: int) -> None:
    dataset = tf.data.Dataset.from_tensors(tuple(tensors)).repeat(times)
    for _ in dataset.map(body, num_parallel_calls=tf.data.AUTOTUNE).skip(times - 1):  # C++ takes the others
        pass


def _in_turns(one: Callable[[int], None], other: Callable[[int], None]) -> tuple[float, float]:
    times = [_times(one), _times(other)]
    rounds = [(_clocked(one, times[0]), _clocked(other, times[1])) for _ in range(_ROUNDS)]
    return statistics.median(left for left, _ in rounds), statistics.median(right for _, right in rounds)


def _times(run: Callable[[int], None]) -> int:
    """How often to run in one round."""
    run(2)  # traces
    took = _clocked(run, 10)
    return int(max(10, min(_MOST, _ROUND_NS / max(took, 1))))


def _clocked(run: Callable[[int], None], times: int) -> float:
    begin = time.perf_counter_ns()
    run(times)
    return (time.perf_counter_ns() - begin) / times
