"""The native grade measures waits, holders and releases as they are, and leaves nothing behind."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from gil_workloads import Calls, Order, Turns, hold, keep_until_waiting, parallel, pipeline, release

from pyfunc_debug import gil
from pyfunc_debug.gil import native as native_module
from pyfunc_debug.gil.blame import NOBODY, OUTSIDE, call_of
from pyfunc_debug.gil.native import AbsentError, NativeProbe
from pyfunc_debug.gil.samples import WAITED
from tests import forked
from tests.limits import HANG_S

pytestmark = pytest.mark.usefixtures("native")
HERE = Path(__file__).parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (HERE, HERE.parents[1])))}


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


def waits(rows) -> dict[int, int]:
    return {call: row.wait_ns for call, row in rows.items()}


@pytest.mark.parametrize("k", [2, 4, 8])
def test_waits_of_parallel_holds_are_as_long_as_those_before_held(calls, no_switching, k):
    turns = Turns(k - 1, 10_000)
    with parallel([calls.body("body", turns)] * k, k + 2) as run:
        since_ns = time.monotonic_ns()
        rows = measured(calls, run)
    Order(calls.times, since_ns, turns.from_ns).check(waits(rows))
    ordered = sorted(calls.times, key=lambda t: t[2])
    ends = [since_ns, *(end for _, _, _, end in ordered)]
    starts = [*(start for _, _, start, _ in ordered), time.monotonic_ns()]
    for place, (call, _, start, end) in enumerate(ordered):
        assert (rows[call].released_ns, rows[call].reacquire_ns) == (0, 0)
        # It held the GIL for its body, and neither before the one before had ended nor after the next had begun.
        assert end - start <= rows[call].held_ns <= starts[place + 1] - ends[place]


def test_blame_falls_on_the_very_calls_that_held_the_gil(calls, no_switching):
    turns = Turns(4, 10_000)
    with parallel([calls.body(f"body{i}", turns) for i in range(5)], 8) as run:
        since_ns = time.monotonic_ns()
        rows = measured(calls, run)
    order = Order(calls.times, since_ns, turns.from_ns)
    assert sorted(len(held) for held in order.held.values()) == [0, 1, 2, 3, 4]
    for call, held in order.held.items():
        blamed = {call_of(label): ns for label, ns in rows[call].blame}
        for other, ns in held.items():
            assert blamed.pop((calls.name(other), other)) >= ns
        assert not [name for name, number in blamed if number], "neither itself nor one that came later"
        assert sum(blamed.values()) <= order.free[call], "nobody else held it, but between two bodies"


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
    for _ in range(600):
        calls.clear()
        runner = threading.Thread(target=step, args=[x])
        runner.start()
        held = 0
        while not calls.times and not held:
            hold(20_000)
            if native_module.load().waiting()[1]:
                since = time.monotonic_ns()
                hold(20_000)
                held = time.monotonic_ns() - since
            time.sleep(0)
        runner.join()
        if held:  # else the op was ready in the moment in which this thread gave the GIL away
            break
    probe.stop()
    row = dict(probe.rows(calls.times, calls.name, final=True))[calls.times[0][0]]
    assert row.wait_ns >= held > 0
    assert dict(row.blame)[f"{OUTSIDE}: MainThread"] >= held


def test_our_own_threads_are_named_as_ours(calls, no_switching):
    kept = []
    inside, done, told = threading.Event(), threading.Event(), threading.Event()

    def write() -> None:
        inside.wait()
        since = keep_until_waiting(1)  # the body has given the GIL away for a moment, and wants it back
        hold(20_000)
        kept.append(time.monotonic_ns() - since)
        done.set()
        told.wait()

    def work() -> None:
        inside.set()
        while not done.is_set():
            release(1000)

    with parallel([calls.body("body", work)], 2) as run:
        done.set()
        run()
        done.clear()
        inside.clear()
        calls.clear()
        probe = gil.open_probe("native")
        probe.start()
        writer = threading.Thread(target=write, name="pyfunc_debug writer")
        writer.start()
        run()
        rows = probe.rows(calls.times, calls.name)  # as long as the writer lives: its name is asked for
        told.set()
        writer.join()
        probe.stop()
    [(_, row)] = rows + probe.rows([], final=True)
    assert row.reacquire_ns >= kept[0]
    assert dict(row.blame)["pyfunc_debug writer"] >= kept[0]


def test_a_hold_is_no_wait_of_bodies_that_have_released_the_gil(calls, no_switching):
    """Four bodies meet at a barrier in C; the last one holds the GIL before it gets there."""
    libc, barrier = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    libc.pthread_barrier_init(barrier, None, 4)
    arrivals: list[int] = []

    def work() -> None:
        arrivals.append(time.monotonic_ns())
        if len(arrivals) % 4 == 0:
            hold(20_000)
            arrivals[-1] = time.monotonic_ns()
        libc.pthread_barrier_wait(barrier)

    with parallel([calls.body("body", work)] * 4, 6) as run:
        rows = measured(calls, run)
    last_ns = arrivals[-1]
    ordered = sorted(calls.times, key=lambda t: t[2])
    for place, (call, _, start, end) in enumerate(ordered):
        row = rows[call]
        assert row.held_ns + row.released_ns + row.reacquire_ns == end - start
        # It wanted the GIL again after the last one had come, and had given it away before the next one began.
        assert row.reacquire_ns <= end - last_ns
        if place < 3:
            assert row.released_ns >= last_ns - ordered[place + 1][2] >= 20_000_000


def test_numpy_that_releases_the_gil_is_told_from_python_that_does_not(calls, no_switching):
    a = np.ones((400, 400), np.float32)
    with parallel([calls.body("matmul", lambda: a @ a), calls.body("python", lambda: sum(range(20_000)))], 4) as run:
        rows = measured(calls, run)
    named = {calls.name(call): row for call, row in rows.items()}
    assert named["matmul"].released_ns > 0
    assert named["python"].released_ns == 0


def test_held_and_released_are_told_apart_inside_a_body(calls, no_switching):
    halves = []

    def work() -> None:
        hold(20_000)
        halves.append(time.monotonic_ns())
        release(30_000)

    with parallel([calls.body("body", work)], 2) as run:
        [row] = measured(calls, run).values()
    [(_, _, start, end)] = calls.times
    assert row.held_ns >= halves[-1] - start >= 20_000_000
    assert row.released_ns + row.reacquire_ns <= end - halves[-1]
    assert row.released_ns >= 30_000_000
    assert row.held_ns + row.released_ns + row.reacquire_ns == end - start


def test_bodies_longer_than_the_switch_interval_wait_inside(calls):
    """Each spins until it has seen the other run four times."""
    rounds = {"one": 0, "two": 0}

    def spin(me: str, other: str) -> None:
        turns, seen = 0, rounds[other]
        while turns < 4 and rounds[other] >= 0:
            rounds[me] += 1
            if rounds[other] != seen:
                turns, seen = turns + 1, rounds[other]
        rounds[me] = -1  # who is left need not wait for more

    bodies = [calls.body("one", lambda: spin("one", "two")), calls.body("two", lambda: spin("two", "one"))]
    with parallel(bodies, 4) as run:
        run()
        rounds.update(one=0, two=0)
        calls.clear()
        probe = gil.open_probe("native")
        probe.start()
        run()
        probe.stop()
    rows = {calls.name(call): row for call, row in probe.rows(calls.times, calls.name, final=True)}
    interval_ns = sys.getswitchinterval() * 1e9
    for me, other in (("one", "two"), ("two", "one")):
        # Whoever gave way waited a whole interval before it could ask for the GIL again: three times at least.
        assert rows[me].reacquire_ns >= 3 * interval_ns
        by_body = {call_of(label)[0]: ns for label, ns in rows[me].blame}
        assert by_body[other] >= 3 * interval_ns * 0.5


def test_a_full_pool_is_not_counted_as_gil_wait(calls):
    with parallel([calls.body("body", lambda: release(20_000))] * 8, 2) as run:
        since_ns = time.monotonic_ns()
        rows = measured(calls, run)
    ended = dict.fromkeys({t[1] for t in calls.times}, since_ns)
    queued = 0
    for call, thread, start, end in sorted(calls.times, key=lambda t: t[2]):
        # A thread wants the GIL when it has ended the body before, however long the op has been in the queue.
        assert rows[call].wait_ns <= start - ended[thread]
        queued += ended[thread] - since_ns
        ended[thread] = end
    assert queued >= 2 * (1 + 2 + 3) * 20_000_000, "eight bodies of 20 ms queued for two threads"


@pytest.mark.parametrize("pool", [1, 2, 8])
def test_private_pools_of_tf_data(calls, no_switching, pool):
    turns = Turns(pool - 1, 5000)
    body = calls.body("decode", turns)
    since_ns = time.monotonic_ns()
    rows = measured(calls, lambda: pipeline(body, 24, 8, pool))
    order = Order(calls.times, since_ns, turns.from_ns)
    assert sum(least >= 5_000_000 for least in order.least.values()) == pool - 1
    order.check(waits(rows))


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
    since_ns = time.monotonic_ns()
    if how == "eager py_function":
        rows = measured(calls, lambda: tf.py_function(lambda x: body(x), [tf.constant(1.0)], tf.float32))
    else:
        step = tf.function(lambda x: tf.py_function(lambda y: body(y), [x], tf.float32))
        rows = measured(calls, lambda: step(tf.constant(1.0)))
    [row] = rows.values()
    assert row.held_ns >= 5_000_000
    assert row.wait_ns <= calls.times[0][2] - since_ns


def test_a_call_inside_a_call(calls):
    inner = calls.body("inner", lambda: hold(5000))
    outer = calls.body("outer", lambda: tf.py_function(lambda x: inner(x), [tf.constant(1.0)], tf.float32))
    rows = measured(calls, lambda: tf.py_function(lambda x: outer(x), [tf.constant(1.0)], tf.float32))
    named = {calls.name(call): row for call, row in rows.items()}
    assert named.keys() == {"inner", "outer"}
    assert named["outer"].held_ns > named["inner"].held_ns >= 5_000_000


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
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        env=environment,
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
    program = """
        import tensorflow as tf
        from pyfunc_debug import gil
        probe = gil.open_probe("native")
        probe.start()
        print(probe.grade)
        probe.stop()
        tf.config.threading.set_inter_op_parallelism_threads(3)
        print(tf.config.threading.get_inter_op_parallelism_threads())
    """
    result = forked.run("-c", textwrap.dedent(program))
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


def wait_outside() -> None:
    """Prints what was reported of a thread that waited for the GIL, and how long this thread had it meanwhile."""
    sys.setswitchinterval(30)
    probe = gil.open_probe("native", canary=False)  # which would be another thread that waits for the GIL
    probe.start()
    probe.rows([])  # which imports, and gives up the GIL for it: the thread could end before its name is read
    seen, over = threading.Event(), []

    def want() -> None:
        seen.set()
        while not over:  # however late the other thread comes: the GIL is wanted again once that has it
            release(1_000)

    thread = threading.Thread(target=want, name="loader")
    thread.start()
    seen.wait()
    since_ns = keep_until_waiting(1, in_ops=False)
    hold(20_000)
    held_ns = time.monotonic_ns() - since_ns
    over.append(True)
    probe.rows([])
    thread.join()
    probe.stop()
    probe.rows([], final=True)
    print(json.dumps([probe.report(), held_ns]))


def test_waits_outside_of_bodies_are_known_by_thread():
    """In a process without other threads, as those of xdist: one of them could be what waits."""
    done = forked.run("-c", "from test_gil_native import wait_outside; wait_outside()", env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr[-3000:]
    reported, held_ns = json.loads(done.stdout)
    assert reported["waited_outside_ns"][f"{OUTSIDE}: loader"] >= held_ns >= 20_000_000
    assert sum(reported["elsewhere"]["us"]) * 1000 >= held_ns, "this thread held it meanwhile, in no body"


def test_the_gap_between_two_holders_is_nobodys(calls, no_switching):
    turns = Turns(3, 10_000)
    with parallel([calls.body("body", turns)] * 4, 6) as run:
        since_ns = time.monotonic_ns()
        rows = measured(calls, run)
    order = Order(calls.times, since_ns, turns.from_ns)
    for call, row in rows.items():
        blamed = dict(row.blame)
        assert sum(blamed.values()) == pytest.approx(row.wait_ns + row.reacquire_ns, abs=1000)
        assert blamed.get(NOBODY, 0) <= order.free[call]
