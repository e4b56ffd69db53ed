"""The op-start grade measures with TensorFlow's own profiler, and gives way to the program's."""

from __future__ import annotations

import glob
import os
import threading
import time

import pytest
import tensorflow as tf
from gil_workloads import Calls, Order, Turns, counting, hold, parallel, pipeline, release

from pyfunc_debug import gil
from pyfunc_debug.gil import opstart
from pyfunc_debug.gil.blame import call_of
from pyfunc_debug.gil.native import AbsentError
from pyfunc_debug.gil.opstart import OpStartProbe
from pyfunc_debug.profiler import xplane
from tests.limits import HANG_S

START = tf.profiler.experimental.start
SLACK_NS = 2 * gil.grade.RESOLUTION_NS["op-start"]
"""The baseline that is taken off each wait, and how far the profiler's clock may be off."""


@pytest.fixture(autouse=True)
def restored():
    yield
    assert tf.profiler.experimental.start is START
    assert not [t.name for t in threading.enumerate() if t.name.startswith("pyfunc_debug")]


@pytest.fixture(autouse=True)
def long_windows(monkeypatch):
    """One window for a whole test: what the edges of windows lose is tested by itself."""
    monkeypatch.setattr(opstart, "FIRST_S", HANG_S)


def measured(calls: Calls, run, turns: Turns | None = None) -> dict:
    run()  # threads of the pool begin
    calls.clear()
    if turns:
        turns.again()
    probe = gil.open_probe("op-start", canary=False)
    probe.start()
    assert probe.grade == "op-start", probe.why
    run()
    probe.stop()
    return dict(probe.rows(calls.times, calls.name, final=True))


def waits(rows) -> dict[int, int]:
    return {call: row.wait_ns for call, row in rows.items()}


@pytest.mark.parametrize("k", [2, 4, 8])
def test_waits_of_parallel_holds_are_as_long_as_those_before_held(calls, no_switching, k):
    turns = Turns(k - 1, 10_000)
    with parallel([calls.body(f"body{i}", turns) for i in range(k)], k + 2) as run, counting():
        since_ns = time.monotonic_ns()
        rows = measured(calls, run, turns)
    order = Order(calls.times, since_ns, turns.from_ns)
    order.check(waits(rows), SLACK_NS)
    assert {(row.held_ns, row.released_ns, row.reacquire_ns) for row in rows.values()} == {(None, None, None)}
    for call, held in order.held.items():
        blamed = {call_of(label): ns for label, ns in rows[call].blame}
        for other, ns in held.items():
            assert blamed.pop((calls.name(other), other)) >= ns - SLACK_NS
        assert not [name for name, number in blamed if number], "neither itself nor one that came later"


def test_a_full_pool_is_not_counted_as_gil_wait(calls):
    """Nor is the time in which bodies that released the GIL ran beside a call."""
    with parallel([calls.body("body", lambda: release(20_000))] * 8, 2) as run:
        since_ns = time.monotonic_ns()
        rows = measured(calls, run)
    assert len(rows) == 8
    ended = dict.fromkeys({t[1] for t in calls.times}, since_ns)
    queued = 0
    for call, thread, start, end in sorted(calls.times, key=lambda t: t[2]):
        assert rows[call].wait_ns <= start - ended[thread] + SLACK_NS
        queued += ended[thread] - since_ns
        ended[thread] = end
    assert queued >= 2 * (1 + 2 + 3) * 20_000_000, "eight bodies of 20 ms queued for two threads"


@pytest.mark.parametrize("pool", [1, 2, 8])
def test_private_pools_of_tf_data(calls, no_switching, pool):
    turns = Turns(pool - 1, 5000)
    body = calls.body("decode", turns)
    since_ns = time.monotonic_ns()
    with counting():
        rows = measured(calls, lambda: pipeline(body, 24, 8, pool), turns)
    order = Order(calls.times, since_ns, turns.from_ns)
    assert sum(least >= 5_000_000 for least in order.least.values()) == pool - 1
    order.check(waits(rows), SLACK_NS)


def test_threads_come_and_go(calls):
    body = calls.body("decode", lambda: None)

    def run() -> None:
        for _ in range(20):
            pipeline(body, 6, 3, 3)

    assert len(measured(calls, run)) == 120


def test_windows_follow_each_other_and_lose_only_what_lies_across_their_edges(calls, monkeypatch):
    monkeypatch.setattr(opstart, "FIRST_S", 0.05)
    monkeypatch.setattr(opstart, "_LONGEST_S", 0.05)
    runs = []
    with parallel([calls.body("body", lambda: hold(1000))] * 2, 4) as run:
        run()
        calls.clear()
        probe = OpStartProbe()
        probe.start()
        samples = probe.drain()
        until = time.monotonic() + HANG_S
        while len(samples.windows) < 3 and time.monotonic() < until:
            since, first = time.monotonic_ns(), len(calls.times)
            run()
            runs.append((since, time.monotonic_ns(), [t[0] for t in calls.times[first:]]))
            more = probe.drain()
            samples.ops.extend(more.ops)
            samples.windows.extend(more.windows)
        probe.stop()
    assert len(samples.windows) >= 3  # two may have closed between two looks
    measured_calls = {call for call, _ in gil.join(samples, calls.times, calls.name)}
    inside = [made for since, to, made in runs if any(a < since and to < b for a, b in samples.windows)]
    assert {call for made in inside for call in made} <= measured_calls


def test_between_two_windows_nothing_is_measured(calls):
    """The windows' own thread sleeps here (`long_windows`): the test closes and opens them."""
    with parallel([calls.body("body", lambda: hold(1000))] * 2, 4) as run:
        run()
        calls.clear()
        probe = OpStartProbe()
        probe.start()
        run()
        with probe._profiler.lock:
            probe._close(read=True)
        run()
        with probe._profiler.lock:
            probe._open()
        run()
        probe.stop()
    rows = gil.join(probe.drain(), calls.times, calls.name)
    numbers = sorted(t[0] for t in calls.times)
    assert sorted(call for call, _ in rows) == [*numbers[:2], *numbers[4:]]


@pytest.mark.parametrize("how", ["start", "Profile"])
def test_the_programs_own_profiler_gets_the_session_at_once(tmp_path, how):
    probe = gil.open_probe("op-start", canary=False)
    probe.start()
    assert probe.grade == "op-start"
    assert tf.profiler.experimental.start is not START
    if how == "start":
        tf.profiler.experimental.start(str(tmp_path))
        tf.constant(1.0) + 1.0
        tf.profiler.experimental.stop()
    else:
        with tf.profiler.experimental.Profile(str(tmp_path)):
            tf.constant(1.0) + 1.0
    assert glob.glob(str(tmp_path / "**" / "*.xplane.pb"), recursive=True)
    probe.stop()
    assert "the program started the profiler itself" in probe.report()["why"]
    tf.profiler.experimental.start(str(tmp_path / "again"))
    tf.profiler.experimental.stop(save=False)


def test_a_profiler_that_runs_already_is_left_alone(tmp_path):
    tf.profiler.experimental.start(str(tmp_path))
    probe = gil.open_probe("op-start", canary=False)
    probe.start()
    assert probe.grade == "bound"
    assert "the profiler is in use (AlreadyExistsError)" in probe.why
    probe.stop()
    tf.constant(1.0) + 1.0
    tf.profiler.experimental.stop()
    assert glob.glob(str(tmp_path / "**" / "*.xplane.pb"), recursive=True)


def test_a_profiler_with_unknown_thread_names_is_not_trusted(monkeypatch):
    monkeypatch.setattr(xplane, "line_of", lambda ident: 0)
    with pytest.raises(AbsentError, match="names threads in a way that is not known"):
        OpStartProbe().start()


def test_without_tensorflow_there_is_no_profiler(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(AbsentError, match="TensorFlow is not loaded"):
        OpStartProbe().start()


def test_a_forked_child_gets_tensorflows_own_start_back():
    probe = OpStartProbe()
    probe.start()
    child = os.fork()
    if child == 0:
        clean = tf.profiler.experimental.start is START
        os._exit(0 if clean else 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert tf.profiler.experimental.start is not START
    probe.stop()
