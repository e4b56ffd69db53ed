"""Bodies that AutoGraph generated, in a tf.function or a function of Dataset.map: prompts show the user's lines."""

from __future__ import annotations

import os
import re
import sys

import pytest

import pyfunc_debug as pfd


def make_step(tf):
    @tf.function
    def step(x):
        scale = 2.0

        def body(v):
            total = 0.0
            for i in range(3):
                if float(v) > i:
                    total += scale
                elif float(v) < -100.0:
                    raise ValueError("too small")
            out = helper(v) + total
            return out

        def helper(v):
            w = v + 1.0
            return w

        y = x * 2
        if x > 0:
            y = y + 1
        return tf.py_function(body, [y], tf.float32)

    return step


FIRST = make_step.__code__.co_firstlineno


def _at(offset):
    return f"{os.path.basename(__file__)}:{FIRST + offset}"


@pytest.fixture(scope="module")
def step(tf):
    """Traced before there is any breakpoint: its source map is read from AutoGraph's cache."""
    step = make_step(tf)
    assert float(step(tf.constant(3.0))) == 14.0
    return step


def _said(dialogue, lines):
    """The lines that were shown, as offsets in `make_step`; nothing of AutoGraph's was."""
    text = str(dialogue)
    assert not re.search("ag__|__autograph", text), text
    shown = [int(line) - FIRST for line in re.findall(r"> \S*test_generated\.py\((\d+)\)", text)]
    assert shown == lines, text
    return text


def test_steps_names_and_assignments_are_the_users(tf, step):
    stop = pfd.break_on("*body", once=True)
    with pfd.answers(
        "ll", "n", "n", "n", "n", "total = 100.0", "w", "n", f"until {FIRST + 12}", "args", "r", "c"
    ) as dialogue:
        assert float(step(tf.constant(3.0))) == 114.0
    stop.remove()
    text = _said(dialogue, [6, 7, 7, 8, 9, 9, 7, 12, 13])
    assert re.search(r"def body\(v\):.*elif float\(v\)", text, re.S)


def test_a_line_in_a_loop_a_line_of_the_prompt_and_a_helper(tf, step):
    at = pfd.break_on(_at(8), condition="i == 1 and total > 1")
    inside = pfd.break_on(_at(17))
    with pfd.answers("p i, total, scale", f"tbreak {FIRST + 12}", "c", "c", "p w", "u", "p total", "c") as dialogue:
        assert float(step(tf.constant(3.0))) == 14.0
    text = _said(dialogue, [8, 12, 17, 12])
    assert re.search(r"\(1, 2.0, 2.0\).*numpy=8.0.*\n6.0\n", text, re.S)
    assert (at.hits, inside.hits, dialogue.left) == (1, 1, [])
    at.remove()
    inside.remove()


def test_after_error_and_a_line_that_the_error_passed(tf, step):
    after, error = pfd.break_on("*body", when="after"), pfd.break_on(_at(11), when="error")
    with pfd.answers("c") as dialogue:
        assert float(step(tf.constant(3.0))) == 14.0
    _said(dialogue, [13])
    with pfd.answers("p i, total", "c") as dialogue, pytest.raises(tf.errors.InvalidArgumentError):
        step(tf.constant(-300.0))
    text = _said(dialogue, [11])
    assert re.search(r'raise ValueError\("too small"\).*\(0, 0.0\)', text, re.S)
    assert (after.hits, error.hits) == (1, 1)
    after.remove()
    error.remove()


def test_breakpoint_in_a_body_of_a_map(tf):
    def make(i):
        def load(j):
            z = j * 2
            breakpoint()
            while z < 4:
                z = z + 1
            return z

        return tf.py_function(load, [i], tf.int64)

    first = make.__code__.co_firstlineno - FIRST
    with pfd.record(gil=False), pfd.answers("p int(z)", "n", "n", "s", "r", "c") as dialogue:
        assert [int(one) for one in tf.data.Dataset.range(1, 2).map(make)] == [4]
    assert "\n2\n" in _said(dialogue, [first + line for line in (4, 4, 5, 4, 6)])


def test_a_line_with_a_comprehension_stops_a_body_as_often_as_it_begins(tf):
    @tf.function
    def function(x):
        def body(v):
            values = [float(v) + k for k in range(3)]
            return sum(values)

        return tf.py_function(body, [x], tf.float32)

    line = test_a_line_with_a_comprehension_stops_a_body_as_often_as_it_begins.__code__.co_firstlineno + 4
    stop = pfd.break_on(f"{os.path.basename(__file__)}:{line}")
    # Since Python 3.12 such a line begins again for each element, and Python's own pdb stops there as often.
    times = 1 if sys.version_info < (3, 12) else 4
    with pfd.answers(*["n"] * times, "p values", "c") as dialogue:
        assert float(function(tf.constant(1.0))) == 6.0
    assert "[1.0, 2.0, 3.0]" in _said(dialogue, [line - FIRST] * times + [line - FIRST + 1])
    assert (stop.hits, stop.outcomes, dialogue.left) == (times, {"stopped": times}, [])
    stop.remove()
