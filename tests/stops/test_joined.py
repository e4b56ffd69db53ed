"""Statements and lambdas over several lines in code that AutoGraph generated, where each is on one line."""

from __future__ import annotations

import importlib.util
import re
import sys

import pytest

import pyfunc_debug as pfd

PROGRAM = """
import contextlib
import tensorflow as tf

def double(v):
    return v * 2

def make(i):
    load = lambda j: (
        double(j)
        + double(
            j + 1
        )
        if int(j) > 1
        else j * 0
        - 1
    )
    many = [lambda j: double(
        j), lambda k: (
        k +
        3)]

    def named(v):
        pair = sorted([v, v - 1], key=lambda w:
            double(w)
            + 1)
        if (pair[0] <
                1):
            v = v + double(
                v)
        return (pair[1]
            if 1 < v < 3 and v != 7
                or v > 5
            else double(*[
                v], **{}))

    bodies = [load, many[0], many[1], named, lambda t: double(
        t
    )]
    return tf.add_n([tf.py_function(bodies[n], [i], tf.int64) for n in range(5)])

def twice(i):
    with contextlib.nullcontext([lambda v: double(
            v), lambda v: double(
            v) + 1]) as bodies:
        return [tf.py_function(bodies[n], [i], tf.int64) for n in range(2)]
"""
AT = {text.strip(): number for number, text in enumerate(PROGRAM.splitlines(), 1)}


@pytest.fixture(scope="module")
def program(tf, tmp_path_factory):
    """The program as a module of the user's."""
    file = tmp_path_factory.mktemp("joined") / "several_lines.py"
    file.write_text(PROGRAM)
    spec = importlib.util.spec_from_file_location("several_lines", file)
    module = sys.modules["several_lines"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["several_lines"]


@pytest.mark.parametrize("element", [1, 2, 6])
def test_each_line_that_python_comes_to_stops_and_no_other(tf, program, element):
    """What Python comes to is what it comes to in the same program without AutoGraph."""
    bodies = range(
        AT["load = lambda j: ("] + 1,
        AT["return tf.add_n([tf.py_function(bodies[n], [i], tf.int64) for n in range(5)])"],
    )
    found, results = [], []
    for make in (tf.autograph.experimental.do_not_convert(program.make), program.make):
        stops = {line: pfd.break_on(f"several_lines.py:{line}") for line in bodies}
        with pfd.answers(*["c"] * 500):
            results.append([int(one) for one in tf.data.Dataset.range(element, element + 1).map(make)])
        found.append({line for line, stop in stops.items() if stop.hits})
        for stop in stops.values():
            stop.remove()
    assert results[0] == results[1]
    plain, generated = found
    brackets = {line for line in bodies if PROGRAM.splitlines()[line - 1].strip() in ("", ")", ")]")}
    if sys.version_info >= (3, 13) and element == 1:
        plain.remove(AT["double(j)"])  # as it returns, Python comes to where a conditional expression begins
    assert generated - brackets == plain - brackets


def _shown(dialogue):
    return [int(line) for line in re.findall(r"> \S*several_lines\.py\((\d+)\)", str(dialogue))]


def test_prompts_show_the_line_in_the_lambda_and_steps_go_to_its_parts(tf, program):
    test, part, inner = AT["if int(j) > 1"], AT["double(j)"], AT["j + 1"]
    stop, last = pfd.break_on(f"several_lines.py:{test}"), pfd.break_on(f"several_lines.py:{inner}")
    with pfd.answers("p int(j)", "n", "p int(j) + 1", "c") as dialogue:
        list(tf.data.Dataset.range(2, 3).map(program.make))
    assert _shown(dialogue) == [test, part]
    assert re.search(r"\n2\n.*\n3\n", str(dialogue), re.S)
    stop.disable()
    with pfd.answers("c") as dialogue:
        list(tf.data.Dataset.range(2, 3).map(program.make))
    assert f"several_lines.py:{inner}, which AutoGraph joined to line {part})" in str(dialogue)
    assert (stop.hits, last.hits) == (1, 2)
    stop.remove()
    last.remove()


def test_lambdas_that_cannot_be_told_apart_stop_where_their_statement_begins_and_say_so(tf, program):
    line = AT["v) + 1]) as bodies:"]  # what a `with` begins with is not compared
    first = line - 2
    stop = pfd.break_on(f"several_lines.py:{line}")
    with pfd.answers("c", "c") as dialogue:
        list(tf.data.Dataset.range(3, 4).map(program.twice))
    assert f"several_lines.py:{line}, which AutoGraph joined to line {first})" in str(dialogue)
    assert (stop.hits, _shown(dialogue)) == (2, [first, first])
    stop.remove()


def test_an_error_that_passed_a_line_of_a_lambda(tf, program):
    taken, other = (pfd.break_on(f"several_lines.py:{AT[line]}", when="error") for line in ("double(j)", "else j * 0"))
    program.double, before = (lambda v: 1 // 0), program.double
    try:
        with pfd.answers("c") as dialogue, pytest.raises(tf.errors.OpError):
            list(tf.data.Dataset.range(2, 3).map(program.make))
    finally:
        program.double = before
    assert (taken.hits, other.hits) == (1, 0), str(dialogue)
    taken.remove()
    other.remove()
