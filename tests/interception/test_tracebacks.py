"""What fails looks as it does without us, and what a failure held dies when it does without us."""

from __future__ import annotations

import collections
import contextlib
import gc
import re
import traceback
import weakref

import pytest

import pyfunc_debug as pfd


def _programs(tf):
    def body(x):
        raise ValueError("no")

    def in_body(x):
        return tf.py_function(body, [x], tf.float32)

    def while_tracing(x):
        raise ValueError("no")

    def bad_type(x):
        return tf.py_function(body, [x], "no such type")

    def no_function(x):
        return tf.py_function(3, [x], tf.float32)

    def wrong_count(x):
        return tf.py_function(lambda y: (y, y), [x], tf.float32)

    def in_an_op(x):
        return tf.debugging.check_numerics(tf.py_function(lambda y: y * float("nan"), [x], tf.float32), "seen")

    programs = {one.__name__: one for one in (in_body, bad_type, no_function, wrong_count, in_an_op, while_tracing)}
    return programs | {f"traced {name}": tf.function(one, autograph=False) for name, one in programs.items()}


def _failures(tf):
    """(file, line, function) of each frame, and type and text, of each program's exception."""
    found = {}
    for name, program in _programs(tf).items():
        try:
            found[name] = program(tf.constant(1.0)).numpy()  # an eager call may return too much
            continue
        except Exception as error:
            caught = error
        frames = [
            (frame.f_code.co_filename, line, frame.f_code.co_name)
            for frame, line in traceback.walk_tb(caught.__traceback__)
        ]
        text = re.sub(r"(__inference_\w*?)_\d+|pyfunc_\d+|0x\w+", r"\1", str(caught))
        found[name] = frames, type(caught), text
    return found


@pytest.mark.parametrize("options", [{}, {"values": "full"}, {"gradients": "exact"}])
@pytest.mark.parametrize("filtered", [True, False])
def test_tracebacks_and_texts_are_those_of_stock(tf, tmp_path, options, filtered):
    switch = tf.debugging.enable_traceback_filtering if filtered else tf.debugging.disable_traceback_filtering
    switch()
    recording = pfd.record(tmp_path / "a.pfrec", gil=False, **options)
    found = []
    try:
        for mode in (contextlib.nullcontext(), recording):  # from one line: texts hold where an op was made
            with mode:
                found.append(_failures(tf))
    finally:
        tf.debugging.enable_traceback_filtering()
    stock, ours = found
    assert sum(isinstance(one, tuple) for one in stock.values()) >= 9
    for name, expected in stock.items():
        assert ours[name] == expected, name


def test_what_a_failed_trace_held_dies_as_in_stock(tf, tmp_path):
    def alive():
        references = []
        for _ in range(20):

            @tf.function
            def fails(x):
                references.append(weakref.ref(x.graph))
                with tf.init_scope():
                    return x + 1

            with contextlib.suppress(TypeError):
                fails(tf.constant(1.0))
        gc.collect()
        return sum(one() is not None for one in references), len(references)

    with pfd.record(tmp_path / "a.pfrec", gil=False):
        ours = alive()
    assert ours == alive() == (0, 20)


def _count(kind):
    gc.collect()
    return sum(type(one) is kind for one in gc.get_objects())


class _Held:
    pass


class _OwnError(ValueError):
    pass


def _alive_after(tf, kind, settle):
    """How many of 21 things that 20 failed bodies and their caller held live on; and what objects are there more."""
    references = []
    own, eager, how = "own" in kind, "eager" in kind, getattr(tf, kind.split()[-1])

    def body(x):
        mine = _Held()
        references.append(weakref.ref(mine))
        raise (_OwnError if own else ValueError)("no")

    def call(x):
        return how(body, [x], tf.float32)

    if not eager:
        call = tf.function(call, autograph=False)

    def fail(times):
        callers = _Held()
        references.append(weakref.ref(callers))
        for _ in range(times):
            with contextlib.suppress(Exception):
                call(tf.constant(1.0))

    fail(3)
    settle()
    before = _objects()
    references.clear()
    fail(20)
    alive = sum(one() is not None for one in references), len(references)
    references.clear()
    settle()
    return alive, _objects() - before


def _objects():
    gc.collect()
    return collections.Counter(type(one).__name__ for one in gc.get_objects())


@pytest.mark.parametrize(
    "kind",
    ["eager numpy_function", "own eager numpy_function", "eager py_function", "own py_function", "numpy_function"],
)
def test_what_a_failed_body_held_dies_as_in_stock(tf, tmp_path, kind):
    stock = _alive_after(tf, kind, lambda: None)
    # Who watches for hangs holds the frames of the main thread while it looks at them, at any moment.
    with pfd.record(tmp_path / "a.pfrec", gil=False, hang_after=None) as recording:
        _alive_after(tf, kind, recording._recorder.flush)
        ours = _alive_after(tf, kind, recording._recorder.flush)
    assert ours[0] == stock[0] == (0, 21)
    # What each failure leaves is there twenty times; the idle writer's own wait makes and drops a lock at any moment.
    assert {name: more for name, more in (ours[1] - stock[1]).items() if more >= 10} == {}


@pytest.mark.parametrize("options", [{}, {"values": "full"}, {"gradients": "exact"}])
def test_failed_traces_leave_no_weak_reference_behind(tf, tmp_path, options):
    def fail(times, recording):
        for _ in range(times):

            @tf.function
            def fails(x):
                with tf.init_scope():
                    return x + 1

            with contextlib.suppress(TypeError):
                fails(tf.constant(1.0))
            assert recording._recorder.flush()  # each one is a batch of its own

    with pfd.record(tmp_path / "a.pfrec", gil=False, **options) as recording:
        fail(3, recording)
        before = _count(weakref.ref)
        fail(20, recording)
        assert _count(weakref.ref) < before + 20  # those of tests before this one may still go


def test_traces_of_functions_without_nodes_leave_no_set_behind(tf, tmp_path):
    def loop(x):
        return tf.while_loop(lambda x: x < 3.0, lambda x: [x + 1.0], [x])[0]

    def trace(times, recording):
        for _ in range(times):
            tf.function(lambda x: x + 1)(tf.constant(1.0))
            tf.function(loop)(tf.constant(1.0))  # a function that calls functions
        assert recording._recorder.flush()

    with pfd.record(tmp_path / "a.pfrec", gil=False) as recording:
        trace(10, recording)
        before = _count(frozenset)
        trace(20, recording)
        assert _count(frozenset) < before + 20  # as above; each function that was traced would leave one
