"""`check()` names every node that does not survive saving, compiling or another process, with a line to paste."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug import cli

SPEC = tf.TensorSpec([3], tf.float32)


def normalise(x):
    return x / tf.reduce_max(x)


def histogram(x):
    counts, _ = np.histogram(x, 3)
    return counts.astype(np.float32)


@tf.function(input_signature=[SPEC])
def step(x):
    y = tf.py_function(normalise, [x], tf.float32)
    return tf.numpy_function(histogram, [y], tf.float32)


@tf.function(jit_compile=True, input_signature=[SPEC])
def compiled(x):
    return tf.py_function(func=normalise, inp=[x], Tout=[tf.float32])[0]


@tf.function(input_signature=[SPEC])
def plain(x):
    return x + 1


@tf.function(input_signature=[SPEC])
def silenced(x):
    return tf.py_function(normalise, [x], tf.float32)  # pyfunc: ignore[serialization]


class Normalise(keras.layers.Layer):
    def call(self, x):
        return tf.ensure_shape(tf.py_function(normalise, [x], tf.float32), x.shape)


class Model(tf.Module):
    @tf.function(input_signature=[SPEC])
    def __call__(self, x):
        return tf.numpy_function(histogram, [x], tf.float32)


class Plain(tf.Module):
    @tf.function(input_signature=[SPEC])
    def __call__(self, x):
        return x * 2


def line_of(function, text):
    """The number of the line of a function that holds a text."""
    import inspect

    lines, first = inspect.getsourcelines(function)
    return next(first + index for index, line in enumerate(lines) if text in line)


def rules(findings):
    return [(one.rule, one.severity) for one in findings]


@pytest.fixture(scope="module", autouse=True)
def _traced():
    for function in (step, compiled, plain, silenced):
        function.get_concrete_function()


def test_a_function_is_told_line_by_line_with_what_to_paste():
    found = pfd.check(step)
    assert rules(found) == [("serialization", "warning")] * 2 + [("xla", "note")] * 2
    eager, numpy = found[:2]
    assert (eager.file, eager.line) == (__file__, line_of(step.python_function, "tf.py_function"))
    assert eager.fix.endswith("\n    y = normalise(x)")
    assert numpy.line == line_of(step.python_function, "tf.numpy_function")
    assert f"histogram runs Python at line {line_of(histogram, 'np.histogram')} (np.histogram)" in numpy.fix


def test_the_pasted_line_does_the_same_and_is_found_healthy():
    @tf.function(input_signature=[SPEC])
    def pasted(x):
        return [normalise(x)][0]

    fix = pfd.check(compiled)[0].fix.splitlines()[-1].strip()
    assert fix == "return [normalise(x)][0]"
    x = tf.constant([1.0, 2.0, 4.0])
    uncompiled = tf.function(compiled.python_function)
    assert pasted(x).numpy().tolist() == uncompiled(x).numpy().tolist()
    assert list(pfd.check(pasted)) == []


def test_a_function_that_is_to_be_compiled_fails():
    for one in (compiled, compiled.get_concrete_function()):
        found = pfd.check(one)
        assert rules(found)[0] == ("xla", "error")
        assert "the first run fails" in found[0].message
    with pytest.raises(tf.errors.InvalidArgumentError):
        compiled(tf.constant([1.0, 2.0, 4.0]))


def test_a_dataset_cannot_go_to_the_data_service():
    mapped = tf.data.Dataset.range(3).map(lambda x: tf.py_function(normalise, [x], tf.float32)).batch(2)
    found = pfd.check(mapped)
    assert rules(found) == [("distribution", "warning")]
    assert "normalise(x)" in found[0].fix


def test_a_generator_of_the_users_is_named():
    def numbers():
        yield 1.0

    found = pfd.check(tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([])).batch(2))
    assert rules(found) == [("distribution", "warning")]
    assert "the Python generator numbers" in found[0].message
    assert found[0].line == line_of(test_a_generator_of_the_users_is_named, "from_generator(")


def test_keras_models():
    sequential = keras.Sequential([keras.layers.Input([3]), Normalise(), keras.layers.Dense(2)])
    found = pfd.check(sequential)
    assert rules(found) == [("serialization", "warning"), ("xla", "note")]
    assert found[0].fix.endswith("return tf.ensure_shape(normalise(x), x.shape)")
    assert "self.supports_jit = False" in found[1].fix
    inputs = keras.Input([3])
    functional = keras.Model(inputs, keras.layers.Dense(1)(Normalise()(inputs)))
    assert rules(pfd.check(functional)) == rules(found)

    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.first = Normalise()

        def call(self, x):
            return self.first(x)

    own = Own()
    with pytest.raises(pfd.BadOptionError, match="Own has not seen any input yet: call it once"):
        pfd.check(own)
    own(tf.ones([2, 3]))
    assert rules(pfd.check(own)) == rules(found)


def test_supports_jit_keeps_keras_from_compiling():
    class Careful(Normalise):
        def __init__(self):
            super().__init__()
            self.supports_jit = False

    from keras.src.trainers.trainer import model_supports_jit

    for layer, expected in ((Normalise, True), (Careful, False)):
        model = keras.Sequential([keras.layers.Input([3]), layer()])
        assert model_supports_jit(model) is expected


def test_graphs_of_version_1():
    graph = tf.Graph()
    with graph.as_default():
        tf.compat.v1.py_func(histogram, [tf.compat.v1.placeholder(tf.float32, [3])], tf.float32)
    assert rules(pfd.check(graph)) == [("serialization", "warning"), ("xla", "note")]


def test_modules_and_their_files(tmp_path, capsys):
    model, folder = Model(), str(tmp_path / "model")
    model(tf.ones([3]))
    assert rules(pfd.check(model)) == [("serialization", "warning"), ("xla", "note")]
    tf.saved_model.save(model, folder)
    here = pfd.check(folder)
    assert rules(here) == [("serialization", "error")]
    assert "is the name of histogram, which runs in its place" in here[0].message
    assert here[0].confidence == "likely"
    restored = tf.saved_model.load(folder)
    for one in (restored, restored.__call__):
        assert rules(pfd.check(one)) == [("serialization", "error")]
    assert cli.main(["check", folder]) == 1
    assert "[serialization]" in capsys.readouterr().out
    assert cli.main(["check", folder, "--fail-on", "never", "--json"]) == 0


def test_healthy_objects_hear_nothing(tmp_path):
    healthy = Plain()
    healthy(tf.ones([3]))
    tf.saved_model.save(healthy, str(tmp_path / "plain"))
    model = keras.Sequential([keras.layers.Input([3]), keras.layers.Dense(2), keras.layers.Dropout(0.5)])
    dataset = tf.data.Dataset.range(9).shuffle(3).map(lambda x: x * 2).batch(2).prefetch(1)
    for one in (plain, healthy, str(tmp_path / "plain"), model, dataset, tf.Graph()):
        found = pfd.check(one)
        assert list(found) == []
        assert str(found).startswith("No node in ")


class Strategy:
    """A stand-in: real ones want devices and servers. Only what check() asks of one."""

    def __init__(self, replicas):
        self.num_replicas_in_sync = replicas


@pytest.mark.parametrize(
    ("kind", "replicas", "expected", "says"),
    [
        ("TPUStrategyV2", 8, ["error"], "XLA cannot compile the py_function of normalise"),
        ("ParameterServerStrategyV2", 1, ["warning"], "under ParameterServerStrategy, workers run step"),
        ("MirroredStrategy", 4, ["note"], "once for each of 4 replicas"),
        ("OneDeviceStrategy", 1, [], ""),
    ],
)
def test_a_strategy_is_told_for_each_node(kind, replicas, expected, says):
    step(tf.ones([3]))
    found = pfd.check(step, type(kind, (Strategy,), {})(replicas))
    ours = [one for one in found if one.rule == "distribution"]
    assert [one.severity for one in ours] == expected * 2
    assert all(one.file == __file__ for one in ours)
    assert not says or any(says in one.message for one in ours)


def test_the_strategy_around_is_found():
    step(tf.ones([3]))
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        assert not [one for one in pfd.check(step) if one.rule == "distribution"]
    assert not [one for one in pfd.check(step) if one.rule == "distribution"]


def test_the_eager_switch_is_told_not_to_reach_a_dataset():
    data = tf.data.Dataset.range(3).map(lambda x: tf.numpy_function(histogram, [x], tf.float32))
    assert "eager-switch" not in [one.rule for one in pfd.check(data)]
    tf.config.run_functions_eagerly(True)
    try:
        (found,) = [one for one in pfd.check(data) if one.rule == "eager-switch"]
    finally:
        tf.config.run_functions_eagerly(False)
    assert "enable_debug_mode()" in found.fix


def test_a_comment_silences_a_rule_on_its_line():
    assert rules(pfd.check(silenced)) == [("xla", "note")]


@pytest.mark.parametrize(
    ("thing", "says"),
    [
        (tf.function(lambda x: x), "has no graph yet: call it once"),
        (normalise, "normalise is not a tf.function: pass what tf.function returned"),
        (3, "a int has no graph"),
        ("no such folder", "no such folder is not a folder"),
    ],
)
def test_what_cannot_be_checked_is_said(thing, says):
    with pytest.raises(pfd.BadOptionError, match=says):
        pfd.check(thing)


def test_the_shell_takes_an_object_of_a_module(capsys):
    assert cli.main(["check", f"{__name__}:compiled"]) == 1
    assert "[xla]" in capsys.readouterr().out
    assert cli.main(["check", f"{__name__}:plain"]) == 0
    assert cli.main(["check", f"{__name__}:nothing"]) == 2
    assert cli.main(["check", "no_such_module:thing"]) == 2
