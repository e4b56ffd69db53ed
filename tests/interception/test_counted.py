"""No call passes unseen: from several threads at once, and while we are switched on and off."""

from __future__ import annotations

import textwrap
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np

import pyfunc_debug as pfd
from tests import forked

ROOT = Path(__file__).parents[2]


def test_the_first_nodes_of_three_threads_are_seen_by_a_breakpoint_and_by_a_recording(tmp_path):
    """In processes that have only imported TensorFlow: it is the first nodes of a process that were lost."""
    program = """
        import os, sys, threading
        import numpy as np, tensorflow as tf, pyfunc_debug as pfd

        def body(x):
            return np.float32(int(x) + 1)

        def work():
            start.wait()
            for _ in range(times):
                list(tf.data.Dataset.range(3).map(lambda x: tf.py_function(body, [x], tf.float32)))

        def run():
            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        start = threading.Barrier(3)
        for how in ("break_on", "gil", "no"):
            if os.fork():
                assert os.wait()[1] == 0, how
                continue
            times = 1 if how == "break_on" else 20
            if how == "break_on":
                found = pfd.break_on("body")
                run()
                print(found.hits, flush=True)
            else:
                with pfd.record(f"{sys.argv[1]}/{how}.pfrec", gil=how == "gil") as recording:
                    run()
                print(len(list(recording.calls())), recording.meta["dropped"]["calls"], flush=True)
            os._exit(0)
    """
    done = forked.run("-c", textwrap.dedent(program), tmp_path, cwd=ROOT)
    assert done.stdout.splitlines() == ["9", "180 0", "180 0"], done.stderr[-3000:]


def test_calls_that_run_while_we_are_switched_on_and_off_are_right_and_counted(tf, tmp_path):
    """Every call gives its own result; a recording holds each that began and ended while it was on, once."""
    done: list[tuple[float, int, int]] = []  # the call's argument; when its graph was called and when that returned

    def body(x):
        return np.float32(x + 1)

    traced = tf.function(lambda x: tf.numpy_function(body, [x], tf.float32))
    eager = tf.function(lambda x: tf.py_function(lambda y: body(y.numpy()), [x], tf.float32))
    for one in (traced, eager):
        one(tf.constant(0.0))
    stop = threading.Event()
    wrong: list[object] = []

    def work(first):
        value = float(first)
        try:
            while not stop.is_set():
                for one in (traced, eager, tf.function(lambda x: tf.numpy_function(body, [x], tf.float32))):
                    value += 1
                    # not the body's own time: TensorFlow may have begun the call, and let another thread run, before
                    began = time.monotonic_ns()
                    if float(one(tf.constant(value))) != value + 1:
                        wrong.append(value)
                    done.append((value, began, time.monotonic_ns()))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number * 1_000_000,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    recordings = []
    try:
        for index in range(6):
            with pfd.record(tmp_path / f"{index}.pfrec", gil=bool(index % 2)) as recording:
                on, before = time.monotonic_ns(), len(done)
                while len(done) < before + 60:
                    stop.wait(0.001)
                off = time.monotonic_ns()
            recordings.append((on, off, recording))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    for on, off, recording in recordings:
        stored = Counter(one.inputs[0].min for one in recording.calls())
        inside = [value for value, began, ended in done if on < began and ended < off]
        assert len(inside) >= 50
        assert [value for value in inside if stored[value] != 1] == []
        assert set(stored.values()) == {1}
        assert recording.meta["dropped"]["calls"] == 0
        assert not list(recording.calls(status="error"))
        recording.close()
