"""What is saved, exported or handed to the tf.data service while recording is told, and nothing else is."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from tests.doctor.pasting import pasted

SPEC = tf.TensorSpec([3], tf.float32)


def normalise(x):
    return x / tf.reduce_max(x)


class Model(tf.Module):
    @tf.function(input_signature=[SPEC])
    def __call__(self, x):
        return tf.py_function(normalise, [x], tf.float32)


class Plain(tf.Module):
    @tf.function(input_signature=[SPEC])
    def __call__(self, x):
        return x * 2


class Normalise(keras.layers.Layer):
    def call(self, x):
        return tf.ensure_shape(tf.py_function(normalise, [x], tf.float32), x.shape)


def recorded(program):
    with pfd.record(gil=False) as recording:
        program()
    found = [(one.rule, one.message.split(",")[0], one.fix, one.message) for one in recording.findings()]
    recording.close()
    return [one for one in found if one[0] in ("serialization", "distribution", "doctor-trouble")]


def save(folder):
    tf.saved_model.save(Model(), folder)


def save_one_traced_before(folder):
    tf.saved_model.save(EARLIER, folder)


def export(folder):
    keras.Sequential([keras.layers.Input([3]), Normalise()]).export(folder, verbose=False)


EARLIER = Model()


@pytest.fixture(scope="module", autouse=True)
def _traced():
    EARLIER(tf.ones([3]))


@pytest.mark.parametrize("program", [save, save_one_traced_before, export], ids=lambda one: one.__name__)
def test_a_node_that_is_saved_is_told(program, tmp_path):
    folder = str(tmp_path / "model")
    (found,) = recorded(lambda: program(folder))
    assert found[:2] == ("serialization", f"the py_function of normalise was saved to {folder}")
    if program is save:
        assert found[2].endswith("\n        return normalise(x)")


v1 = tf.compat.v1


def scaled(boxes):
    return (boxes / 16.0).astype(np.float32)


def in_place(boxes):
    boxes = boxes.copy()
    boxes[:, 1:] = boxes[:, 1:] - boxes[:, :1]
    return boxes


def session_of(body, then):
    """A graph of TensorFlow 1 with a variable and a body, and what is done with its session."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        w = v1.get_variable("w", [2, 2], initializer=v1.ones_initializer(), use_resource=False)
        h = tf.matmul(x, w)
        y = h if body is None else v1.py_func(body, [h], tf.float32)
        y = tf.identity(y, name="y")
        session.run(v1.global_variables_initializer())
        session.run(y, {x: np.eye(2)})
        then(session, x, y)


def simple_save(session, x, y, folder):
    v1.saved_model.simple_save(session, folder, {"x": x}, {"y": y})


def freeze(session, x, y, folder):
    v1.graph_util.convert_variables_to_constants(session, session.graph.as_graph_def(), ["y"])


def build(session, x, y, folder):
    builder = v1.saved_model.builder.SavedModelBuilder(folder)
    builder.add_meta_graph_and_variables(session, [v1.saved_model.tag_constants.SERVING])
    builder.save()


@pytest.mark.parametrize("save", [simple_save, freeze, build], ids=lambda one: one.__name__)
def test_a_node_of_a_session_that_is_saved_is_told(save, tmp_path):
    folder = str(tmp_path / "model")
    (found,) = recorded(lambda: session_of(scaled, lambda *given: save(*given, folder)))
    to = "a frozen graph" if save is freeze else folder
    assert found[:2] == ("serialization", f"the py_func of scaled was saved to {to}")
    assert "else v1.cast(body(h), v1.float32)" in found[2]
    assert "    return tf.cast(boxes / 16.0, tf.float32)" in found[2]


def test_a_body_with_what_only_arrays_have_is_not_called_on_tensors(tmp_path):
    folder = str(tmp_path / "model")
    (found,) = recorded(lambda: session_of(in_place, lambda *given: simple_save(*given, folder)))
    assert "(boxes.copy())" in found[2]
    assert "Replace" not in found[2]


@pytest.mark.parametrize("save", [simple_save, freeze, build], ids=lambda one: one.__name__)
def test_a_session_without_python_in_what_is_saved_is_not_told(save, tmp_path):
    folder = str(tmp_path / "model")
    assert recorded(lambda: session_of(None, lambda *given: save(*given, folder))) == []


def halved(boxes):
    return (boxes / 2.0).astype(np.float32)


def printed_beside(save, folder):
    """A printout that is not on the way to what is served."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        y = tf.identity(x * 2.0, name="y")
        shown = v1.py_func(halved, [y], tf.float32)
        session.run(shown, {x: np.eye(2)})
        save(session, x, y, folder)


def fed_behind(save, folder):
    """What the node makes is the input of what is served."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        h = v1.py_func(halved, [x], tf.float32)
        y = tf.identity(h * 2.0, name="y")
        session.run(y, {x: np.eye(2)})
        save(session, h, y, folder)


def generated(save, folder):
    """The elements of a generator, and what is fed in their place."""
    with tf.Graph().as_default(), v1.Session() as session:
        made = tf.data.Dataset.from_generator(lambda: iter(np.eye(2, dtype=np.float32)), tf.float32, [2])
        x = v1.placeholder_with_default(v1.data.make_one_shot_iterator(made.batch(2)).get_next(), [None, 2])
        y = tf.map_fn(lambda row: row * 2.0, x)
        session.run(y)
        save(session, x, y, folder)


def build_signed(session, x, y, folder):
    utils = v1.saved_model
    signature = utils.predict_signature_def({"x": x}, {"y": y})
    builder = utils.builder.SavedModelBuilder(folder)
    builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
    builder.save()


@pytest.mark.parametrize("save", [simple_save, build_signed], ids=lambda one: one.__name__)
@pytest.mark.parametrize("program", [printed_beside, fed_behind, generated], ids=lambda one: one.__name__)
def test_a_node_that_no_signature_runs_is_not_told(program, save, tmp_path):
    folder = str(tmp_path / "model")
    assert recorded(lambda: program(save, folder)) == []
    assert list(pfd.check(folder)) == []


def mapped(rows):
    return tf.map_fn(lambda row: v1.py_func(halved, [row], tf.float32), rows)


def initialized_from(session, x, y, folder):
    started = v1.py_func(halved, [np.ones(2, np.float32)], tf.float32)
    builder = v1.saved_model.builder.SavedModelBuilder(folder)
    signature = v1.saved_model.predict_signature_def({"x": x}, {"y": x * 2.0})
    builder.add_meta_graph_and_variables(
        session, ["serve"], {"serving_default": signature}, main_op=tf.group(started)
    )  # fmt: skip
    builder.save()


def under_control(session, x, y, folder):
    with tf.control_dependencies([y]):
        z = x * 2.0
    simple_save(session, x, z, folder)


def in_a_loop(session, x, y, folder):
    simple_save(session, x, mapped(x), folder)


@pytest.mark.parametrize(
    "save", [build_signed, initialized_from, under_control, in_a_loop], ids=lambda one: one.__name__
)
def test_a_node_that_a_signature_or_loading_runs_is_told(save, tmp_path):
    folder = str(tmp_path / "model")
    body = halved if save in (build_signed, under_control) else None
    (found,) = recorded(lambda: session_of(body, lambda *given: save(*given, folder)))
    assert found[:2] == ("serialization", f"the py_func of halved was saved to {folder}")
    assert [one.rule for one in pfd.check(folder)] == ["serialization"]


FIRST = """import numpy as np
import tensorflow as tf

v1 = tf.compat.v1


class Client:
    def encode(self, texts):
        return np.array([[len(one), one.count("a")] for one in texts], np.float32)


client = Client()
BODY


def program(folder):
    with tf.Graph().as_default(), v1.Session() as session:
        texts = v1.placeholder(tf.string, [None])
        sizes = v1.placeholder(tf.float32, [None])
        LINE
        features.set_shape([None, 2])
        probs = tf.nn.softmax(features)MORE
        feeds = {texts: ["aab", "bb"], sizes: [1.0, 2.0]}
        print(session.run(probs, feeds))
        SAVE
"""
BODY = """

def get_encodes(x):
    text = [t.decode("utf-8") for t in x]
    return client.encode(text)"""
LOOPED = """

def get_encodes(x):
    found = []
    for one in x:
        found.append(client.encode([str(one)])[0])
    return np.array(found, np.float32)"""
SIZED = """

def get_encodes(x, sizes):
    return client.encode([str(t) for t in x]) * sizes[:, None]"""
SIMPLE = 'v1.saved_model.simple_save(session, folder, {"texts": texts}, {"probs": probs})'
BUILT = """info = v1.saved_model.build_tensor_info
        signature = v1.saved_model.build_signature_def({"in": info(texts)}, {"out": info(probs)}, "tensorflow/predict")
        builder = v1.saved_model.Builder(folder)
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        builder.save()"""
ONE = "features = v1.py_func(get_encodes, [texts], tf.float32)"


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ((BODY, ONE, "", SIMPLE), '{"features": features}, {"probs": probs}'),
        ((LOOPED, ONE, "", BUILT), '{"features": info(features)}, {"out": info(probs)}'),
        (
            (
                SIZED,
                "features = v1.py_func(get_encodes, [texts, sizes], tf.float32)",
                " * sizes[:, None]",
                'v1.saved_model.simple_save(session, folder, {"a": texts, "b": sizes}, {"probs": probs})',
            ),
            '{"features": features, "b": sizes}, {"probs": probs}',
        ),
    ],
    ids=["simple", "built", "shared"],
)
def test_what_is_behind_the_first_op_is_saved_where_that_is_python(parts, says, tmp_path):
    text = FIRST
    for name, part in zip(("BODY", "LINE", "MORE", "SAVE"), parts):
        text = text.replace(name, part)
    for number in range(2):
        path, folder = tmp_path / f"first_{number}.py", str(tmp_path / f"saved_{number}")
        path.write_text(text)
        names = {}
        exec(compile(text, str(path), "exec"), names)
        found = recorded(lambda names=names, folder=folder: names["program"](folder))
        if number == 0:
            (one,) = found
            assert "Saved with features as an input, it does not run get_encodes" in one[3]
            assert says in one[2]
            text = pasted(text, one[2])
            (told,) = pfd.check(folder)
            assert "save with what its function returns as the input in the place of" in told.fix
            assert '"b"' not in told.fix  # another op needs it as well
    assert found == []
    loaded = tf.saved_model.load(folder).signatures["serving_default"]
    given = {"features": tf.ones([1, 2]), "b": tf.ones([1])}
    taken = loaded.structured_input_signature[1]
    assert next(iter(loaded(**{name: given[name] for name in taken}).values())).shape == (1, 2)


@pytest.mark.parametrize(
    "line",
    [
        "features = v1.py_func(get_encodes, [tf.strings.lower(texts)], tf.float32)",
        "features = v1.py_func(get_encodes, [texts], [tf.float32])[0]",
        "features = v1.py_func(get_encodes, [texts], tf.float32); features = features * 2.0",
    ],
)
def test_what_is_behind_is_not_saved_where_the_lines_do_not_tell_it(line, tmp_path):
    text = FIRST
    for name, part in (("BODY", BODY), ("LINE", line), ("MORE", ""), ("SAVE", SIMPLE)):
        text = text.replace(name, part)
    path, folder = tmp_path / "first.py", str(tmp_path / "saved")
    path.write_text(text)
    names = {}
    exec(compile(text, str(path), "exec"), names)
    (found,) = recorded(lambda: names["program"](folder))
    assert "Saved with" not in found[3]
    assert "Replace" not in found[2]
    assert ("returned then" in found[2]) == ("lower" in line)


def convert():
    model = keras.Sequential([keras.layers.Input([3], batch_size=1), Normalise()])
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.allow_custom_ops = True
    converter.convert()


def test_a_node_that_is_converted_for_tensorflow_lite_is_told_without_the_converters_folder():
    (found,) = recorded(convert)
    assert found[1].startswith("the py_function of normalise is in a model that a TFLiteConverter converts")
    assert "/tmp" not in found[3]
    assert "normalise(x)" in found[2]


def test_a_dataset_for_the_service_is_told(monkeypatch):
    """Nobody listens at the address: TensorFlow is not asked."""
    from tensorflow.python.data.experimental.ops import data_service_ops

    monkeypatch.setattr(data_service_ops, "_register_dataset", lambda service, dataset, compression, dataset_id=None: 0)

    def numbers():
        yield 1.0

    datasets = {
        "a dataset with the py_function of normalise went to": tf.data.Dataset.range(3).map(
            lambda x: tf.py_function(normalise, [x], tf.float32)
        ),
        "the elements of a dataset for the tf.data service at": tf.data.Dataset.from_generator(
            numbers, output_signature=tf.TensorSpec([])
        ),
        "a dataset with the numpy_function of sin went to": tf.data.Dataset.range(3)
        .batch(2)
        .map(lambda x: tf.numpy_function(np.sin, [x], tf.float64)),
    }
    for says, dataset in datasets.items():
        (found,) = recorded(
            lambda dataset=dataset: data_service_ops._register_dataset("grpc://nobody:1", dataset, None)
        )
        assert found[0] == "distribution"
        assert found[1].startswith(says)


@pytest.mark.parametrize("body", ["np.partition(x, 1)", "np.tanh(x)"])
def test_the_pasted_lines_leave_python_here(body, monkeypatch, tmp_path):
    """What needs Python is saved first; what does not becomes graph code."""
    from tensorflow.python.data.experimental.ops import data_service_ops

    handed: list = []
    text = "lambda service, dataset, compression, dataset_id=None: handed.append(list(dataset.as_numpy_iterator()))"
    theirs = compile(text, data_service_ops.__file__, "eval")  # a frame of TensorFlow's, as the real one is
    monkeypatch.setattr(data_service_ops, "_register_dataset", eval(theirs, {"handed": handed}))
    monkeypatch.chdir(tmp_path)
    text = HANDS_OVER.replace("BODY", body)
    for number in range(2):
        path = tmp_path / f"program_{number}.py"
        path.write_text(text)
        names = {}
        exec(compile(text, str(path), "exec"), names)
        found = recorded(names["hand_over"])
        if number == 0:
            (one,) = found
            text = pasted(text, one[2])
    assert found == []
    np.testing.assert_allclose(handed[0], handed[1], rtol=1e-6)
    assert (".save(" in text) == ("partition" in body)


HANDS_OVER = """import numpy as np
import tensorflow as tf
from tensorflow.python.data.experimental.ops import data_service_ops


def body(x):
    return BODY


def hand_over():
    data = tf.data.Dataset.from_tensor_slices(np.ones((3, 2), np.float32))
    data = data.map(lambda x: tf.numpy_function(body, [x], tf.float32))
    list(data)
    data_service_ops._register_dataset("grpc://nobody:1", data, None)
"""


def plain_model(folder):
    model = Plain()
    model(tf.ones([3]))
    tf.saved_model.save(model, folder)


def keras_file(folder):
    model = keras.Sequential([keras.layers.Input([3]), keras.layers.Dense(1)])
    model.save(folder + ".keras")
    model.export(folder, verbose=False)


def checkpoint(folder):
    model = Model()
    model(tf.ones([3]))
    tf.train.Checkpoint(step=tf.Variable(1)).save(folder)


def elements(folder):
    dataset = tf.data.Dataset.from_tensor_slices(np.ones((3, 2), np.float32))
    dataset = dataset.map(lambda x: tf.py_function(normalise, [x], tf.float32))
    dataset.save(folder)


@pytest.mark.parametrize("program", [plain_model, keras_file, checkpoint, elements], ids=lambda one: one.__name__)
def test_what_holds_no_python_is_not(program, tmp_path):
    assert recorded(lambda: program(str(tmp_path / "saved"))) == []


def test_a_program_that_only_saves_is_not_told_that_nothing_ran(tmp_path):
    class Scorer(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([8], tf.float32)])
        def score(self, x):
            return tf.numpy_function(np.cumsum, [x], tf.float32)

    with pfd.record(gil=False) as recording:
        tf.saved_model.save(Scorer(), str(tmp_path / "model"))
    assert "empty-recording" not in [one.rule for one in recording.findings()]
    with pfd.record(gil=False) as recording:
        Scorer().score.get_concrete_function()
    assert "empty-recording" in [one.rule for one in recording.findings()]
