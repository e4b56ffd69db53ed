"""Ordinary programs with nothing wrong in them, of shapes that users' threads have: tokens, augmentation, callbacks."""

from __future__ import annotations

import collections
import pathlib
import random
import tempfile

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.clean_programs import DATA, IMAGES, LABELS, clean, slices, use

v1 = tf.compat.v1
WORDS = ["a first line", "and another one", "the last"]


@clean
def a_word_piece_tokenizer_with_a_mask():
    vocabulary = {word: number for number, word in enumerate(sorted({w for line in WORDS for w in line.split()}), 1)}

    def tokenize(text):
        ids = [vocabulary.get(word, 0) for word in text.decode().split()][:5]
        mask = [1] * len(ids) + [0] * (5 - len(ids))
        return np.array(ids + [0] * (5 - len(ids)), np.int32), np.array(mask, np.int32)

    def wrapped(text):
        ids, mask = tf.numpy_function(tokenize, [text], [tf.int32, tf.int32])
        return {"ids": tf.ensure_shape(ids, [5]), "mask": tf.ensure_shape(mask, [5])}

    use(slices(WORDS).map(wrapped).batch(2))


@clean
def a_long_loop_that_is_unrolled_into_one_graph():
    @tf.function
    def steps(x):
        for _ in range(1100):  # as many nodes
            x = tf.py_function(lambda x: float(len(hex(int(x)))), [x], tf.float32)  # no op does this
        return x

    steps(tf.constant(0.0))


@clean
def bodies_made_in_a_loop_that_keep_its_value():
    for factor in range(6):
        tf.py_function(lambda x, factor=factor: x * factor, [tf.constant(2.0)], tf.float32)


@clean
def lines_of_different_length_as_ragged_rows():
    def lengths(text):
        return tf.ragged.constant([[len(word) for word in text.numpy().decode().split()]], tf.int32)

    spec = tf.RaggedTensorSpec([1, None], tf.int32, ragged_rank=1)
    use(slices(WORDS).map(lambda text: tf.py_function(lengths, [text], spec)))


@clean
def files_read_by_name():
    folder = pathlib.Path(tempfile.mkdtemp())
    for number in range(4):
        np.save(folder / f"{number}.npy", DATA[number])

    def load(path):
        return np.load(path.decode())

    def wrapped(path):
        return tf.ensure_shape(tf.numpy_function(load, [path], tf.float32), [8])

    use(slices([str(one) for one in sorted(folder.iterdir())]).map(wrapped).batch(2))


@clean
def brightness_by_a_generator_of_ones_own():
    generator = np.random.default_rng()

    def brighten(image):
        return np.clip(image * generator.uniform(0.8, 1.2), 0, 255).astype(np.uint8)

    def wrapped(image):
        return tf.ensure_shape(tf.numpy_function(brighten, [image], tf.uint8), [8, 8, 3])

    use(slices(IMAGES).map(wrapped).batch(4))


@clean
def an_image_and_its_mask_flipped_together():
    def flip(image, mask):
        return (image[:, ::-1], mask[:, ::-1]) if random.random() < 0.5 else (image, mask)

    def wrapped(image, mask):
        image, mask = tf.numpy_function(flip, [image, mask], [tf.uint8, tf.uint8])
        return tf.ensure_shape(image, [8, 8, 3]), tf.ensure_shape(mask, [8, 8])

    use(slices(IMAGES, IMAGES[..., 0]).map(wrapped).batch(4))


@clean
def a_cart_that_is_stepped_from_a_loop():
    class Cart:
        def __init__(self):
            self.state = np.zeros(4, np.float32)

        def step(self, action):
            self.state = (0.9 * self.state + 0.1 * (2 * action - 1)).astype(np.float32)
            return self.state, np.float32(1 - abs(self.state[0]))

    cart = Cart()
    inputs = keras.Input((4,))
    policy = keras.Model(inputs, keras.layers.Dense(2, activation="softmax")(inputs))

    @tf.function
    def act(state):
        action = tf.argmax(policy(state[None])[0])
        state, reward = tf.numpy_function(cart.step, [action], [tf.float32, tf.float32])
        return tf.ensure_shape(state, [4]), tf.ensure_shape(reward, [])

    state = tf.zeros(4)
    for _ in range(5):
        state, _ = act(state)


@clean
def a_replay_memory_behind_a_generator():
    memory = collections.deque(maxlen=20)
    for number in range(20):
        memory.append((DATA[number], np.int32(number % 2)))

    def sample():
        for _ in range(10):
            yield random.choice(memory)

    spec = tf.TensorSpec([8], tf.float32), tf.TensorSpec([], tf.int32)
    use(tf.data.Dataset.from_generator(sample, output_signature=spec).batch(5))


@clean
def accuracy_computed_by_a_callback():
    class Score(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.scores = [*getattr(self, "scores", []), float((self.model(DATA).numpy()[:, 0] > 0.5).mean())]

    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile(loss="binary_crossentropy", optimizer="sgd")
    model.fit(DATA, LABELS, epochs=2, verbose=0, callbacks=[Score()])


@clean
def a_rank_metric_of_numpy_in_compile():
    def ranks(y_true, y_pred):
        return np.float32(np.mean((y_true.ravel() > 0.5) == (y_pred.ravel() > 0.5)))

    def agreement(y_true, y_pred):
        return tf.ensure_shape(tf.numpy_function(ranks, [y_true, y_pred], tf.float32), [])

    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile(loss="binary_crossentropy", optimizer="sgd", metrics=[agreement])
    model.fit(DATA, LABELS, epochs=1, verbose=0)


@clean
def a_huber_loss_of_ops_in_a_py_function():
    def huber(y_true, y_pred):
        error = tf.abs(tf.reshape(y_true, [-1, 1]) - y_pred)
        return tf.reduce_mean(tf.where(error < 1.0, 0.5 * error * error, error - 0.5))

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.py_function(huber, [y, model(x)], tf.float32)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.01)
    for _ in range(3):
        step(tf.constant(DATA), tf.constant(LABELS))


@clean
def a_gradient_of_ones_own_around_numpy():
    @tf.custom_gradient
    def sine(x):
        y = tf.numpy_function(np.sin, [x], tf.float32)

        def grad(dy):
            return dy * tf.cos(x)

        return tf.ensure_shape(y, x.shape), grad

    x = tf.Variable([0.1, 0.2])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(sine(x))
    tape.gradient(y, x)


@clean
def one_hot_labels_and_weights():
    def weigh(label):
        return np.float32(2.0 if label == 1 else 1.0)

    def wrapped(x, y):
        weight = tf.ensure_shape(tf.numpy_function(weigh, [y], tf.float32), [])
        return x, tf.one_hot(tf.cast(y, tf.int32), 2), weight

    use(slices(DATA, LABELS).map(wrapped).batch(8))


@clean
def a_filter_by_python():
    def wanted(x):
        return bool(x.numpy().mean() > 0.3)

    use(slices(DATA).filter(lambda x: tf.ensure_shape(tf.py_function(wanted, [x], tf.bool), [])).batch(4))


@clean
def windows_scaled_by_numpy():
    def scale(window):
        return ((window - window.mean()) / (window.std() + 1e-6)).astype(np.float32)

    windows = slices(DATA[:, 0]).window(6, shift=2, drop_remainder=True).flat_map(lambda one: one.batch(6))
    use(windows.map(lambda one: tf.ensure_shape(tf.numpy_function(scale, [one], tf.float32), [6])).batch(3))


@clean
def epochs_shuffled_anew():
    data = slices(DATA, LABELS).shuffle(24).batch(8)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer="sgd")
    model.fit(data, epochs=3, verbose=0)


@clean
def two_sources_side_by_side():
    def noise(x):
        return x + np.random.normal(size=x.shape).astype(np.float32)

    noisy = slices(DATA).map(lambda x: tf.ensure_shape(tf.numpy_function(noise, [x], tf.float32), [8]))
    use(tf.data.Dataset.zip((noisy, slices(LABELS))).batch(6))


@clean
def a_session_that_feeds_a_py_func():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 8])
        y = tf.numpy_function(lambda a: np.maximum(a, 0.5), [x], tf.float32)
        y.set_shape(x.shape)
        for start in (0, 8, 16):
            session.run(tf.reduce_sum(y), {x: DATA[start : start + 8]})


@clean
def a_layer_of_python_with_its_shape():
    def sort_rows(x):
        return np.sort(x, axis=-1)

    class Sorted(keras.layers.Layer):
        def call(self, inputs):
            return tf.ensure_shape(tf.numpy_function(sort_rows, [inputs], tf.float32), inputs.shape)

    inputs = keras.Input((8,))
    keras.Model(inputs, keras.layers.Dense(2)(Sorted()(inputs))).predict(DATA, verbose=0)


@clean
def a_histogram_of_each_image():
    def histogram(image):
        return np.bincount(image.ravel() // 32, minlength=8).astype(np.int64)

    use(
        slices(IMAGES).map(lambda x: tf.ensure_shape(tf.numpy_function(histogram, [x], tf.int64), [8])).cache().batch(4)
    )


@clean
def progress_counted_in_a_variable():
    seen = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def count(batch):
        seen.assign_add(tf.shape(batch, tf.int64)[0])
        return tf.numpy_function(lambda x: x.sum(axis=-1), [batch], tf.float32)

    for batch in slices(DATA).batch(6):
        count(batch)


@clean
def rows_from_a_generator_that_asks_the_first_for_its_spec():
    def read(text, number):
        return {"length": len(text), "letters": np.zeros(3, np.float32)}, float(number)

    def as_python(ds):
        rows = lambda: (read(text.decode(), number) for text, number in ds.as_numpy_iterator())  # noqa: E731
        spec = tf.data.Dataset.from_tensors(next(rows())).element_spec
        return tf.data.Dataset.from_generator(rows, output_signature=spec)

    use(slices((WORDS, [0, 1, 2])).apply(as_python).batch(2))


@clean
def shapes_that_the_first_element_tells():
    def shaped(ds):
        spec = tf.data.Dataset.from_tensors(next(iter(ds))).element_spec
        fit = lambda y, s: tf.ensure_shape(y, [None, *s.shape[1:]])  # noqa: E731
        return ds.map(lambda *x: tf.nest.map_structure(fit, x, spec))

    def halve(x):
        return x.numpy() / 2, np.float32(x.numpy().sum())

    data = slices(DATA).map(lambda x: tf.py_function(halve, [x], [tf.float32, tf.float32])).batch(4)
    use(shaped(data))


@clean
def values_of_a_loop_in_a_tensor_array():
    @tf.function
    def sums(rows):
        kept = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for row in rows:
            kept = kept.write(kept.size(), tf.py_function(lambda x: tf.reduce_sum(x), [row], tf.float32))
        return kept.stack()

    sums(tf.constant(DATA))


@clean
def a_loss_of_one_row_after_the_other():
    def loss(y_true, y_pred):
        def one_row(row):
            t, p = row
            return tf.reduce_sum(tf.square(t - p))

        return tf.map_fn(one_row, (y_true, y_pred), fn_output_signature=tf.float32)

    model = keras.Sequential([keras.Input((DATA.shape[-1],)), keras.layers.Dense(1)])
    model.compile("sgd", loss)
    model.fit(DATA.reshape(-1, DATA.shape[-1]), np.ones((DATA.size // DATA.shape[-1], 1), np.float32), verbose=0)


@clean
def a_running_total_by_reduce_and_scan():
    def squared(x):
        return np.square(x)

    data = slices(DATA).map(lambda x: tf.numpy_function(squared, [x], tf.float32))
    data = data.map(lambda x: tf.ensure_shape(x, DATA.shape[1:]))
    data.reduce(tf.zeros(DATA.shape[1:]), lambda total, x: total + x)
    use(data.scan(tf.zeros(DATA.shape[1:]), lambda total, x: (total + x, total)).prefetch(1))
