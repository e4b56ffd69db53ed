"""What a condition sees, on bodies whose inputs are tensors, and what happens when it cannot be evaluated."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import pyfunc_debug as pfd

LIMIT = 2.0
WEIGHTS = None  # a tensor, in `weights`
AGAIN = None


def body(x, k):
    return x * k


class Scaler:
    factor = 3.0

    def __call__(self, x, k):
        return x * k


def closing(threshold):
    def inner(x, k):
        return x * k + 0.0 * threshold

    return inner


def bound(offset, x, k, power=2):
    return x * k + 0.0 * offset


@pytest.fixture
def weights(tf):
    global WEIGHTS
    WEIGHTS = tf.constant([1.0, 2.0])
    yield
    WEIGHTS = None


def _hits(tf, function, condition, values=((1.0, -1.0), (5.0, 1.0)), when="before"):
    """How many calls of a body with [values, 2.] a condition stops. No error may be met."""
    traced = tf.function(lambda x: tf.py_function(function, [x, tf.constant(2.0)], tf.float32))
    breakpoint_ = pfd.break_on("*", condition=condition, when=when)
    for value in values:
        np.testing.assert_allclose(traced(tf.constant(value)), np.float32(value) * 2)
    breakpoint_.remove()
    assert (breakpoint_.error, breakpoint_.condition_errors) == ("", 0)
    return breakpoint_.hits


@pytest.mark.parametrize(
    "condition",
    [
        "x.max() > 1", "(x > 0).all()", "np.max(x) > LIMIT", "x.numpy().max() > 1", "x[0].numpy() > 1",
        "tf.reduce_max(x) > 1", "tf.reduce_max(x).numpy() > 1", "bool((x.sum() > 1).numpy())", "inputs[0].max() > 1",
        "call.inputs[0].max() > 1", "any(v > 1 for v in x)", "[x.max() for _ in range(2)][1] > 1", "int(x[0]) == 5",
        "x[0] in {5.0}", "(lambda: x.max() > LIMIT)()", "x.shape == (2,) and x.dtype == tf.float32 and x.min() > 0",
        "not np.isnan(x).any() and x.mean() > 1", "max(x) > 1", "k == 2 and x[0] > 1", "f'{x[0]:.0f}' == '5'",
        "nan(np.where(x > 1, np.nan, x)) == 1", "inf([np.inf] * int(x[0])) == 5", "changed(x)",
        "changed(x.max()) and shape(x) == (2,)", "nan(k, inputs) == 0 and changed(inputs[0])",
        "(x - WEIGHTS).min() > -1.5 and x.get_shape() == [2]", "(x @ WEIGHTS) > 3", "WEIGHTS.max() + x.min() > 2",
    ],
)  # fmt: skip
def test_a_condition_sees_tensors_as_numpy_arrays_and_the_names_of_its_module(tf, script, weights, condition):
    assert _hits(tf, body, condition) == 1


@pytest.mark.parametrize(
    ("function", "condition"),
    [
        (closing(4.0), "x.max() > threshold"),
        (Scaler(), "x.max() > self.factor"),
        (Scaler().__call__, "x.max() > self.factor"),
        (functools.partial(bound, 4.0), "x.max() > offset and power == 2"),
        (functools.partial(bound, 0.0, power=4), "x.max() > power"),
        (lambda x, k: x * k, "x.max() > LIMIT"),
    ],
)
def test_a_condition_sees_the_closure_the_defaults_and_the_object_of_its_body(tf, script, function, condition):
    assert _hits(tf, function, condition) == 1


def test_outputs_and_gradients_are_numpy_arrays_too(tf, script):
    assert _hits(tf, body, "outputs.max() > 4", when="after") == 1
    breakpoint_ = pfd.break_on("body", when="gradient", condition="dy.max() == 1 and (dy > 0).all()")
    with tf.GradientTape() as tape:
        x = tf.constant([1.0, 2.0])
        tape.watch(x)
        y = tf.py_function(body, [x, tf.constant(3.0)], tf.float32)
    assert tape.gradient(y, x).numpy().tolist() == [3.0, 3.0]
    breakpoint_.remove()
    assert (breakpoint_.hits, breakpoint_.error) == (1, "")


def test_changed_compares_calls_of_one_node_and_outputs_are_called_out_as_in_a_recording(tf, script):
    assert _hits(tf, body, "changed(out)", [(1.0, 1.0), (1.0, 1.0), (2.0, 1.0), (2.0, 1.0), (1.0, 1.0)], "after") == 2
    both = tf.function(lambda x: [tf.py_function(body, [x * n, tf.constant(2.0)], tf.float32) for n in (1.0, 2.0)])
    breakpoint_ = pfd.break_on("body", condition="changed(x)")
    for value in (1.0, 1.0, 4.0):
        both(tf.constant(value))
    breakpoint_.remove()
    assert (breakpoint_.hits, breakpoint_.error) == (2, "")  # each of the two nodes once


def test_numpy_function_conditions_see_the_body_too(tf, script):
    def plain(x):
        return x

    limit = 1.5
    enclosing = lambda x: plain(x) + 0 * np.float32(limit)  # noqa: E731
    breakpoint_ = pfd.break_on("*", condition="x > limit and x < LIMIT + 1")
    tf.function(lambda x: tf.numpy_function(enclosing, [x], tf.float32))(tf.constant(2.0))
    tf.numpy_function(enclosing, [tf.constant(2.0)], tf.float32)
    tf.numpy_function(enclosing, [tf.constant(1.0)], tf.float32)
    breakpoint_.remove()
    assert (breakpoint_.hits, breakpoint_.error) == (2, "")


def test_a_condition_cannot_change_the_body_s_tensor(tf, script, capsys):
    traced = tf.function(lambda x: tf.py_function(body, [x, tf.constant(1.0)], tf.float32))
    breakpoint_ = pfd.break_on("body", condition="x.sort() or False")
    assert traced(tf.constant([3.0, 1.0])).numpy().tolist() == [3.0, 1.0]
    breakpoint_.remove()
    assert "read-only" in breakpoint_.error
    capsys.readouterr()


@pytest.mark.parametrize(
    ("make", "condition"),
    [
        (lambda tf: tf.constant([b"good", b"bad"]), "(x == b'bad').any() and tf.strings.length(x)[0] == 4"),
        (lambda tf: tf.constant(b"bad"), "x == b'bad' and x.numpy().startswith(b'b') and tf.strings.length(x) == 3"),
        (lambda tf: tf.constant([True, False]), "x.any() and not x.all()"),
        (lambda tf: tf.constant([1.0, 2.0], tf.bfloat16), "x.max() == 2 and x.dtype == tf.bfloat16"),
        (lambda tf: tf.constant([1 + 2j]), "x.imag.max() == 2"),
        (lambda tf: tf.zeros([0, 3]), "x.size == 0 and x.shape == (0, 3)"),
        (lambda tf: tf.Variable(3.0).handle, "x.dtype == tf.resource"),
        (lambda tf: tf.data.Dataset.range(3)._variant_tensor, "x.dtype == tf.variant"),
        (lambda tf: tf.constant([1, 2], tf.int64), "x[1] == 2"),
    ],
)
def test_tensors_of_every_kind_stay_usable(tf, script, make, condition):
    value = make(tf)
    breakpoint_ = pfd.break_on("kind", condition=condition)

    def kind(x):
        return 1.0

    tf.function(lambda x: tf.py_function(kind, [x], tf.float32))(value)
    breakpoint_.remove()
    assert (breakpoint_.hits, breakpoint_.error) == (1, "")


def test_a_ragged_input_stays_what_it_is(tf, script):
    ragged = tf.ragged.constant([[1.0], [2.0, 3.0]])
    breakpoint_ = pfd.break_on("kind", condition="inputs[0].max() == 3")

    def kind(x):
        assert isinstance(x, tf.RaggedTensor)
        return 1.0

    tf.function(lambda x: tf.py_function(kind, [x], tf.float32))(ragged)
    breakpoint_.remove()
    assert (breakpoint_.hits, breakpoint_.error) == (1, "")


# -- a condition that runs its own node -------------------------------------------------------------------------------


def test_a_condition_that_runs_its_own_node_passes(tf, script):
    script("c", "c", "c", "c")
    global AGAIN
    AGAIN = tf.function(lambda x: tf.py_function(body, [x, tf.constant(2.0)], tf.float32))
    breakpoint_ = pfd.break_on("body", condition="AGAIN(tf.constant(4.0)) == 8")
    assert float(AGAIN(tf.constant(1.0))) == 2.0
    assert float(tf.py_function(body, [tf.constant(1.0), tf.constant(2.0)], tf.float32)) == 2.0
    breakpoint_.remove()
    assert (breakpoint_.hits, breakpoint_.error) == (2, "")
    assert breakpoint_.outcomes == {"stopped": 2}
    assert breakpoint_.unjudged == 2
    assert "2 passed during an evaluation of its condition" in repr(breakpoint_)


def test_a_condition_that_runs_its_own_node_on_other_threads_passes(tf, script):
    script("c", "c", "c", "c")
    global AGAIN
    data = tf.data.Dataset.range(1).map(lambda x: tf.py_function(body, [tf.cast(x, tf.float32), 2.0], tf.float32))
    AGAIN = lambda: float(next(iter(data)))  # noqa: E731
    breakpoint_ = pfd.break_on("body", condition="AGAIN() == 0")
    assert float(tf.py_function(body, [tf.constant(1.0), tf.constant(2.0)], tf.float32)) == 2.0
    breakpoint_.remove()
    assert (breakpoint_.hits, breakpoint_.error, breakpoint_.unjudged) == (1, "", 1)


# -- a condition that raises ------------------------------------------------------------------------------------------


@pytest.fixture
def function(tf):
    return tf.function(lambda x: tf.py_function(body, [x, tf.constant(2.0)], tf.float32))


def test_a_condition_that_raises_stops_there_and_can_be_edited(tf, function, script):
    dialogue = script("p x.shape", "edit x >", "edit x > 1", "c", "c")
    breakpoint_ = pfd.break_on("body", condition="x > nonsense")
    for value in (1.0, 1.0, 2.0):
        function(tf.constant(value))
    breakpoint_.remove()
    assert "its condition (x > nonsense) failed: NameError: name 'nonsense' is not defined" in dialogue.text
    assert "keep it (`keep`), change it (`edit EXPRESSION`), or switch the breakpoint off (`disable`)" in dialogue.text
    assert "condition='x >' is not a Python expression" in dialogue.text
    assert f"breakpoint {breakpoint_.number} is now body if x > 1" in dialogue.text
    assert dialogue.left == []
    assert (breakpoint_.hits, breakpoint_.outcomes, breakpoint_.condition_errors) == (1, {"stopped": 1}, 1)
    assert "1 hit (1 stopped), condition failed 1x (before it was edited)" in repr(breakpoint_)


@pytest.mark.parametrize(("answer", "errors"), [(("keep",), 2), (("disable", "c"), 1)])
def test_a_condition_that_raises_can_be_kept_or_its_breakpoint_disabled(tf, function, script, answer, errors):
    script(*answer, *answer)
    breakpoint_ = pfd.break_on("body", condition="nonsense")
    for _ in range(2):
        assert float(function(tf.constant(1.0))) == 2.0
    assert breakpoint_.enabled == (errors == 2)
    breakpoint_.remove()
    assert (breakpoint_.hits, breakpoint_.condition_errors) == (0, errors)


@pytest.mark.parametrize("when", ["after", "error", "gradient"])
def test_a_condition_that_raises_stops_at_every_moment(tf, script, when):
    def moody(x):
        if when == "error":
            raise ValueError("x")
        return x * 2.0

    dialogue = script("keep")
    breakpoint_ = pfd.break_on("*moody", when=when, condition="nonsense")
    with tf.GradientTape() as tape:
        x = tf.constant(1.0)
        tape.watch(x)
        try:
            y = tf.py_function(moody, [x], tf.float32)
        except (ValueError, tf.errors.OpError):
            y = None
    if y is not None:
        tape.gradient(y, x)
    breakpoint_.remove()
    assert "its condition (nonsense) failed: NameError" in dialogue.text
    assert (breakpoint_.hits, breakpoint_.condition_errors) == (0, 1)


def test_a_condition_that_raises_where_nobody_can_answer_is_reported_once_and_counted(tf, function, script, capsys):
    script()
    breakpoint_ = pfd.break_on("body", condition="x.nonsense > 3")
    for _ in range(3):
        assert float(function(tf.constant(3.0))) == 6.0
    assert breakpoint_.enabled
    breakpoint_.remove()
    said = capsys.readouterr().err
    assert said.count("its condition (x.nonsense > 3) failed: AttributeError") == 1
    assert "Nobody can answer, so these calls go on; the breakpoint stays on" in said
    assert (breakpoint_.hits, breakpoint_.condition_errors) == (0, 3)
    assert "condition failed 3x (AttributeError" in repr(breakpoint_)
