"""The native grade measures waits, holders and releases as they are, and leaves nothing behind."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import tensorflow as tf
from gil_workloads import Calls, expected_waits, gaps, hold, parallel, pipeline, release, seen_waits

from pyfunc_debug import gil
from pyfunc_debug.gil import native as native_module
from pyfunc_debug.gil.blame import NOBODY, OUTSIDE, call_of
from pyfunc_debug.gil.native import AbsentError, NativeProbe
from pyfunc_debug.gil.samples import WAITED

pytestmark = pytest.mark.usefixtures("native")


def measured(calls: Calls, run, times: int = 1) -> dict[int, gil.Probe]:
    run()  # threads of the pool begin
    calls.clear()
    probe = gil.open_probe("native")
    probe.start()
    assert probe.grade == "native", probe.why
    for _ in range(times):
        run()
    probe.stop()
    rows = dict(probe.rows(calls.times, calls.name, final=True))
    assert rows.keys() == {t[0] for t in calls.times}, "every call is measured"
    return rows


@pytest.mark.parametrize(("k", "ms"), [(2, 80), (4, 60), (8, 40)])
def test_waits_of_parallel_holds_add_up(calls, no_switching, lateness_ns, k, ms):
    with parallel([calls.body("body", lambda: hold(ms * 1000))] * k, k + 2) as run:
        rows = measured(calls, run)
    waited = sum(row.wait_ns for row in rows.values())
    seen = seen_waits(calls.times)
    assert seen >= expected_waits(k, ms * 1e6)
    # Threads of the pool that this machine woke late were not ready all the time.
    assert waited == pytest.approx(seen, abs=0.05 * seen + k * lateness_ns()), lateness_ns()
    if seen < 1.02 * expected_waits(k, ms * 1e6):  # the machine hands the GIL over quickly: then the plain sum holds
        assert waited == pytest.approx(expected_waits(k, ms * 1e6), abs=0.05 * seen + k * lateness_ns())
    assert all(row.reacquire_ns == 0 for row in rows.values())
    for call, _, start, end in calls.times:
        assert rows[call].held_ns == pytest.approx(end - start, rel=0.02)


def test_blame_falls_on_the_very_calls_that_held_the_gil(calls, no_switching):
    with parallel([calls.body(f"body{i}", lambda: hold(20_000)) for i in range(5)], 8) as run:
        rows = measured(calls, run)
    held = {call: (start, end) for call, _, start, end in calls.times}
    for call, (start, _) in held.items():
        blamed = {call_of(label): ns for label, ns in rows[call].blame}
        assert (calls.name(call), call) not in blamed
        for other, (other_start, other_end) in held.items():
            overlap = max(0, min(start, other_end) - max(start - rows[call].wait_ns, other_start))
            if other != call and overlap > 5_000_000:
                # A body's frame is a little longer than the body: conversion of arguments and results.
                assert blamed[calls.name(other), other] == pytest.approx(overlap, rel=0.1)
        by_calls = sum(ns for (_, known), ns in blamed.items() if known)
        assert by_calls >= 0.95 * rows[call].wait_ns


def test_the_main_thread_is_blamed_as_outside(calls, no_switching):
    def ready_late(x):
        # The op becomes ready in C++, while the main thread holds the GIL.
        for _ in range(8):
            x = x @ x / 1000.0
        return tf.numpy_function(calls.body("body", lambda: None), [x[0, 0]], tf.float32, stateful=False)

    step = tf.function(ready_late)
    x = tf.ones([1000, 1000])
    step(x)
    calls.clear()
    probe = gil.open_probe("native")
    probe.start()
    runner = threading.Thread(target=step, args=[x])
    runner.start()
    while not calls.times:
        hold(400_000)
        time.sleep(0)
    runner.join()
    probe.stop()
    [(_, row)] = probe.rows(calls.times, calls.name, final=True)
    assert row.wait_ns > 5_000_000
    assert row.blame[0][0] == f"{OUTSIDE} (MainThread)"
    assert row.blame[0][1] > 0.9 * row.wait_ns


def test_our_own_threads_are_named_as_ours(calls, no_switching):
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            hold(20_000)
            time.sleep(0)

    # The body gives the GIL away for a moment; when it wants it back, the writer holds it.
    with parallel([calls.body("body", lambda: release(5000))], 2) as run:
        run()
        probe = gil.open_probe("native")
        probe.start()
        writer = threading.Thread(target=write, name="pyfunc_debug writer")
        writer.start()
        for _ in range(5):
            run()
        rows = probe.rows(calls.times, calls.name)
        stop.set()
        writer.join()
        probe.stop()
    rows += probe.rows([], final=True)
    blamed = [label for _, row in rows for label, ns in row.blame if ns > 5_000_000]
    assert blamed
    assert set(blamed) - {NOBODY} == {"pyfunc_debug writer"}


def matmul() -> None:
    a = np.ones((400, 400), np.float32)
    for _ in range(10):
        a @ a


@pytest.mark.parametrize("work", [lambda: release(20_000), matmul], ids=["usleep", "matmul"])
def test_bodies_that_release_the_gil_do_not_contend(calls, work):
    with parallel([calls.body("body", work)] * 4, 6) as run:
        rows = measured(calls, run, times=3)
    wall = sum(end - start for _, _, start, end in calls.times)
    waited = sum(row.wait_ns + row.reacquire_ns for row in rows.values())
    assert waited < 0.1 * wall
    released = sum(row.released_ns for row in rows.values())
    assert released > 0.7 * wall


def test_held_and_released_are_told_apart_inside_a_body(calls, no_switching):
    clock: list[int] = []

    def work() -> None:
        clock[:] = [time.monotonic_ns()]
        hold(20_000)
        clock.append(time.monotonic_ns())
        release(30_000)
        clock.append(time.monotonic_ns())

    with parallel([calls.body("body", work)], 2) as run:
        [row] = measured(calls, run).values()
    [(_, _, start, end)] = calls.times
    rest = end - start - (clock[2] - clock[0])
    assert clock[1] - clock[0] <= row.held_ns <= clock[1] - clock[0] + rest + 200_000
    assert row.released_ns + row.reacquire_ns == pytest.approx(clock[2] - clock[1], abs=200_000)
    assert row.held_ns + row.released_ns + row.reacquire_ns == end - start


def test_bodies_longer_than_the_switch_interval_wait_inside(calls):
    def spin() -> None:
        until = time.thread_time_ns() + 60_000_000
        while time.thread_time_ns() < until:
            pass

    with parallel([calls.body("spin", spin)] * 2, 4) as run:
        rows = measured(calls, run)
    # Two bodies of 60 ms that take turns: each waits about as long as the other runs meanwhile.
    assert sum(row.reacquire_ns + row.wait_ns for row in rows.values()) > 60_000_000
    assert all(row.reacquire_ns > 5_000_000 for row in rows.values())
    for row in rows.values():
        assert row.blame[0][0].startswith("spin (#")


def test_a_full_pool_is_not_counted_as_gil_wait(calls):
    with parallel([calls.body("body", lambda: release(20_000))] * 8, 2) as run:
        rows = measured(calls, run)
    span = max(t[3] for t in calls.times) - min(t[2] for t in calls.times)
    assert span > 70_000_000, "eight bodies of 20 ms queued for two threads"
    assert sum(row.wait_ns for row in rows.values()) < 10_000_000


@pytest.mark.parametrize("pool", [1, 2, 8])
def test_private_pools_of_tf_data(calls, no_switching, pool):
    elements = 48
    body = calls.body("decode", lambda: hold(8000))
    rows = measured(calls, lambda: pipeline(body, elements, 8, pool))
    # All threads of the pool but one wait, until the last elements are under way.
    span = max(t[3] for t in calls.times) - min(t[2] for t in calls.times)
    expected = (pool - 1) * (span - pool / 2 * 8e6)
    waited = sum(row.wait_ns for row in rows.values())
    assert waited == pytest.approx(expected, rel=0.1, abs=2_000_000)


def test_threads_come_and_go(calls):
    body = calls.body("decode", lambda: None)

    def run() -> None:
        for _ in range(30):
            pipeline(body, 6, 3, 3)

    rows = measured(calls, run)
    assert len(rows) == 180


@pytest.mark.parametrize("how", ["stateful node", "eager py_function", "tf.function"])
def test_ops_that_run_inline(calls, how):
    body = calls.body("body", lambda: hold(5000))
    if how == "stateful node":
        with parallel([body] * 3, 2, stateful=True) as run:
            rows = measured(calls, run)
        assert len(rows) == 3
        return
    if how == "eager py_function":
        rows = measured(calls, lambda: tf.py_function(lambda x: body(x), [tf.constant(1.0)], tf.float32))
    else:
        step = tf.function(lambda x: tf.py_function(lambda y: body(y), [x], tf.float32))
        rows = measured(calls, lambda: step(tf.constant(1.0)))
    [row] = rows.values()
    assert row.held_ns > 5_000_000
    assert row.wait_ns < 5_000_000


def test_a_call_inside_a_call(calls):
    inner = calls.body("inner", lambda: hold(5000))
    outer = calls.body("outer", lambda: tf.py_function(lambda x: inner(x), [tf.constant(1.0)], tf.float32))
    rows = measured(calls, lambda: tf.py_function(lambda x: outer(x), [tf.constant(1.0)], tf.float32))
    named = {calls.name(call): row for call, row in rows.items()}
    assert named.keys() == {"inner", "outer"}
    assert named["outer"].held_ns > named["inner"].held_ns > 4_900_000


def slot_values() -> dict[tuple[str, str], tuple[int, int]]:
    extension = native_module.load()
    return {(row[0], row[1]): (row[2], row[3]) for row in extension.slots()}


def test_off_restores_every_slot():
    extension = native_module.load()
    probe = NativeProbe()
    probe.start()
    slots = slot_values()
    symbols = {symbol for _, symbol in slots}
    assert {"PyGILState_Ensure", "PyGILState_Release", "pthread_cond_signal", "pthread_cond_timedwait"} <= symbols
    assert all(extension._peek(address) != original for address, original in slots.values())
    probe.stop()
    assert all(extension._peek(address) == original for address, original in slots.values())
    assert extension.slots() == []


def test_off_and_on_while_bodies_wait_and_run(calls):
    with parallel(
        [calls.body("body", lambda: hold(3000))] * 4 + [calls.body("free", lambda: release(3000))] * 2, 8
    ) as run:
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set():
                run()

        runner = threading.Thread(target=work)
        runner.start()
        probe = NativeProbe()
        try:
            for _ in range(40):
                probe.start()
                time.sleep(0.002)
                probe.stop()
        finally:
            stop.set()
            runner.join()
        assert native_module.load().slots() == []
        rows = measured(calls, run)
        assert len(rows) == 6


def test_a_second_probe_says_that_one_is_on():
    first = NativeProbe()
    first.start()
    try:
        with pytest.raises(AbsentError, match="installed already"):
            NativeProbe().start()
        # The newcomer measures in another way, and leaves the first alone.
        second = gil.open_probe("auto")
        second.start()
        assert second.grade == "op-start"
        assert "installed already" in second.why
        second.stop()
        assert native_module.load().slots()
    finally:
        first.stop()


def test_a_full_buffer_drops_and_counts(calls):
    with parallel([calls.body("body", lambda: None)] * 4, 6) as run:
        run()
        calls.clear()
        probe = NativeProbe(records=100)
        probe.start()
        for _ in range(100):
            run()
        full = probe.drain()
        run()
        after = probe.drain()
        probe.stop()
    assert len(full.native) == 100
    assert full.lost >= 300
    assert after.lost == 0
    assert len(after.native) >= 4
    rows = gil.join(full, calls.times, calls.name)
    assert 0 < len(rows) < 400


def test_lost_rows_leave_calls_unmeasured_and_are_counted(calls):
    from pyfunc_debug.gil.join import open_join
    from pyfunc_debug.gil.samples import CLOSED

    with parallel([calls.body("body", lambda: None)], 2) as run:
        run()
        calls.clear()
        probe = NativeProbe()
        probe.start()
        run()
        run()
        probe.stop()
    samples = probe.drain()
    rows = samples.native.tolist()
    rows.remove(next(row for row in rows if row[0] == CLOSED))
    join = open_join("native", calls.name)
    found = join.feed(dataclasses.replace(samples, native=rows), calls.times, final=True)
    assert len(found) == 1
    assert join.unmatched == 1


def run_alone(program: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120, env=environment
    )


def test_a_forked_child_is_not_watched():
    result = run_alone("""
        import os, threading
        from pyfunc_debug.gil.native import NativeProbe, load, _contend
        probe = NativeProbe(tensorflow=False)
        probe.start()
        slots = load().slots()
        child = os.fork()
        if child == 0:
            clean = all(load()._peek(s[2]) == s[3] for s in slots) and load().slots() == []
            _contend()
            again = NativeProbe(tensorflow=False)
            again.start()
            again.stop()
            os._exit(0 if clean else 3)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status == 0, status
        assert all(load()._peek(s[2]) != s[3] for s in slots)
        _contend()
        assert len(probe.drain().native)
        probe.stop()
    """)
    assert result.returncode == 0, result.stderr


def test_exit_while_on_restores_the_slots_first():
    result = run_alone("""
        import atexit
        from pyfunc_debug.gil import native
        # Registered before the probe's own handler would be, were it registered at start; handlers run backwards.
        probe = native.NativeProbe(tensorflow=False)
        probe.start()
        address, original = native.load().slots()[0][2:4]
        atexit.unregister(native._remove_all)
        atexit.register(lambda: print(native.load()._peek(address) == original))
        atexit.register(native._remove_all)
    """)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "True"


def test_the_self_test_runs_no_tensorflow_op():
    """An op would settle devices and pools before the program can."""
    result = run_alone("""
        import tensorflow as tf
        from pyfunc_debug import gil
        probe = gil.open_probe("native")
        probe.start()
        print(probe.grade)
        probe.stop()
        tf.config.threading.set_inter_op_parallelism_threads(3)
        print(tf.config.threading.get_inter_op_parallelism_threads())
    """)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["native", "3"]


def test_the_self_test_sees_a_blind_probe(monkeypatch):
    drain = NativeProbe.drain

    def blind(self):
        samples = drain(self)
        return dataclasses.replace(samples, native=samples.native[samples.native[:, 0] != WAITED])

    monkeypatch.setattr(NativeProbe, "drain", blind)
    with pytest.raises(AbsentError, match="no wait at all"):
        NativeProbe(tensorflow=False).start()
    assert native_module.load().slots() == []


def test_waits_outside_of_bodies_are_known_by_thread(no_switching):
    probe = gil.open_probe("native")
    probe.start()
    seen = threading.Event()

    def want() -> None:
        seen.set()
        time.sleep(0.01)

    thread = threading.Thread(target=want, name="loader")
    thread.start()
    seen.wait()
    hold(60_000)
    probe.rows([])
    thread.join()
    probe.stop()
    probe.rows([], final=True)
    waited = probe.report()["waited_outside_ns"]
    assert waited[f"{OUTSIDE} (loader)"] > 20_000_000


def test_the_gap_between_two_holders_is_nobodys(calls, no_switching):
    with parallel([calls.body("body", lambda: hold(10_000))] * 4, 6) as run:
        rows = measured(calls, run)
    for call, row in rows.items():
        blamed = dict(row.blame)
        assert sum(blamed.values()) == pytest.approx(row.wait_ns + row.reacquire_ns, abs=1000)
        assert blamed.get(NOBODY, 0) < 0.1 * row.wait_ns + 1_000_000 + gaps(calls.times)[call]
