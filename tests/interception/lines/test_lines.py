"""The source gutter: counts equal planted counts, prints have their line and call, and nothing stays behind."""

from __future__ import annotations

import collections
import contextlib
import io
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.interception import names as tensorflow_names
from pyfunc_debug.interception.lines import python_lines as engine
from tests.interception.lines import gutter_programs

X = tf.constant([1.0, 2.0])
MONITORING = getattr(sys, "monitoring", None)


def patched():
    """The attributes that counting lines replaces, as they are now."""
    found = tensorflow_names.load()
    return [
        found.tracing_compilation._create_concrete_function, found.control_flow._tf_if_stmt,
        found.control_flow._tf_while_stmt, found.control_flow._py_for_stmt, found.control_flow._tf_iterator_for_stmt,
        found.conditional_expressions._tf_if_exp, found.logical._tf_lazy_and, found.logical._tf_lazy_or,
        vars(found.registry_type)["__call__"],
    ]  # fmt: skip


def tools():
    return [MONITORING.get_tool(number) for number in range(6)] if MONITORING else []


@pytest.fixture(autouse=True)
def _nothing_stays_behind():
    before = patched(), tools(), sys.gettrace()
    yield
    after = patched(), tools(), sys.gettrace()
    assert all(one is other for one, other in zip(before[0], after[0]))
    assert after[1:] == before[1:]
    assert "write" not in vars(sys.stdout) or "pyfunc_debug" not in str(vars(sys.stdout)["write"])


def counts(recording, file=__file__):
    return {line.line: line for line in recording.reader.lines(file) if line.kind == "line"}


def line_of(function, text):
    code = function.__code__ if hasattr(function, "__code__") else function.python_function.__code__
    with open(code.co_filename) as file:
        return next(n for n, line in enumerate(file, 1) if n >= code.co_firstlineno and text in line)


@pytest.mark.slow
def test_counts_equal_planted_counts():
    total, wrong, _ = gutter_programs.wrong_lines()
    assert total > 100
    assert wrong == []


def test_without_lines_nothing_is_counted_or_patched():
    before = patched()

    @tf.function
    def step(x):
        during.append((patched()[1:8], tools(), sys.gettrace()))
        return x + 1.0

    during = []
    with pfd.record(gil=False) as recording:
        step(X)
    assert all(one is other for one, other in zip(during[0][0], before[1:8]))
    assert during[0][1] == tools()
    assert recording.reader.lines(__file__) == []
    assert "record with lines=True" in str(recording.source("*step"))


def test_lines_of_the_graph_say_where_they_are_and_never_zero_runs():
    @tf.function
    def step(x):
        for _ in tf.range(3):
            if tf.reduce_sum(x) > 0.0:  # noqa: SIM108 - a branch is what is tested
                x = x * 0.5
            else:
                x = x + 1.0
        return x if tf.reduce_sum(x) > 0.0 else -x

    with pfd.record(gil=False, lines=True) as recording:
        step(X)
        step(X)
    found = counts(recording)
    loop, branch = line_of(step, "for _ in"), line_of(step, "if tf.reduce")
    assert found[loop].graph == ("loop",)
    assert found[branch].graph == ("if",)
    assert found[branch].inside == (f"loop@{loop}",)
    assert found[line_of(step, "x * 0.5")].inside == (f"if@{branch} then",)
    assert found[line_of(step, "x + 1.0")].inside == (f"if@{branch} else",)
    assert found[line_of(step, "else -x")].graph == ("if",)
    assert [line.ran for line in found.values() if line.line >= loop] == [None] * 6 or all(
        found[line].ran is None for line in found
    )
    text = str(recording.source("*step"))
    assert "# graph loop" in text
    assert f"in if@{branch} then" in text
    assert " 0x" not in text
    assert "runs -" in text


def test_prints_have_their_line_and_call():
    def shout(v):
        print("from helper")
        return v

    def body(v):
        print("body", end="")
        print(" more")
        return shout(v)

    @tf.function
    def step(x):
        print("tracing")
        return tf.ensure_shape(tf.py_function(body, [x], tf.float32), [2])

    out = io.StringIO()
    with contextlib.redirect_stdout(out), pfd.record(gil=False, lines=True) as recording:
        step(X)
        step(X)
        print("outside")
    assert out.getvalue() == "tracing\n" + "body more\nfrom helper\n" * 2 + "outside\n"
    found = recording.reader.prints(__file__)
    assert "write" not in vars(out)
    assert [(one.trace is None, one.call, one.text) for one in found] == [
        (False, None, "tracing\n"),
        (True, 1, "body"), (True, 1, " more\n"), (True, 1, "from helper\n"),
        (True, 2, "body"), (True, 2, " more\n"), (True, 2, "from helper\n"),
    ]  # fmt: skip
    assert found[0].line == line_of(step, 'print("tracing")')
    assert found[3].line == line_of(shout, "from helper")
    assert "call #1 printed: body" in str(recording.source("*body"))


def test_parallel_prints_go_to_their_own_calls():
    def body(v):
        print("element", int(v))
        return v

    out = io.StringIO()
    with contextlib.redirect_stdout(out), pfd.record(values="full", gil=False, lines=True) as recording:
        data = tf.data.Dataset.range(30).map(lambda v: tf.numpy_function(body, [v], tf.int64), num_parallel_calls=4)
        list(data)
    found = recording.reader.prints(__file__)
    assert len(found) == 30
    for one in found:
        assert one.text == f"element {int(recording.call(one.call).inputs[0].array())}\n"


@pytest.mark.parametrize(("calls", "capped"), [(engine.CAP, False), (engine.CAP + 5, True)])
def test_all_lines_of_a_body_reach_the_same_cap(calls, capped):
    def body(v):
        first = v * 1.0
        second = first * 1.0
        return second

    @tf.function
    def step(x):
        return tf.numpy_function(body, [x], tf.float32)

    with pfd.record(values="none", gil=False, lines=True) as recording:
        for _ in range(calls):
            step(X)
    found = counts(recording)
    first = line_of(body, "first = v")
    assert [(found[line].ran, found[line].capped) for line in range(first, first + 3)] == [(engine.CAP, capped)] * 3


def test_hot_lines_are_capped_and_say_at_least():
    def body(v):
        total = 0
        for number in range(5000):
            total += number
        return v

    with pfd.record(gil=False, lines=True) as recording:
        tf.numpy_function(body, [X], tf.float32)
    found = counts(recording)
    line = line_of(body, "total += number")
    assert found[line].capped
    assert engine.CAP - 1 <= found[line].ran < 5000
    assert f"{found[line].ran:,}+x" in str(recording.source("*body"))
    with pfd.record(gil=False, lines=True) as recording:
        tf.numpy_function(body, [X], tf.float32)
    assert counts(recording)[line].ran >= engine.CAP - 1  # a line that was disabled at its cap is counted again


def test_lambdas_count_their_calls_apart_from_their_line():
    @tf.function
    def step(x):
        add = lambda v: v + 1.0  # noqa: E731
        return add(add(add(x)))

    with pfd.record(gil=False, lines=True) as recording:
        step(X)
    line = line_of(step, "add = lambda")
    kinds = {one.kind: one.traced for one in recording.reader.lines(__file__) if one.line == line}
    assert kinds == {"line": 1, "lambda": 3}
    assert "the lambda: 3x at trace" in str(recording.source("*step"))


def test_results_and_errors_are_those_of_the_program():
    def body(v):
        if v[0] > 0:
            raise ValueError("positive")
        return v

    @tf.function
    def step(x):
        return tf.py_function(body, [x], tf.float32)

    with pfd.record(gil=False, lines=True) as recording, pytest.raises(tf.errors.InvalidArgumentError):
        step(X)
    assert counts(recording)[line_of(body, "raise ValueError")].ran == 1
    assert not recording.meta["troubles"]


@pytest.mark.skipif(MONITORING is not None, reason="sys.settrace is used before Python 3.12 only")
def test_a_python_tracer_goes_on_seeing_what_it_saw():
    seen = []

    def tracer(frame, event, arg):
        if frame.f_code.co_name == "unconverted":
            seen.append(event)
            return tracer
        return None

    @tf.autograph.experimental.do_not_convert
    def unconverted(x):
        return x + 1.0

    @tf.function
    def step(x):
        return unconverted(x)

    sys.settrace(tracer)
    try:
        with pfd.record(gil=False, lines=True) as recording:
            step(X)
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(None)
    assert "line" in seen
    assert counts(recording)[line_of(step, "return unconverted(x)")].traced == 1


@pytest.mark.skipif(MONITORING is not None, reason="coverage and the gutter live side by side on Python 3.12 and later")
def test_where_coverage_traces_lines_are_left_out_and_it_is_said():
    class CTracer:
        def __call__(self, frame, event, arg):
            return None

    @tf.function
    def step(x):
        return x + 1.0

    sys.settrace(CTracer())
    try:
        with pytest.warns(UserWarning, match="coverage"), pfd.record(gil=False, lines=True) as recording:
            step(X)
    finally:
        sys.settrace(None)
    assert "coverage" in recording.meta["limits"]
    assert counts(recording) == {}


@pytest.mark.skipif(MONITORING is None, reason="sys.monitoring came with Python 3.12")
def test_another_tool_keeps_its_number_and_its_events():
    seen = set()
    MONITORING.use_tool_id(3, "another tool")
    MONITORING.register_callback(3, MONITORING.events.PY_START, lambda code, offset: seen.add(code.co_name))
    MONITORING.set_events(3, MONITORING.events.PY_START)
    try:

        def body(v):
            w = v + 1.0
            return w

        with pfd.record(gil=False, lines=True) as recording:
            tf.numpy_function(body, [X], tf.float32)
        assert MONITORING.get_tool(3) == "another tool"
        seen.clear()
        body(X)
        assert "body" in seen
        assert counts(recording)[line_of(body, "w = v + 1.0")].ran == 1
    finally:
        MONITORING.set_events(3, 0)
        MONITORING.free_tool_id(3)


def test_live_recording_shows_counts_so_far():
    def body(v):
        w = v + 1.0
        return w

    @tf.function
    def step(x):
        return tf.py_function(body, [x], tf.float32)

    with pfd.record(gil=False, lines=True) as recording:
        step(X)
        assert counts(recording)[line_of(body, "w = v + 1.0")].ran == 1
        step(X)
        assert counts(recording)[line_of(body, "w = v + 1.0")].ran == 2


def test_source_of_unknown_names_is_refused_and_html_is_escaped():
    def body(v):
        print("<script>")
        return v

    with contextlib.redirect_stdout(io.StringIO()), pfd.record(gil=False, lines=True) as recording:
        tf.numpy_function(body, [X], tf.float32)
    assert "<script>" not in recording.source("*body")._repr_html_()
    with pytest.raises(pfd.BadOptionError, match="no function or body matches"):
        recording.source("nothing")


def test_threads_that_are_in_no_phase_are_not_counted():
    def body(v):
        w = v + 1.0
        return w

    with pfd.record(gil=False, lines=True) as recording:
        tf.numpy_function(body, [X], tf.float32)
        body(X)
        thread = threading.Thread(target=body, args=(X,))
        thread.start()
        thread.join()
    assert counts(recording)[line_of(body, "w = v + 1.0")].ran == 1


def test_only_the_users_own_files_are_counted():
    pair = collections.namedtuple("pair", "mean count")

    def body(v):
        return pair(np.median(v), v.size).mean

    @tf.function
    def step(x):
        return tf.numpy_function(body, [x], tf.float32)

    with pfd.record(gil=False, lines=True) as recording:
        step(X)
    rows = recording.sql("select distinct file, line from line order by line")
    assert [(row["file"], row["line"]) for row in rows] == [
        (__file__, line_of(body, "return pair")),
        (__file__, line_of(step, "return tf.numpy")),
    ]
