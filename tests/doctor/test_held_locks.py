"""A lock that a body waits for: who holds it, where it was taken, and the lines that let both go on."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.waits.unlocked import unlocked
from pyfunc_debug.pfrec import Reader
from tests.doctor.pasting import pasted
from tests.doctor.recordings import FILE, written
from tests.limits import HANG_S

lock, second = threading.Lock(), threading.Lock()
again = threading.Lock()
keeper = SimpleNamespace(lock=lock)


def load(x):
    with lock:
        return x


def numbers(body):
    return tf.data.Dataset.range(3).map(lambda x: tf.py_function(body, [x], tf.int64), num_parallel_calls=2)


def loop():
    with lock:
        for one in numbers(load):
            one.numpy()


def acquired():
    keeper.lock.acquire()
    try:
        total = [one.numpy() for one in numbers(load)]
    finally:
        keeper.lock.release()
    return total


def run_of_a_graph():
    step = tf.function(lambda x: tf.py_function(load, [x], tf.int64))
    with lock:
        step(tf.constant(1, tf.int64))
        time.monotonic()


def findings(told, run, let_go, calls=1):
    """What is found of a thread that runs this, until so many of its calls were told to hang, at once or one by one."""

    def guarded():
        with contextlib.suppress(RuntimeError, tf.errors.OpError):  # its lock was let go for it
            run()

    thread = threading.Thread(target=guarded, name="reader")
    with pfd.record(hang_after=0.2) as recording:
        thread.start()
        live = []
        while len(live) < calls:
            assert told.event.wait(HANG_S)
            told.event.clear()
            live = recording.findings(select=["hang"])
        let_go()
        thread.join()
    return live


@pytest.mark.parametrize(
    ("run", "taken", "pastes"),
    [(loop, 1, "for one in numbers(load):\n        with lock:"), (acquired, 1, "total = [one.numpy()"),
     (run_of_a_graph, 2, "step(tf.constant(1, tf.int64))\n    with lock:\n        time.monotonic()")],
)  # fmt: skip
def test_a_thread_that_waits_for_the_calls_with_the_lock_held(told, run, taken, pastes):
    (finding,) = findings(told, run, lock.release)
    first = run.__code__.co_firstlineno + taken
    assert "reader took the lock at test_held_locks.py:" in told.texts[0]
    assert f", held by reader at test_held_locks.py:{first + 1}" in finding.message or run is acquired
    assert f"reader took it at test_held_locks.py:{first}, and was in TensorFlow at" in finding.message
    assert "no fewer than TensorFlow's pool" not in finding.message
    assert (finding.file, finding.line, finding.confidence) == (__file__, first, "likely")
    assert pastes in finding.fix
    text = pasted(Path(__file__).read_text(), finding.fix)
    compile(text, "mended", "exec")


def enter_again(x):
    with again:
        return inner(x)


def inner(x):
    with again:
        return x


def test_a_call_that_waits_for_itself(told):
    step = tf.function(lambda x: tf.py_function(enter_again, [x], tf.int64))
    (finding,) = findings(told, lambda: step(tf.constant(1, tf.int64)), again.release)
    first = enter_again.__code__.co_firstlineno + 1
    assert f"the lock again, which this thread itself took at test_held_locks.py:{first}" in finding.message
    made = Path(__file__).read_text().split("\n").index("again = threading.Lock()") + 1
    assert finding.fix == f"Replace test_held_locks.py:{made} by:\nagain = threading.RLock()"


def test_two_calls_that_took_two_locks_in_two_orders(told):
    both = threading.Barrier(2)

    def one(x):
        with lock:
            both.wait()
            with second:
                return x

    def other(x):
        with second:
            both.wait()
            with lock:
                return x

    def swapped(x):
        return tf.cond(x % 2 == 0, lambda: tf.py_function(one, [x], tf.int64),
                       lambda: tf.py_function(other, [x], tf.int64))  # fmt: skip

    options = tf.data.Options()
    options.threading.private_threadpool_size = 4
    ds = tf.data.Dataset.range(2).with_options(options).map(swapped, num_parallel_calls=2)
    found = findings(told, lambda: list(ds), lock.release, calls=2)
    assert len(found) == 2
    for finding in found:
        assert "took it at" in finding.message
        assert ", and waits for the lock" in finding.message
        assert finding.fix.startswith("dataset.map(..., num_parallel_calls=1)  # or take the locks in one order")


def test_a_thread_that_does_something_else_with_it(told):
    go = threading.Event()

    def keep():
        with lock:
            go.wait()

    keeping = threading.Thread(target=keep, name="keeps")
    keeping.start()
    while not lock.locked():
        pass
    step = tf.function(lambda x: tf.py_function(load, [x], tf.int64))
    (finding,) = findings(told, lambda: step(tf.constant(1, tf.int64)), go.set)
    keeping.join()
    assert "keeps took it at test_held_locks.py:" in finding.message
    assert "TensorFlow" not in finding.message
    assert finding.line == load.__code__.co_firstlineno + 1
    first = load.__code__.co_firstlineno + 1
    assert finding.fix == (
        f"Put above test_held_locks.py:{first}:\n    if not lock.acquire(timeout=10):\n"
        "        raise RuntimeError('lock was not free for 10 s: who holds it?')\n    lock.release()"
    )


def test_one_that_no_stack_shows_is_not_named(told):
    lock.__enter__()
    step = tf.function(lambda x: tf.py_function(load, [x], tf.int64))
    (finding,) = findings(told, lambda: step(tf.constant(1, tf.int64)), lock.release)
    assert "it waited for the lock lock" in finding.message
    assert "took" not in finding.message + told.texts[0]


@pytest.mark.parametrize(
    ("source", "taken", "line", "new"),
    [
        ("with lock:\n    a = 1\n    # why\n    for x in ds:\n        # all\n        b = x\n\n        c = x\n"
         "    d = 2\n", 1, 4,
         "with lock:\n    a = 1\n# why\nfor x in ds:\n    with lock:\n        # all\n        b = x\n\n        c = x\n"
         "with lock:\n    d = 2\n"),
        ("lock.acquire()\na = 1\nfor x in ds:\n    a = x\nlock.release()\nb = 1\n", 1, 3,
         "with lock:\n    a = 1\nfor x in ds:\n    with lock:\n        a = x\nb = 1\n"),
        ("lock.acquire()\ntry:\n    for epoch in range(2):\n        for x in ds:\n            a = x\n        b = 1\n"
         "finally:\n    lock.release()\n", 1, 4,
         "for epoch in range(2):\n    for x in ds:\n        with lock:\n            a = x\n"
         "    with lock:\n        b = 1\n"),
        ("with lock:\n    model.fit(ds,\n              epochs=2)\n", 1, 2, "model.fit(ds,\n          epochs=2)\n"),
    ],
)  # fmt: skip
def test_the_lines_without_the_lock(tmp_path, source, taken, line, new):
    facts = Facts(Reader(written(tmp_path / "a.pfrec", source)))
    assert pasted(source, unlocked(facts, FILE, taken, line)) == new


@pytest.mark.parametrize(
    ("source", "taken", "line"),
    [
        ("with lock, open(name) as file:\n    step(x)\n", 1, 2),
        ("with lock: step(x)\n", 1, 1),
        ("with lock:\n    while step(x):\n        pass\n", 1, 2),
        ("with lock:\n    try:\n        step(x)\n    except ValueError:\n        pass\n", 1, 3),
        ("lock.acquire()\nif step(x):\n    lock.release()\n", 1, 2),
        ('with lock:\n    step("""a\n    b""")\n', 1, 2),
    ],
)  # fmt: skip
def test_nothing_is_pasted_where_it_would_mean_something_else(tmp_path, source, taken, line):
    facts = Facts(Reader(written(tmp_path / "a.pfrec", source)))
    assert unlocked(facts, FILE, taken, line) == ""
