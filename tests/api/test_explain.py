"""`explain` tells of each graph why it was traced: live, recorded, and where it does not know it says so."""

from __future__ import annotations

import pytest
import tensorflow as tf

import pyfunc_debug as pfd

X, LONGER = tf.constant([1.0, 2.0]), tf.constant([1.0, 2.0, 3.0])


def body(value):
    return value + 1.0


def make():
    @tf.function
    def step(x, k=1):
        for _ in tf.range(2):
            tf.py_function(body, [x], tf.float32)
        return x * 2.0

    return step


def test_without_a_recording_the_cache_tells_reasons_and_nothing_it_cannot_know():
    step = make()
    assert "not traced yet" in str(pfd.explain(step))
    step(X)
    step(LONGER)
    explanation = pfd.explain(step)
    assert [row.reason for row in explanation.rows] == [(), ("`x`: shape (3,), was (2,)",)]
    assert explanation.rows[1].closest == "(x: float32[2], k: 1)"
    assert explanation.rows[1].avoid == "input_signature=[tf.TensorSpec([None], tf.float32)]"
    assert [row.duration_ns for row in explanation.rows] == [None, None]
    assert [row.runs for row in explanation.rows] == [None, None]
    assert [[node.body for node in row.nodes] for row in explanation.rows] == [["body"], ["body"]]
    assert explanation.rows[0].nodes[0].calls is None
    assert "not recording" in str(explanation)


def test_with_a_recording_times_runs_and_calls_are_known():
    step = make()
    step(X)
    with pfd.record(gil=False) as recording:
        step(X, 2)
        step(X, 2)
        step(LONGER)
        during = pfd.explain(step)
    after = pfd.explain(step, recording)
    assert during == after
    assert [row.runs for row in after.rows] == [None, 2, 1]
    assert [row.duration_ns is None for row in after.rows] == [True, False, False]
    assert [row.reason for row in after.rows] == [
        (), ("`k`: Python value 2, was 1",), ("`x`: shape (3,), was (2,)",),
    ]  # fmt: skip
    assert [[node.calls for node in row.nodes] for row in after.rows] == [[None], [4], [2]]
    assert "before recording began" in str(after)
    stored = recording.explain("*step")
    assert stored.rows == after.rows[1:]
    reopened = pfd.open(recording.path).explain("*step")
    assert reopened == stored


def test_failed_graph_traces_are_told():
    @tf.function
    def fails(x):
        raise ValueError("no")

    with pfd.record(gil=False) as recording, pytest.raises(ValueError, match="no"):
        fails(X)
    row = recording.explain("*fails").rows[0]
    assert row.error == "ValueError"
    assert row.name is None
    assert "tracing failed with ValueError" in str(recording.explain("*fails"))


def test_runs_that_nobody_counted_are_not_zero():
    @tf.function
    def inner(x):
        return x + 1.0

    @tf.function
    def outer(x):
        return inner(x)

    with pfd.record(gil=False) as recording:
        outer(X)
    assert recording.explain("*inner").rows[0].runs is None
    assert "runs -" in str(recording.explain("*inner"))
    assert recording.explain("*outer").rows[0].runs == 1


def test_arguments_in_an_explanation_are_text_in_html():
    @tf.function
    def step(x, k):
        return x

    step(X, "<script>alert(1)</script>")
    step(X, "<b>")
    text = pfd.explain(step)._repr_html_()
    assert "<script>" not in text
    assert "&lt;b&gt;" in text


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (body, "body is not a tf.function"),
        (3, "'int' is not a tf.function"),
        (make().get_concrete_function(X), "one graph"),
    ],
)
def test_wrong_things_are_named(thing, message):
    with pytest.raises(pfd.PyfuncDebugError, match=message):
        pfd.explain(thing)


def test_unknown_function_names_the_nearest():
    with pfd.record(gil=False) as recording:
        make()(X)
    with pytest.raises(pfd.PyfuncDebugError, match=r"make\.step"):
        recording.explain("make.stop")


class Twice(tf.keras.layers.Layer):
    """A layer with a body."""

    def call(self, x):
        return tf.ensure_shape(tf.py_function(body, [x], tf.float32), x.shape) * 2.0


class OwnStep(tf.keras.Model):
    """A model with a step of its own."""

    def __init__(self):
        super().__init__()
        self.twice, self.dense = Twice(), tf.keras.layers.Dense(1)

    def call(self, x):
        return self.dense(self.twice(x))

    def train_step(self, data):
        self.dense(data[0])
        return {"loss": tf.reduce_mean(self(data[0]))}


def test_a_keras_model_is_explained_by_the_graphs_of_its_step():
    model = OwnStep()
    model.compile("sgd")
    data = tf.ones([4, 3]), tf.ones([4, 1])
    assert "OwnStep.fit has not traced its step yet" in str(pfd.explain(model))
    with pfd.record(gil=False, lines=True) as recording:
        model.fit(*data, batch_size=2, verbose=0)
        model.predict(data[0], verbose=0)
        fitted, predicted = pfd.explain(model.fit), pfd.explain(model.predict)
        assert pfd.explain(model) == fitted
    assert fitted.name == "OwnStep.fit"
    assert (fitted.file, fitted.line) == (__file__, OwnStep.train_step.__code__.co_firstlineno)
    assert fitted.rows[-1].nodes[0].body == "body"
    assert fitted.rows[-1].nodes[0].calls == 2
    assert predicted.file is None
    assert predicted.rows
    step = recording.source("OwnStep.train_step")
    assert step.lines[0].text.strip() == "def train_step(self, data):"
    assert step.lines[1].traced
    assert recording.source("call").name == "Twice.call"
    model.compile("sgd", run_eagerly=True)
    model.fit(*data, verbose=0)
    assert "the model runs eagerly" in str(pfd.explain(model))


@tf.function
def scaled(x, rate=1.0, parts=None):
    VISITS.append(None)
    COUNT.assign_add(1)
    return x * rate + tf.random.stateless_uniform([], [1, 2])


VISITS = []
COUNT = tf.Variable(0)


def test_advice_is_tried_on_request_and_the_program_stays_as_it_was():
    calls = [(X, 0.1), (X, 0.2), (X, 0.3), (LONGER, 0.3)]
    for call in calls:
        scaled(*call)
    visits, graphs = len(VISITS), scaled.experimental_get_tracing_count()
    plain = pfd.explain(scaled)
    assert [row.tried for row in plain.rows] == [None] * 4
    assert len(VISITS) == visits
    tried = pfd.explain(scaled, try_with=calls)
    assert [row.reason for row in tried.rows] == [row.reason for row in plain.rows]
    assert tried.rows[1].avoid == "always pass `rate` as a tensor: tf.constant(0.2, tf.float32)"
    assert tried.rows[1].tried == "tried: 2 graphs for 4 calls, results equal"
    assert (tried.rows[3].avoid, tried.rows[3].tried) == (
        "reduce_retracing=True", "tried: 4 graphs for 4 calls, results equal",
    )  # fmt: skip
    assert "tried: " in str(tried)
    assert tried.notes[-1] == "all advice together tried: 2 graphs for 4 calls, results equal"
    assert COUNT.numpy() == 4
    assert X.numpy().tolist() == [1.0, 2.0]
    assert scaled.experimental_get_tracing_count() == graphs


def test_advice_that_does_not_work_for_these_calls_is_said_to():
    function = tf.function(lambda x, k: x * k)
    function(X, 1)
    function(X, 2)
    tried = pfd.explain(function, try_with=[(X, 1), (X, "a")])
    assert tried.rows[1].tried.startswith("not tried: call 2 fails as the function is")
    wrong = pfd.explain(function, try_with=[(X, 1), (X, 2), (tf.cast(X, tf.float64), 2)])
    assert wrong.rows[1].tried.startswith("tried: it does not work: call 3 raised")


def test_other_functions_are_not_tried():
    model = tf.keras.Sequential([tf.keras.layers.Input([1]), tf.keras.layers.Dense(1)])
    with pytest.raises(pfd.BadOptionError, match="Keras calls this one"):
        pfd.explain(model, try_with=[(X,)])
