"""What a user catches is TensorFlow's exception, unchanged, and it leads to the one that left the body."""

from __future__ import annotations

import gc
import sys
import traceback

import numpy as np
import pytest

import pyfunc_debug as pfd


@pytest.fixture(autouse=True)
def program(monkeypatch):
    """A program, not a prompt: IPython's shells, which other tests make in this process, leave `sys.ps1` behind."""
    monkeypatch.delattr(sys, "ps1", raising=False)


def helper(a):
    secret = a * 3
    raise ValueError(f"bad value in helper {secret is not None}")


def _forward(tf):
    return tf.function(lambda x: tf.py_function(helper, [x], tf.float32))


def _nested(tf):
    inner = _forward(tf)
    tf.function(lambda x: inner(x) + 1)(tf.constant(1.0))


def _dataset(tf, **how):
    return tf.data.Dataset.range(3).map(
        lambda e: tf.py_function(helper, [tf.cast(e, tf.float32)], tf.float32), **how
    )  # fmt: skip


def _gradient(tf):
    def body(v):
        @tf.custom_gradient
        def inner(u):
            return u * 1.0, helper

        return inner(v)

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.function(lambda x: tf.py_function(body, [x], tf.float32))(x)
    tape.gradient(y, x)


def _session(tf):
    with tf.Graph().as_default():
        y = tf.compat.v1.py_func(helper, [tf.constant(1.0)], tf.float32)
        with tf.compat.v1.Session() as session:
            session.run(y)


def _keras(tf, use):
    import keras

    class Layer(keras.layers.Layer):
        def call(self, x):
            y = tf.py_function(helper, [x], tf.float32)
            y.set_shape(x.shape)
            return y

        def compute_output_shape(self, shape):
            return shape

    model = keras.Sequential([keras.Input((3,)), Layer(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    if use == "fit":
        model.fit(np.ones((8, 3), "f"), np.ones((8, 1), "f"), verbose=0)
    else:
        model.predict(np.ones((8, 3), "f"), verbose=0)


SURFACES = {
    "tf.function": lambda tf: _forward(tf)(tf.constant(1.0)),
    "nested": _nested,
    "ConcreteFunction": lambda tf: _forward(tf).get_concrete_function(tf.TensorSpec([], tf.float32))(tf.constant(1.0)),
    "eager": lambda tf: tf.py_function(helper, [1.0], tf.float32),
    "gradient": _gradient,
    "iterate": lambda tf: list(_dataset(tf)),
    "parallel and prefetch": lambda tf: list(_dataset(tf, num_parallel_calls=2).prefetch(2)),
    "as_numpy_iterator": lambda tf: list(_dataset(tf).as_numpy_iterator()),
    "reduce": lambda tf: _dataset(tf).reduce(0.0, lambda a, b: a + b),
    "get_single_element": lambda tf: _dataset(tf).take(1).get_single_element(),
    "dataset in a tf.function": lambda tf: tf.function(lambda: _dataset(tf).reduce(0.0, lambda a, b: a + b))(),
    "from_generator": lambda tf: list(
        tf.data.Dataset.from_generator(
            lambda: (helper(1) for _ in range(2)), output_signature=tf.TensorSpec([], tf.float32)
        )
    ),
    "Session.run": _session,
    "Keras fit": lambda tf: _keras(tf, "fit"),
    "Keras predict": lambda tf: _keras(tf, "predict"),
    "strategy.run": lambda tf: tf.distribute.MirroredStrategy(["CPU:0"]).run(_forward(tf), args=(tf.constant(1.0),)),
}


@pytest.mark.parametrize("surface", SURFACES)
def test_every_surface_leads_to_the_original_with_live_locals(tf, surface):
    with pfd.record(gil=False), pytest.raises(tf.errors.OpError) as caught:
        SURFACES[surface](tf)
    original = caught.value.pyfunc_exception
    assert isinstance(original, ValueError)
    assert any("secret" in frame.f_locals for frame, _ in traceback.walk_tb(original.__traceback__))
    assert "pyfunc_debug" not in str(caught.value)
    assert not getattr(original, "__notes__", None)


def _caught(tf, function):
    with pytest.raises(tf.errors.OpError) as caught:
        function(tf.constant(1.0))
    return caught.value


def test_type_and_text_are_stock(tf):
    function = _forward(tf)
    stock = _caught(tf, function)
    with pfd.record(gil=False):
        ours = _caught(tf, function)
    assert type(ours) is type(stock)
    assert str(ours) == str(stock)
    assert ours.args == stock.args
    assert ours.__reduce__()[0] is stock.__reduce__()[0]


def test_an_exception_that_nobody_asked_for_keeps_no_mark(tf):
    error = ValueError("always the same object")

    def body(i):
        raise error

    with pfd.record(gil=False):
        failing = tf.data.Dataset.range(50).map(lambda i: tf.py_function(body, [i], tf.int64))
        assert list(failing.ignore_errors()) == []
    assert not getattr(error, "__notes__", None)


def test_parallel_failures_of_the_same_text_each_find_their_own(tf):
    """Told by the mark, which needs notes (Python 3.11)."""
    if sys.version_info < (3, 11):
        pytest.skip("without notes the newest failure of the same text is taken")

    def body(i):
        number = int(i)  # noqa: F841 - looked at in the frame
        raise ValueError("the same text")

    function = tf.function(lambda i: tf.py_function(body, [i], tf.float32))
    with pfd.record(gil=False):
        errors = [_caught(tf, lambda _, i=i: function(tf.constant(i))) for i in range(3)]
    innermost = [list(traceback.walk_tb(error.pyfunc_exception.__traceback__))[-1][0] for error in errors]
    assert [frame.f_locals["number"] for frame in innermost] == [0, 1, 2]


def test_an_error_of_an_op_has_no_original(tf):
    with pfd.record(gil=False), pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.function(lambda x: tf.debugging.check_numerics(x, "not a number"))(tf.constant(float("nan")))
    assert not hasattr(caught.value, "pyfunc_exception")


def test_at_a_prompt_few_failures_are_kept(tf, monkeypatch):
    from pyfunc_debug.switchboard import board

    function = _forward(tf)
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    with pfd.record(gil=False):
        for _ in range(40):
            _caught(tf, function)
        assert len(board.failures()) == 32
    assert len(board.failures()) == 32
    with pfd.record(gil=False):
        pass
    assert board.failures() == [], "until the next recording has ended"


def test_in_a_program_a_failure_lives_as_long_as_its_exception(tf):
    from pyfunc_debug.switchboard import board

    class OwnError(ValueError):
        pass

    def own(x):
        raise OwnError("no")

    def fail(kind):
        if kind == "graph":
            return _caught(tf, _forward(tf))
        with pytest.raises(ValueError, match=r"^no$|^bad value in helper True$") as caught:
            tf.numpy_function(own if kind == "own" else helper, [tf.constant(1.0)], tf.float32)
        return caught.value

    with pfd.record(gil=False) as recording:
        for kind in ("graph", "own"):
            error = fail(kind)
            recording._recorder.flush()
            last = max(call.id for call in recording.calls())
            assert board.failures() == [(last, getattr(error, "pyfunc_exception", error))]
            del error
            gc.collect()  # the frame of pytest.raises holds what it caught
            assert board.failures() == []
        fail("stock")
        with pytest.raises(pfd.NotKeptError, match="its exception is gone"):
            pfd.post_mortem()
        try:
            tf.numpy_function(helper, [tf.constant(1.0)], tf.float32)
        except ValueError as error:  # while it is handled it is found: it takes no weak reference
            found = board.failures() == [(last + 2, error)]
        assert found
        try:
            raise ValueError("another one, perhaps in the same place of memory")
        except ValueError:
            assert board.failures() == []


def test_a_failure_that_no_error_leads_to_can_be_looked_at(tf):
    from pyfunc_debug.switchboard import board

    with pfd.record(gil=False):
        assert list(_dataset(tf).ignore_errors()) == []
        assert len(board.failures()) == 3
    assert board.failures() == []


def test_leaving_the_block_chains_the_original(tf):
    with pytest.raises(tf.errors.OpError) as caught, pfd.record(gil=False):
        _forward(tf)(tf.constant(1.0))
    assert caught.value.__cause__ is caught.value.pyfunc_exception
    text = "".join(traceback.format_exception(type(caught.value), caught.value, caught.value.__traceback__))
    assert "The above exception was the direct cause" in text
    first = text.index("in helper")
    assert first < text.index("script_ops.py"), "the user's frame comes first"
    last = list(traceback.walk_tb(caught.value.__traceback__))[-1][0]
    assert last.f_code.co_name == "helper", "pdb.pm() opens at the innermost frame"


def test_an_unwatched_body_fails_and_ends_as_ever_while_a_breakpoint_is_armed_elsewhere(tf, tmp_path):
    call = tf.function(lambda x: tf.numpy_function(helper, [x], tf.float32))
    call.get_concrete_function(tf.constant(1.0))
    dataset = tf.data.Dataset.from_generator(lambda: iter([1.0, 2.0]), output_types=tf.float32)

    def twice():
        """From its second call on it is known that no breakpoint names the node."""
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match="bad value in helper") as caught:
                call(tf.constant(1.0))
            assert isinstance(caught.value.pyfunc_exception, ValueError)
            assert "pyfunc_debug" not in str(caught.value)
            assert [float(value) for value in dataset] == [1.0, 2.0]

    stop = pfd.break_on("another")
    try:
        twice()
        tf.profiler.experimental.start(str(tmp_path))  # calls take another way
        try:
            twice()
        finally:
            tf.profiler.experimental.stop()
    finally:
        stop.remove()


def test_an_unwatched_body_may_stop_while_a_breakpoint_is_armed_elsewhere(tf):
    def outer(x):
        inner(tf.constant(1.0))
        breakpoint()
        return x

    inner = tf.function(lambda x: tf.numpy_function(np.sin, [x], tf.float32))
    call = tf.function(lambda x: tf.py_function(outer, [x], tf.float32))
    call.get_concrete_function(tf.constant(0.0))
    stop = pfd.break_on("another")
    with pfd.answers("c", "p x", "c") as dialogue:
        for value in (2.0, 3.0):
            call(tf.constant(value))
    stop.remove()
    assert "numpy=3.0" in str(dialogue)
    assert dialogue.left == []
