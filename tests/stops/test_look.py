"""What runs in bodies is looked at without stopping it, and paused from another thread."""

from __future__ import annotations

import re
import threading
import time

import numpy as np
import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.stops.look import look_text
from pyfunc_debug.switchboard import board
from tests.limits import HANG_S


class Secretive:
    def __repr__(self):
        raise AssertionError("the program's code ran")


@pytest.fixture
def running():
    """A body that waits in a helper of its own, on TensorFlow's thread, until `go` is set."""
    entered, go = threading.Event(), threading.Event()

    def helper(rows):
        entered.set()
        while not go.is_set():
            rows += 1
        return rows

    def waits(x):
        helper(np.zeros(3, np.int64))
        return x * 2

    def body(x):
        secret, words = Secretive(), ["a", Secretive()]
        y = waits(x)
        del secret, words
        return y

    function = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
    results = []
    thread = threading.Thread(target=lambda: results.append(float(function(tf.constant(4.0)))), daemon=True)

    def start():
        thread.start()
        assert entered.wait(HANG_S)

    def end():
        go.set()
        thread.join(HANG_S)
        return results

    yield start, end
    go.set()


def test_a_running_body_is_seen_with_its_stack_and_locals_and_goes_on(running, tmp_path):
    start, end = running
    assert board.look() == []
    with pfd.record(tmp_path / "r.pfrec", gil=False):
        start()
        (view,) = board.look()
        text = look_text([view], time.monotonic_ns())
        assert end() == [8.0]
        assert board.look() == []
    assert (view["node"].rpartition(".")[2], view["call"], view["stopped"]) == ("body", 1, False)
    assert view["thread"].startswith("TF-")
    assert [one["function"] for one in view["frames"]] == ["body", "waits", "helper"]
    assert view["since_ns"] < time.monotonic_ns()
    (rows,) = [one["text"] for one in view["locals"] if one["name"] == "rows"]
    assert rows.startswith("int64[3]")
    assert f"    rows = {rows}" in text
    assert f"body #1 runs on {view['thread']}, for" in text


def test_a_pause_stops_a_running_body_at_its_next_line(running, script):
    start, end = running
    prompts, over = script("w", "p rows.dtype", "c"), threading.Event()
    prompts.closed = lambda stop: over.set()
    rule = pfd.break_on("another")
    try:
        assert not board.pause()
        start()
        assert board.look()[0]["call"] is None
        assert board.pause()
        assert over.wait(HANG_S)
        assert end() == [8.0]
    finally:
        rule.remove()
    assert "--- paused: running.body #1 on TF-" in prompts.text
    assert "in waits" in prompts.text or "waits()" in prompts.text
    assert "dtype('int64')" in prompts.text


def test_an_unrecorded_call_has_one_number_at_each_of_its_pauses(script):
    entered, go = threading.Event(), threading.Event()

    def body(x):
        entered.set()
        while not go.is_set():
            x += 1
        return x

    function = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
    rule, shown = pfd.break_on("another"), threading.Event()
    prompts = script("c", "c", "go.set()", "c")
    prompts.closed = lambda stop: shown.set()
    try:
        for pauses in 2, 1:
            thread = threading.Thread(target=function, args=(tf.constant(1.0),), daemon=True)
            thread.start()
            assert entered.wait(HANG_S)
            for _ in range(pauses):
                shown.clear()
                assert board.pause()
                assert shown.wait(HANG_S)
            if pauses == 2:
                (view,) = board.look()
                assert view["call"] == 1
                go.set()
                thread.join(HANG_S)
                entered.clear()
                go.clear()
        thread.join(HANG_S)
    finally:
        go.set()
        rule.remove()
    assert re.findall(r"--- paused: \S*body (#\d)", prompts.text) == ["#1", "#1", "#2"]


def test_quit_at_a_pause_ends_every_body_that_runs(script, tmp_path):
    entered, errors, go = threading.Barrier(3), [], threading.Event()

    def body(x):
        entered.wait()
        while not go.is_set():
            x += 1
        return x

    function = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
    function.get_concrete_function(tf.constant(1.0))

    def run():
        try:
            function(tf.constant(1.0))
        except tf.errors.OpError as error:
            errors.append(error.pyfunc_exception)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(2)]
    script("q")
    with pfd.record(tmp_path / "r.pfrec", gil=False) as recording:
        for thread in threads:
            thread.start()
        entered.wait()
        assert board.pause()
        for thread in threads:
            thread.join(HANG_S)
        go.set()
    assert [type(error).__name__ for error in errors] == ["Abort", "Abort"]
    assert "2 ended by hand at a stop" in str(recording.ledger())
    assert not recording.findings(select=["body-raised"])


def test_quit_at_a_breakpoint_ends_what_runs_and_not_what_comes_later(script):
    entered, go, errors = threading.Event(), threading.Event(), []

    def spins(x):
        entered.set()
        while not go.is_set():
            x += 1
        return x

    def stops(x):
        return x

    spin, stop = (tf.function(lambda x, body=body: tf.py_function(body, [x], tf.float32)) for body in (spins, stops))

    def run():
        try:
            spin(tf.constant(1.0))
        except tf.errors.OpError as error:
            errors.append(error.pyfunc_exception)

    thread = threading.Thread(target=run, daemon=True)
    rule = pfd.break_on("*stops")
    script("q")
    thread.start()
    assert entered.wait(HANG_S)
    try:
        with pytest.raises(tf.errors.UnknownError):
            stop(tf.constant(1.0))
        thread.join(HANG_S)
        assert [type(error).__name__ for error in errors] == ["Abort"]
        go.set()
        assert float(spin(tf.constant(1.0))) >= 1.0
    finally:
        go.set()
        rule.remove()
