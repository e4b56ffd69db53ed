"""Bodies that AutoGraph generated, in a tf.function or a function of Dataset.map: prompts show the user's lines."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import pdb
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


def make_leaving(tf):
    @tf.function
    def leaving(x):
        def body(v):
            last = -1.0
            last = last + 0.0
            for i in range(3):
                last = float(v) * i
                if last > 1:
                    big = last + 10
                    last = big - 9.5
            out = v + 1
            if asks:
                breakpoint()
            return out

        return tf.py_function(body, [x], tf.float32)

    asks = False

    def ask(whether):
        nonlocal asks
        asks = whether

    return leaving, ask


def test_what_a_loop_leaves_is_there_behind_it_as_in_the_users_function(tf, capsys):
    """AutoGraph hands on only what code reads behind the loop, and leaves `last` at what it was before it."""
    leaving, _ = make_leaving(tf)
    behind = f"{os.path.basename(__file__)}:{make_leaving.__code__.co_firstlineno + 11}"
    rules = [pfd.break_on(behind, log="last, big, i"), pfd.break_on(behind, condition="big == 16 and i == 2")]
    with pfd.answers("p last, big", "last = 7", "p last", "c") as dialogue:
        assert float(leaving(tf.constant(3.0))) == 4.0
    assert "last = 6.5, big = 16.0, i = 2\n" in capsys.readouterr().err
    assert "(6.5, 16.0)\n" in str(dialogue)
    assert "p last\n7\n" in str(dialogue)
    assert rules[1].outcomes == {"stopped": 1}
    for rule in rules:
        rule.remove()
    stop = pfd.break_on("*body", when="before")  # steps over the loop
    with pfd.answers("p last", "n", "n", "until 10000", "c") as dialogue:
        leaving(tf.constant(3.0))
    stop.remove()
    assert "name 'last' is not defined\n" in str(dialogue), "it is not set yet: AutoGraph did nothing to it"
    stop = pfd.break_on("*body")
    line = make_leaving.__code__.co_firstlineno + 11
    with pfd.answers("n", "n", f"until {line}", "p last, big, i", "c") as dialogue:
        leaving(tf.constant(3.0))
    stop.remove()
    assert "(6.5, 16.0, 2)\n" in str(dialogue)


def test_a_variable_that_autograph_dropped_unseen_is_said_to_be_so(tf, capsys):
    leaving, ask = make_leaving(tf)
    leaving(tf.constant(3.0))
    ask(True)
    first = make_leaving.__code__.co_firstlineno
    other = pfd.break_on("another")
    with pfd.answers("p big + 1", "i", "nothing", "c") as dialogue:
        assert float(leaving(tf.constant(3.0))) == 4.0
    text = str(dialogue)
    why = "AutoGraph drops {} at the end of the branch or loop that sets it (line {}): nothing behind it reads it"
    assert f"name 'big' is not defined ({why.format('big', first + 9)})\n" in text
    assert f"name 'i' is not defined ({why.format('i', first + 6)})\n" in text
    assert "name 'nothing' is not defined\n" in text
    assert f"last may be older here than in your function: what line {first + 7} sets stays in" in text
    other.remove()
    ask(False)
    error = pfd.break_on("*body", condition="big > 1")
    log = pfd.break_on("*body", log="big")
    leaving(tf.constant(3.0))
    said = capsys.readouterr().err
    assert "(there are call, inputs, np, tf, v)" in said
    error.remove()
    log.remove()


def make_joined(tf):
    @tf.function
    def joined(x):
        def body(v):
            z = pick(
                v if float(v) < 0 else breakpoint(),
                other(v),
            )
            ask = lambda q: (  # noqa: E731 - what is tried
                q + 1
                if float(q) < 0 else
                breakpoint()
            )  # fmt: skip
            ask(v)
            return z

        return tf.py_function(body, [x], tf.float32)

    return joined


def pick(a, b):
    return b


def other(v):
    w = v + 1
    return w


def test_breakpoint_in_a_statement_over_several_lines_stops_in_it_and_q_ends_there(tf):
    joined, first = make_joined(tf), make_joined.__code__.co_firstlineno
    with pfd.record(gil=False):
        with pfd.answers("p float(v)", "n", "c", "p float(q)", "w", "c", "never read") as said:
            assert float(joined(tf.constant(3.0))) == 4.0
        with pfd.answers("q"), pytest.raises(tf.errors.UnknownError) as raised:
            joined(tf.constant(3.0))
    assert said.left == ["never read"], said
    shown = [int(line) - first for line in re.findall(r"> \S*test_generated\.py\((\d+)\)", str(said))]
    assert shown == [4, 8, 11, 11], said
    assert "stops/stop" not in str(raised.value)
    assert "in body" in str(raised.value)


def test_what_is_displayed_and_a_post_mortem_are_in_the_users_file(tf, step, capsys):
    hook = sys.excepthook
    with pytest.raises(tf.errors.InvalidArgumentError) as raised, pfd.record(gil=False):
        step(tf.constant(-300.0))
    error = raised.value
    assert sys.excepthook is hook
    hook(type(error), error, error.__traceback__)  # its recording has ended
    cause = capsys.readouterr().err.partition("direct cause")[0]
    assert f'test_generated.py", line {FIRST + 11}, in body\n    raise ValueError("too small")\nValueError' in cause
    assert not re.search("ag__|autograph|written.py", cause), cause
    _looks(error.__traceback__)
    stop = pfd.break_on("nothing*")
    try:
        step(tf.constant(-300.0))
    except tf.errors.InvalidArgumentError as raised_now:
        sys.excepthook(type(raised_now), raised_now, raised_now.__traceback__)
    cause = capsys.readouterr().err.partition("direct cause")[0]
    assert not re.search("ag__|autograph|written.py", cause), cause
    stop.remove()
    _looks(sys.last_traceback)


def _looks(traceback):
    """What pdb shows at the innermost frame of a traceback, and at the one above."""
    out = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("ll\np i, total, float(v)\nw\nup\nq\n"), stdout=out)
    debugger.reset()
    debugger.interaction(None, traceback)
    text = out.getvalue()
    assert not re.search("ag__|autograph", text.partition("(0, 0.0, -600.0)")[0]), text
    shown = [int(line) - FIRST for line in re.findall(r"> \S*test_generated\.py\((\d+)\)body", text)]
    assert shown == [11, 11], text
    listed = r"def body\(v\):.*->\s+raise ValueError\(.too small.\).*return out.*\(0, 0.0, -600.0\)"
    assert re.search(listed, text, re.S), text


def test_a_post_mortem_of_what_failed_at_the_header_of_a_loop_opens_there(tf):
    @tf.function
    def fails(x, kind):
        def drained(v):
            total, left = 0, ["3", "a"]
            while int(left.pop(0)):  # of while
                total += 1
            return v + total

        def mapped(v):
            total, left = 0, ["3", "a"]
            for one in map(int, left):  # of for
                total += one
            return v + total

        def unpacked(v):
            total, left = 0, [(3, 4), (5,)]
            for one, _ in left:  # of for, unpacking
                total += one
            return v + total

        return tf.py_function({"while": drained, "for": mapped}.get(kind, unpacked), [x], tf.float32)

    for kind, total in (("while", 1), ("for", 3), ("for, unpacking", 3)):
        with pytest.raises(tf.errors.OpError) as raised, pfd.record(gil=False):
            fails(tf.constant(1.0), kind)
        out = io.StringIO()
        debugger = pdb.Pdb(stdin=io.StringIO("p 'total is', total\nq\n"), stdout=out)
        debugger.reset()
        debugger.interaction(None, raised.value.__traceback__)
        assert re.search(rf"> \S*test_generated\.py\(\d+\)\w+\(\)\n-> .*# of {kind}\n", out.getvalue()), out.getvalue()
        assert f"('total is', {total})" in out.getvalue()


def test_a_failure_in_generated_code_lives_no_longer_for_being_displayed(tf):
    class MineError(Exception):
        pass

    @tf.function
    def fails(x):
        def body(v):
            for _ in range(1):
                raise MineError(float(v))
            return v

        return tf.py_function(body, [x], tf.float32)

    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(tf.errors.UnknownError), pfd.record(gil=False):
            fails(tf.constant(1.0))
        assert not [one for one in gc.get_objects() if isinstance(one, MineError)]
    finally:
        gc.enable()
