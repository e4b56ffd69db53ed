"""SavedModels hold only names of Python functions: TensorFlow runs what it runs without us, and a clash is told."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests import forked

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, os, sys, warnings
import tensorflow as tf

def save(folder):
    class Sorter(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([3], tf.float32)])
        def __call__(self, x):
            return tf.py_function(lambda a: tf.sort(a), [x], tf.float32)
    tf.saved_model.save(Sorter(), folder)

def load(folder):
    try:
        return [float(one) for one in tf.saved_model.load(folder)(tf.constant([3., 1., 2.]))]
    except tf.errors.OpError as error:
        return type(error).__name__ + ": " + str(error).partition("Traceback")[0]

def square(x):
    return x * x

def clash(folder, make=tf.numpy_function):
    nodes = [tf.function(lambda x: make(square, [x], tf.float32)) for _ in range(4)]
    kept = [node.get_concrete_function(tf.TensorSpec([3])) for node in nodes]
    return load(folder), len(kept)

def run(how, folder, file):
    import pyfunc_debug as pfd
    if how == "break_on":
        pfd.break_on("no such body")
        return load(folder)
    if how == "older":
        model = tf.saved_model.load(folder)
        nodes = [tf.function(lambda x: tf.numpy_function(square, [x], tf.float32)) for _ in range(4)]
        kept = [node.get_concrete_function(tf.TensorSpec([3])) for node in nodes]
        with pfd.record(file, gil=False) as recording:
            model(tf.constant([3., 1., 2.]))
    elif how == "counted":
        with pfd.record(file, gil=False):
            return clash(folder, tf.py_function)[0]
    elif how == "loaded before":
        model = tf.saved_model.load(folder)
        with pfd.record(file, gil=False):
            nodes = [tf.function(lambda x: tf.py_function(square, [x], tf.float32)) for _ in range(4)]
            kept = [node.get_concrete_function(tf.TensorSpec([3])) for node in nodes]
            found = [float(one) for one in model(tf.constant([3., 1., 2.]))]
        return found, [float(one) for one in model(tf.constant([3., 1., 2.]))]
    elif how == "own":
        with pfd.record(file, gil=False) as recording:
            save(folder + "-own")
            model = load(folder + "-own")
    else:
        with pfd.record(file, gil=how == "record") as recording:
            found = clash(folder)[0] if how == "clash" else load(folder)
        if how == "record":
            return found
    return [[one.rule, one.severity, one.message] for one in recording.findings() if one.rule != "body-raised"]

folder = sys.argv[1]
if not os.fork():
    save(folder)
    os._exit(0)
assert os.wait()[1] == 0
warnings.simplefilter("error")
for how in sys.argv[2:]:
    if not os.fork():
        found = load(folder) if how == "stock" else clash(folder) if how == "stock clash" else (
            run(how, folder, folder + "-" + how + ".pfrec"))
        print(json.dumps([how, found]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, how
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each way of loading gave, in a process of its own."""
    file = tmp_path_factory.mktemp("models") / "program.py"
    file.write_text(PROGRAM)
    done = forked.run(
        file, file.with_name("model"), "stock", "stock clash", "record", "break_on", "clash", "counted",
        "loaded before", "older", "own", cwd=file.parent, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.mark.parametrize("how", ["record", "break_on"])
def test_a_function_that_is_not_there_is_missed_as_without_us(found, how):
    assert found["stock"].startswith("InvalidArgumentError: Graph execution error:")
    assert "Could not find callback with key=pyfunc_" in found["stock"]
    assert found[how] == found["stock"]


@pytest.mark.parametrize("how", ["clash", "older"])
def test_a_function_that_runs_for_another_is_an_error_with_both_names(found, how):
    assert found["stock clash"][0] == [9, 1, 4], "TensorFlow runs what has the name"
    ((rule, severity, message),) = found[how]
    assert (rule, severity) == ("serialization", "error")
    assert message.startswith("node EagerPyFunc of __call__, which was restored from a file, runs square (program.py:")
    assert "is the name of square in this process" in message


@pytest.mark.parametrize(("how", "expected"), [("counted", [9, 1, 4]), ("loaded before", [[9, 1, 4], [9, 1, 4]])])
def test_a_function_traced_while_recording_runs_for_a_restored_node_as_without_us(found, how, expected):
    assert found[how] == expected


def test_a_model_loaded_by_the_process_that_saved_it_is_no_error(found):
    assert {severity for _, severity, _ in found["own"]} <= {"warning"}, found["own"]
