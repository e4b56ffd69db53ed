"""Workloads that contend for the GIL in a known way.

`ctypes.PyDLL(None).usleep` holds the GIL without using a CPU, `ctypes.CDLL(None).usleep` releases it. Bodies note their
own times, as the recorder does. Graphs run in v1 sessions with thread pools of their own, because the process-wide
pools can be sized only once.

How fast and how idle the machine is does not matter: a body keeps the GIL until the others have begun to wait for it,
and what each must have waited at least, and can have waited at most, follows from the order of what happened (`Order`).
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
from typing import Any

from tests.limits import HANG_S

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from pyfunc_debug.gil import native

hold = ctypes.PyDLL(None).usleep
release = ctypes.CDLL(None).usleep

NATIVE_HERE = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")


_hooks: Any = native.load() if NATIVE_HERE else None  # tests take `native.load` away


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


def keep_until_waiting(threads: int, *, in_ops: bool = True) -> int:
    """Keeps the GIL until so many threads wait for it, with hooks installed that count them.

    Args:
      threads: How many; with `in_ops` those count that run a py_function's op.
      in_ops: See above.

    Returns:
      A time at which all of them waited.
    """
    for _ in range(int(HANG_S * 10_000)):
        if _hooks.waiting()[in_ops] >= threads:
            return time.monotonic_ns()
        hold(100)
    raise AssertionError(f"{threads} threads do not want the GIL: {_hooks.waiting()} do")


@contextlib.contextmanager
def counting() -> Iterator[None]:
    """`keep_until_waiting` works, also where another grade than native is tested."""
    _hooks.install(native.COMPUTE, 1 << 12)
    try:
        yield
    finally:
        _hooks.remove()


class Turns:
    """Work for bodies that are ready together: the first one keeps the GIL until all the others wait for it.

    The fixture `no_switching` has to be on. Without hooks (in a run that only starts the threads) nothing is kept.

    Args:
      others: Threads that wait at the same time.
      us: How long each body holds the GIL then, in microseconds.
    """

    def __init__(self, others: int, us: int) -> None:
        self._others, self._us = others, us
        self.again()

    def again(self) -> None:
        """The next body is the first one again."""
        self.began = False
        """A body has the GIL."""
        self.from_ns: int | None = None
        """All others waited then."""

    def __call__(self) -> None:
        self.began = True
        if self.from_ns is None and _hooks and _hooks.slots():
            self.from_ns = keep_until_waiting(self._others)
        hold(self._us)


class Order:
    """What the bodies' own times say of their waits, by the order in which they held the GIL one after the other.

    Args:
      times: Of the bodies, which hold the GIL from begin to end.
      since_ns: Before the first of them could want it.
      from_ns: A time within the first body, at which all others waited.
    """

    def __init__(self, times: list[tuple[int, int, int, int]], since_ns: int, from_ns: int) -> None:
        ordered = sorted(times, key=lambda t: t[2])
        assert all(before[3] <= after[2] for before, after in itertools.pairwise(ordered)), "one after the other"
        assert ordered[0][2] <= from_ns <= ordered[0][3]
        self.least: dict[int, int] = {}
        """By call: from `from_ns` to the end of the body before it, if this is its thread's first body."""
        self.most: dict[int, int] = {}
        """By call: its thread could want the GIL when it had ended the body before."""
        self.free: dict[int, int] = {}
        """By call: time before it in which no body ran."""
        self.held: dict[int, dict[int, int]] = {}
        """By call that waited at `from_ns`, and by call before it: how long that held the GIL meanwhile."""
        ended: dict[int, int] = {}
        last, free = since_ns, 0
        for place, (call, thread, start, end) in enumerate(ordered):
            free += start - last
            self.least[call] = last - from_ns if place and thread not in ended else 0
            self.most[call] = start - ended.get(thread, since_ns)
            self.free[call] = free
            if thread not in ended:
                self.held[call] = {t[0]: t[3] - max(t[2], from_ns) for t in ordered[:place]}
            ended[thread] = last = end

    def check(self, waits: dict[int, int], slack_ns: int = 0) -> None:
        """Waits by call lie within what the order allows; less by `slack_ns` at most."""
        assert waits.keys() == self.most.keys(), "every call is measured"
        for call, waited in waits.items():
            assert self.least[call] - slack_ns <= waited <= self.most[call] + slack_ns, (call, vars(self))
