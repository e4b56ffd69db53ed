"""`graduate()` says "same" only where graph code is the same, names the line where it is not, and its patch applies."""

from __future__ import annotations

import importlib.util
import itertools
import logging
import queue
import random
import subprocess
import time

import keras
import numpy as np
import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.api import graph_trial
from pyfunc_debug.api.graph_timing import Measured

DATA = np.random.default_rng(0).random((12, 6)).astype(np.float32)
SCALE = 3.0
COUNT = 0


@pytest.fixture(autouse=True)
def _no_clock(monkeypatch):
    """What takes how long is not asked here."""
    monkeypatch.setattr(graph_trial, "measure", lambda *_: (Measured(4.0, 1.0), Measured(4.0, 1.0)))
    monkeypatch.setattr(graph_trial, "measure_staying", lambda *_: None)


def recorded(body, make=tf.numpy_function, data=DATA, dtype=tf.float32):
    with pfd.record(values="full", gil=False) as recording:
        for _ in tf.data.Dataset.from_tensor_slices(data).map(lambda x: make(body, [x], dtype)):
            pass
    return recording


def tried(body, *how, **options):
    recording = recorded(body, *how, **options)
    found = pfd.graduate(body, recording)
    recording.close()
    return found


# -- the same ---------------------------------------------------------------------------------------------------------


def scaled_sine(x):
    return np.sin(x) * SCALE


def normalised(x):
    return (x - np.mean(x)) / (np.std(x) + 1e-6)


def flipped(x):
    if np.mean(x) > 0.5:
        return x[::-1]
    return x


def logarithm(x):
    return np.log1p(np.clip(x, 0, 1))


def relu(x):
    return tf.nn.relu(x - 0.5) * 2


def doubled_if_large(x):
    if tf.reduce_sum(x) > 3:
        return x * 2
    return x


@pytest.mark.parametrize("body", [scaled_sine, normalised, flipped, logarithm], ids=lambda body: body.__name__)
def test_a_numpy_body_is_the_same_as_graph_code(body):
    found = tried(body)
    assert found, found.why
    assert found.calls == 12
    assert found.changed > 12
    assert found.difference < 1e-5
    assert found.gradients is None
    assert str(found).startswith(f"{body.__name__}: same on 12 calls (")


@pytest.mark.parametrize("body", [relu, doubled_if_large], ids=lambda body: body.__name__)
def test_a_tensorflow_body_has_the_same_gradients(body):
    found = tried(body, tf.py_function)
    assert found, found.why
    assert found.gradients == 12
    assert "gradients equal" in found.sentence


def test_a_gradient_that_python_cut_off_is_told():
    found = tried(scaled_sine, tf.py_function)
    assert found
    assert found.new_gradients == ("x",)
    assert "x had no gradient and gets one" in found.sentence
    assert "gradients equal" not in found.sentence


def test_what_graph_code_freezes_is_told():
    assert any("keeps SCALE as it is" in one for one in tried(scaled_sine).caveats)


def rarely(x):
    if np.max(x) > 1e6:
        return x * 0
    return x + 1


def test_a_line_that_never_ran_is_told():
    found = tried(rarely)
    assert found
    line = rarely.__code__.co_firstlineno + 2
    assert f"line {line} never ran, with recorded or changed inputs: not compared" in found.caveats


# -- not the same -----------------------------------------------------------------------------------------------------


def histogram(x):
    counts, _ = np.histogram(x, 4)
    return counts.astype(np.float32)


def method(x):
    return x - x.mean()


def noisy(x):
    return x + np.random.rand(*x.shape).astype(np.float32)


def counted(x):
    global COUNT
    COUNT += 1
    return x


def late(x):
    return x + np.float32(time.time() % 1)


def listed(x):
    found = []
    for one in x:
        found.append(one * 2)  # noqa: PERF401 - what is tried
    return np.stack(found)


def values(x):
    return tf.constant(x.numpy() * 2)


def told(x):
    print("called")
    return x


def guarded(x):
    try:
        return x / 2
    except ValueError:
        return x


STATE = {"calls": 0}


def helper(x):
    STATE["calls"] += 1
    return x


def through_a_helper(x):
    return helper(x) * 2


LOGGER = logging.getLogger("graduate")
QUEUE = queue.Queue()
COUNTER = itertools.count()
TABLE = np.ones(6, np.float32)
SETTINGS = {"scale": np.float32(2)}
LAYER = keras.layers.Activation("relu")


class Augmenter:
    def apply(self, x):
        LOGGER.debug("seen")
        return x * 2

    def plainly(self, x):
        return x * 2


AUGMENTER = Augmenter()


def logged(x):
    LOGGER.debug("seen")
    return x * 2


def queued(x):
    QUEUE.put(x)
    return x * 2


def numbered(x):
    next(COUNTER)
    return x * 2


def augmented(x):
    return AUGMENTER.apply(x)


class Owner:
    def __init__(self):
        self.logger = LOGGER

    def body(self, x):
        self.logger.debug("seen")
        return x * 2


def augmented_plainly(x):
    return AUGMENTER.plainly(x)


def looked_up(x):
    return np.tanh(x) * SETTINGS.get("scale") + TABLE.sum()


def layered(x):
    return LAYER(x) * 2


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (logged, "LOGGER.debug"),
        (queued, "QUEUE.put"),
        (numbered, "next"),
        (augmented, "AUGMENTER.apply"),
        (Owner().body, "self.logger.debug"),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_what_does_something_outside_is_left_alone(body, text):
    """The results are equal, and what it does outside would be done once."""
    found = tried(body)
    assert not found
    assert f"calls {text}()" in found.why


@pytest.mark.parametrize(
    ("body", "make"),
    [(looked_up, tf.numpy_function), (augmented_plainly, tf.numpy_function), (layered, tf.py_function)],
)
def test_what_only_reads_is_not_in_the_way(body, make):
    found = tried(body, make)
    assert found, found.why


@pytest.mark.parametrize(
    ("body", "line", "says"),
    [
        (histogram, 1, "uses np.histogram, which tf.experimental.numpy does not have"),
        (method, 1, "uses x.mean(), which NumPy's arrays have and tensors do not: write np.mean(x)"),
        (noisy, 1, "draws random numbers (np.random.rand)"),
        (counted, 2, "changes Python state (COUNT += 1)"),
        (late, 1, "uses time.time, which graph code would run once"),
        (listed, 3, "puts tensors into a Python list in a loop"),
        (values, 1, "asks for values (x.numpy())"),
        (told, 1, "calls print(), which graph code would do once"),
        (guarded, 1, "has a `try`"),
        (through_a_helper, -4, "changes Python state (STATE['calls'] += 1)"),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_the_first_obstacle_is_named_by_its_line(body, line, says):
    found = tried(body, tf.py_function if body is values else tf.numpy_function)
    assert not found
    assert f"line {body.__code__.co_firstlineno + line} {says}" in found.why
    assert found.patch == ""
    assert found.sentence.startswith("no: ")


class Drifting:
    """Its results depend on what it saw before, in a way that no source reading finds."""

    def __init__(self):
        self.seen = [np.float32(0)]

    def body(self, x):
        total = self.seen
        total.append(total.pop() + 1)
        return x + total[0]


def test_state_that_the_source_hides_is_found_by_running_it_again():
    found = tried(Drifting().body)
    assert not found
    assert "Python state" in found.why or "does not give now what call #1 gave" in found.why


WEIGHTS = [np.float32(2)]


def weighted(x):
    return x * WEIGHTS[0]


def test_a_global_that_changed_since_is_found():
    recording = recorded(weighted)
    WEIGHTS[0] = np.float32(5)
    found = pfd.graduate(weighted, recording)
    WEIGHTS[0] = np.float32(2)
    assert "no longer returns what it returned in call #1: " in found.why


def halved(x):
    return np.float32(0.5) * x if isinstance(x, np.ndarray) and x.dtype == np.float32 else np.true_divide(x, 2)


def test_a_dtype_that_differs_is_cast_back():
    """TensorFlow casts what a py_function's body returns as an array; graph code must be told."""
    found = tried(halved, tf.py_function, np.arange(24).reshape(12, 2))
    assert found, found.why
    assert found.difference == 0


def test_random_states_are_left_as_they_were():
    recordings = {body: recorded(body) for body in (noisy, normalised)}
    before = random.getstate(), np.random.get_state()[1].tolist()
    for body, recording in recordings.items():
        pfd.graduate(body, recording)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


TOTAL = tf.Variable(0.0)


def adding(x):
    TOTAL.assign_add(1.0)
    return x * 2


def test_variables_are_left_as_they_were():
    recording = recorded(adding, tf.py_function)
    before = float(TOTAL)
    assert before == len(DATA)
    assert pfd.graduate(adding, recording)
    assert float(TOTAL) == before


# -- what it is given -------------------------------------------------------------------------------------------------


def test_it_says_what_it_needs():
    with pfd.record(gil=False) as recording:
        step = tf.function(lambda x: tf.numpy_function(logarithm, [x], tf.float32))
        step(tf.constant(DATA[0]))
        with pytest.raises(pfd.RecordingBusyError, match="stop the recording first"):
            pfd.graduate("logarithm")
    with pytest.raises(pfd.NotKeptError, match="full"):
        pfd.graduate("logarithm")
    with pytest.raises(pfd.BadOptionError, match="no node matches 'logaritm'"):
        pfd.graduate("logaritm")
    with pytest.raises(pfd.BadOptionError, match="relu was not called as a body"):
        pfd.graduate(relu, recording)
    with pytest.raises(pfd.BadOptionError, match="another process"):
        pfd.graduate("logarithm", pfd.open(recording.path))


def test_a_call_a_number_and_a_name_mean_the_same_body():
    with pfd.record(values="full", gil=False) as recording:
        step = tf.function(lambda x: tf.numpy_function(logarithm, [x], tf.float32))
        for row in DATA:
            step(tf.constant(row))
    answers = [pfd.graduate(what) for what in (recording.call(3), 1, "log*", recording.nodes()[0], logarithm)]
    assert {(one.body, one.ok, one.calls) for one in answers} == {("logarithm", True, 12)}


# -- the patch --------------------------------------------------------------------------------------------------------

PROGRAM = """
import numpy as np
import tensorflow as tf

MEAN = np.float32(0.5)


def augment(x, y):
    if np.mean(x) > MEAN:
        x = np.flip(x, 0)
    return np.clip(x - MEAN, -1, 1), y


def relu(x):
    return tf.nn.relu(x - 0.5) * 2


def shared(x):
    return np.tanh(x)


class Model:
    def body(self, x):
        return np.sqrt(x + 1) if np.sum(x) > 0 else x

    def step(self, x):
        return tf.numpy_function(self.body, [x], tf.float32)


def wrapped(x, y):
    x, y = tf.numpy_function(augment, [x, y], [tf.float32, tf.int64])
    x = tf.ensure_shape(x, [6])
    return x, y


DATA = np.random.default_rng(0).random((12, 6)).astype(np.float32)
model = Model()
dataset = tf.data.Dataset.from_tensor_slices((DATA, np.arange(12))).map(wrapped)
dataset = dataset.map(lambda x, y: (tf.py_function(func=relu, inp=[x], Tout=tf.float32), y))
dataset = dataset.map(
    lambda x, y: (
        tf.numpy_function(lambda a: np.sin(a), [x], tf.float32),
        y,
    )
)
dataset = dataset.map(lambda x, y: (tf.numpy_function(shared, [x], tf.float32), y))
dataset = dataset.map(lambda x, y: (model.step(x), y))


@tf.function
def step(x):
    return tf.py_function(relu, [x], [tf.float32])[0]


def total():
    found = float(shared(0.5).sum())
    for x, y in dataset:
        found += float(tf.reduce_sum(x)) + float(y) + float(tf.reduce_sum(step(x)))
    return found
"""


def loaded(file, name):
    """The program as a module of its own."""
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A folder with the program, its result, and its recording."""
    folder = tmp_path_factory.mktemp("graduating")
    (folder / "train.py").write_text(PROGRAM)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    with pfd.record(values="full", gil=False) as recording:
        train = loaded(folder / "train.py", "train_recorded")
        result = train.total()
    yield folder, result, recording
    recording.close()
    del train


@pytest.mark.parametrize("body", ["augment", "relu", "*lambda*", "shared", "Model.body"])
def test_the_patch_applies_and_the_program_does_the_same(program, body, monkeypatch):
    folder, result, recording = program
    monkeypatch.chdir(folder)
    found = pfd.graduate(body, recording)
    assert found, found.why
    assert found.patch, found
    subprocess.run(["git", "apply", "-"], input=found.patch, text=True, check=True)
    try:
        patched = (folder / "train.py").read_text()
        assert patched.count("_function(") == PROGRAM.count("_function(") - (2 if body == "relu" else 1)
        assert loaded(folder / "train.py", f"train_{body.strip('*')}").total() == pytest.approx(result, 1e-6)
    finally:
        (folder / "train.py").write_text(PROGRAM)
