"""Graphs that were there before recording began, recording before TensorFlow is there, and calls that still run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np

import pyfunc_debug as pfd
from tests import forked
from tests.limits import HANG_S, LIGHT

ROOT = Path(__file__).parents[2]


def body(x):
    return x + (x.dtype.type(1) if isinstance(x, np.generic) else 1)  # NumPy 1: float32 and int make float64


def test_a_graph_traced_before_recording_is_seen(tf, tmp_path):
    @tf.function
    def step(x):
        y = tf.py_function(body, [x], tf.float32)
        return tf.numpy_function(body, [y], tf.float32), tf.compat.v1.py_func(body, [y], tf.float32, stateful=False)

    step(tf.constant(1.0))
    with pfd.record(tmp_path / "a.pfrec", gil=False) as recording:
        step(tf.constant(2.0))
        step(tf.constant(3.0))
    nodes = recording.nodes()
    assert sorted(node.kind for node in nodes) == ["numpy_function", "py_func_stateless", "py_function"]
    for node in nodes:
        assert (node.body, node.file, node.line) == ("body", __file__, body.__code__.co_firstlineno)
        assert node.stack[-1].file == __file__
        assert "tf." in node.stack[-1].text
        assert node.graph == "step"
        assert node.name is not None
        calls = list(recording.calls(node))
        assert [one.run for one in calls] == [1, 2], "the run that holds it is certain"
        assert [one.inputs[0].path for one in calls] == ["x", "x"]
    recording.close()


def test_a_graph_that_outlives_the_recording_still_works(tf, tmp_path):
    with pfd.record(tmp_path / "a.pfrec", gil=False) as recording:

        @tf.function
        def step(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.py_function(lambda v: v * v, [x], tf.float32)
            return tape.gradient(y, x)

        assert float(step(tf.constant(3.0))) == 6
    assert float(step(tf.constant(4.0))) == 8
    with pfd.record(tmp_path / "b.pfrec", gil=False) as second:
        assert float(step(tf.constant(5.0))) == 10
    assert len(list(recording.calls())) == 2
    assert [one.kind for one in second.calls()] == ["forward", "gradient"]
    assert len(second.nodes()) == 1
    for one in (recording, second):
        one.close()


def test_a_dataset_made_before_recording_is_seen(tf, tmp_path):
    data = tf.data.Dataset.range(3).map(lambda x: tf.numpy_function(body, [x], tf.int64))
    list(data)
    with pfd.record(tmp_path / "a.pfrec", gil=False) as recording:
        assert [int(one) for one in data] == [1, 2, 3]
    (node,) = recording.nodes()
    assert (node.body, node.stack[-1].file) == ("body", __file__)
    assert len(list(recording.calls(node))) == 3
    recording.close()


def test_a_call_is_visible_while_its_body_runs(tf, tmp_path):
    entered, go = threading.Event(), threading.Event()

    def waits(x):
        entered.set()
        assert go.wait(HANG_S)
        return x

    @tf.function
    def step(x):
        return tf.numpy_function(waits, [x], tf.float32)

    with pfd.record(tmp_path / "a.pfrec", gil=False) as recording:
        thread = threading.Thread(target=step, args=(tf.constant(7.0),))
        thread.start()
        try:
            assert entered.wait(HANG_S)
            statuses: list[str] = []
            while not statuses:  # becomes visible once it has run for a while; the test's timeout is pytest's
                statuses = [one.status for one in recording.calls()]
            assert statuses == ["running"]
            assert "1 still running" in str(recording.ledger())
        finally:
            go.set()
            thread.join()
        assert [one.status for one in recording.calls()] == ["ok"]
    recording.close()


def test_recording_may_begin_before_tensorflow_is_imported(tmp_path):
    program = f"""
        import json, os, sys
        import pyfunc_debug as pfd
        from pyfunc_debug.api.live import current
        assert "tensorflow" not in sys.modules
        recording = pfd.record({str(tmp_path / "a.pfrec")!r}, gil=False).start()
        assert "tensorflow" not in sys.modules, "record() imported it"
        import tensorflow as tf
        stock = {{name: str(getattr(tf, name)) for name in ("__spec__", "__loader__", "__file__", "__path__")}}
        ours = [one for one in sys.meta_path if type(one).__module__.startswith("pyfunc_debug")]
        assert not ours, ours
        cpus = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * 2)
        step = tf.function(lambda x: tf.py_function(lambda v: v * 2, [x], tf.float32))
        assert float(step(tf.constant(2.0))) == 4
        recording.stop()
        print(json.dumps([stock, len(list(recording.calls())), len(recording.functions()), recording.meta["limits"]]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=ROOT, env={**os.environ, "PYTHONPATH": LIGHT},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    seen, calls, functions, limits = json.loads(done.stdout.splitlines()[-1])
    plain = """
        import json
        import tensorflow as tf
        print(json.dumps({name: str(getattr(tf, name)) for name in ("__spec__", "__loader__", "__file__", "__path__")}))
    """
    stock = forked.run("-c", textwrap.dedent(plain), cwd=ROOT)
    expected = json.loads(stock.stdout.splitlines()[-1])

    def without_addresses(texts):
        return {key: text.partition(" object at ")[0] for key, text in texts.items()}

    assert without_addresses(seen) == without_addresses(expected)
    assert (calls, functions, limits) == (1, 1, "")


def test_a_recording_that_ends_before_tensorflow_is_imported_leaves_no_hook(tmp_path):
    program = f"""
        import sys
        import pyfunc_debug as pfd
        finders = list(sys.meta_path)
        with pfd.record({str(tmp_path / "a.pfrec")!r}):
            assert sys.meta_path != finders
        assert sys.meta_path == finders
        print(pfd.open({str(tmp_path / "a.pfrec")!r}).reader.state())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "complete\n", done.stderr


def test_a_numpy_input_is_recorded_as_it_was_before_the_body(tf, tmp_path):
    def spoils(x):
        x = np.asarray(x)
        x.flags.writeable = True
        x += 100
        return x

    with pfd.record(tmp_path / "a.pfrec", values="full", gil=False) as recording:
        tf.numpy_function(spoils, [np.arange(3.0)], tf.float64)
    (one,) = recording.calls()
    assert one.inputs[0].array().tolist() == [0, 1, 2]
    assert one.outputs[0].array().tolist() == [100, 101, 102]
    recording.close()


def test_only_nodes_that_fit_the_glob_are_recorded_and_each_by_its_own_policy(tf, tmp_path):
    def augment_left(x):
        return x

    def augment_right(x):
        return x

    def other(x):
        return x

    @tf.function
    def step(x):
        return [tf.numpy_function(one, [x], tf.float32) for one in (augment_left, augment_right, other)]

    values = {"*left": "full", "augment_right": "none", "*": "shape"}
    with pfd.record(tmp_path / "a.pfrec", values=values, nodes="augment*", gil=False) as recording:
        step(tf.ones([2]))
    kept = {one.body.rpartition(".")[2]: list(recording.calls(one)) for one in recording.nodes()}
    assert {name: len(calls) for name, calls in kept.items()} == {"augment_left": 1, "augment_right": 1, "other": 0}
    assert kept["augment_left"][0].inputs[0].array().tolist() == [1, 1]
    assert kept["augment_right"][0].inputs == ()
    recording.close()
