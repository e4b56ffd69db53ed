"""The op-start grade measures with TensorFlow's own profiler, and gives way to the program's."""

from __future__ import annotations

import glob
import os
import threading
import time

import pytest
import tensorflow as tf
from gil_workloads import Calls, expected_waits, gaps, hold, parallel, pipeline, release, seen_waits

from pyfunc_debug import gil
from pyfunc_debug.gil import opstart
from pyfunc_debug.gil.blame import call_of
from pyfunc_debug.gil.native import AbsentError
from pyfunc_debug.gil.opstart import OpStartProbe
from pyfunc_debug.profiler import xplane

START = tf.profiler.experimental.start


@pytest.fixture(autouse=True)
def restored():
    yield
    assert tf.profiler.experimental.start is START
    assert not [t.name for t in threading.enumerate() if t.name.startswith("pyfunc_debug")]


@pytest.fixture(autouse=True)
def long_windows(monkeypatch):
    """One window for a whole test: what the edges of windows lose is tested by itself."""
    monkeypatch.setattr(opstart, "_FIRST_S", 30.0)


def measured(calls: Calls, run, times: int = 1) -> dict:
    run()
    calls.clear()
    probe = gil.open_probe("op-start", canary=False)
    probe.start()
    assert probe.grade == "op-start", probe.why
    for _ in range(times):
        run()
    probe.stop()
    return dict(probe.rows(calls.times, calls.name, final=True))


@pytest.mark.parametrize(("k", "ms"), [(2, 80), (4, 60), (8, 40)])
def test_waits_of_parallel_holds_add_up(calls, no_switching, lateness_ns, k, ms):
    with parallel([calls.body(f"body{i}", lambda: hold(ms * 1000)) for i in range(k)], k + 2) as run:
        rows = measured(calls, run)
    assert rows.keys() == {t[0] for t in calls.times}
    waited = sum(row.wait_ns for row in rows.values())
    seen = seen_waits(calls.times)
    assert seen >= expected_waits(k, ms * 1e6)
    # Threads of the pool that this machine woke late were not ready all the time.
    assert waited == pytest.approx(seen, abs=0.1 * seen + k * lateness_ns()), lateness_ns()
    if seen < 1.02 * expected_waits(k, ms * 1e6):  # the machine hands the GIL over quickly: then the plain sum holds
        assert waited == pytest.approx(expected_waits(k, ms * 1e6), abs=0.1 * seen + k * lateness_ns())
    assert {(row.held_ns, row.released_ns, row.reacquire_ns) for row in rows.values()} == {(None, None, None)}
    for call, row in rows.items():
        blamed = [(call_of(label), ns) for label, ns in row.blame]
        assert (calls.name(call), call) not in [who for who, _ in blamed]
        explained = sum(ns for (_, known), ns in blamed if known)
        assert explained >= 0.97 * row.wait_ns - 200_000 - gaps(calls.times)[call]


def test_bodies_that_release_the_gil_do_not_contend(calls):
    with parallel([calls.body("body", lambda: release(20_000))] * 4, 6) as run:
        rows = measured(calls, run, times=3)
    assert len(rows) == 12
    assert sum(row.wait_ns for row in rows.values()) < 12 * 2_000_000


def test_a_full_pool_is_not_counted_as_gil_wait(calls):
    with parallel([calls.body("body", lambda: release(20_000))] * 8, 2) as run:
        rows = measured(calls, run)
    assert len(rows) == 8
    assert sum(row.wait_ns for row in rows.values()) < 16_000_000


@pytest.mark.parametrize("pool", [1, 2, 8])
def test_private_pools_of_tf_data(calls, no_switching, pool):
    body = calls.body("decode", lambda: hold(8000))
    rows = measured(calls, lambda: pipeline(body, 48, 8, pool))
    assert len(rows) == 48
    span = max(t[3] for t in calls.times) - min(t[2] for t in calls.times)
    expected = (pool - 1) * (span - pool / 2 * 8e6)
    assert sum(row.wait_ns for row in rows.values()) == pytest.approx(expected, rel=0.1, abs=4_000_000)


def test_threads_come_and_go(calls):
    body = calls.body("decode", lambda: None)

    def run() -> None:
        for _ in range(20):
            pipeline(body, 6, 3, 3)

    assert len(measured(calls, run)) == 120


def test_windows_lose_only_what_lies_across_their_edges(calls, monkeypatch):
    monkeypatch.setattr(opstart, "_FIRST_S", 0.05)
    monkeypatch.setattr(opstart, "_LONGEST_S", 0.05)
    with parallel([calls.body("body", lambda: hold(1000))] * 2, 4) as run:
        run()
        calls.clear()
        probe = OpStartProbe()
        probe.start()
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            run()
        probe.stop()
    samples = probe.drain()
    assert len(samples.windows) > 1
    rows = gil.join(samples, calls.times, calls.name)
    inside = [
        t[0] for t in calls.times if any(a + 10_000_000 < t[2] and t[3] < b - 10_000_000 for a, b in samples.windows)
    ]
    measured_calls = {call for call, _ in rows}
    assert set(inside) <= measured_calls
    assert len(measured_calls) < len(calls.times), "between windows nothing is measured"


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
