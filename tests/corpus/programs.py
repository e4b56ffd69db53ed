"""Small deterministic programs: everything that a user may do with Python inside TensorFlow's graphs.

Comments of the form `#@ name` mark lines that `expected.py` speaks of.
"""

from __future__ import annotations

import functools
import threading

import numpy as np
import tensorflow as tf

from tests.corpus.extension import Record
from tests.corpus.table import alone, attempt, program
from tests.limits import HANG_S

v1 = tf.compat.v1


# -- ways to make a node ----------------------------------------------------------------------------------------------


@program
def decorator(log):
    @tf.py_function(Tout=tf.float32)  # @ decorator.body
    def double(x):
        log.append(float(x))
        return x * 2

    @tf.function
    def step(x):
        return double(x) + 1  # @ decorator.graph

    return [step(tf.constant(1.0)), step(tf.constant(2.0)), double(tf.constant(5.0))]  # @ decorator.eager


def add_one(x):  # @ in_place.body
    return x + 1


@program
def in_place(log):
    @tf.function
    def step(x):
        return tf.py_function(add_one, [x], tf.float32)  # @ in_place.graph

    results = [step(tf.constant([1.0, 2.0])) for _ in range(3)]
    for _ in range(2):
        results.append(tf.py_function(add_one, [3.0], tf.float32))  # @ in_place.eager
    return results


@program
def numpy_function(log):
    def root(x, y):  # @ numpy_function.body
        log.append(type(x).__name__)
        return np.sqrt(x) + y

    @tf.function
    def step(x):
        return tf.numpy_function(root, [x, 1.0], tf.float32)  # @ numpy_function.graph

    return [step(tf.constant([4.0])), step(tf.constant([9.0])),
            tf.numpy_function(root, [np.float32(16), np.float32(0)], tf.float32)]  # @ numpy_function.eager  # fmt: skip


@program
def v1_py_func(log):
    def stateful(x):  # @ v1_py_func.stateful
        return x + len(log)

    def stateless(x):  # @ v1_py_func.stateless
        return x * x

    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [None], name="x")
        y = v1.py_func(stateful, [x], tf.float32)  # @ v1_py_func.site1
        z = v1.py_func(stateless, [x], tf.float32, stateful=False)  # @ v1_py_func.site2
        with v1.Session(graph=graph) as session:
            return [session.run([y, z], {x: [float(step)]}) for step in range(3)]


@program
def v1_eager(log):
    return [
        v1.py_func(lambda x: x + np.float32(1), [np.float32(step)], tf.float32) for step in range(2)
    ]  # @ v1_eager.site


@program
def v1_py_function(log):
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [], name="x")
        y = v1.py_function(add_one, [x], tf.float32)  # @ v1_py_function.site
        gradient = tf.gradients(y, x)[0]
        with v1.Session(graph=graph) as session:
            return [session.run(y, {x: 2.0}), session.run(gradient, {x: 2.0})]


@program
def stateless_folded(log):
    def constant(x):  # @ stateless_folded.body
        return x * 2

    @tf.function
    def step(x):
        v1.py_func(constant, [x], tf.float32, stateful=False)
        return x + 1

    return [step(tf.constant(1.0)) for _ in range(4)]


@program
def no_outputs(log):
    def note(x):
        log.append(int(x))

    @tf.function
    def step(x):
        tf.py_function(note, [x], [])
        tf.numpy_function(lambda y: log.append(int(y) * 10), [x], [])
        return x

    return [step(tf.constant(1)), step(tf.constant(2)), tf.py_function(note, [7], [])]


@program
def several_outputs(log):
    def parts(x, y):
        return x + y, x - y, b"text"

    @tf.function
    def step(x):
        return tf.py_function(parts, [x, 1.0], [tf.float32, tf.float32, tf.string])

    return [
        step(tf.constant(3.0)),
        tf.numpy_function(parts, [np.float32(1), np.float32(2)], (tf.float32, tf.float32, tf.string)),
    ]


# -- where nodes may be -----------------------------------------------------------------------------------------------


@program
def nested_functions(log):
    @tf.function
    def inner(x):
        return tf.py_function(add_one, [x], tf.float32)  # @ nested_functions.site

    @tf.function
    def outer(x):
        return inner(x) + inner(x * 2)

    return [outer(tf.constant(1.0)), outer(tf.constant(2.0)), inner(tf.constant(1.0))]


@program
def cond(log):
    def yes(x):
        log.append("yes")
        return x

    def no(x):
        log.append("no")
        return -x

    @tf.function
    def step(x):
        return tf.cond(
            x > 0,
            lambda: tf.py_function(yes, [x], tf.float32),  # @ cond.yes
            lambda: tf.py_function(no, [x], tf.float32),  # @ cond.no
        )

    return [step(tf.constant(value)) for value in (1.0, -1.0, 2.0)]


@program
def while_loop(log):
    @tf.function
    def step(n):
        total = 0.0
        for index in tf.range(n):
            twice = tf.numpy_function(lambda i: np.float32(i * 2), [index], tf.float32)  # @ while_loop.site
            total += tf.ensure_shape(twice, [])
        return total

    return [step(tf.constant(3)), step(tf.constant(0))]


@program
def switch_case(log):
    @tf.function
    def step(branch):
        return tf.switch_case(branch, [
            lambda: tf.py_function(lambda: 10.0, [], tf.float32),  #@ switch_case.first
            lambda: tf.py_function(lambda: 20.0, [], tf.float32),  #@ switch_case.second
        ])  # fmt: skip

    return [step(tf.constant(branch)) for branch in (0, 1, 1, 5)]


@program
def map_fn(log):
    @tf.function
    def step(xs):
        return tf.map_fn(lambda x: tf.py_function(add_one, [x], tf.float32), xs)  # @ map_fn.site

    return [
        step(tf.constant([1.0, 2.0, 3.0])),
        tf.map_fn(lambda x: tf.py_function(add_one, [x], tf.float32), tf.constant([1.0])),
    ]


@program
def vectorized_map(log):
    @tf.function
    def step(xs):
        return tf.vectorized_map(lambda x: tf.numpy_function(lambda v: np.float32(v * 3), [x], tf.float32), xs)

    return attempt(step, tf.constant([1.0, 2.0, 3.0]))


def augment(x):  # @ dataset.augment
    return (x + 1).astype(np.int64)


@program
def dataset_outside(log):
    data = tf.data.Dataset.range(6).map(
        lambda x: tf.numpy_function(augment, [x], tf.int64), num_parallel_calls=3
    )  # @ dataset_outside.site
    return [[int(one) for one in data], [int(one) for one in data.batch(2).map(tf.reduce_sum)]]


@program
def dataset_inside(log):
    @tf.function
    def total():
        data = tf.data.Dataset.range(4).map(
            lambda x: tf.numpy_function(augment, [x], tf.int64)
        )  # @ dataset_inside.site
        return data.reduce(np.int64(0), lambda total, x: total + tf.ensure_shape(x, []))

    return [total(), total()]


@program
def dataset_others(log):
    def odd(x):
        return bool(x % 2)

    def generate():
        log.append("start")
        yield from range(3)
        log.append("end")

    kept = tf.data.Dataset.range(5).filter(lambda x: tf.py_function(odd, [x], tf.bool))
    woven = tf.data.Dataset.range(2).interleave(
        lambda x: tf.data.Dataset.from_tensors(tf.numpy_function(augment, [x], tf.int64)), cycle_length=2
    )
    made = tf.data.Dataset.from_generator(generate, output_signature=tf.TensorSpec([], tf.int32))
    return [[int(one) for one in data] for data in (kept, woven, made)]


@program
def dataset_in_function(log):
    data = tf.data.Dataset.range(3).map(lambda x: tf.numpy_function(augment, [x], tf.int64))

    @tf.function
    def total(data):
        result = tf.constant(0, tf.int64)
        for x in data:
            result += tf.ensure_shape(x, [])
        return result

    return [total(data), total(data)]


class Scale(tf.keras.layers.Layer):
    """A layer with Python inside."""

    def python(self, x):  # @ keras.body
        return x * 0.5

    def call(self, x):
        y = tf.py_function(self.python, [x], tf.float32)  # @ keras.site
        return tf.ensure_shape(y, x.shape)


@program
def keras_layer(log):
    tf.keras.utils.set_random_seed(3)
    model = tf.keras.Sequential([tf.keras.Input((2,)), Scale(), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = np.ones((8, 2), np.float32), np.zeros((8, 1), np.float32)
    history = model.fit(x, y, batch_size=4, epochs=2, verbose=0, shuffle=True)
    return [
        history.history["loss"],
        model.evaluate(x, y, batch_size=4, verbose=0),
        model.predict(x, batch_size=4, verbose=0),
    ]


@program
def session_feeds(log):
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [None, 2])
        name = v1.placeholder(tf.string, [])
        v = v1.get_variable("v", initializer=1.5)
        y = tf.numpy_function(lambda a, b, s: a * b + len(s), [x, v, name], tf.float32)  # @ session_feeds.site
        with v1.Session(graph=graph) as session:
            session.run(v1.global_variables_initializer())
            return [session.run(y, {x: [[1, 2]], name: b"abc"}), attempt(session.run, y, {x: [[1, 2]]})]


@alone
def mirrored(log):
    cpus = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    @tf.function
    def step(x):
        return tf.py_function(add_one, [x], tf.float32)  # @ mirrored.site

    @tf.function
    def train(x):
        return strategy.reduce("SUM", strategy.run(step, args=(x,)), axis=None)

    return [train(tf.constant(float(number))) for number in range(3)]


# -- errors -----------------------------------------------------------------------------------------------------------


class Custom(Exception):
    """A user's exception."""


def _raiser(make):
    def fails(x):
        raise make()

    return fails


RAISED = tuple(
    functools.partial(kind, *args)
    for kind, *args in (
        (ValueError, "value"), (TypeError, "type"), (StopIteration, "stop"), (MemoryError, "memory"),
        (NotImplementedError, "later"), (KeyError, "key"), (Custom, "custom"), (ZeroDivisionError,),
        (RuntimeError, "two\nlines"), (tf.errors.OutOfRangeError, None, None, "range"), (OSError, 2, "no file", "name"),
        (AssertionError,), (SystemExit, 3),
    )
)  # fmt: skip


@program
def errors_in_graph(log):
    results = []
    for error in RAISED:
        for make in (tf.py_function, tf.numpy_function):
            graph = tf.function(lambda x, make=make, error=error: make(_raiser(error), [x], tf.float32))
            results.append(attempt(graph, tf.constant(1.0)))
    return results


@program
def errors_in_autograph(log):
    def deep(x):
        raise ValueError(f"deep {float(x)}")  # @ errors_in_autograph.line

    def middle(x):
        return deep(x)

    @tf.function
    def step(x):
        if x > 0:
            y = tf.py_function(middle, [x], tf.float32)  # @ errors_in_autograph.site
        else:
            y = x
        return y

    return [attempt(step, tf.constant(1.0)), attempt(step, tf.constant(-1.0)), attempt(step, tf.constant(2.0))]


@program
def errors_eager(log):
    return [
        attempt(make, _raiser(error), [1.0], tf.float32)
        for error in RAISED
        for make in (tf.py_function, tf.numpy_function)
    ]


@program
def errors_in_session(log):
    results = []
    graph = tf.Graph()
    with graph.as_default(), v1.Session(graph=graph) as session:
        for error in RAISED[:4]:
            results.append(attempt(session.run, v1.py_func(_raiser(error), [1.0], tf.float32)))
            results.append(attempt(session.run, tf.py_function(_raiser(error), [1.0], tf.float32)))
    return results


@program
def errors_in_data(log):
    results = []
    for error in RAISED[:3]:
        body = _raiser(error)
        for data in (
            tf.data.Dataset.range(3).map(lambda x, body=body: tf.numpy_function(body, [x], tf.int64)),
            tf.data.Dataset.range(3).filter(lambda x, body=body: tf.py_function(body, [x], tf.bool)),
            tf.data.Dataset.from_generator(lambda body=body: body(1), output_signature=tf.TensorSpec([], tf.int32)),
        ):
            results.append(attempt(list, data))
    return results


@program
def errors_in_keras(log):
    class Fails(tf.keras.layers.Layer):
        def call(self, x):
            return tf.ensure_shape(tf.numpy_function(_raiser(RAISED[0]), [x], tf.float32), x.shape)

    model = tf.keras.Sequential([tf.keras.Input((2,)), Fails(), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    result = attempt(functools.partial(model.predict, verbose=0), np.ones((2, 2), np.float32))
    return {**result, "frames": []}


@program
def wrong_results(log):
    def graph(body, tout, make=tf.py_function):
        return attempt(tf.function(lambda x: make(body, [x], tout)), tf.constant(1.0))

    def eager(body, tout, make=tf.py_function):
        return attempt(make, body, [1.0], tout)

    return [
        run(body, tout, make)
        for run in (graph, eager)
        for make in (tf.py_function, tf.numpy_function)
        for body, tout in (
            (lambda x: "text", tf.float32),
            (lambda x: None, tf.float32),
            (lambda x: [1.0, 2.0, 3.0], [tf.float32, tf.float32]),
            (lambda x: 1.0, [tf.float32, tf.float32]),
            (lambda x: object(), tf.float32),
            (lambda x: np.float64(1.5), tf.float32),
            (lambda x: [[1.0], [1.0, 2.0]], tf.float32),
            (lambda x, y: x, tf.float32),
        )
    ]


@program
def wrong_construction(log):
    def traced(make):
        return attempt(tf.function(make), tf.constant(1.0))

    return [
        attempt(run)
        for make in (tf.py_function, tf.numpy_function)
        for run in (
            lambda make=make: make("no function", [1.0], tf.float32),
            lambda make=make: make(add_one, 1.0, tf.float32),
            lambda make=make: make(add_one, [object()], tf.float32),
            lambda make=make: make(add_one, [1.0], "no type"),
            lambda make=make: traced(lambda x: make("no function", [x], tf.float32)),
            lambda make=make: traced(lambda x: make(add_one, [object()], tf.float32)),
            lambda make=make: traced(lambda x: make(add_one, [x], "no type")),
            lambda make=make: traced(lambda x: make(add_one, [x], tf.float32).no_such_attribute),
        )
    ]


@program
def errors_of_tracing(log):
    @tf.function
    def broken(x):
        y = tf.py_function(add_one, [x], tf.float32)
        raise Custom("while tracing")
        return y

    @tf.function(jit_compile=True)
    def compiled(x):
        return tf.py_function(add_one, [x], tf.float32)

    return [attempt(broken, tf.constant(1.0)), attempt(compiled, tf.constant(1.0))]


@program
def errors_around(log):
    """TensorFlow's own errors in a function that also has a node."""

    @tf.function
    def step(x):
        y = tf.py_function(add_one, [x], tf.float32)
        return tf.debugging.check_numerics(y / 0.0, "not finite")

    @tf.function
    def shapes(x, y):
        return tf.matmul(x, y)

    return [attempt(step, tf.constant(1.0)), attempt(shapes, tf.ones([2, 3]), tf.ones([2, 3])), attempt(step, "text")]


# -- random numbers and order -----------------------------------------------------------------------------------------


@program
def random_numbers(log):
    def body(x):
        return x + tf.random.uniform([]) + float(np.random.random())

    @tf.function
    def step(x):
        return tf.py_function(body, [x], tf.float32) + tf.random.normal([]), tf.random.uniform([], seed=4)

    generator = tf.random.Generator.from_seed(5)
    return [step(tf.constant(0.0)), tf.random.uniform([2]), step(tf.constant(0.0)), generator.normal([2]),
            tf.numpy_function(lambda: np.float32(np.random.normal()), [], tf.float32)]  # fmt: skip


@program
def random_data(log):
    data = tf.data.Dataset.range(8).shuffle(8).map(lambda x: tf.numpy_function(augment, [x], tf.int64))
    return [[int(one) for one in data], [int(one) for one in data]]


@program
def order(log):
    @tf.function
    def step(x):
        tf.py_function(lambda v: log.append(("first", float(v))) or v, [x], tf.float32)
        tf.numpy_function(lambda v: log.append(("second", float(v))), [x], [])
        third = tf.py_function(lambda v: log.append(("third", float(v))) or v, [x], tf.float32)
        return third

    for value in range(5):
        step(tf.constant(float(value)))
    return len(log)


@program
def mutation(log):
    """A NumPy body that writes into its input: TensorFlow may hand out the graph's own memory."""

    def body(x):
        x = np.asarray(x)
        if x.flags.writeable:
            x += 100
        return x.copy()

    @tf.function
    def step(x):
        return tf.numpy_function(body, [x * 1.0], tf.float32)

    return [step(tf.constant([1.0, 2.0])), step(tf.constant([3.0, 4.0]))]


# -- structures -------------------------------------------------------------------------------------------------------


@program
def ragged(log):
    one = tf.ragged.constant([[1.0, 2.0], [3.0]])
    two = tf.ragged.constant([[[1.0], [2.0, 3.0]], [[4.0]]])

    @tf.function
    def step(x, y):
        return tf.py_function(
            lambda a, b: (a * 2, b + 1),  # @ ragged.body
            [x, y],
            [tf.RaggedTensorSpec([None, None]), tf.RaggedTensorSpec([None, None, None], ragged_rank=2)],
        )

    return [step(one, two), tf.py_function(lambda a: a.flat_values, [one], tf.float32)]


@program
def sparse(log):
    value = tf.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 2])

    @tf.function
    def step(x):
        return tf.py_function(lambda s: tf.sparse.to_dense(s), [x], tf.float32)

    return step(value)


@program
def extension_type(log):
    value = Record(tf.constant([1.0]), {"b": tf.constant([2.0]), "a": tf.constant([3.0])})

    @tf.function
    def step(x):
        return tf.py_function(lambda r: r.key + r.fields["a"] * 10, [x], tf.float32)

    return step(value)


@program
def dtypes(log):
    def same(*args):
        return args

    values = [
        tf.constant([True]), tf.constant([b"\x00\xff"]), tf.constant([1], tf.uint8), tf.constant([1j]),
        tf.cast([1.5], tf.bfloat16), tf.cast([1.5], tf.half), tf.constant(2**62, tf.int64), tf.zeros([0, 3]),
    ]  # fmt: skip

    @tf.function
    def step():
        return tf.py_function(same, values, [value.dtype for value in values])

    return step()


# -- kinds of bodies --------------------------------------------------------------------------------------------------


class Callable:
    """An object that can be called."""

    def __call__(self, x):  # @ callables.call
        return x + 1

    def method(self, x):  # @ callables.method
        return x + 2

    @classmethod
    def klass(cls, x):
        return x + 3

    @staticmethod
    def static(x):
        return x + 4


def wrapped(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@wrapped  # @ callables.wrapped
def decorated_body(x):
    return x + 5


def scaled(x, factor):  # @ callables.partial
    return x * factor


@program
def callables(log):
    bodies = [
        Callable(), Callable().method, Callable.klass, Callable.static, decorated_body,
        functools.partial(scaled, factor=2.0), np.sqrt, abs, functools.partial(functools.partial(scaled), factor=3.0),
        lambda x: x + 6,  #@ callables.lambda
        tf.function(lambda x: x + 7),
    ]  # fmt: skip
    results = []
    for body in bodies:
        results.append(
            attempt(tf.function(lambda x, body=body: tf.py_function(body, [x], tf.float32)), tf.constant([4.0]))
        )
        results.append(
            attempt(tf.function(lambda x, body=body: tf.numpy_function(body, [x], tf.float32)), tf.constant([4.0]))
        )
        results.append(attempt(tf.py_function, body, [tf.constant([4.0])], tf.float32))
    return results


@program
def autograph_nested(log):
    @tf.function
    def step(x):
        def nested(v):  # @ autograph_nested.body
            log.append(float(v))
            return v * 2

        if x > 0:
            y = tf.py_function(nested, [x], tf.float32)  # @ autograph_nested.site1
        else:
            y = tf.py_function(lambda v: v - 1, [x], tf.float32)  # @ autograph_nested.site2
        return y

    return [step(tf.constant(1.0)), step(tf.constant(-1.0))]


@program
def autograph_helper(log):
    def helper(x):
        return tf.py_function(add_one, [x], tf.float32)  # @ autograph_helper.site

    @tf.function
    def step(x):
        return helper(x) * 2

    return step(tf.constant(1.0))


# -- functions, gradients, threads ------------------------------------------------------------------------------------


@program
def retraces(log):
    @tf.function
    def step(x, training=False):
        return tf.numpy_function(lambda v: v + np.float32(training), [x], tf.float32)

    return [step(tf.zeros([n])) for n in (1, 2, 2, 3)] + [step(tf.zeros([1]), training=True)]


class Model:
    """With a tf.function for a method."""

    @tf.function
    def step(self, x):  # @ method_function.step
        return tf.py_function(self.body, [x], tf.float32)

    def body(self, x):
        return x * 10


@program
def method_function(log):
    one, two = Model(), Model()
    return [one.step(tf.constant(1.0)), one.step(tf.constant(2.0)), two.step(tf.constant(3.0))]


@program
def gradients(log):
    def square(x):  # @ gradients.body
        log.append("forward")
        return x * x

    @tf.function
    def inside(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.py_function(square, [x], tf.float32)  # @ gradients.inside
        return y, tape.gradient(y, x)

    @tf.function
    def outside(x):
        return tf.py_function(square, [x], tf.float32)  # @ gradients.outside

    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = outside(x) * 2
        z = tf.py_function(square, [x], tf.float32)  # @ gradients.eager
        total = y + z
    return [inside(tf.constant(2.0)), tape.gradient(total, x)]


@program
def gradient_trap(log):
    """A node called twice before its gradient: TensorFlow has kept the last call's tape only."""

    @tf.function
    def step(x):
        return tf.py_function(lambda v: v * v, [x], tf.float32)

    def both():
        x = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            total = step(x) + step(x * 2)
        return tape.gradient(total, x)

    return attempt(both)


@program
def gradient_errors(log):
    def body(x):
        return tf.cast(tf.strings.to_number(tf.strings.as_string(x)), tf.float32)

    @tf.custom_gradient
    def custom(x):
        def grad(dy):
            raise Custom("in the gradient")

        return x * 2, grad

    @tf.function
    def step(x):
        y = tf.py_function(custom, [x], tf.float32)
        return tf.gradients(y, x)

    with tf.GradientTape() as tape:
        x = tf.Variable(1.0)
        y = tf.py_function(body, [x], tf.float32)
    return [attempt(step, tf.constant(1.0)), tape.gradient(y, x)]


@program
def threads(log):
    before, after = threading.Barrier(2, timeout=HANG_S), threading.Barrier(2, timeout=HANG_S)

    def meet(x):
        before.wait()
        return x

    def both_run(x):  # both runs are in flight whenever this begins
        return x + np.float32(1)

    def meet_again(x):
        after.wait()
        return x

    @tf.function
    def step(x):
        for body in (meet, both_run, meet_again):
            x = tf.numpy_function(body, [x], tf.float32)
        return x

    step.get_concrete_function(tf.TensorSpec([], tf.float32))
    results = {}

    def work(number):
        results[number] = [float(step(tf.constant(float(number)))) for _ in range(3)]

    both = [threading.Thread(target=work, args=(number,), name=f"worker-{number}") for number in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    return [
        results[0],
        results[1],
        sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("worker")),
    ]


@program
def body_runs_a_function(log):
    @tf.function
    def inner(x):
        return tf.numpy_function(lambda v: v + np.float32(1), [x], tf.float32)

    @tf.function
    def outer(x):
        return tf.py_function(lambda v: inner(v) * 2, [x], tf.float32)

    return [outer(tf.constant(1.0)), outer(tf.constant(2.0))]


@program
def variables_and_closures(log):
    state = {"count": 0}

    def body(x):
        state["count"] += 1
        v.assign_add(1.0)
        return x * v

    v = tf.Variable(1.0)

    @tf.function
    def step(x):
        return tf.py_function(body, [x], tf.float32)

    return [step(tf.constant(1.0)), step(tf.constant(1.0)), state["count"], v]


@program
def eager_functions(log):
    tf.config.run_functions_eagerly(True)
    try:

        @tf.function
        def step(x):
            return tf.py_function(add_one, [x], tf.float32)

        return [step(tf.constant(1.0)), step(tf.constant(2.0))]
    finally:
        tf.config.run_functions_eagerly(False)


@program
def saved_model(log):
    import tempfile

    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def step(self, x):
            return tf.py_function(add_one, [x], tf.float32)

    module = Module()
    before = module.step(tf.constant(1.0))
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder)
        loaded = tf.saved_model.load(folder)
        return [before, loaded.step(tf.constant(2.0)), loaded.step(tf.constant(3.0))]


@program
def what_python_shows(log):
    """What a curious body can see of its surroundings is as without us."""
    import inspect
    import sys

    def body(x):
        log.append(sys.gettrace() is None)
        log.append(threading.current_thread().name.startswith(("Dummy", "MainThread")))
        log.append(len(inspect.signature(body).parameters))
        return x

    @tf.function
    def step(x):
        return tf.py_function(body, [x], tf.float32)

    return [step(tf.constant(1.0)), tf.py_function(body, [1.0], tf.float32)]
