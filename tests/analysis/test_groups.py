"""Rows of the ledger: one for a place in a function, from wherever the function was called when it was traced."""

from __future__ import annotations

import tensorflow as tf

import pyfunc_debug as pfd


def body(x):
    return x + 1


def helper(x):
    return tf.numpy_function(body, [x], tf.float32)


@tf.function
def step(x):
    y = helper(x)
    return tf.reduce_sum(helper(y))


@tf.function
def outer(x):
    return step(x) + step(tf.concat([x, x], 0))


def pipeline():
    return tf.data.Dataset.range(2).map(lambda i: helper(tf.cast(i, tf.float32)))


def test_a_tf_function_called_from_several_lines_has_one_row_for_each_of_its_places(tmp_path):
    with pfd.record(tmp_path / "a.pfrec", gil=False) as recording:
        step(tf.ones([1]))
        step(tf.ones([2]))
        outer(tf.ones([3]))
        for _ in range(2):
            list(pipeline())
        list(pipeline())
    rows = {row.function.name: [one.calls for one in row.nodes] for row in recording.ledger().rows}
    # The two lines of `step` that call `helper` stay apart; the pipelines that two lines of the program make do, too.
    assert (rows["step"], rows["pipeline.<lambda>"]) == ([4, 4], [4, 2])
