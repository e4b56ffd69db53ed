"""A body whose function is traced twice has two nodes and one finding, which says so."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.report.answers import Answers


def bad(x):
    if float(tf.reduce_sum(x)) < 0:
        raise ValueError("negative")
    return x / tf.zeros_like(x)


def cut(x):
    return tf.constant(float(tf.reduce_sum(x)))


def told(message):
    """`ValueError in bad: once` of a finding's message."""
    found = re.match(r"(\w+) in (?:\S+\.)?(\w+): ([^(]+) \(", message)
    return "{} in {}: {}".format(*found.groups())


def tried(f, *args):
    try:
        return f(*args)
    except (tf.errors.OpError, ValueError):
        return None


def findings(run):
    with pfd.record() as recording:
        run()
    found = {finding.rule: [] for finding in recording.findings()}
    for finding in recording.findings():
        found[finding.rule].append(finding)
    return found, recording


@pytest.fixture
def twice():
    """Findings of two bodies in a function that is traced for two shapes, from two lines; the recording."""

    @tf.function
    def f(x):
        return tf.py_function(bad, [x], tf.float32)

    @tf.function
    def g(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.py_function(cut, [x], tf.float32)
        return tape.gradient(y, x)

    def run():
        tried(f, tf.constant([1.0, 2.0]))
        tried(f, tf.constant([-1.0, -2.0]))
        for _ in range(3):
            tried(f, tf.constant([-1.0, -2.0, -3.0]))
        tried(f, tf.constant([1.0, 2.0, 3.0]))
        g(tf.constant([1.0, 2.0]))
        g(tf.constant([1.0, 2.0, 3.0]))

    return findings(run)


def test_a_body_of_two_graph_traces_has_one_finding_with_both_nodes_and_counts(twice):
    found, recording = twice
    (raised,) = found["body-raised"]
    one, other = sorted(node.id for node in recording.nodes() if node.body.endswith("bad"))
    line = bad.__code__.co_firstlineno + 2
    assert raised.line == line
    assert raised.message.startswith("ValueError in bad: 4 times, in 2 graphs (first in call #")
    assert (raised.node, raised.nodes) == (one, (one, other))
    (born,) = found["inf-born"]
    assert "Inf from finite inputs in 2 of 6 calls, once in each of 2 graphs, first in" in born.message


def test_inputs_without_gradient_are_one_finding_too(twice):
    found, recording = twice
    (none,) = found["none-gradient"]
    nodes = tuple(sorted(node.id for node in recording.nodes() if node.body.endswith("cut")))
    assert none.nodes == nodes
    assert ", in 2 nodes. Line" in none.message
    assert none.message.count("called at") == 1


def test_the_row_of_the_ledger_that_it_is_about_is_marked(twice):
    _, recording = twice
    answers = Answers(recording.path, "a", recording.findings)
    with answers.reading():
        answers.ask("overview", {"width": 200})
        ledger, _ = answers.ask("ledger", {})
    rows = [row for row in ledger["rows"] if row["name"] == "bad" and row["type"] == "node"]
    (row,) = rows  # of both nodes, although two lines called f
    assert any(why.startswith("inf-born") for why in row["why"])


def test_other_bodies_and_other_failures_stay_apart():
    def other(x):
        if float(x[0]) < -1:
            raise TypeError("other")
        raise ValueError("other")

    @tf.function
    def f(x):
        return tf.py_function(bad, [x], tf.float32)

    @tf.function
    def h(x):
        return tf.py_function(other, [x], tf.float32)

    def run():
        tried(f, tf.constant([-1.0]))
        tried(h, tf.constant([-1.0]))
        tried(h, tf.constant([-2.0]))

    found, _ = findings(run)
    assert [(finding.nodes, told(finding.message)) for finding in found["body-raised"]] == [
        ((), "ValueError in bad: once"),
        ((), "TypeError in other: once"),
        ((), "ValueError in other: once"),
    ]


def test_lines_and_functions_that_hold_the_body_are_named():
    @tf.function
    def f(x):
        return tf.py_function(bad, [x], tf.float32)

    @tf.function
    def g(x):
        return tf.py_function(bad, [x], tf.float32)

    def node(x):
        return tf.py_function(lambda x: cut(x) if x > 0 else [][0], [x], tf.float32)

    @tf.function
    def one(x):
        return node(x)

    @tf.function
    def other(x):
        return node(x)

    def run():
        for function in (f, g, g, one, other, other):
            tried(function, tf.constant([-1.0]) if function in (f, g) else tf.constant(-1.0))

    found, _ = findings(run)
    by_type = {finding.message.split(" in ")[0]: finding.message for finding in found["body-raised"]}
    line = f.python_function.__code__.co_firstlineno + 2
    here = "test_bodies.py"
    assert f"3 times, at 2 lines: once at {here}:{line}, 2 times at {here}:{line + 4} (" in by_type["ValueError"]
    assert re.search(r"3 times, in 2 functions: once in \S+\.one, 2 times in \S+\.other \(", by_type["IndexError"])


def test_a_function_traced_at_every_step_has_its_nodes_counted():
    @tf.function
    def f(x, n):
        return tf.py_function(bad, [x], tf.float32) + n

    found, _ = findings(lambda: [tried(f, tf.constant([-1.0]), n) for n in range(7)])
    (raised,) = found["body-raised"]
    assert re.match(r"ValueError in bad: 7 times, once in each of 7 graphs \(first in call #", raised.message)
    assert len(raised.nodes) == 7


def test_a_body_of_a_library_is_told_at_the_users_line():
    def step(x):
        return tf.numpy_function(np.linalg.inv, [x], tf.float64)

    found, _ = findings(lambda: tried(tf.function(step), tf.zeros([2, 2], tf.float64)))
    (raised,) = found["body-raised"]
    assert raised.file == __file__
    assert raised.line == step.__code__.co_firstlineno + 1
    assert raised.message.startswith("LinAlgError in inv: once")


def test_a_generator_that_raises_is_told_by_the_number_of_its_element_in_that_pass():
    passes = []

    def rows():
        passes.append(0)
        for text in ["1 2", "3 4", "5 x" if len(passes) == 2 else "5 6"]:
            yield np.float32([float(one) for one in text.split()])

    def run():
        ds = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([2], tf.float32))
        for _ in range(2):
            tried(list, ds)

    found, _ = findings(run)
    (raised,) = found["body-raised"]
    assert re.search(r"\(first in call #\d+, for its element 3\)", raised.message)
    assert "it had yielded 2 elements before" in raised.evidence
