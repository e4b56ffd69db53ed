"""What a user passes to a node reaches it as it was given."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyfunc_debug as pfd


def add(a, b):
    return a + b


@pytest.mark.parametrize("make", ["numpy_function", "py_function"])
def test_inputs_given_as_a_generator_still_reach_the_body(tf, tmp_path, make):
    function = getattr(tf, make)
    with pfd.record(tmp_path / "a.pfrec", gil=False) as recording:
        eager = function(add, (tf.constant(x) for x in (1.0, 2.0)), tf.float32)
        graph = tf.function(lambda: function(add, map(tf.constant, (1.0, 2.0)), tf.float32))()
    assert (float(eager), float(graph)) == (3, 3)
    assert [(one.status, len(one.inputs)) for one in recording.calls()] == [("ok", 2), ("ok", 2)]
    recording.close()


OF_A_LAMBDA = "step = tf.function(lambda x: tf.numpy_function(twice, [x], tf.float32))"
OF_A_FUNCTION = "@tf.function\ndef step(x):\n    y = tf.numpy_function(twice, [x], tf.float32)\n    return y"
INNER = "def inner(x):\n    return tf.numpy_function(twice, [x], tf.float32)\nstep = tf.function(lambda x: inner(x))"


@pytest.mark.parametrize("made", [OF_A_LAMBDA, OF_A_FUNCTION, INNER], ids=["lambda", "function", "inner"])
def test_a_file_that_is_equal_to_an_earlier_one_is_named_by_its_own_name(tf, tmp_path, made):
    """As a notebook's cell that runs again: AutoGraph has the code of equal functions once, of whatever file."""
    text = f"import tensorflow as tf\ndef twice(x):\n    return 2 * x\n{made}\nstep(tf.ones([2]))\n"
    for name in ("first", "again", "first"):
        file = tmp_path / f"{name}.py"
        file.write_text(text)
        with pfd.record(tmp_path / "a.pfrec", gil=False, overwrite=True) as recording:
            exec(compile(text, str(file), "exec", dont_inherit=True), {"__name__": "__main__"})
        (node,) = recording.nodes()
        stack = [one for one in node.stack if Path(one.file).parent == tmp_path]
        assert {one.file for one in stack} == {str(file)}
        assert stack[-1].text in made
        assert "numpy_function" in stack[-1].text
        recording.close()
