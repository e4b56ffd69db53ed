"""Stops wherever TensorFlow runs bodies: sessions, Keras, distribution strategies; nobody there; a foreign tracer."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

import pyfunc_debug as pfd
from tests.limits import HANG_S
from tests.stops.kernels import manager


def body(x):
    y = x * 2.0
    return y


def test_a_session_stops_and_a_local_is_changed(tf, script):
    with tf.Graph().as_default():
        placeholder = tf.compat.v1.placeholder(tf.float32, [])
        result = tf.compat.v1.py_func(body, [placeholder], tf.float32) + 1.0
        with tf.compat.v1.Session() as session:
            said = script("n", "p float(y)", "y = np.float32(50)", "c")
            globals()["np"] = np
            breakpoint_ = pfd.break_on("body", condition="x > 2")
            assert float(session.run(result, {placeholder: 1.0})) == 3.0
            assert float(session.run(result, {placeholder: 4.0})) == 51.0
            breakpoint_.remove()
    assert "8.0" in said.text
    assert breakpoint_.outcomes == {"stopped": 1}


def test_keras_fit_stops_in_a_layer_a_pipeline_and_a_gradient(tf, script):
    import keras

    def layer_body(x):
        return x * 1.0

    def load(i):
        return np.float32([i])

    class Through(keras.layers.Layer):
        def call(self, x):
            result = tf.py_function(layer_body, [x], tf.float32)
            result.set_shape(x.shape)
            return result

    inputs = keras.Input((1,))
    model = keras.Model(inputs, keras.layers.Dense(1)(Through()(keras.layers.Dense(1)(inputs))))
    model.compile("sgd", "mse")
    data = tf.data.Dataset.range(4).map(lambda i: tf.ensure_shape(tf.numpy_function(load, [i], tf.float32), [1]))
    data = data.map(lambda x: (x, x)).batch(2)
    said = script(*["inputs", "c"] * 12)
    breakpoints = [
        pfd.break_on("*load", condition="i == 3"),
        pfd.break_on("*layer_body", hits=2),
        pfd.break_on("*layer_body", when="gradient", once=True),
    ]
    model.fit(data, epochs=1, verbose=0)
    for one in breakpoints:
        one.remove()
    assert [one.outcomes["stopped"] for one in breakpoints] == [1, 1, 1], said.text
    assert "layer_body #" in said.text


def test_a_strategy_stops_in_each_replica(tf, script):
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])

    def replica(x):
        return tf.py_function(body, [x], tf.float32)

    run = tf.function(lambda x: strategy.run(replica, (x,)))
    said = script("n", "p y", "c")
    breakpoint_ = pfd.break_on("body")
    assert float(strategy.experimental_local_results(run(tf.constant(4.0)))[0]) == 8.0
    breakpoint_.remove()
    assert "numpy=8.0" in said.text


def test_coverage_goes_on_measuring_after_a_stop(tf, script):
    """An eager call runs on the caller's own thread, whose tracer ours takes the place of for as long as it stops."""
    seen = []

    def tracer(frame, event, arg):
        if frame.f_code.co_filename == __file__:
            seen.append((frame.f_code.co_name, event))
            return tracer
        return None

    def after(x):
        return x + 1.0

    script("n", "c")
    breakpoint_ = pfd.break_on("body", once=True)
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        first = tf.py_function(body, [tf.constant(1.0)], tf.float32)
        assert sys.gettrace() is tracer
        second = tf.py_function(body, [first], tf.float32)
        after(second)
    finally:
        sys.settrace(before)
    breakpoint_.remove()
    assert float(second) == 4.0
    assert ("body", "line") in seen, "the call that did not stop"
    assert ("after", "call") in seen


@pytest.mark.parametrize("name", ["plain", "with a panel"])
def test_a_notebook_that_nobody_watches_runs_through(tmp_path, name):
    """nbclient and papermill run cells with allow_stdin False."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    setup = f"""
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.chdir({str(tmp_path)!r})
import tensorflow as tf, pyfunc_debug as pfd
%load_ext pyfunc_debug
def body(x):
    y = x * 2
    return y
f = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
"""
    first = "%%pyfunc_trace -o t.pfrec --no-panel\n" if name == "plain" else "%%pyfunc_trace -o t.pfrec\n"
    cells = [
        setup,
        first + 'b = pfd.break_on("body")\nprint([float(f(tf.constant(float(i)))) for i in range(3)], b)',
        "data = tf.data.Dataset.range(3).map(lambda i: f(tf.cast(i, tf.float32)), 3)\n"
        "print([float(v) for v in data], b)\nb.remove()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=int(HANG_S), km=manager()).execute(cleanup_kc=True)
    text = ["".join(one.get("text", "") for one in cell.outputs) for cell in notebook.cells]
    assert "[0.0, 2.0, 4.0] <breakpoint 1: before body, 3 hits (3 nobody to answer)>" in text[1]
    assert "[0.0, 2.0, 4.0] <breakpoint 1: before body, 6 hits (6 nobody to answer)>" in text[2]
    assert sum(one.count("nobody can answer") for one in text) == 1
    noted = [
        row["facts"]
        for row in pfd.open(tmp_path / "t.pfrec").sql("select * from notice where rule = 'stop-unanswered'")
    ]
    assert len(noted) == 3
    assert "x = " in noted[0]


def test_stopiteration_is_said_at_once_and_is_a_finding(tf, tmp_path, capsys):
    items = iter([1.0, 2.0])

    def take(i):
        return np.float32(next(items))

    def numbers():
        yield 1.0

    data = tf.data.Dataset.range(5).map(lambda i: tf.numpy_function(take, [i], tf.float32))
    with pfd.record(tmp_path / "r.pfrec", gil=False) as recording:
        for _ in range(2):
            list(tf.data.Dataset.from_generator(numbers, output_types=tf.float32))
        assert "StopIteration" not in capsys.readouterr().err, "that is how from_generator ends"
        with pytest.raises(tf.errors.OpError):
            list(data)
    said = capsys.readouterr().err
    assert said.count("StopIteration left the body") == 1
    assert "test_surfaces.py" in said
    assert "in take" in said
    finding = next(one for one in recording.findings() if one.rule == "stop-iteration")
    assert finding.severity == "error"
    assert finding.file == __file__
    assert finding.line == take.__code__.co_firstlineno + 1


def test_post_mortem_passes_over_the_end_of_a_generator(tf, monkeypatch, capsys):
    def bad(x):
        inside = 42
        raise ValueError(f"no {inside}")

    with pfd.record(gil=False):
        with pytest.raises(tf.errors.OpError) as caught:  # noqa: F841 - holds the exception
            tf.function(lambda x: tf.py_function(bad, [x], tf.float32))(tf.constant(1.0))
        list(tf.data.Dataset.from_generator(lambda: iter([1.0]), output_types=tf.float32))
        monkeypatch.setattr(sys, "stdin", io.StringIO("p inside\nq\n"))
        pfd.post_mortem()
    assert "ValueError: no 42" in capsys.readouterr().out
