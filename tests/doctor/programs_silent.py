"""More programs that do not fail: as `programs`, after what users report of gradients, epochs, objects and loops."""
# ruff: noqa: B023

from __future__ import annotations

import contextlib
import os
import random
import tempfile

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers


def mapped(body, data, Tout=tf.float32, **options):  # noqa: N803
    """That of `programs` leads the doctor to all of its text, ten times: 0.3 s of CPU each."""
    dataset = tf.data.Dataset.from_tensor_slices(data)
    return dataset.map(lambda x: tf.numpy_function(body, [x], Tout), **options)


# -- nan-born, inf-born -----------------------------------------------------------------------------------------------


@triggers("nan-born", says="the gradient of", pastes=True)
def a_distance_of_equal_points():
    def distance(a, b):
        return tf.sqrt(tf.reduce_sum((a - b) ** 2, axis=-1))

    @tf.function
    def step(a, b):
        with tf.GradientTape() as tape:
            tape.watch(a)
            loss = tf.reduce_sum(tf.py_function(distance, [a, b], tf.float32))
        return tape.gradient(loss, a)

    for shift in (1.0, 2.0, 0.0):
        step(tf.ones([2, 3]), tf.ones([2, 3]) + shift)


@triggers("nan-born", says="the gradient of", pastes=True)
def a_norm_of_zeros():
    def length(x):
        return tf.norm(x, axis=-1)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.py_function(length, [x], tf.float32))
        return tape.gradient(loss, x)

    for size in (1.0, 2.0, 0.0):
        step(size * tf.ones([2, 3]))


@near("nan-born")
def a_distance_with_a_bound():
    def distance(a, b):
        return tf.sqrt(tf.reduce_sum((a - b) ** 2, axis=-1) + 1e-9)

    @tf.function
    def step(a, b):
        with tf.GradientTape() as tape:
            tape.watch(a)
            loss = tf.reduce_sum(tf.py_function(distance, [a, b], tf.float32))
        return tape.gradient(loss, a)

    step(tf.ones([2, 3]), tf.ones([2, 3]))


@triggers("nan-born", pastes=True)
def a_constant_series_divided_in_place():
    def standard(x):
        z = x - x.mean()
        z /= x.std()
        return z

    data = np.concatenate([np.random.default_rng(0).random((4, 5)), np.ones((1, 5))]).astype(np.float32)
    list(tf.data.Dataset.from_tensor_slices(data).map(lambda x: tf.numpy_function(standard, [x], tf.float32)))


@near("inf-born")
def the_best_so_far():
    class Best:
        def __init__(self):
            self.best = float("inf")

        def update(self, x):
            before, self.best = self.best, min(self.best, float(x))
            return np.float32(before)

    best = Best()
    list(tf.data.Dataset.range(3).map(lambda x: tf.numpy_function(best.update, [x], tf.float32)))


# -- none-gradient ----------------------------------------------------------------------------------------------------


@triggers("none-gradient", says="tf.experimental.numpy.sinh", pastes=True)
def a_function_of_numpy_in_an_eager_loop():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.py_function(np.sinh, [x], tf.float32)
    tape.gradient(y, x)


@triggers("none-gradient", pastes=True)
def a_cast_to_whole_numbers_in_a_body():
    def quantized(x):
        return tf.cast(tf.cast(x * 10, tf.int32), tf.float32) / 10

    w = tf.Variable([0.33, 0.77])

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.py_function(quantized, [x * w], tf.float32) ** 2)
        return tape.gradient(loss, w)

    step(tf.constant([1.0, 2.0]))


@near("none-gradient")
def a_gradient_of_zero_in_an_eager_loop():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.py_function(lambda v: v * 0.0, [x], tf.float32)
    tape.gradient(y, x)


# -- none-gradient: of what vectorized_map maps ------------------------------------------------------------------------


@triggers(
    "none-gradient", says="tf.map_fn(lambda row: energy(row * w), rows, fn_output_signature=tf.float32)", pastes=True
)
def a_gradient_of_a_simulator_that_is_vectorized():
    @tf.custom_gradient
    def energy(x):
        def grad(upstream):
            return tf.numpy_function(lambda x, u: (2 * x * u).astype(np.float32), [x, upstream], tf.float32)

        return tf.numpy_function(lambda x: (x**2).sum().astype(np.float32), [x], tf.float32), grad

    w = tf.Variable(tf.ones([3]))
    rows = tf.ones([4, 3])

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.vectorized_map(lambda row: energy(row * w), rows))
        w.assign_sub(0.1 * tape.gradient(loss, w))

    step()


@triggers("none-gradient", says="fn_output_signature=(tf.float32, tf.int64)", pastes=True)
def a_gradient_of_pairs_that_are_vectorized_eagerly():
    @tf.custom_gradient
    def nearest(x, table):
        found, place = tf.numpy_function(
            lambda x, t: (t[abs(t - x).argmin()], abs(t - x).argmin()), [x, table], [tf.float32, tf.int64]
        )
        return (found, place), lambda up, _: (up, tf.zeros_like(table))

    def both(pair):
        return nearest(pair[0], pair[1])

    x, tables = tf.Variable([0.2, 0.7]), tf.constant([[0.0, 1.0], [0.5, 0.6]])
    with tf.GradientTape() as tape:
        found, _ = tf.vectorized_map(
            fn=both,
            elems=(tf.identity(x), tables),
            warn=False,
        )
        loss = tf.reduce_sum(found)
    tape.gradient(loss, x)


@near("missing-tape", ends_with=tf.errors.OpError)
@triggers("none-gradient", says="differentiates", pastes=True, ends_with=tf.errors.OpError)
def a_gradient_of_a_py_function_in_a_function_that_is_vectorized():
    def squares(x):
        return tf.reduce_sum(x**2)

    def bounded(x):
        y = tf.ensure_shape(tf.py_function(squares, [x], tf.float32), [])
        return y, lambda upstream: tf.clip_by_value(2 * x * upstream, -1.0, 1.0)

    own = tf.custom_gradient(bounded)

    @tf.function
    def one(x):
        return own(x) + 1.0

    w = tf.Variable(tf.ones([3]))

    @tf.function
    def step(rows):
        with tf.GradientTape() as tape:
            y = tf.vectorized_map(one, rows * w)
        return tape.gradient(y, w)

    step(tf.ones([2, 3]))


@triggers("none-gradient", says="experimental_use_pfor=False")
def a_gradient_of_a_gradient_in_a_jacobian():
    def cubic(x, u):
        return (3 * x**2 * u).astype(np.float32)

    @tf.custom_gradient
    def slope(x, u):
        y = tf.ensure_shape(tf.numpy_function(cubic, [x, u], tf.float32), [2])
        return y, lambda up: (6 * x * u * up, 3 * x**2 * up)

    @tf.custom_gradient
    def cube(x):
        y = tf.ensure_shape(tf.numpy_function(lambda x: x**3, [x], tf.float32), [2])
        return y, lambda up: slope(x, up)

    w = tf.Variable([0.5, 0.7])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            y = cube(w)
        loss = tf.reduce_sum(tape.jacobian(y, w))
    outer.gradient(loss, w)


@near("none-gradient")
def a_simulator_that_is_vectorized_for_a_look():
    @tf.custom_gradient
    def energy(x):
        return tf.numpy_function(lambda x: (x**2).sum().astype(np.float32), [x], tf.float32), lambda up: 2 * x * up

    w = tf.Variable(tf.ones([3]))

    @tf.function
    def step(rows):
        seen = tf.reduce_max(tf.vectorized_map(lambda row: energy(row * w), rows))
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.vectorized_map(lambda row: tf.reduce_sum(row * w), rows))
        return tape.gradient(loss, w), seen

    step(tf.ones([4, 3]))


@near("none-gradient")
def rows_of_numpy_and_a_gradient_of_ops_that_is_vectorized():
    @tf.custom_gradient
    def bounded(x):
        return tf.reduce_sum(x**2), lambda up: tf.clip_by_value(2 * x * up, -1.0, 1.0)

    w = tf.Variable(tf.ones([3]))

    @tf.function
    def step(rows):
        rows = tf.ensure_shape(tf.numpy_function(lambda x: x * 2, [rows], tf.float32), [4, 3])
        with tf.GradientTape() as tape:
            y = tf.vectorized_map(lambda row: bounded(row * w), rows)
        return tape.gradient(y, w)

    step(tf.ones([4, 3]))


@near("none-gradient")
def a_gradient_of_a_simulator_that_is_mapped():
    @tf.custom_gradient
    def energy(x):
        return tf.numpy_function(lambda x: (x**2).sum().astype(np.float32), [x], tf.float32), lambda up: 2 * x * up

    w = tf.Variable(tf.ones([3]))

    @tf.function
    def step(rows):
        with tf.GradientTape() as tape:
            y = tf.map_fn(lambda row: energy(row * w), rows)
        return tape.gradient(y, w)

    step(tf.ones([4, 3]))


@near("none-gradient")
def weights_of_numpy_that_are_vectorized():
    w = tf.Variable(tf.ones([3]))

    def weighed(row):
        weight = tf.numpy_function(lambda x: np.float32(x.max() > 0), [row], tf.float32)
        return tf.reduce_sum(row) * tf.ensure_shape(weight, [])

    @tf.function
    def step(rows):
        with tf.GradientTape() as tape:
            y = tf.vectorized_map(weighed, rows * w)
        return tape.gradient(y, w)

    step(tf.ones([4, 3]))


@near("none-gradient")
def a_jacobian_of_a_gradient_of_its_own():
    @tf.custom_gradient
    def cube(x):
        y = tf.ensure_shape(tf.numpy_function(lambda x: x**3, [x], tf.float32), [2])
        return y, lambda up: 3 * x**2 * up

    w = tf.Variable([0.5, 0.7])
    with tf.GradientTape() as tape:
        y = cube(w)
    tape.jacobian(y, w)


# -- random numbers, state --------------------------------------------------------------------------------------------


@triggers("parallel-random", says="draws from the generator self.rng", pastes=True)
def a_generator_that_an_object_holds():
    class Crop:
        def __init__(self, size, rng):
            self.size = size
            self.rng = rng

        def __call__(self, x):
            return x[self.offset() :][: self.size]

        def offset(self):
            return int(self.rng.integers(0, 3))

    rng = np.random.default_rng(7)
    crop = Crop(2, rng)
    data = tf.data.Dataset.from_tensor_slices(np.ones((8, 5), np.float32))
    list(data.map(lambda x: tf.numpy_function(crop, [x], tf.float32), num_parallel_calls=4))


@near("parallel-random")
def a_generator_that_an_object_holds_in_turn():
    class Crop:
        def __init__(self):
            self.rng = np.random.default_rng(7)

        def __call__(self, x):
            return x[int(self.rng.integers(0, 3)) :]

    crop = Crop()
    data = tf.data.Dataset.from_tensor_slices(np.ones((8, 5), np.float32))
    list(data.map(lambda x: tf.numpy_function(crop, [x], tf.float32)))


class Flip:
    """What a library of augmentations has."""

    def __init__(self, p):
        self.p = p

    def __call__(self, image):
        return image[::-1] if random.random() < self.p else image


@triggers("cached-random", pastes=True)
def an_object_that_draws_before_the_cache():
    class Compose:
        def __init__(self, transforms):
            self.transforms = transforms

        def __call__(self, image):
            for one in self.transforms:
                image = one(image)
            return {"image": image}

    transform = Compose([Flip(0.5)])

    def process(x):
        def body(image):
            return transform(image=image)["image"]

        return tf.numpy_function(body, [x], tf.float32)

    data = tf.data.Dataset.from_tensor_slices(np.ones((4, 3), np.float32))
    data = data.map(process).cache().batch(2)
    for _ in range(3):
        list(data)


@triggers("trace-only", says="tf.Variable(0)", pastes=True)
def a_counter_of_a_trainer():
    class Trainer:
        def __init__(self):
            self.steps = 0

        @tf.function
        def train(self, x):
            self.steps += 1
            return tf.py_function(lambda v: v * 2, [x], tf.float32)

    trainer = Trainer()
    for _ in range(4):
        trainer.train(tf.constant(1.0))


@triggers("trace-only", says="dtype=tf.float32", pastes=True)
def a_schedule_that_is_an_argument():
    class Schedule:
        def __init__(self):
            self.value = 0

        def rate(self):
            return 0.1 / (1 + self.value)

    schedule = Schedule()

    @tf.function
    def step(x, o):
        o.value += 1
        return tf.py_function(lambda v: v, [x * o.rate()], tf.float32)

    for _ in range(4):
        step(tf.constant(1.0), schedule)


@triggers("shared-state", says="in a map with parallel calls")
def a_running_mean_of_an_object_in_parallel_calls():
    class Mean:
        def __init__(self):
            self.count = 0

        def update(self, x):
            self.count += 1
            return x

    mean = Mean()
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1  # its calls never run at once
    data = tf.data.Dataset.range(3).map(lambda x: tf.numpy_function(mean.update, [x], tf.int64), num_parallel_calls=2)
    list(data.with_options(options))


@triggers("bytes-compared", pastes=True)
def a_label_from_a_path_split_as_bytes():
    known = {"cat": 1, "dog": 2}

    def label(path):
        name = path.numpy().split(b"/")[-1]
        return np.int64(known.get(name, 0))

    paths = tf.data.Dataset.from_tensor_slices(["x/cat", "x/dog"] * 3)
    list(paths.map(lambda p: tf.py_function(label, [p], tf.int64)))


@near("vanishing-gradient")
def a_hinge_that_is_satisfied():
    def hinge(x):
        return tf.reduce_sum(tf.maximum(x - 5.0, 0.0))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.py_function(hinge, [x], tf.float32)
        return tape.gradient(loss, x)

    for _ in range(6):
        step(tf.ones([3]))


# -- memory of arrays -------------------------------------------------------------------------------------------------


@triggers("writes-input", pastes=True)
def a_helper_that_writes():
    def body(x):
        center(x)
        return x * 2

    tf.numpy_function(body, [tf.constant([1.0, 2.0])], tf.float32)


def center(a):
    a -= a.mean()


@near("writes-input")
def a_helper_that_writes_into_a_copy():
    def body(x):
        x = x.copy()
        center(x)
        return x

    tf.numpy_function(body, [tf.constant([1.0, 2.0])], tf.float32)


@triggers("reused-memory", pastes=True)
def a_buffer_of_an_object():
    class Ring:
        def __init__(self):
            self.buffer = np.zeros(2, np.float32)

        def fill(self, value):
            self.buffer[:] = value
            return self.buffer

        def get(self, i):
            return self.fill(float(i))

    ring = Ring()
    list(tf.data.Dataset.range(3).map(lambda i: tf.numpy_function(ring.get, [i], tf.float32)))


@near("reused-memory")
def a_state_that_is_made_anew():
    class Smooth:
        def __init__(self):
            self.last = np.zeros(2, np.float32)

        def __call__(self, x):
            self.last = (0.9 * self.last + 0.1 * x).astype(np.float32)
            return self.last

    smooth = Smooth()
    data = np.ones((3, 2), np.float32)
    list(tf.data.Dataset.from_tensor_slices(data).map(lambda x: tf.numpy_function(smooth, [x], tf.float32)))


# -- loops ------------------------------------------------------------------------------------------------------------


@triggers("late-binding", pastes=True)
def lambda_layers_made_in_a_loop():
    given = keras.Input((3,))
    parts = []
    for i in range(3):
        layer = keras.layers.Lambda(
            lambda x: tf.ensure_shape(tf.numpy_function(lambda a: a[:, i : i + 1], [x], tf.float32), [None, 1]),
            output_shape=(1,),
        )
        parts.append(layer(given))
    model = keras.Model(given, keras.layers.Concatenate()(parts))
    model.predict(np.ones((2, 3), np.float32), verbose=0)


@near("late-binding")
def lambda_layers_with_defaults():
    given = keras.Input((3,))
    parts = []
    for i in range(3):
        layer = keras.layers.Lambda(
            lambda x, i=i: tf.ensure_shape(tf.numpy_function(lambda a: a[:, i : i + 1], [x], tf.float32), [None, 1]),
            output_shape=(1,),
        )
        parts.append(layer(given))
    model = keras.Model(given, keras.layers.Concatenate()(parts))
    model.predict(np.ones((2, 3), np.float32), verbose=0)


@triggers("shuffled-split", says="by the number of each element", pastes=True)
def a_split_by_numbers_after_a_shuffle():
    data = tf.data.Dataset.range(20).map(lambda x: tf.numpy_function(lambda v: v, [x], tf.int64)).shuffle(20)
    numbered = data.enumerate()
    train = numbered.filter(lambda i, x: i % 5 > 0)
    test = numbered.filter(lambda i, x: i % 5 == 0)
    for _ in range(2):
        list(train)
        list(test)


@near("shuffled-split")
def a_split_by_numbers_before_a_shuffle():
    data = tf.data.Dataset.range(20).map(lambda x: tf.numpy_function(lambda v: v, [x], tf.int64))
    numbered = data.enumerate()
    train = numbered.filter(lambda i, x: i % 5 > 0).shuffle(20)
    test = numbered.filter(lambda i, x: i % 5 == 0)
    for _ in range(2):
        list(train)
        list(test)


# -- shuffled-apart ---------------------------------------------------------------------------------------------------


PICTURES, CLASSES = np.arange(24, dtype=np.float32).reshape(12, 2), np.arange(12) % 3


def halves(x):
    return tf.ensure_shape(tf.numpy_function(lambda a: a / 2, [x], tf.float32), [2])


@triggers("shuffled-apart", severity="error", says="images and targets are zipped", pastes=True)
def images_and_classes_shuffled_apart():
    images = tf.data.Dataset.from_tensor_slices(PICTURES).shuffle(12).map(halves)
    targets = tf.data.Dataset.from_tensor_slices(CLASSES).shuffle(12)
    list(tf.data.Dataset.zip((images, targets)).batch(4))


@triggers("shuffled-apart", says="only one of them was shuffled", pastes=True)
def only_the_images_shuffled():
    tf.random.set_seed(1)
    y_train = PICTURES * 2
    images = tf.data.Dataset.from_tensor_slices(PICTURES)
    images = images.map(halves)
    images = images.shuffle(buffer_size=12)
    outputs = tf.data.Dataset.from_tensor_slices(y_train)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    model.fit(tf.data.Dataset.zip((images, outputs)).batch(4), epochs=2, verbose=0)


@triggers("shuffled-apart", says="shuffle=False", pastes=True)
def files_of_pictures_and_masks_listed_apart():
    folder = tempfile.mkdtemp()
    for number in range(4):
        for kind in ("image", "mask"):
            np.save(os.path.join(folder, f"{kind}{number}.npy"), np.float32([number, 1]))
    images = tf.data.Dataset.list_files(folder + "/image*.npy")
    masks = tf.data.Dataset.list_files(folder + "/mask*.npy")
    pairs = tf.data.Dataset.zip((images, masks))
    list(
        pairs.map(
            lambda i, m: [tf.numpy_function(lambda name: np.load(name.decode()), [one], tf.float32) for one in (i, m)]
        )
    )


@near("shuffled-apart")
def shuffled_apart_with_one_seed():
    images = tf.data.Dataset.from_tensor_slices(PICTURES).shuffle(12, seed=5).map(halves)
    labels = tf.data.Dataset.from_tensor_slices(CLASSES).shuffle(12, seed=5)
    list(tf.data.Dataset.zip((images, labels)))


@near("shuffled-apart")
def examples_mixed_with_others():
    data = tf.data.Dataset.from_tensor_slices((PICTURES, CLASSES)).map(lambda x, y: (halves(x), y))
    labels = tf.data.Dataset.from_tensor_slices((PICTURES, CLASSES)).shuffle(12)
    list(tf.data.Dataset.zip((data.shuffle(12), labels)))


@near("shuffled-apart")
def examples_beside_those_without_labels():
    y_train = CLASSES
    labeled = tf.data.Dataset.from_tensor_slices((PICTURES, y_train)).shuffle(12)
    others = tf.data.Dataset.from_tensor_slices(PICTURES).shuffle(12).map(halves)
    list(tf.data.Dataset.zip((labeled, others)))


@near("shuffled-apart")
def two_sets_of_pictures_without_pairs():
    horses = tf.data.Dataset.from_tensor_slices(PICTURES).map(halves).shuffle(12)
    zebras = tf.data.Dataset.from_tensor_slices(PICTURES + 1).map(halves).shuffle(12)
    list(tf.data.Dataset.zip((horses, zebras)))


@near("shuffled-apart")
def numbers_beside_a_shuffled_dataset():
    data = tf.data.Dataset.from_tensor_slices(PICTURES).map(halves).shuffle(12)
    labels = tf.data.Dataset.range(12)
    list(tf.data.Dataset.zip((data, labels)))


@near("shuffled-apart")
def pictures_with_others_of_the_same():
    images = tf.data.Dataset.from_tensor_slices(PICTURES).map(halves)
    targets = images.shuffle(12)
    list(tf.data.Dataset.zip((images.shuffle(12), targets)))


@near("shuffled-apart")
def pairs_that_are_shuffled():
    images = tf.data.Dataset.from_tensor_slices(PICTURES).map(halves)
    labels = tf.data.Dataset.from_tensor_slices(CLASSES)
    list(tf.data.Dataset.zip((images, labels)).shuffle(12))


@triggers("dataset-in-loop", says="@tf.function", pastes=True)
def a_dataset_of_a_worker_for_each_task():
    class Worker:
        def double(self, x):
            return x * 2

        def dataset(self, data):
            def parse(x):
                return tf.py_function(self.double, [x], tf.float32)

            return tf.data.Dataset.from_tensor_slices(data).map(parse)

    worker = Worker()
    for task in range(7):
        list(worker.dataset(np.full(3, task, np.float32)))


@triggers("dataset-in-loop", pastes=True)
def a_dataset_that_a_function_returns():
    def make():
        return tf.data.Dataset.from_tensor_slices(np.ones(3, np.float32)).map(
            lambda x: tf.numpy_function(lambda v: v * 2, [x], tf.float32)
        )

    for _ in range(7):
        list(make())


@triggers("dataset-in-loop", says="make builds it, for each call in", pastes=True)
def a_dataset_of_what_a_loop_collects():
    seen, sizes = [0.0], []

    def make():
        kept = list(seen)
        offset = len("one")

        def rows():
            yield from kept

        data = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([]))
        data = data.map(lambda x: x + offset)
        return data.batch(2)

    for step in range(7):
        seen.append(float(step))
        sizes.append(sum(len(x) for x in make()))
    assert sizes == list(range(2, 9)), "each pass has what was collected until then"


@triggers("dataset-in-loop", says="= make(rows)", pastes=True)
def a_dataset_that_a_function_builds_of_its_argument():
    def make(given):
        scale = len(given)
        data = tf.data.Dataset.from_tensor_slices(given)
        data = data.map(lambda x: x * scale)
        return data

    rows = np.ones(3, np.float32)
    for _ in range(7):
        for x in make(rows):
            assert x == 3


@triggers("dataset-in-loop", says="dataset = make()  # once, above the loop in line")
def a_function_that_draws_before_it_builds_a_dataset():
    def make():
        order = np.random.permutation(3)
        data = tf.data.Dataset.from_tensor_slices(order)
        data = data.map(lambda x: x * order[0])
        return data

    for _ in range(7):
        list(make())


@triggers("dataset-in-loop", says="`data = tf.data.Dataset.from_tensor_slices(seen)` reads is then read once")
def a_dataset_over_a_list_that_a_loop_fills():
    seen = [0.0]

    def make():
        scale = len("one")
        data = tf.data.Dataset.from_tensor_slices(seen)
        data = data.map(lambda x: x * scale)
        return data

    for _ in range(7):
        seen.append(1.0)
        list(make())


@triggers("dataset-in-loop", severity="note", says="which drops it. TensorFlow keeps rows of each", pastes=True)
def a_dataset_of_a_generator_for_each_fold():
    def build(data):
        def rows():
            yield from data

        return tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([])).batch(2)

    def fold(number):
        train = build(np.ones(3 + number, np.float32))
        test = build(np.ones(2, np.float32))
        shuffled = train.shuffle(2)
        list(shuffled)
        return len(list(test))

    total = 0
    for number in range(5):
        total += fold(number)
    assert total == 5


@triggers("dataset-in-loop", severity="note", says="in passes of the loop in line", pastes=True)
def a_dataset_of_a_lambda_that_the_next_pass_replaces():
    for size in (2, 3, 4, 5):
        rows = np.ones(size, np.float32)
        data = tf.data.Dataset.from_generator(lambda rows=rows: iter(rows), output_signature=tf.TensorSpec([]))
        assert len(list(data)) == size


@triggers("dataset-in-loop", severity="note", says="tf.keras.backend.clear_session()", pastes=True)
def a_dataset_of_a_method_for_each_model():
    class Trial:
        def __init__(self, size):
            self.size = size

        def rows(self):
            yield np.ones([self.size, 1], np.float32), np.ones([self.size, 1], np.float32)

        def score(self):
            spec = tf.TensorSpec([None, 1])
            data = tf.data.Dataset.from_generator(self.rows, output_signature=(spec, spec))
            model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
            model.compile("sgd", "mse")
            return model.evaluate(data, verbose=0)

    sizes = [1, 2, 3]
    while sizes:
        trial = Trial(sizes.pop())
        trial.score()


@near("dataset-in-loop")
def datasets_of_generators_that_a_dict_keeps():
    def build(rows):
        return tf.data.Dataset.from_generator(lambda: iter(rows), output_signature=tf.TensorSpec([]))

    data = {}
    for split in ("train", "validation", "test"):
        data[split] = build(np.ones(3, np.float32))
    for one in data.values():
        list(one)


@near("dataset-in-loop")
def datasets_of_generators_that_are_interleaved():
    parts = []
    for size in range(1, 5):
        rows = np.ones(size, np.float32)
        part = tf.data.Dataset.from_generator(lambda rows=rows: iter(rows), output_signature=tf.TensorSpec([]))
        batched = part.batch(2)
        parts.append(batched)
    list(tf.data.Dataset.zip(tuple(parts)))


@near("dataset-in-loop")
def datasets_of_generators_of_which_each_is_joined_to_the_one_before():
    def joined(data, rows):
        more = tf.data.Dataset.from_generator(lambda: iter(rows), output_signature=tf.TensorSpec([]))
        return more if data is None else data.concatenate(more)

    data = None
    for size in range(1, 5):
        data = joined(data, np.ones(size, np.float32))
    list(data)


@near("dataset-in-loop")
def datasets_of_generators_that_are_let_go():
    for size in (2, 3, 4):
        rows = np.ones(size, np.float32)
        list(tf.data.Dataset.from_generator(lambda rows=rows: iter(rows), output_signature=tf.TensorSpec([])))
        keras.backend.clear_session()


@near("dataset-in-loop")
def datasets_of_one_function_for_two_splits():
    def make(rows):
        scale = len(rows)
        return tf.data.Dataset.from_tensor_slices(rows).map(lambda x: x * scale)

    train, test = make(np.ones(3, np.float32)), make(np.ones(2, np.float32))
    for _ in range(6):
        list(train)
        list(test)


@triggers("function-in-loop", pastes=True)
def a_method_that_makes_a_function():
    class Predictor:
        def predict(self, x):
            run = tf.function(lambda v: tf.numpy_function(lambda a: a * 2, [v], tf.float32))
            return run(x)

    predictor = Predictor()
    for _ in range(7):
        predictor.predict(tf.constant([1.0]))


# -- several Python numbers, lists; overflow in each call; one cache, several loops -----------------------------------


@triggers("retrace", says="which is not proven", pastes=True)
def two_numbers_that_change_with_each_step():
    def smooth(y):
        return (y * 0.9).astype(np.float32)

    @tf.function
    def step(x, rate, temperature):
        y = tf.ensure_shape(tf.numpy_function(smooth, [x], tf.float32), (4,))
        return tf.reduce_sum(y / temperature) * rate

    rate, temperature = 0.5, 1.0
    for _ in range(6):
        step(tf.ones(4), rate, temperature)
        rate, temperature = rate * 0.9, temperature * 0.99


@triggers("retrace", says="reduce_retracing=True", pastes=True)
def lists_of_many_lengths():
    def weigh(v):
        return (v + 1).astype(np.float32)

    @tf.function
    def embed(tokens):
        return tf.numpy_function(weigh, [tf.reduce_mean(tf.gather(tf.range(9.0), tokens))], tf.float32)

    for size in (1, 2, 3, 4, 5, 6):
        tokens = list(range(size))
        embed(tokens)


@triggers("retrace", says="as tensor")
def a_number_that_numpy_needs():
    def weigh(v):
        return (v + 1).astype(np.float32)

    @tf.function
    def window(x, size, scale):
        return tf.numpy_function(weigh, [x * np.hanning(size).sum() * scale], tf.float32)

    for size in (2, 3, 4, 5, 6):
        window(tf.ones(4), size, size / 10)


@triggers("inf-born", says="in 6 of 6 calls", pastes=True)
def a_softplus_that_overflows_in_each_call():
    def softplus(x):
        return np.log(1.0 + np.exp(20.0 * x)).astype(np.float32)

    for _ in range(6):
        tf.numpy_function(softplus, [tf.constant([0.0, 1.0, 8.0])], tf.float32)


@near("inf-born")
def a_logarithm_of_shares_that_are_zero_in_each_call():
    def shares(x):
        with np.errstate(divide="ignore"):
            return np.log(x).astype(np.float32)

    for _ in range(6):
        tf.numpy_function(shares, [tf.constant([0.0, 0.5, 0.5])], tf.float32)


@triggers("cached-random", says="it ran 32 times", pastes=True)
def two_loops_over_one_cache():
    def jitter(x):
        return (x + np.random.normal(size=x.shape)).astype(np.float32)

    data = tf.data.Dataset.from_tensor_slices(np.zeros((32, 3), np.float32))
    data = data.map(lambda x: tf.numpy_function(jitter, [x], tf.float32)).cache().batch(8)
    for _ in data:
        pass
    for _ in data:
        pass


@near("cached-random")
def two_halves_with_a_cache_each():
    def jitter(x):
        return (x + np.random.normal(size=x.shape)).astype(np.float32)

    data = tf.data.Dataset.from_tensor_slices(np.zeros((32, 3), np.float32))
    data = data.map(lambda x: tf.numpy_function(jitter, [x], tf.float32))
    for _ in data.take(16).cache().batch(8):
        pass
    for _ in data.skip(16).cache().batch(8):
        pass


# -- variables of bodies that are asked for by name --------------------------------------------------------------------


@triggers("variable-no-input", says="uses the variable gain", pastes=True)
def a_variable_of_an_object_whose_input_nobody_trains():
    class Scale:
        def __init__(self):
            self.gain = tf.Variable(1.0)

        def body(self, x):
            return x * self.gain

        @tf.function
        def __call__(self, x):
            return tf.py_function(self.body, [x], tf.float32)

    scale = Scale()
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(scale(tf.ones(3)))
        tape.gradient(loss, scale.gain)


@triggers("variable-no-input", says="uses the variable gain", pastes=True)
def a_variable_of_an_object_that_others_call():
    class Scale:
        def __init__(self):
            self.gain = tf.Variable(1.0)

        def body(self, x):
            return x * self.gain

    scale = Scale()

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.py_function(scale.body, [x], tf.float32))
        return tape.gradient(loss, [scale.gain])

    step(tf.ones(3))


@near("variable-no-input")
def a_variable_that_has_a_gradient_elsewhere():
    gain = tf.Variable(1.0)

    def log(x):
        return x + 0.0 * gain

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(x * gain)
            tf.py_function(log, [x], tf.float32)
        return tape.gradient(loss, [gain])

    step(tf.ones(3))


# -- shuffled-results -------------------------------------------------------------------------------------------------


def numbered(i):
    return np.full(2, i, np.float32), np.int64(i)


def sample(i):
    x, y = tf.numpy_function(numbered, [i], (tf.float32, tf.int64))
    return tf.ensure_shape(x, (2,)), tf.ensure_shape(y, ())


@triggers("shuffled-results", says="two passes", pastes=True)
def predictions_beside_the_labels_of_another_pass():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    test = tf.data.Dataset.range(8).shuffle(8).map(sample).batch(4)
    predicted = model.predict(test, verbose=0)[:, 0] > 0.5
    labels = np.concatenate([y for _, y in test])
    np.mean(predicted == labels)


@triggers("shuffled-results", pastes=True)
def images_and_labels_in_two_loops():
    test = tf.data.Dataset.range(8).map(sample).shuffle(8)
    images, labels = [], []
    for x, _ in test:
        images.append(x)
    for _, y in test:
        labels.append(y)
    dict(enumerate(zip(images, labels)))


@triggers("shuffled-results", says="list_files", pastes=True)
def results_beside_the_sorted_files():
    with tempfile.TemporaryDirectory() as folder:
        for i in range(6):
            np.save(os.path.join(folder, f"{i}.npy"), np.float32(i))
        files = tf.data.Dataset.list_files(os.path.join(folder, "*.npy"))
        read = files.map(lambda path: tf.numpy_function(lambda name: np.load(name.decode()), [path], tf.float32))
        values = [float(one) for one in read]
        same = values == sorted(values)
        return same


class Reordered:
    def __init__(self, count, shuffle=True):
        self.count, self.shuffle = count, shuffle

    def __call__(self):
        order = np.arange(self.count)
        if self.shuffle:
            np.random.shuffle(order)
        for i in order:
            yield numbered(i)


def given_by(generator):
    spec = (tf.TensorSpec((2,), tf.float32), tf.TensorSpec((), tf.int64))
    return tf.data.Dataset.from_generator(generator, output_signature=spec).shuffle(1, reshuffle_each_iteration=False)


@triggers("shuffled-results", says="gave the same elements in another order in each pass, by np.random.shuffle")
def features_saved_beside_the_labels_of_another_pass():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    test = given_by(Reordered(40)).batch(4)
    features = model.predict(test, verbose=0)
    labels = np.concatenate([y for _, y in test])
    with tempfile.TemporaryDirectory() as folder:
        np.savez(os.path.join(folder, "features.npz"), x=features, y=labels)


@triggers("shuffled-results", says="gave the same elements in another order in each pass")
def two_loops_over_a_generator_of_a_permutation():
    def rows():
        for i in np.random.permutation(40):
            yield numbered(i)

    test = given_by(rows)
    images = [x for x, _ in test]
    labels = [y for _, y in test]
    list(zip(images, labels))


@near("shuffled-results")
def features_saved_beside_labels_of_a_generator_that_keeps_its_order():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    test = given_by(Reordered(40, shuffle=False)).batch(4)
    features = model.predict(test, verbose=0)
    labels = np.concatenate([y for _, y in test])
    with tempfile.TemporaryDirectory() as folder:
        np.savez(os.path.join(folder, "features.npz"), x=features, y=labels)


@near("shuffled-results")
def two_loops_over_a_generator_of_new_elements():
    def rows():
        for i in np.random.default_rng().integers(0, 9999, 40):
            yield numbered(i)

    test = given_by(rows)
    images = [x for x, _ in test]
    labels = [y for _, y in test]
    return len(images) == len(labels)


@near("shuffled-results")
def two_loops_over_a_generator_whose_elements_a_cache_keeps():
    test = given_by(Reordered(40)).cache()
    images = [x for x, _ in test]
    labels = [y for _, y in test]
    list(zip(images, labels))


@near("shuffled-results")
def predictions_and_labels_of_one_order():
    test = tf.data.Dataset.range(8).shuffle(8, reshuffle_each_iteration=False).map(sample)
    images = [x for x, _ in test]
    labels = [y for _, y in test]
    list(zip(images, labels))


@near("shuffled-results")
def predictions_and_labels_in_one_loop():
    test = tf.data.Dataset.range(8).shuffle(8).map(sample)
    pairs = [(x, y) for x, y in test]
    list(zip(pairs, pairs))


@near("shuffled-results")
def images_and_labels_that_are_only_counted():
    test = tf.data.Dataset.range(8).shuffle(8).map(sample)
    images = [x for x, _ in test]
    labels = [y for _, y in test]
    sum(float(tf.reduce_sum(x)) for x in images) + sum(int(y) for y in labels)


@near("shuffled-results")
def images_and_labels_of_a_cache():
    test = tf.data.Dataset.range(8).shuffle(8).map(sample).cache()
    images = [x for x, _ in test]
    labels = [y for _, y in test]
    list(zip(images, labels))


@near("shuffled-results")
def the_orders_of_two_passes():
    test = tf.data.Dataset.range(8).shuffle(8).map(sample)
    first = [int(y) for _, y in test]
    second = [int(y) for _, y in test]
    return first == second


# -- wrap-around ------------------------------------------------------------------------------------------------------


def pixels():
    return np.arange(0, 250, 10, dtype=np.uint8).reshape(5, 5)


@triggers("wrap-around", says="190 became 4", pastes=True)
def brighter_bytes():
    def brighten(image):
        return image + np.uint8(70)

    list(mapped(brighten, pixels(), tf.uint8))


@triggers("wrap-around", pastes=True)
def bytes_with_more_contrast():
    def contrast(image):
        stronger = 2 * image
        return stronger.astype(np.float32)

    list(mapped(contrast, pixels()))


@triggers("wrap-around", says="0 became 255", pastes=True)
def labels_from_one_on():
    def from_zero(labels):
        labels = labels - 1
        return labels

    list(mapped(from_zero, np.array([[1, 2], [0, 3]], np.uint8), tf.uint8))


@near("wrap-around")
def brighter_numbers():
    def brighten(image):
        image = image.astype(np.float32)
        return image + 70

    list(mapped(brighten, pixels()))


@near("wrap-around")
def a_little_brighter():
    def brighten(image):
        return image + 5

    list(mapped(brighten, pixels(), tf.uint8))


@near("wrap-around")
def a_checksum():
    def checksum(image):
        return (image * 31) & 127

    list(mapped(checksum, pixels(), tf.uint8))


@near("wrap-around")
def a_sum_of_a_wider_type():
    def brighten(image):
        return image + np.int16(70)

    list(mapped(brighten, pixels(), tf.int16))


@near("wrap-around")
def brighter_where_there_is_room():
    def brighten(image):
        return np.where(image < 186, image + 70, 255).astype(np.uint8)

    list(mapped(brighten, pixels(), tf.uint8))


@near("wrap-around")
def brighter_in_dark_pictures_only():
    def brighten(image):
        if image.max() > 185:
            return image
        return image + 70

    list(mapped(brighten, pixels(), tf.uint8))


@near("wrap-around")
def what_wrapped_is_repaired():
    def brighten(image):
        brighter = image + 70
        brighter[brighter < 70] = 255
        return brighter

    list(mapped(brighten, pixels(), tf.uint8))


# -- shared-state, trace-only, dataset-in-loop ------------------------------------------------------------------------


@triggers(
    "shared-state", says="appends to names", pastes=True,
    clock="UPDATE call SET start_ns = (SELECT min(start_ns) FROM call), end_ns = (SELECT max(end_ns) FROM call) + 1000 "
    "WHERE id = (SELECT min(id) FROM call)",
)  # fmt: skip
def names_collected_in_parallel_calls():
    names = []

    def load(i):
        names.append(int(i))
        return np.float32(i)

    data = tf.data.Dataset.range(4)
    data = data.map(lambda i: tf.numpy_function(load, [i], tf.float32), num_parallel_calls=2)
    values = list(data)
    list(zip(values, names))


@near(
    "shared-state",
    clock="UPDATE call SET start_ns = (SELECT min(start_ns) FROM call), end_ns = (SELECT max(end_ns) FROM call) + 1000 "
    "WHERE id = (SELECT min(id) FROM call)",
)
def sizes_that_are_only_summed():
    sizes = []

    def load(i):
        sizes.append(int(i))
        return np.float32(i)

    data = tf.data.Dataset.range(4)
    data = data.map(lambda i: tf.numpy_function(load, [i], tf.float32), num_parallel_calls=2)
    list(data)
    sum(sizes)


@triggers("trace-only", says="tf.gather", pastes=True)
def a_turn_that_an_object_chooses():
    class Augment:
        def __init__(self, turns):
            self.turns = turns

        def pick(self):
            return random.choice(self.turns)

        def __call__(self, x):
            return x * float(self.pick())

    list(tf.data.Dataset.from_tensor_slices(np.ones((6, 2), np.float32)).map(Augment([0, 1, 2])))


@triggers("trace-only", says="tf.random.uniform([], 1, 7, tf.int32)", pastes=True)
def a_draw_under_another_name():
    import random as rd
    from random import randint as die

    def noise(x):
        turn = die(1, 6)
        return x * rd.random() * float(turn)

    list(tf.data.Dataset.from_tensor_slices(np.ones((6, 2), np.float32)).map(noise))


@triggers("trace-only", says="tf.cast(left, tf.float32) + size / 2", pastes=True)
def a_draw_of_whole_numbers_in_fractions():
    def crop(image, size=2):
        left = np.random.randint(0, 3)
        return image[left : left + size], left + size / 2

    list(tf.data.Dataset.from_tensor_slices(np.ones((6, 4), np.float32)).map(crop))


@triggers("trace-only", says="0.5 * tf.cast(turn, tf.float32)", pastes=True)
def a_draw_times_a_fraction():
    def turned(x):
        turn = np.random.randint(4)
        angle = 0.5 * turn
        return x * angle

    list(tf.data.Dataset.from_tensor_slices(np.ones((6, 2), np.float32)).map(turned))


@triggers("trace-only", says="return tf.cast(y, tf.float32) / 4 + tf.cast(x, tf.float32) / 4", pastes=True)
def two_draws_in_a_function_that_the_traced_one_calls():
    def shift():
        x = np.random.randint(0, 4)
        y = np.random.randint(0, 4)
        return y / 4 + x / 4

    def moved(image):
        return image + shift()

    list(tf.data.Dataset.from_tensor_slices(np.ones((6, 2), np.float32)).map(moved))


@triggers("trace-only", says="left = tf.random.uniform([], 0, 3, tf.int32)", pastes=True)
def a_draw_that_only_counts():
    def crop(image):
        left = np.random.randint(0, 3)
        return image[left : left + 2]

    list(tf.data.Dataset.from_tensor_slices(np.ones((6, 4), np.float32)).map(crop))


@triggers("dataset-in-loop", says="compiled = tf.function(lambda", pastes=True)
def a_dataset_for_each_request():
    def parse(record):
        return np.float32(len(record))

    def features(lines):
        data = tf.data.Dataset.from_tensor_slices(lines)
        data = data.map(lambda line: tf.numpy_function(parse, [line], tf.float32))
        return next(iter(data.batch(4)))

    for _ in range(7):
        features(["a", "bc"])


# -- stale-cache ------------------------------------------------------------------------------------------------------


def one_by_one(body):
    return tf.data.Dataset.range(3).map(lambda i: tf.numpy_function(body, [i], tf.float32))


def half(i):
    return np.float32(i / 2)


def double(i):
    return np.float32(i * 2)


@triggers("stale-cache", says="which was filled with what half", severity="error", pastes=True)
def two_functions_with_one_cache_file():
    path = os.path.join(tempfile.mkdtemp(), "kept")

    def load(parse):
        data = tf.data.Dataset.range(3).map(lambda i: tf.numpy_function(parse, [i], tf.float32))
        return data.cache(path)

    list(load(half))
    list(load(double))


@triggers("stale-cache", says="which was filled with what half")
def training_and_validation_with_one_cache_file():
    path = os.path.join(tempfile.mkdtemp(), "kept")
    training = one_by_one(half).cache(path).batch(3)
    validation = one_by_one(double).cache(path).batch(3)
    for _ in range(2):
        for _ in training:
            pass
        for _ in validation:
            pass


@triggers("stale-cache", says="What changed in double since then has no effect", severity="warning")
def a_cache_file_that_is_older_than_the_function():
    path = os.path.join(tempfile.mkdtemp(), "kept")
    list(tf.data.Dataset.from_tensor_slices([0.0, 1.0, 2.0]).cache(path))
    os.utime(path + ".index", (1, 1))
    list(one_by_one(double).cache(path))


@near("stale-cache")
def a_cache_file_that_is_newer_than_the_function():
    path = os.path.join(tempfile.mkdtemp(), "kept")
    list(tf.data.Dataset.from_tensor_slices([0.0, 1.0, 2.0]).cache(path))
    list(one_by_one(double).cache(path))


@near("stale-cache")
def epochs_and_another_dataset_over_one_cache_file():
    path = os.path.join(tempfile.mkdtemp(), "kept")
    for _ in range(2):
        data = one_by_one(double).cache(path)
        list(data)
        list(data.batch(2))


@near("stale-cache")
def a_cache_file_of_its_own_for_each_dataset():
    folder = tempfile.mkdtemp()
    for body in (half, double):
        for _ in range(2):
            list(one_by_one(body).cache(os.path.join(folder, body.__name__)))


# -- trace-only -------------------------------------------------------------------------------------------------------


@triggers("trace-only", says="tf.minimum(1.0, self.calls / 50)", pastes=True)
def a_warm_up_that_counts_its_steps():
    class Trainer:
        def __init__(self):
            self.calls = 0

        @tf.function
        def step(self, x):
            self.calls += 1
            weight = min(1.0, self.calls / 50)
            return x * weight

    trainer = Trainer()
    for _ in range(5):
        trainer.step(tf.constant(1.0))


@triggers("trace-only", says="tf.cast(self.seen, tf.float32)", pastes=True)
def a_mean_over_what_was_seen():
    class Mean:
        def __init__(self):
            self.seen = 0

        @tf.function
        def update(self, x):
            self.seen += 1
            return x / float(self.seen)

    mean = Mean()
    for _ in range(5):
        mean.update(tf.constant(1.0))


@triggers("trace-only", says="offset = tf.random.uniform([], 0.0, 1.0)", pastes=True)
def a_draw_that_a_number_of_numpy_is_made_of():
    def shifted(x):
        offset = np.float32(np.random.uniform(0.0, 1.0))
        return tf.cast(x, tf.float32) + offset

    list(tf.data.Dataset.range(4).map(shifted))


@triggers("trace-only", says="tf.py_function(lambda: opened.append(int(np.random.randint(10))), [], [])", pastes=True)
def a_draw_that_only_a_list_of_python_keeps():
    opened = []

    def open_one(x):
        opened.append(int(np.random.randint(10)))
        return tf.data.Dataset.range(x)

    list(tf.data.Dataset.range(4).flat_map(open_one))


# -- structure: parts of an element that land in parameters with a default ---------------------------------------------


@triggers("structure", says="lands in width=4", pastes=True)
def a_label_as_the_width_of_frames():
    def chunks(signal, width):
        return np.reshape(signal[: len(signal) // width * width], (-1, width)) if width else signal[:0]

    def frames_of(signal, width=4):
        frames = tf.numpy_function(chunks, [signal, width], tf.float32)
        return tf.data.Dataset.from_tensor_slices(frames)

    signals = np.ones((3, 16), np.float32)
    list(tf.data.Dataset.from_tensor_slices((signals, np.arange(1, 4))).flat_map(frames_of))


@triggers("structure", says="lands in start=0", pastes=True)
def a_label_as_the_start_of_a_file():
    def read_chunk(path, start):
        return np.arange(start, start + 3, dtype=np.float32) + len(path)

    def rows_of_file(path, start=0):
        chunk = tf.ensure_shape(tf.numpy_function(read_chunk, [path, start], tf.float32), (None,))
        return tf.data.Dataset.from_tensor_slices(chunk)

    data = tf.data.Dataset.from_tensor_slices((["a", "bb"], [7, 8]))
    list(data.interleave(rows_of_file, cycle_length=2))


@triggers("structure", says="lands in scale=2.0", pastes=True)
def a_weight_as_the_scale_of_a_method():
    class Scaler:
        def scaled(self, x, scale=2.0):
            return tf.numpy_function(lambda a, b: a * b, [x, scale], tf.float32)

    weighted = tf.data.Dataset.from_tensor_slices((np.ones((4, 2), np.float32), np.ones(4, np.float32)))
    list(weighted.map(Scaler().scaled))


@triggers("structure", says="lands in num_samples=3", pastes=True)
def a_class_that_makes_as_many_as_the_element():
    class Made(tf.data.Dataset):  # TensorFlow's guide to the performance of tf.data has it, tensorflow#40838
        @staticmethod
        def _generator(num_samples):
            for index in range(num_samples):
                yield (index,)

        def __new__(cls, num_samples=3):
            spec = tf.TensorSpec(shape=(1,), dtype=tf.int64)
            return tf.data.Dataset.from_generator(cls._generator, output_signature=spec, args=(num_samples,))

    list(tf.data.Dataset.range(2).interleave(Made))


@triggers("structure", says="lands in n_rows=4", pastes=True)
def a_function_that_makes_as_many_as_the_element():
    def made(n_rows=4, start=0):
        return tf.data.Dataset.range(n_rows).map(lambda x: tf.numpy_function(lambda a: a + 1, [x + start], tf.int64))

    list(tf.data.Dataset.range(3).flat_map(made))


@near("structure")
def an_element_with_a_default():
    def doubled(x=1, by=2):
        return tf.numpy_function(lambda a, b: a * b, [x, tf.constant(by, tf.int64)], tf.int64)

    list(tf.data.Dataset.range(3).map(doubled))


@near("structure")
def a_size_without_a_default():
    def rows(size, by=2):
        return tf.data.Dataset.range(size * by).map(lambda x: tf.numpy_function(lambda a: a + 1, [x], tf.int64))

    list(tf.data.Dataset.range(3).flat_map(rows))


@near("structure")
def a_label_with_a_default():
    def pair(x, label=0, name=""):
        return tf.numpy_function(lambda a: a * 2, [x], tf.float32), label, name

    list(tf.data.Dataset.from_tensor_slices((np.ones((3, 2), np.float32), [1, 2, 3], ["a", "b", "c"])).map(pair))


@near("structure")
def a_default_that_stays():
    def resized(image, label, size=4):
        return tf.numpy_function(lambda a: a[:2], [image], tf.float32), label + size

    list(tf.data.Dataset.from_tensor_slices((np.ones((3, 4), np.float32), [1, 2, 3])).map(resized))


@near("structure")
def a_part_that_may_be_none():
    def with_noise(x, noise=None):
        return x if noise is None else x + tf.numpy_function(lambda a: a * 2, [noise], tf.float32)

    list(tf.data.Dataset.from_tensor_slices((np.ones((3, 2), np.float32), np.ones((3, 2), np.float32))).map(with_noise))


@near("dataset-in-loop")
def five_folds_with_two_lambdas_in_a_line():
    for fold in range(5):
        data = tf.data.Dataset.range(10).filter(lambda i: i % 5 != fold).map(lambda i: i + fold)
        list(data.map(lambda i: tf.numpy_function(lambda a: a * 2, [i], tf.int64)))


@triggers("retrace", says="tf.constant(k, tf.float32)", pastes=True)
def an_exponent_that_changes():
    @tf.function
    def moment(x, k):
        return tf.reduce_mean(tf.pow(x, k), axis=0)

    x = tf.ones([4, 2])
    for k in range(1, 9):
        moment(x, k)


@triggers("retrace", says="tf.constant(k, tf.float32)", pastes=True)
def a_number_beside_a_variable_of_a_dtype_that_no_signature_says():
    w = tf.Variable(2.0)

    @tf.function
    def scaled(k):
        return tf.multiply(w, k)

    for k in range(1, 9):
        scaled(k)


@triggers("trace-only", says="it left a tensor of the graph", pastes=True)
def a_total_that_one_run_leaves_and_a_print_shows():
    class Mean:
        def __init__(self):
            self.total = tf.constant(0.0)

        @tf.function
        def add(self, x):
            self.total = self.total + tf.reduce_sum(x)
            return tf.reduce_mean(x)

    mean = Mean()
    mean.add(tf.constant([1.0, 2.0]))
    print("total", mean.total)


@triggers("trace-only", says="a tensor cannot be a key")
def a_number_that_is_a_key():
    class Trainer:
        def __init__(self):
            self.count, self.history = 0, {}

        @tf.function
        def step(self, x):
            self.history[self.count] = tf.reduce_sum(x)
            self.count += 1
            return x

    trainer = Trainer()
    for _ in range(4):
        trainer.step(tf.ones([2]))


@triggers("trace-only", says="train takes apart in Python what it draws", pastes=True)
def a_sample_of_a_list_of_pythons():
    buffer = [(float(n), n) for n in range(20)]

    @tf.function
    def train():
        batch = random.sample(buffer, 4)
        return tf.constant([one[0] for one in batch])

    for _ in range(4):
        train()


@triggers("trace-only", says="tf.random.shuffle(tf.range(len(x)))", pastes=True)
def a_mixup_of_a_batch():
    @tf.function
    def mixup(x):
        order = np.random.permutation(len(x))
        share = np.random.beta(0.2, 0.2)
        return share * x + (1 - share) * tf.gather(x, order)

    for _ in range(4):
        mixup(tf.random.normal((4, 3)))


@triggers("trace-only", says="losses", pastes=True)
def losses_of_a_loop_over_a_dataset_that_a_print_shows():
    w, losses = tf.Variable(1.0), []

    @tf.function
    def fit(ds):
        for x in ds:
            loss = (w * x - 3.0) ** 2
            losses.append(loss)

    fit(tf.data.Dataset.from_tensor_slices([1.0, 2.0]))
    print(losses)


# -- printed-symbol ---------------------------------------------------------------------------------------------------


@triggers("printed-symbol", says="of step prints while", pastes=True)
def a_print_of_the_loss_in_a_step():
    w = tf.Variable(2.0)

    @tf.function
    def step(x):
        loss = tf.reduce_mean((w * x - 1.0) ** 2)
        print("loss", loss)
        return loss

    for _ in range(3):
        step(tf.constant([1.0, 2.0]))


@triggers("printed-symbol", says="shows the name of a tensor", pastes=True)
def a_print_of_texts_in_a_loop_over_a_dataset():
    @tf.function
    def total(ds):
        i, loss = tf.constant(0), 0.0
        for x in ds:
            i, loss = i + 1, loss + x
            if i % 2 == 0:
                print(str(i) + " " + str(loss))
        return loss

    total(tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0]))


@triggers("printed-symbol", says="gives tf.print a text", pastes=True)
def a_text_of_pythons_for_tf_print():
    @tf.function
    def step(x):
        loss = tf.reduce_sum(x)
        tf.print(f"loss: {loss}")
        return loss

    step(tf.constant([1.0, 2.0]))


@triggers("printed-symbol", says="builds the graph", pastes=True)
def prints_of_a_loss_and_a_logger_in_keras():
    import logging

    log = logging.getLogger("train")

    def distance(y, prediction):
        error = y - prediction
        print("error {}".format(error), flush=True)  # noqa: UP032
        print("mean %s" % tf.reduce_mean(error))  # noqa: UP031
        log.warning("largest %s", tf.reduce_max(error))
        return tf.reduce_mean(error**2)

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", distance)
    model.fit(np.ones((8, 2), np.float32), np.ones((8, 1), np.float32), batch_size=4, verbose=0)


@near("printed-symbol")
def prints_that_say_what_is_traced():
    @tf.function
    def step(x):
        print("tracing step with", x)
        print(x.shape, x.dtype, "is what is known")
        tf.print("x", x)
        tf.debugging.assert_all_finite(x, f"{x.name} is not finite")
        return x * 2

    print(step(tf.constant([1.0, 2.0])))


@near("printed-symbol")
def a_print_of_values_in_a_body_and_in_eager_code():
    def body(x):
        print("x is", x)
        return x

    @tf.function
    def step(x):
        return tf.py_function(body, [x], tf.float32)

    print(f"all: {step(tf.constant([1.0, 2.0]))}")


@near("printed-symbol")
def texts_that_errors_make_of_tensors():
    @tf.function
    def step(x):
        with contextlib.suppress(ValueError):
            tf.matmul(x, x)
        name = str(x)
        return x * len(name)

    step(tf.constant([1.0, 2.0]))


# -- untaped ----------------------------------------------------------------------------------------------------------


@triggers("untaped", says="is computed in line", pastes=True)
def a_loss_behind_the_tape():
    w = tf.Variable([[1.0], [2.0]])
    with tf.GradientTape() as tape:
        y = tf.constant([[1.0, 2.0]]) @ w
    error = y - 1.0
    loss = tf.reduce_mean(error**2)
    tape.gradient(loss, [w])


@triggers("untaped", says="runs outside of the tape", pastes=True)
def a_function_called_in_the_call_of_gradient():
    def square(x):
        return x**2

    def slope(x):
        with tf.GradientTape() as t:
            t.watch(x)
        return t.gradient(square(x), x)

    slope(tf.constant(9.0))


@triggers("untaped", says="a tape watches variables by itself", pastes=True)
def an_image_that_nobody_watches():
    w = tf.Variable([[1.0], [2.0]])

    @tf.function
    def saliency(image):
        with tf.GradientTape() as tape:
            score = image @ w
            top = tf.reduce_max(score)
        grads = tape.gradient(top, image)
        return tf.zeros_like(image) if grads is None else grads

    saliency(tf.constant([[1.0, 2.0]]))


@triggers("untaped", says="is a constant")
def a_gradient_of_a_constant():
    ones = tf.ones([2])
    with tf.GradientTape() as tape:
        channel = tf.constant([4.4])
        tape.gradient(channel, ones)


@triggers("untaped", says="for floats only", pastes=True)
def a_gradient_of_whole_numbers():
    v = tf.Variable([1, 2, 3])
    with tf.GradientTape() as tape:
        z = tf.reduce_sum(v * v)
    tape.gradient(z, v)


@triggers("untaped", says="makes w a tensor", pastes=True)
def a_variable_that_a_step_makes_a_tensor():
    w = tf.Variable(5.0)
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = (w - 1.0) ** 2
        g = tape.gradient(loss, w)
        if g is not None:
            w = w - 0.1 * g


@triggers("untaped", says="has no return, so that no gradient passes reverse", pastes=True)
def a_grad_without_a_return():
    @tf.custom_gradient
    def reverse(x):
        def grad(dy):
            tf.negative(dy)

        return tf.identity(x), grad

    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(reverse(v) ** 2)
    tape.gradient(loss, v)


@near("untaped")
def a_grad_without_a_return_that_another_tape_is_about():
    @tf.custom_gradient
    def reverse(x):
        def grad(dy):
            tf.negative(dy)

        return tf.identity(x), grad

    v, w = tf.Variable([1.0, 2.0]), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(v**2)
    tape.gradient(loss, w)
    reverse(v)


@near("untaped")
def a_body_that_has_no_gradient():
    w = tf.Variable([1.0, 2.0])

    def f(x):
        return tf.convert_to_tensor(np.sum(x.numpy() ** 2))

    with tf.GradientTape() as tape:
        y = tf.py_function(f, [w], tf.float32)
    tape.gradient(y, w)


@near("untaped")
def a_model_of_which_one_part_is_not_used():
    v, w = tf.Variable(2.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = v * 2.0
    tape.gradient(y, [v, w])


@near("untaped")
def a_watched_tensor_that_a_loss_does_not_use():
    x, z = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([x, z])
        y = x * 2.0
    tape.gradient(y, z)


@near("untaped")
def a_loss_that_is_scaled_under_the_tape():
    w = tf.Variable(2.0)
    for scale in (1.0, 2.0):
        with tf.GradientTape() as tape:
            loss = w**2
            loss = loss * scale
        tape.gradient(loss, [w])


@near("untaped")
def a_variable_that_no_loss_has():
    v, w = tf.Variable(2.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = v * 2.0
    tape.gradient(y, [w])


# -- trace-only: places of a tensor that is a part of an element ------------------------------------------------------


@triggers("trace-only", says="tf.random.uniform([], 0, h - 4, tf.int32)", pastes=True)
def a_random_crop_of_a_dict():
    def crop(sample):
        image, mask = sample["image"], sample["mask"]
        h, w = image.shape[0], image.shape[1]
        top = np.random.randint(0, h - 4)
        left = np.random.randint(0, w - 4)
        return {"image": image[top : top + 4, left : left + 4], "mask": mask[top : top + 4, left : left + 4]}

    data = {"image": np.zeros((4, 8, 8, 3), np.float32), "mask": np.zeros((4, 8, 8), np.uint8)}
    dataset = tf.data.Dataset.from_tensor_slices(data).map(crop)
    assert [one["image"].shape for one in dataset] == [(4, 4, 3)] * 4


@triggers("trace-only", says="tf.random.uniform([], 0, 4, tf.int32)", pastes=True)
def a_random_window_of_a_pair():
    def window(pair):
        signal, target = pair
        start = np.random.randint(0, 4)
        return signal[start : start + 4], target[start]

    pairs = tf.data.Dataset.from_tensor_slices(np.arange(64, dtype=np.float32).reshape(4, 2, 8))
    pairs = pairs.map(lambda x: window((x[0], x[1])))
    assert all(float(one[0]) in np.arange(64) for one, _ in pairs)


@triggers("trace-only", says="draw for each element; what only Python can do belongs in a tf.py_function")
def a_random_word_of_python():
    words = {0: ["a", "b"], 1: ["c"]}

    def chosen(x):
        place = np.random.randint(0, 2)
        return tf.constant(words[place][0]), x

    list(tf.data.Dataset.range(4).map(chosen))


# -- symbol-in-text ----------------------------------------------------------------------------------------------------


@triggers("symbol-in-text", says="is made once, while TensorFlow builds the graph", pastes=True)
def a_label_of_an_index():
    def label(i):
        return "class_" + str(i)

    dataset = tf.data.Dataset.range(3).map(label)
    assert [str(one) for one in dataset.as_numpy_iterator()]


@triggers("symbol-in-text", says="`f", pastes=True)
def a_file_name_of_a_step():
    folder = "run"

    @tf.function
    def path(step, kind):
        name = f"{folder}/{kind}-{step}.ckpt"
        return tf.strings.length(name), tf.constant(name)

    path(tf.constant(3), tf.constant("best"))


@triggers("symbol-in-text", says="of x", pastes=True)
def a_text_for_tf_print():
    @tf.function
    def step(x):
        return tf.strings.join(["a", "b %s" % x])  # noqa: UP031

    step(tf.constant(1.5))


@triggers("symbol-in-text", says="strings.as_string")
def a_key_of_a_label():
    names = {"1": "one", "2": "two"}

    @tf.function
    def look(x):
        return tf.constant(names.get(str(x), "unknown"))

    look(tf.constant(1))


@triggers("symbol-in-text", says="in the lambda is made once", pastes=True)
def a_filled_number_of_a_lambda():
    dataset = tf.data.Dataset.range(3).map(lambda i: "run_" + str(i).zfill(3))
    assert [str(one) for one in dataset.as_numpy_iterator()]


@triggers("symbol-in-text", says="strings.as_string(...) gives")
def a_text_of_an_attribute_that_has_no_name():
    class Reader:
        def start(self, i):
            self.index = i
            return f"{self.index}.png"

    dataset = tf.data.Dataset.range(3).map(Reader().start)
    assert [str(one) for one in dataset.as_numpy_iterator()]


@near("symbol-in-text")
def texts_of_what_python_knows():
    @tf.function
    def step(x, rate):
        name = f"{x.dtype.name}-{x.shape.rank}-{rate}"
        print(f"now {x}")
        message = f"tracing with {x}"
        assert name, message
        if x.shape.rank == 7:
            raise ValueError(f"no {x}")
        return tf.strings.join([name, "a"])

    step(tf.ones([2]), 0.1)


@near("symbol-in-text")
def a_text_in_a_body():
    def name(x):
        return f"{x}.png"

    @tf.function
    def step(x):
        return tf.py_function(name, [x], tf.string)

    step(tf.constant(1))


@near("symbol-in-text")
def a_text_of_ops():
    @tf.function
    def step(x):
        return tf.strings.join(["class_", tf.strings.as_string(x)]), tf.strings.format("{}", x)

    step(tf.constant(1))


# -- untaped: some of several ------------------------------------------------------------------------------------------


@triggers("untaped", says="gave None for 4 of 6 variables", pastes=True)
def a_model_whose_output_is_taken_out_by_numpy():
    model = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
    head = tf.keras.layers.Dense(1)
    head.build((None, 1))
    optimizer = tf.keras.optimizers.SGD(0.1)

    def step(x, y):
        with tf.GradientTape() as tape:
            hidden = model(x)
            result = head(hidden.numpy())
            loss = tf.reduce_mean((result - y) ** 2)
        weights = model.trainable_variables + head.trainable_variables
        gradients = tape.gradient(loss, weights)
        optimizer.apply_gradients(zip(gradients, weights))

    step(tf.ones([4, 3]), tf.ones([4, 1]))


@triggers("untaped", says="for 1 of 2 variables (b)")
def a_variable_squared_by_numpy():
    a, b = tf.Variable([1.0, 2.0], name="a"), tf.Variable([1.0, 2.0], name="b")

    def step(x):
        with tf.GradientTape() as tape:
            part = np.square(b.numpy()) * 1.0
            loss = tf.reduce_sum(a * x) + tf.reduce_sum(part)
        return tape.gradient(loss, [a, b])

    step(tf.ones([2]))


@near("untaped")
def a_variable_that_the_loss_does_not_use():
    w, unused = tf.Variable(2.0), tf.Variable(1.0)
    target = tf.keras.Sequential([tf.keras.layers.Input((1,)), tf.keras.layers.Dense(1)])

    def step(x):
        with tf.GradientTape() as tape:
            wanted = target(x).numpy() + np.mean(x.numpy())
            loss = tf.reduce_mean((w * x - wanted) ** 2)
        print(float(loss), np.asarray(w.numpy()))
        return tape.gradient(loss, [w, unused])

    step(tf.ones([2, 1]))


# -- trace-only in loops of the graph ---------------------------------------------------------------------------------


@triggers("trace-only", says="traced the loop, and not in each of its turns", pastes=True)
def a_list_that_a_graph_loop_takes_from():
    stack = [1.0, 2.0, 3.0]

    @tf.function
    def total(x):
        for _ in tf.range(3):
            x = x + stack.pop()
        return x

    total(tf.constant(1.0))


@triggers("trace-only", says="history.append(x)", pastes=True)
def a_list_that_a_graph_loop_fills():
    history = []

    @tf.function
    def powers(x):
        for _ in tf.range(3):
            x = x * 2.0
            history.append(x)
        return x

    powers(tf.constant(1.0))


@triggers("trace-only", says="tf.py_function(lambda: self.items.pop(), [], tf.float32), [])", pastes=True)
def a_stack_of_an_object():
    class Stack:
        def __init__(self):
            self.items = [1.0, 2.0, 3.0]

        @tf.function
        def take(self):
            return self.items.pop() * 2.0

    stack = Stack()
    for _ in range(3):
        stack.take()


@triggers("trace-only", says="call jobs.pop() where step is called, and give step what that returns")
def a_list_of_anything_that_is_taken_from():
    jobs = [tf.constant(i) for i in range(3)]

    @tf.function
    def step(x):
        return x + jobs.pop()

    for _ in range(2):
        step(tf.constant(1))


@triggers("trace-only", says="In Python that happened when TensorFlow traced", pastes=True)
def a_running_mean_of_a_graph_loop():
    class Running:
        def __init__(self):
            self.n = 0
            self.total = 0.0

        @tf.function
        def update(self, xs):
            for x in xs:
                self.n += 1
                self.total += x
            return self.total / tf.cast(self.n, tf.float32)

    running = Running()
    for _ in range(2):
        running.update(tf.constant([1.0, 2.0]))


@near("trace-only")
def a_list_that_a_loop_of_pythons_takes_from():
    stack = [1.0, 2.0, 3.0]

    @tf.function
    def total(x):
        for _ in range(3):
            x = x + stack.pop()
        return x

    total(tf.constant(1.0))


@near("trace-only")
def a_list_of_a_function_whose_graph_loop_computes():
    @tf.function
    def powers(x):
        parts = [x, x]
        for _ in tf.range(3):
            x = x * 2.0
        parts.append(x)
        return parts

    powers(tf.constant(1.0))


@near("trace-only")
def a_tensor_array_that_a_graph_loop_fills():
    @tf.function
    def powers(x):
        kept = tf.TensorArray(tf.float32, 3)
        for i in tf.range(3):
            kept = kept.write(i, x)
        return kept.stack()

    powers(tf.constant(1.0))


@triggers("trace-only", says="self.losses.setdefault(name, []).append(float(value)), [value], [])", pastes=True)
def a_logger_whose_lists_are_made_as_needed():
    class Logger:
        def __init__(self):
            self.losses = {}

        def log(self, name, value):
            self.losses.setdefault(name, []).append(float(value))

    logger = Logger()

    @tf.function
    def step(x):
        loss = tf.reduce_mean(x**2)
        logger.log("loss", loss)
        return loss

    for i in range(3):
        step(tf.ones([2]) * i)


@triggers("trace-only", says="def keep(x, i=i):", pastes=True)
def a_dict_by_the_turns_of_a_loop_of_pythons():
    kept = {}

    @tf.function
    def step(x):
        for i in range(2):
            kept[i] = x * (i + 1)
        return x

    for value in (1.0, 2.0, 3.0):
        step(tf.constant(value))


@triggers("trace-only", says="tf.py_function(keep, [grads[i]], [])", pastes=True)
def gradients_added_up_in_a_list_of_python_s():
    w = [tf.Variable([1.0, 2.0]), tf.Variable(3.0)]
    total = [0, 0]

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(w[0] * x) * w[1]
        grads = tape.gradient(loss, w)
        for i in range(2):
            total[i] += grads[i]
        return loss

    for _ in range(3):
        step(tf.constant([1.0, 1.0]))


@triggers("trace-only", says="def keep(loss, name=name):", pastes=True)
def a_dict_by_a_name_that_is_given():
    losses = {}

    @tf.function
    def step(x, name):
        loss = tf.reduce_mean(x**2)
        losses[name] = loss
        return loss

    for value in (1.0, 2.0, 3.0):
        step(tf.constant(value), "train")


# -- dropped-write: by what the graph reads ---------------------------------------------------------------------------


@triggers("dropped-write", says="arrays[0] = arrays[0].write(i, x[i])", pastes=True)
def writes_to_arrays_of_a_list():
    @tf.function
    def copied(x):
        arrays = [tf.TensorArray(tf.float32, size=3) for _ in range(2)]
        for i in range(3):
            arrays[0].write(i, x[i])
        return arrays[0].stack()

    copied(tf.constant([3.0, 4.0, 5.0]))


@triggers("dropped-write", says="array = array.write(i, x[i])", pastes=True)
def a_write_into_a_name_that_nobody_reads():
    @tf.function
    def copied(x):
        array = tf.TensorArray(tf.float32, size=3)
        for i in tf.range(3):
            _ = array.write(i, x[i])
        return array.stack()

    copied(tf.constant([3.0, 4.0, 5.0]))


@triggers("dropped-write", says="and put does not keep it")
def a_write_in_a_function_that_keeps_nothing():
    def put(array, i, value):
        array.write(i, value)

    @tf.function
    def copied(x):
        array = tf.TensorArray(tf.float32, size=3)
        for i in range(3):
            put(array, i, x[i])
        return array.stack()

    copied(tf.constant([3.0, 4.0, 5.0]))


@near("dropped-write")
def a_function_that_returns_what_it_wrote_to():
    def put(array, i, value):
        return array.write(i, value)

    @tf.function
    def copied(x):
        arrays = {"a": tf.TensorArray(tf.float32, size=3)}
        last = tf.TensorArray(tf.float32, size=1)
        for i in range(3):
            arrays["a"] = put(arrays["a"], i, x[i])
        last = last.write(0, x[0])
        return arrays["a"].stack()

    copied(tf.constant([3.0, 4.0, 5.0]))


@triggers("dropped-write", says="keep what write gives")
def a_write_to_what_a_call_gives():
    @tf.function
    def outer(x):
        array = tf.convert_to_tensor(x) * 0, tf.TensorArray(tf.float32, 2)

        def held():
            return array[1]

        held().write(0, x)
        return x * 2

    outer(tf.constant(1.0))


# -- broadcast-loss: what is picked by index --------------------------------------------------------------------------


@triggers("broadcast-loss", says="tf.gather(q, actions, axis=1, batch_dims=1)", pastes=True)
def the_values_of_all_actions_for_each_state():
    weights = tf.Variable(tf.ones([4, 3]))

    @tf.function
    def step(states, actions, target):
        with tf.GradientTape() as tape:
            q = states @ weights
            picked = tf.gather(q, actions, axis=1)
            loss = tf.reduce_mean((target - picked) ** 2)
        return tape.gradient(loss, weights)

    step(tf.ones([8, 4]), tf.zeros([8], tf.int32), tf.ones([8]))


@triggers("broadcast-loss", says="and line", pastes=True)
def the_log_of_what_all_actions_had():
    weights = tf.Variable(tf.ones([4, 3]))

    @tf.function
    def step(states, actions, advantages):
        with tf.GradientTape() as tape:
            policy = tf.nn.softmax(states @ weights)
            chosen = tf.math.log(tf.gather(policy, actions, axis=-1) + 1e-8)
            loss = -tf.reduce_mean(chosen * advantages)
        return tape.gradient(loss, weights)

    step(tf.ones([8, 4]), tf.zeros([8], tf.int32), tf.ones([8]))


@triggers("broadcast-loss", says="picked = tf.gather(q, actions, axis=1, batch_dims=1)", pastes=True)
def the_values_of_all_actions_in_an_eager_loop():
    weights = tf.Variable(tf.ones([4, 3]))
    for target in tf.ones([2, 8]):
        states, actions = tf.ones([8, 4]), tf.zeros([8], tf.int32)
        with tf.GradientTape() as tape:
            q = states @ weights
            picked = tf.gather(q, actions, axis=1)
            loss = tf.reduce_mean((target - picked) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))


@triggers("broadcast-loss", says="and line", pastes=True)
def the_values_of_what_a_network_gives_in_a_function():
    weights = tf.Variable(tf.ones([4, 3]))

    def learn(states, actions, returns):
        with tf.GradientTape() as tape:
            taken = tf.gather(states @ weights, actions, axis=-1)
            loss = tf.reduce_mean(tf.square(returns - taken))
        weights.assign_sub(0.1 * tape.gradient(loss, weights))

    for _ in range(2):
        learn(tf.ones([8, 4]), tf.zeros([8], tf.int32), tf.ones([8]))


@triggers("broadcast-loss", says="tf.gather(q, actions, axis=1, batch_dims=1) - returns", pastes=True)
def all_actions_beside_the_returns_in_one_line():
    weights = tf.Variable(tf.ones([4, 3]))

    def learn(states, actions, returns):
        with tf.GradientTape() as tape:
            q = states @ weights
            loss = tf.reduce_mean((tf.gather(q, actions, axis=1) - returns) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))

    for _ in range(2):
        learn(tf.ones([8, 4]), tf.zeros([8], tf.int32), tf.ones([8]))


@near("broadcast-loss")
def the_action_of_each_state_in_an_eager_loop():
    weights = tf.Variable(tf.ones([4, 3]))

    def learn(states, actions, returns):
        with tf.GradientTape() as tape:
            taken = tf.gather(states @ weights, actions, axis=1, batch_dims=1)
            loss = tf.reduce_mean((returns - taken) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))

    for _ in range(2):
        learn(tf.ones([8, 4]), tf.zeros([8], tf.int32), tf.ones([8]))


@near("broadcast-loss")
def the_same_columns_of_all_rows_in_an_eager_loop():
    columns, scale = tf.constant([0, 2, 1, 0]), tf.constant([1.0, 2.0, 3.0, 4.0])
    weights = tf.Variable(tf.ones([4, 3]))
    for states in tf.ones([2, 4, 4]):
        with tf.GradientTape() as tape:
            chosen = tf.gather(states @ weights, columns, axis=1)
            loss = tf.reduce_mean((chosen - scale) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))


@near("broadcast-loss")
def fewer_columns_than_rows_in_an_eager_function():
    weights = tf.Variable(tf.ones([4, 3]))

    def learn(states, columns, targets):
        with tf.GradientTape() as tape:
            chosen = tf.gather(states @ weights, columns, axis=1)
            loss = tf.reduce_mean((chosen - targets) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))

    for _ in range(2):
        learn(tf.ones([8, 4]), tf.constant([0, 2]), tf.ones([2]))


@near("broadcast-loss")
def the_value_of_the_action_of_each_state():
    weights = tf.Variable(tf.ones([4, 3]))

    @tf.function
    def step(states, actions, target):
        with tf.GradientTape() as tape:
            picked = tf.gather(states @ weights, actions, axis=1, batch_dims=1)
            loss = tf.reduce_mean((target - picked) ** 2)
        return tape.gradient(loss, weights)

    step(tf.ones([8, 4]), tf.zeros([8], tf.int32), tf.ones([8]))


@near("broadcast-loss")
def columns_that_are_the_same_for_all_rows():
    columns, scale = tf.constant([0, 2, 3, 5]), tf.constant([1.0, 2.0, 3.0, 4.0])

    @tf.function
    def select(x):
        return tf.gather(x, columns, axis=1) * scale

    select(tf.ones([4, 6]))


@near("broadcast-loss")
def columns_of_a_variable_in_a_loop():
    columns, scale = tf.Variable([0, 2, 3, 5]), tf.constant([1.0, 2.0, 3.0, 4.0])

    @tf.function
    def select(x):
        total = tf.zeros([4, 4])
        for _ in tf.range(3):
            total += tf.gather(x, columns % 6, axis=1) * scale
        return total

    select(tf.ones([4, 6]))


@near("broadcast-loss")
def columns_in_another_order():
    @tf.function
    def ordered(table, order):
        return tf.gather(table, order, axis=1) * 2.0 - tf.gather(table, order, axis=1)

    ordered(tf.ones([3, 3]), tf.constant([2, 0, 1]))


# -- trace-only: functions of a list ------------------------------------------------------------------------------


@triggers("trace-only", says="augmented, draws a random number", pastes=True)
def a_draw_in_a_function_of_a_list():
    def turned(x):
        return tf.image.rot90(x, k=random.choice([0, 1, 2, 3]))

    def mirrored(x):
        return tf.image.flip_left_right(x)

    augmentations_in_turn = [turned, mirrored]

    def augmented(x):
        for augmentation in augmentations_in_turn:
            x = augmentation(x)
        return x

    list(tf.data.Dataset.from_tensor_slices(tf.ones([8, 4, 4, 3])).map(augmented))


@triggers("trace-only", says="changed, draws a random number", pastes=True)
def a_draw_in_a_function_of_a_table():
    def shifted(x):
        return tf.roll(x, random.randint(-2, 2), axis=1)

    changes_by_name = {"shift": shifted, "none": tf.identity}

    def changed(x):
        return changes_by_name["shift"](x)

    list(tf.data.Dataset.from_tensor_slices(tf.ones([8, 4, 4, 3])).map(changed))


@near("trace-only")
def a_function_of_a_table_that_is_not_asked_for():
    def rolled(x):
        return tf.roll(x, random.randint(-2, 2), axis=1)

    no_changes_by_name = {"shift": rolled, "none": tf.identity}

    def unchanged(x):
        return no_changes_by_name["none"](x)

    list(tf.data.Dataset.from_tensor_slices(tf.ones([8, 4, 4, 3])).map(unchanged))


@triggers("stale-closure", says="self.weights.assign(scale * tf.ones((3, 2), dtype=tf.double))", pastes=True)
def a_tensor_of_an_object_that_a_method_replaces():  # tensorflow#44980
    class Network:
        def __init__(self):
            self.weights = tf.ones((3, 2), dtype=tf.double)

        def encoded(self, x):
            return tf.matmul(x, self.weights)

        @tf.function
        def in_graph(self, x):
            return self.encoded(x)

        def set_weights(self, scale):
            self.weights = scale * tf.ones((3, 2), dtype=tf.double)

    net = Network()
    for scale in (1.0, 1.5, 2.0):
        net.set_weights(scale)
        net.in_graph(tf.ones((4, 3), dtype=tf.double))


@triggers("stale-closure", says="rows=net.rows", pastes=True)
def a_tensor_of_an_object_that_grows():
    class Network:
        def __init__(self):
            self.rows = tf.ones((1, 2))

        @tf.function
        def total(self, x):
            return x * tf.reduce_sum(self.rows)

        def grow(self):
            self.rows = tf.concat([self.rows, tf.ones((1, 2))], 0)

    net = Network()
    for _ in range(3):
        net.total(tf.constant(1.0))
        net.grow()


@triggers("trace-only", says="takes apart in Python what it draws", pastes=True)
def a_replay_of_what_an_agent_remembers():  # tensorflow#40631
    class Agent:
        def __init__(self):
            self.memory = []
            self.weight = tf.Variable(tf.ones([2]))

        @tf.function
        def learn(self, batch_size=4):
            replay = random.sample(self.memory, min(batch_size, len(self.memory)))
            states = np.array([one[0] for one in replay], dtype=np.float32)
            rewards = np.array([one[1] for one in replay], dtype=np.float32)
            self.weight.assign_sub(0.01 * tf.reduce_mean(states, 0) * tf.reduce_mean(rewards))
            return tf.reduce_sum(self.weight)

    agent = Agent()
    for step in range(6):
        agent.memory.append((np.ones(2) * step, float(step)))
        agent.learn()
