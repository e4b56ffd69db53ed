"""Programs with known derivatives, for three ways to run them: stock TensorFlow, stock mode, exact mode.

    python -m tests.interception.gradients.gradient_programs        # prints what this TensorFlow makes of them, as JSON

`PROGRAMS` maps a name to (function, truth, stock). `truth` is the analytic answer; an exception type's name where every
way must fail. `stock` is "same" where stock mode must give exactly what TensorFlow gives, or "any" where TensorFlow's
own answer depends on luck (threads).
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import sys
import tempfile
import threading

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np
import tensorflow as tf

PROGRAMS = {}
X = 3.0
XS = [1.0, 2.0, 3.0]


def program(truth, stock="same"):
    def add(function):
        PROGRAMS[function.__name__] = (function, truth, stock)
        return function

    return add


def square(x):
    return x * x


def cube(x):
    return x * x * x


def py(body, *inputs, tout=tf.float32, shape=()):
    out = tf.py_function(body, list(inputs), tout)
    return out if shape is None else tf.ensure_shape(out, shape)


def shared(body=square, shape=()):
    """A tf.function with one node."""

    @tf.function
    def f(x):
        return py(body, x, shape=shape)

    return f


def derivative(f, at=X, persistent=False, times=1):
    x = tf.constant(at)
    with tf.GradientTape(persistent=persistent) as tape:
        tape.watch(x)
        y = f(x)
    return [tape.gradient(y, x) for _ in range(times)] if persistent else tape.gradient(y, x)


# -- plain ------------------------------------------------------------------------------------------------------------


@program(6.0)
def plain():
    return derivative(shared())


@program(6.0)
def plain_eager():
    return derivative(lambda x: tf.py_function(square, [x], tf.float32))


@program([2.0, 4.0, 6.0])
def plain_vector():
    return derivative(shared(shape=[3]), XS)


@program(6.0)
def plain_twice_in_order():
    f = shared()
    derivative(f, 5.0)
    return derivative(f)


@program(6.0)
def with_decorator():
    @tf.py_function(Tout=tf.float32)
    def body(x):
        return x * x

    @tf.function
    def f(x):
        return body(x)

    return derivative(f)


@program(6.0)
def traced_gradient():
    f = shared()

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return step(tf.constant(X))


@program([8.0, 2.0])
def two_nodes_in_a_chain():
    @tf.function
    def f(x):
        return py(square, py(square, x, shape=[2]), shape=[2]) / 4

    return derivative(lambda x: f(x), [2.0, 2.0 ** (1 / 3)])


@program(27.0)
def bound_method():
    class Model:
        def body(self, x):
            return x**3

    return derivative(shared(Model().body))


@program(6.0)
def lambda_body():
    return derivative(shared(lambda x: x**2))


# -- one node, several calls -------------------------------------------------------------------------------------------


@program(12.0)
def accumulation():
    f, total = shared(), 0.0
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        for k in (1.0, 2.0, 1.0):
            total += f(k * x)
    return tape.gradient(total, x)


@program([2.0, 10.0])
def accumulation_of_tapes():
    f = shared()
    a, b = tf.constant(1.0), tf.constant(5.0)
    with tf.GradientTape() as first:
        first.watch(a)
        y = f(a)
    with tf.GradientTape() as second:
        second.watch(b)
        z = f(b)
    return [first.gradient(y, a), second.gradient(z, b)]


@program(6.0)
def interleaved_inference():
    f, x = shared(), tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    f(tf.constant(100.0))
    return tape.gradient(y, x)


@program(30.0)
def two_calls_in_one_tape():
    f = shared()
    return derivative(lambda x: f(x) + f(2 * x))


@program(30.0)
def two_calls_in_one_graph():
    f = shared()

    @tf.function
    def g(x):
        return f(x) + f(2 * x)

    return derivative(g)


@program(108.0)
def applied_to_itself():
    f = shared()
    return derivative(lambda x: f(f(x)))


@program([6.0, 6.0])
def persistent_tape():
    return derivative(shared(), persistent=True, times=2)


@program([6.0, 6.0])
def persistent_tape_eager():
    return derivative(lambda x: tf.py_function(square, [x], tf.float32), persistent=True, times=2)


@program([6.0, 5.0])
def nested_tapes():
    f = shared()
    x, z = tf.constant(X), tf.constant(2.5)
    with tf.GradientTape() as outer:
        outer.watch(x)
        y = f(x)
        with tf.GradientTape() as inner:
            inner.watch(z)
            w = f(z)
        dz = inner.gradient(w, z)
    return [outer.gradient(y, x), dz]


@program(12.0)
def eager_calls_in_one_tape():
    def f(x):
        return tf.py_function(square, [x], tf.float32)

    return derivative(lambda x: f(x) + f(x))


@program([2.0 * k for k in range(16)], stock="any")
def threads():
    f = shared()
    f(tf.constant(0.0))
    found = [None] * 16
    meet = threading.Barrier(16)

    def work(k):
        x = tf.constant(float(k))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        meet.wait()
        found[k] = tape.gradient(y, x).numpy()

    each = [threading.Thread(target=work, args=(k,)) for k in range(16)]
    for one in each:
        one.start()
    for one in each:
        one.join()
    return found


# -- control flow ------------------------------------------------------------------------------------------------------


@program(6.0)
def cond():
    @tf.function
    def f(x):
        return tf.cond(x > 0, lambda: py(square, x), lambda: x)

    return derivative(f)


@program(1.0)
def cond_not_taken():
    @tf.function
    def f(x):
        return tf.cond(x > 10, lambda: py(square, x), lambda: x)

    return derivative(f)


@program(27.0)
def switch_case():
    @tf.function
    def f(x):
        return tf.switch_case(tf.constant(1), [lambda: py(square, x), lambda: py(cube, x)])

    return derivative(f)


@program(8 * 1.5**7)
def while_loop():
    @tf.function
    def f(x):
        for _ in tf.range(3):
            x = py(square, x)
        return x

    return derivative(f, 1.5)


@program(6 * 2.0**5)
def nested_while():
    @tf.function
    def f(x):
        y = tf.ones([])
        for _ in tf.range(3):
            for _ in tf.range(2):
                y = py(lambda a, b: a * b, y, x)
        return y

    return derivative(f, 2.0)


@program(12.0)
def while_with_condition():
    @tf.function
    def f(x):
        y = tf.zeros([])
        for k in tf.range(4):
            if k % 2 == 0:
                y += py(square, x)
        return y

    return derivative(f)


@program([2.0, 4.0, 6.0])
def map_fn():
    @tf.function
    def f(xs):
        return tf.map_fn(lambda x: py(square, x), xs)

    return derivative(f, XS)


@program([2.0, 4.0, 6.0])
def map_fn_eager():
    f = shared()
    return derivative(lambda xs: tf.map_fn(f, xs), XS)


@program([6.0, 3.0, 2.0])
def foldl():
    @tf.function
    def f(xs):
        return tf.foldl(lambda a, x: py(lambda a, x: a * x, a, x), xs)

    return derivative(f, XS)


@program([3.0, 2.0, 1.0])
def scan():
    @tf.function
    def f(xs):
        return tf.reduce_sum(tf.scan(lambda a, x: py(lambda a, x: a + x, a, x), xs))

    return derivative(f, XS)


@program([2.0, 4.0, 6.0])
def vectorized_map():
    @tf.function
    def f(xs):
        return tf.vectorized_map(lambda x: py(square, x), xs)

    return derivative(f, XS)


@program([2.0, 4.0, 6.0])
def ragged_map():
    @tf.function
    def f(xs):
        rows = tf.RaggedTensor.from_row_lengths(xs, [2, 1])
        return tf.reduce_sum(tf.map_fn(lambda row: tf.reduce_sum(py(square, row, shape=None)), rows, tf.float32))

    return derivative(f, XS)


# -- jacobians ---------------------------------------------------------------------------------------------------------

JACOBIAN = [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0]]


def jacobian_of(f, pfor):
    x = tf.constant(XS)
    with tf.GradientTape(persistent=not pfor) as tape:
        tape.watch(x)
        y = f(x)
    return tape.jacobian(y, x, experimental_use_pfor=pfor)


@program(JACOBIAN)
def jacobian():
    return jacobian_of(shared(shape=[3]), True)


@program(JACOBIAN)
def jacobian_without_pfor():
    return jacobian_of(shared(shape=[3]), False)


@program(JACOBIAN)
def jacobian_eager():
    return jacobian_of(lambda x: tf.py_function(square, [x], tf.float32), True)


@program([[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]])
def batch_jacobian():
    f = shared(shape=[2, 2])
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.batch_jacobian(y, x)


@program(JACOBIAN)
def jacobian_in_a_function():
    f = shared(shape=[3])

    @tf.function
    def g(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.jacobian(y, x)

    return g(tf.constant(XS))


# -- inputs and outputs ------------------------------------------------------------------------------------------------


@program([3.0, 2.0])
def two_inputs():
    @tf.function
    def f(a, b):
        return py(lambda a, b: a * b, a, b)

    a, b = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        y = f(a, b)
    return tape.gradient(y, [a, b])


@program(4.0)
def int_input():
    @tf.function
    def f(x):
        return py(lambda x, n: x * tf.cast(n, tf.float32), x, tf.constant(4))

    return derivative(f)


@program(4.0)
def int_input_eager():
    return derivative(
        lambda x: tf.py_function(lambda x, n: x * tf.cast(n, tf.float32), [x, tf.constant(4)], tf.float32)
    )


@program(5.0)
def string_input():
    @tf.function
    def f(x):
        return py(lambda s, x: x * tf.strings.to_number(s), tf.constant("5"), x)

    return derivative(f)


@program(6.0)
def int_output():
    @tf.function
    def f(x):
        return tf.py_function(lambda x: (x * x, 7), [x], [tf.float32, tf.int32])[0]

    return derivative(f)


@program(6.0)
def string_output():
    @tf.function
    def f(x):
        return tf.py_function(lambda x: ("a", x * x), [x], [tf.string, tf.float32])[1]

    return derivative(f)


@program(6.0)
def one_output_unused():
    @tf.function
    def f(x):
        return tf.py_function(lambda x: (x * x, x * 5), [x], [tf.float32, tf.float32])[0]

    return derivative(f)


@program(11.0)
def two_outputs():
    @tf.function
    def f(x):
        a, b = tf.py_function(lambda x: (x * x, x * 5), [x], [tf.float32, tf.float32])
        return a + b

    return derivative(f)


@program([6.0, [0.0, 0.0]])
def unconnected_input():
    @tf.function
    def f(x, z):
        return tf.py_function(lambda x, z: x * x, [x, z], tf.float32)

    x, z = tf.constant(X), tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch([x, z])
        y = f(x, z)
    return tape.gradient(y, [x, z])


@program(0.0)
def numpy_in_the_body():
    return derivative(shared(lambda x: np.float32(x.numpy() ** 2)))


@program(6.0)
def identity_body():
    return derivative(lambda x: shared(lambda v: v)(x) * 6)


@program([2.0])
def no_outputs():
    @tf.function
    def f(x):
        made = tf.py_function(lambda x: None, [x], [])
        assert isinstance(made, tf.Operation), type(made)
        return x * 2

    return [derivative(f)]


@program([[9.0, 27.0], 1])
def structure_of_outputs():
    @tf.function
    def f(x):
        many = tf.py_function(lambda x: [x**2, x**3], [x], [tf.float32, tf.float32])
        one = tf.py_function(square, [x], [tf.float32])
        assert isinstance(many, list)
        assert isinstance(one, list)
        return many, len(one)

    many, one = f(tf.constant(X))
    return [[item.numpy() for item in many], int(one)]


@program([2.0, 4.0, 6.0])
def ragged():
    @tf.function
    def f(xs):
        rows = tf.RaggedTensor.from_row_lengths(xs, [2, 1])
        out = tf.py_function(lambda r: r * r, [rows], tf.RaggedTensorSpec([None, None], tf.float32))
        return tf.reduce_sum(out)

    return derivative(f, XS)


@program([2.0, 4.0, 6.0])
def ragged_input():
    @tf.function
    def f(xs):
        rows = tf.RaggedTensor.from_row_lengths(xs, [2, 1])
        return py(lambda r: tf.reduce_sum(r.flat_values**2), rows)

    return derivative(f, XS)


@program([2.0, 4.0, 6.0])
def sparse_input():
    @tf.function
    def f(xs):
        sparse = tf.SparseTensor([[0], [2], [4]], xs, [6])
        return py(lambda s: tf.reduce_sum(s.values**2), sparse)

    return derivative(f, XS)


@program([2.0, 4.0, 6.0])
def tensor_spec_output():
    @tf.function
    def f(xs):
        return tf.py_function(square, [xs], tf.TensorSpec([3], tf.float32))

    return derivative(f, XS)


@program([0.0, 4.0, 0.0])
def indexed_slices_come_in():
    f = shared(shape=[3])
    return derivative(lambda x: tf.gather(f(x), [1]), XS)


@program([0.0, 2.0, 0.0])
def indexed_slices_go_out():
    return derivative(shared(lambda x: tf.gather(x, 1) * 2), XS)


@program(6.0)
def float64():
    @tf.function
    def f(x):
        return py(square, x, tout=tf.float64)

    x = tf.constant(X, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


@program([6.0, -4.0])
def complex64():
    @tf.function
    def f(z):
        return py(square, z, tout=tf.complex64)

    z = tf.constant(3.0 + 2.0j, tf.complex64)
    with tf.GradientTape() as tape:
        tape.watch(z)
        y = f(z)
    g = tape.gradient(y, z).numpy()
    return [g.real, g.imag]


@program(6.0)
def variable_input():
    v, f = tf.Variable(X), shared()
    with tf.GradientTape() as tape:
        y = f(v)
    return tape.gradient(y, v)


@program(None)
def variable_by_closure():
    v = tf.Variable(X)

    @tf.function
    def f(x):
        return py(lambda x: x * v * v, x)

    with tf.GradientTape() as tape:
        y = f(tf.constant(1.0))
    return tape.gradient(y, v)


# -- around it ---------------------------------------------------------------------------------------------------------


@program(60.0)
def custom_gradient_around():
    @tf.custom_gradient
    def f(x):
        y = py(square, x)
        return y, lambda dy: dy * 60.0

    return derivative(tf.function(f))


@program(600.0)
def custom_gradient_inside():
    @tf.custom_gradient
    def slow(x):
        return x * x, lambda dy: dy * 600.0

    return derivative(shared(slow))


@program(30.0)
def recompute_grad():
    f = shared()
    again = tf.recompute_grad(lambda x: f(x) + f(2 * x))
    return derivative(again)


@program(6.0)
def forward_accumulator():
    f, x = shared(), tf.constant(X)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as accumulator:
        y = f(x)
    return accumulator.jvp(y)


@program(6.0)
def forward_accumulator_eager():
    x = tf.constant(X)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as accumulator:
        y = tf.py_function(square, [x], tf.float32)
    return accumulator.jvp(y)


@program(None)
def second_derivative_of_first_order():
    f = shared(cube)
    return derivative(lambda x: derivative_at(f, x))


def derivative_at(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


@program(2.0)
def double_backward_through_dy():
    f, x, w = shared(), tf.constant(1.0), tf.constant(X)
    with tf.GradientTape() as outer:
        outer.watch(w)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x) * w
        dx = inner.gradient(y, x)
    return outer.gradient(dx, w)


@program([5.0, 10.0])
def stop_gradient_and_zero():
    f = shared()
    x = tf.constant([0.5, 1.0])
    g = shared(shape=[2])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(g(x)) * 5 + 0 * tf.stop_gradient(f(x[0]))
    return tape.gradient(y, x)


@program(6.0)
def output_gradients():
    f, x = shared(), tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x, output_gradients=tf.constant(3.0))


@program(0.0)
def unconnected_gradients_zero():
    f, x, z = shared(), tf.constant(X), tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch([x, z])
        y = f(x)
    return tape.gradient(y, z, unconnected_gradients=tf.UnconnectedGradients.ZERO)


@program(6.0)
def numpy_function_beside():
    @tf.function
    def f(x):
        return py(square, x) + tf.stop_gradient(tf.numpy_function(lambda v: np.float32(v * 2), [x], tf.float32))

    return derivative(f)


registered: set[str] = set()


@program(None)
def numpy_function_has_none():
    @tf.function
    def f(x):
        return tf.numpy_function(lambda v: v * v, [x], tf.float32)

    return derivative(f)


@program([6.0, 20.0])
def v1_gradients():
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [])
        y = tf.py_function(square, [x], tf.float32)
        (g,) = tf.gradients(y, x)
        with tf.compat.v1.Session() as session:
            return [session.run(g, {x: X}), session.run(g, {x: 10.0})]


@program(42.0)
def v1_gradients_of_two_nodes():
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [])
        y = tf.py_function(square, [x], tf.float32) + tf.py_function(lambda v: 3 * v * v, [2 * x], tf.float32)
        (g,) = tf.gradients(y, x)
        with tf.compat.v1.Session() as session:
            return session.run(g, {x: X}) - 36.0


@program([60.0, 60.0])
def gradients_of_the_users_own_by_op_type():
    name = "TenTimes"
    if name not in registered:
        registered.add(name)
        tf.RegisterGradient(name)(lambda op, dy: 10 * dy * 2 * op.inputs[0])

    def ten_times(x):
        with tf.compat.v1.get_default_graph().gradient_override_map({"EagerPyFunc": name}):
            return tf.py_function(square, [x], tf.float32)

    @tf.function
    def f(x):
        return tf.gradients(ten_times(x), x)[0]

    in_function = float(f(tf.constant(X)))
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [])
        (g,) = tf.gradients(ten_times(x), x)
        with tf.compat.v1.Session() as session:
            return [session.run(g, {x: X}), in_function]


@program([6.0, 6.0])
def mirrored_strategy():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    @tf.function
    def step():
        def one():
            x = tf.constant(X)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.py_function(square, [x], tf.float32)
            return tape.gradient(y, x)

        return strategy.run(one)

    return [item.numpy() for item in strategy.experimental_local_results(step())]


@program(-11.0)
def keras_fit_accumulates():
    class Layer(tf.keras.layers.Layer):
        def build(self, shape):
            self.w = self.add_weight(shape=(), initializer="ones", name="w")

        def call(self, x):
            return tf.ensure_shape(tf.py_function(lambda x, w: x * w * w, [x, self.w], tf.float32), [None, 1])

    class Model(tf.keras.Model):
        def train_step(self, data):
            x, _ = data
            total = tf.zeros([])
            for k in (1.0, 2.0):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(self(k * x))
                total += tape.gradient(loss, self.layers[1].w)
            self.layers[1].w.assign_sub(tf.reshape(total, []))
            return {"loss": loss}

    inputs = tf.keras.Input((1,))
    model = Model(inputs, Layer()(inputs))
    model.compile(optimizer="sgd")
    model.fit(tf.constant([[2.0]]), tf.constant([[0.0]]), verbose=0)
    return model.get_weights()[0]


@program(-3.0)
def keras_steps_per_execution():
    class Layer(tf.keras.layers.Layer):
        def build(self, shape):
            self.w = self.add_weight(shape=(), initializer="ones", name="w")

        def call(self, x):
            return tf.ensure_shape(tf.py_function(lambda x, w: x * w, [x, self.w], tf.float32), [None, 1])

    inputs = tf.keras.Input((1,))
    model = tf.keras.Model(inputs, Layer()(inputs))
    model.compile("sgd", loss=lambda t, p: p, steps_per_execution=2)
    model.optimizer.learning_rate = 1.0
    model.fit(tf.constant([[1.0]] * 4), tf.constant([[0.0]] * 4), batch_size=1, epochs=1, verbose=0, shuffle=False)
    return model.get_weights()[0]


@program([9.0, 6.0])
def saved_model_round_trip():
    module = tf.Module()
    module.f = tf.function(lambda x: py(square, x), input_signature=[tf.TensorSpec([], tf.float32)])
    module.f(tf.constant(1.0))
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder)
        loaded = tf.saved_model.load(folder)
    return [loaded.f(tf.constant(X)), derivative(loaded.f)]


@program(6.0)
def run_functions_eagerly():
    f = shared()
    tf.config.run_functions_eagerly(True)
    try:
        return derivative(f)
    finally:
        tf.config.run_functions_eagerly(False)


@program("InvalidArgumentError")
def xla():
    f = tf.function(lambda x: tf.py_function(square, [x], tf.float32), jit_compile=True)
    return derivative(f)


@program("InvalidArgumentError")
def too_few_results():
    @tf.function
    def f(x):
        return tf.py_function(lambda x: [x], [x], [tf.float32, tf.float32])

    return f(tf.constant(X))


@program("InvalidArgumentError")
def nothing_returned():
    return derivative(shared(lambda x: None))


@program("UnknownError")
def body_raises():
    def body(x):
        raise KeyError("the user's")

    return derivative(shared(body))


@program("UnknownError")
def gradient_raises():
    @tf.custom_gradient
    def body(x):
        def grad(dy):
            raise RuntimeError("the user's")

        return x * x, grad

    return derivative(shared(body))


@program([2.0, 4.0, 6.0])
def dataset_map():
    data = tf.data.Dataset.from_tensor_slices(XS)

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = py(square, x)
        return tape.gradient(y, x)

    return [item.numpy() for item in data.map(gradient)]


@program(50.0)
def while_loop_around_the_tape():
    f = shared()

    @tf.function
    def g(x):
        total = tf.zeros([])
        for k in tf.range(5):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x) * tf.cast(k, tf.float32)
            total += tape.gradient(y, x)
        return total

    return g(tf.constant(2.5))


@program(6.0)
def control_flow_v1():
    with tf.Graph().as_default():
        tf.compat.v1.disable_control_flow_v2()
        try:
            x = tf.compat.v1.placeholder(tf.float32, [])
            y = tf.cond(x > 0, lambda: py(square, x), lambda: x)
            (g,) = tf.gradients(y, x)
            with tf.compat.v1.Session() as session:
                return session.run(g, {x: X})
        finally:
            tf.compat.v1.enable_control_flow_v2()


# -- running them ------------------------------------------------------------------------------------------------------


def plain_value(value):
    """Numbers and lists only."""
    if isinstance(value, tf.IndexedSlices):
        value = tf.convert_to_tensor(value)
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [plain_value(one) for one in value]
    return np.asarray(value).tolist()


def outcome(name):
    """What a program gives: {"value": ...} or {"error": type, "text": message without numbers that differ by run}."""
    try:
        return {"value": plain_value(PROGRAMS[name][0]())}
    except Exception as error:
        return {"error": type(error).__name__, "text": normal(str(error))}


def normal(text):
    text = re.sub(r"pyfunc_\d+", "pyfunc_N", text)
    text = re.sub(r"0x[0-9a-f]+", "0x", text)
    return re.sub(r"_\d+", "_N", text)


def configure():
    """Two logical CPUs, before anything runs."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)


def main():
    """Runs the programs in modes (`plain,stock`), one after the other: plain comes first, where nothing of ours is."""
    modes, names = (sys.argv[1:2] or ["plain"])[0].split(","), sys.argv[2:] or [*PROGRAMS]
    configure()
    for mode in modes:
        assert mode != "plain" or "pyfunc_debug" not in sys.modules
        gc.collect()
        gc.freeze()  # what is there need not be looked at after each program
        run_all(mode, names)


def run_all(mode, names):
    """Runs programs one after the other: plain, or while one recording is on, or each with exact gradients."""
    found = {}
    with recorded(mode) if mode == "stock" else contextlib.nullcontext({}) as extra:
        for name in names:
            with exact() if mode == "switch" else contextlib.nullcontext({}) as of_this:
                found[name] = outcome(name)
            found[name].update(of_this)
    print("\n" + json.dumps({mode: found, **extra}))


@contextlib.contextmanager
def recorded(mode):
    import pyfunc_debug as pfd

    extra = {}
    with pfd.record(gradients=mode, gil=False) as recording:
        yield extra
    extra["troubles"] = recording.meta["troubles"]
    recording.close()


@contextlib.contextmanager
def exact():
    import pyfunc_debug as pfd
    from pyfunc_debug.interception.gradients.hub import live_tapes

    extra = {}
    with pfd.exact_gradients():
        yield extra
    gc.collect()
    extra["live"] = live_tapes()


if __name__ == "__main__":
    main()
