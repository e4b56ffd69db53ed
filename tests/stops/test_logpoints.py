"""What breakpoints write down of calls that go on: expressions and variables, at each moment of a call."""

from __future__ import annotations

import json
import os
import re

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.analysis.describe import call_text


def noted(x, args=2):
    plan = x * 2.0  # names of parameters of ours: they must not get in the way
    rule = plan + args
    if rule > 100.0:
        raise ValueError("too much")
    return rule


@pytest.fixture(scope="module")
def function(tf):
    return tf.function(lambda x: tf.py_function(noted, [x], tf.float32))


def test_expressions_and_variables_at_each_moment_of_a_call(tf, function, capsys):
    line = f"{os.path.basename(__file__)}:{noted.__code__.co_firstlineno + 3}"
    with pfd.record(gil=False) as recording:
        points = [
            pfd.break_on("noted", log="x.shape, x.max() * 10", condition="x < 100", keep="locals"),
            pfd.break_on(line, log="plan, nothing"),
            pfd.break_on("noted", when="after", log="float(outputs)", keep="locals"),
            pfd.break_on("noted", when="error", log="error", keep="locals"),
            pfd.break_on("noted", when="gradient", log="dy"),
        ]
        x = tf.constant(4.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        assert (float(y), float(tape.gradient(y, x))) == (10.0, 2.0)
        with pytest.raises(tf.errors.InvalidArgumentError):
            function(tf.constant(300.0))
        for point in points:
            point.remove()
    said = [one.partition(": ")[2] for one in capsys.readouterr().err.splitlines() if one.startswith("pyfunc_debug: n")]
    assert re.sub(r"#\d+", "#N", "\n".join(said)).splitlines()[:3] == [
        "noted #N (before): x.shape = (), x.max() * 10 = float32[] 40.",
        f"noted #N ({line}): plan = float32[] 8., nothing = *** NameError: name 'nothing' is not defined",
        "noted #N (after): float(outputs) = 10.0",
    ]
    assert [point.outcomes["logged"] for point in points] == [1, 2, 1, 1, 1]
    first, gradient, failed = recording.calls()
    shown = call_text(first, recording.reader)
    assert "logged (before): x.shape = (), x.max() * 10 = float32[] 40." in shown
    assert ("\n    x = float32[] 4." in shown, "inputs = " in shown) == (True, False)
    assert re.search(
        r"logged \(after\): .*\n.*x = .*\n.*args = 2\n.*plan = float32\[\] 8\.\n.*rule = float32\[\] 10\.", shown
    )
    assert "logged (gradient): dy = float32[] 1." in call_text(gradient, recording.reader)
    assert re.search(
        r"error = ValueError\('too much'\)(.*\n)+.*rule = float32\[\] 602\.", call_text(failed, recording.reader)
    )
    rows = recording.sql("SELECT facts FROM notice WHERE rule = 'logged' ORDER BY id LIMIT 1")
    assert json.loads(rows[0]["facts"])["numbers"] == {"x.max() * 10": 40.0}


def test_variables_are_kept_where_nobody_answers(tf, function):
    line = f"{os.path.basename(__file__)}:{noted.__code__.co_firstlineno + 3}"
    with pfd.record(gil=False) as recording:
        stops = [pfd.break_on(line), pfd.break_on("noted", when="error")]
        function(tf.constant(4.0))
        with pytest.raises(tf.errors.InvalidArgumentError):
            function(tf.constant(300.0))
        for stop in stops:
            stop.remove()
    first, failed = recording.calls()
    assert "plan = float32[] 8." in call_text(first, recording.reader)
    assert "rule = float32[] 602." in call_text(failed, recording.reader)
    messages = [one.message for one in recording.findings() if one.rule == "stop-unanswered"]
    assert any("There was" in one and "plan = float32[] 8." in one for one in messages), messages


@pytest.mark.parametrize("options", [{"log": ""}, {"log": "x ="}, {"log": 3}, {"keep": "all"}])
def test_a_logpoint_that_makes_no_sense_is_refused(options):
    with pytest.raises(pfd.BadOptionError):
        pfd.break_on("noted", **options)
