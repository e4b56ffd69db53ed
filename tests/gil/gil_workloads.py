"""Workloads that contend for the GIL in a known way.

`ctypes.PyDLL(None).usleep` holds the GIL without using a CPU, `ctypes.CDLL(None).usleep` releases it. Bodies note their
own times, as the recorder does. Graphs run in v1 sessions with thread pools of their own, because the process-wide
pools can be sized only once.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

hold = ctypes.PyDLL(None).usleep
release = ctypes.CDLL(None).usleep

NATIVE_HERE = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")


class Calls:
    """Notes what the recorder would: id, thread, start and end of each body, and its name."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self.times: list[tuple[int, int, int, int]] = []
        self.names: dict[int, str] = {}

    def body(self, name: str, work: Callable[[], object]) -> Callable[..., np.ndarray]:
        def run(x):
            start = time.monotonic_ns()
            call = next(self._ids)
            self.names[call] = name
            try:
                work()
                return x
            finally:
                self.times.append((call, threading.get_ident(), start, time.monotonic_ns()))

        return run

    def name(self, call: int) -> str:
        return self.names[call]

    def clear(self) -> None:
        self.times.clear()


@contextlib.contextmanager
def parallel(bodies: list[Callable], threads: int, *, stateful: bool = False) -> Iterator[Callable[[], None]]:
    """A graph with one node for each body, all ready at once, on a pool of its own. Yields what runs it once."""
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [])
        outputs = [
            tf.numpy_function(body, [x + float(i)], tf.float32, stateful=stateful) for i, body in enumerate(bodies)
        ]
    config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=threads, use_per_session_threads=True)
    with contextlib.closing(tf.compat.v1.Session(graph=graph, config=config)) as session:
        yield lambda: session.run(outputs, {x: 1.0})


def pipeline(body: Callable, elements: int, parallel_calls: int, pool: int) -> None:
    """Maps a body over a dataset with a private pool. One batch: Python, which wants the GIL too, waits for the end."""
    dataset = tf.data.Dataset.range(elements).map(
        lambda i: tf.numpy_function(body, [i], tf.int64, stateful=False), num_parallel_calls=parallel_calls
    )
    options = tf.data.Options()
    options.threading.private_threadpool_size = pool
    options.autotune.enabled = False
    for _ in dataset.batch(elements).with_options(options):
        pass


def expected_waits(k: int, hold_ns: float) -> float:
    """What k bodies that want the GIL together wait in sum: each for all before it."""
    return hold_ns * k * (k - 1) / 2


def seen_waits(times: list[tuple[int, int, int, int]]) -> int:
    """The same by the bodies' own clocks: from the first one's begin to each one's. Includes every handing over."""
    starts = sorted(start for _, _, start, _ in times)
    return sum(start - starts[0] for start in starts)


def gaps(times: list[tuple[int, int, int, int]]) -> dict[int, int]:
    """By call: time before its begin in which no body ran, because the next thread had not woken up."""
    found: dict[int, int] = {}
    ordered = sorted(times, key=lambda t: t[2])
    total = 0
    for before, after in itertools.pairwise([ordered[0], *ordered]):
        total += max(0, after[2] - before[3])
        found[after[0]] = total
    return found
