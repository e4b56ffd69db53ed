"""More ordinary programs with nothing wrong in them, by task: text, images, sound, environments, metrics, v1."""

from __future__ import annotations

import bisect
import hashlib
import itertools
import re
import time

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.clean_programs import DATA, IMAGES, LABELS, clean, slices, use

v1 = tf.compat.v1
LINES = ["A first line, with words.", "another one; shorter", "and THE last", "one more line here"]


# -- text -------------------------------------------------------------------------------------------------------------


@clean
def standardised_text_for_a_vectorizer():
    def standardise(text):
        return re.sub(r"[^a-z ]", "", text.numpy().decode().lower())

    def wrapped(text):
        return tf.ensure_shape(tf.py_function(standardise, [text], tf.string), [])

    vectorize = keras.layers.TextVectorization(output_sequence_length=4)
    text = slices(LINES).map(wrapped)
    vectorize.adapt(text.batch(2))
    use(text.batch(2).map(vectorize))


@clean
def bytes_to_code_points():
    def points(text):
        return np.frombuffer(text, np.uint8).astype(np.int32)

    use(slices(LINES).map(lambda text: tf.numpy_function(points, [text], tf.int32)).padded_batch(2, [None]))


@clean
def hashed_buckets():
    def bucket(word):
        return np.int64(int(hashlib.md5(word).hexdigest(), 16) % 10)

    use(slices(LINES).map(lambda word: tf.numpy_function(bucket, [word], tf.int64)).batch(2))


@clean
def subword_pairs():
    def pairs(text):
        words = text.numpy().decode().split()
        return tf.constant([f"{a} {b}" for a, b in itertools.pairwise(words)])

    def wrapped(text):
        found = tf.py_function(pairs, [text], tf.string)
        found.set_shape([None])
        return found

    use(slices(LINES).map(wrapped).ragged_batch(2))


# -- images and sound -------------------------------------------------------------------------------------------------


@clean
def cutout_with_a_generator_for_each_element():
    def cut(image, index):
        random = np.random.default_rng(index)
        row, column = random.integers(0, 6, 2)
        image = image.copy()
        image[row : row + 2, column : column + 2] = 0
        return image

    def wrapped(index, image):
        image = tf.numpy_function(cut, [image, index], tf.uint8)
        return tf.ensure_shape(image, [8, 8, 3])

    use(slices(IMAGES).enumerate().map(wrapped, num_parallel_calls=2).batch(4))


@clean
def boxes_and_masks():
    def crop(image, box):
        top, left, height, width = box
        mask = np.zeros(image.shape[:2], np.bool_)
        mask[top : top + height, left : left + width] = True
        return image[top : top + height, left : left + width].mean(dtype=np.float32), mask

    boxes = np.tile(np.array([1, 2, 3, 4], np.int32), (len(IMAGES), 1))
    use(slices(IMAGES, boxes).map(lambda i, b: tf.numpy_function(crop, [i, b], (tf.float32, tf.bool))))


@clean
def mixup_of_a_batch():
    def mix(images, labels):
        order = np.arange(len(images))[::-1]
        return images * 0.75 + images[order] * 0.25, labels * 0.75 + labels[order] * 0.25

    def wrapped(images, labels):
        mixed, soft = tf.numpy_function(
            lambda *given: tuple(one.astype(np.float32) for one in mix(*given)),
            [images, labels],
            [tf.float32, tf.float32],
        )
        return tf.ensure_shape(mixed, [None, 8]), tf.ensure_shape(soft, [None])

    use(slices(DATA, LABELS).batch(6).map(wrapped))


@clean
def spectrogram_frames():
    def frames(wave):
        windows = np.lib.stride_tricks.sliding_window_view(wave, 64)[::32]
        return np.abs(np.fft.rfft(windows * np.hanning(64))).astype(np.float32)

    waves = np.random.default_rng(4).standard_normal((6, 256)).astype(np.float32)
    use(slices(waves).map(lambda wave: tf.numpy_function(frames, [wave], tf.float32)).batch(3))


@clean
def histogram_equalisation():
    def equalise(image):
        counts = np.bincount(image.reshape(-1), minlength=256).cumsum()
        return (counts[image] * 255 // counts[-1]).astype(np.uint8)

    use(slices(IMAGES).map(lambda image: tf.numpy_function(equalise, [image], tf.uint8)))


# -- environments -----------------------------------------------------------------------------------------------------


@clean
def a_bandit_in_a_tf_function():
    class Bandit:
        def __init__(self):
            self.random = np.random.default_rng(2)
            self.means = np.array([0.1, 0.5, 0.9])

        def pull(self, arm):
            return np.float32(self.random.normal(self.means[arm]))

    bandit = Bandit()
    values = tf.Variable(tf.zeros([3]))

    @tf.function
    def play(arm):
        reward = tf.numpy_function(bandit.pull, [arm], tf.float32)
        reward = tf.ensure_shape(reward, [])
        values.scatter_nd_add([[arm]], [reward])
        return reward

    for turn in range(30):
        play(tf.constant(turn % 3, tf.int64))


@clean
def a_grid_world_with_three_outputs():
    class Grid:
        place = 0

        def step(self, action):
            self.place = int(np.clip(self.place + (1 if action else -1), 0, 5))
            return np.int32(self.place), np.float32(self.place == 5), np.bool_(self.place == 5)

    grid = Grid()

    @tf.function
    def step(action):
        state, reward, done = tf.numpy_function(grid.step, [action], (tf.int32, tf.float32, tf.bool))
        return tf.ensure_shape(state, []), tf.ensure_shape(reward, []), tf.ensure_shape(done, [])

    for turn in range(12):
        step(tf.constant(turn % 4 != 0))


@clean
def advantages_of_an_episode():
    def advantages(rewards):
        total, found = 0.0, []
        for reward in rewards[::-1]:
            total = reward + 0.9 * total
            found.append(total)
        return np.array(found[::-1], np.float32)

    @tf.function
    def learn(rewards):
        return tf.reduce_mean(tf.ensure_shape(tf.numpy_function(advantages, [rewards], tf.float32), [8]))

    for row in DATA:
        learn(tf.constant(row))


# -- losses and metrics -----------------------------------------------------------------------------------------------


@clean
def a_ranking_metric_after_each_epoch():
    def area(labels, scores):
        order = np.argsort(scores)
        ranks = np.empty(len(order))
        ranks[order] = np.arange(1, len(order) + 1)
        positive = labels > 0.5
        pairs = positive.sum() * (~positive).sum()
        return np.float32((ranks[positive].sum() - positive.sum() * (positive.sum() + 1) / 2) / max(pairs, 1))

    @tf.function
    def evaluate(labels, scores):
        return tf.numpy_function(area, [labels, scores], tf.float32)

    for epoch in range(3):
        evaluate(tf.constant(LABELS), tf.constant(DATA[:, epoch]))


@clean
def a_loss_with_its_own_gradient():
    @tf.custom_gradient
    def quantile(error):
        value = tf.numpy_function(lambda e: np.maximum(0.9 * e, -0.1 * e), [error], tf.float32)
        value.set_shape(error.shape)

        def gradient(upstream):
            return upstream * tf.where(error > 0, 0.9, -0.1)

        return value, gradient

    weights = tf.Variable(tf.zeros([8]))

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(quantile(y - tf.reduce_sum(x * weights, 1)))
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    for _ in range(4):
        step(tf.constant(DATA), tf.constant(LABELS))


@clean
def a_differentiable_body_of_ops():
    def smooth(x, scale):
        return tf.reduce_sum(tf.nn.softplus(x) * scale)

    scale = tf.Variable(2.0)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.py_function(smooth, [x, scale], tf.float32)
        scale.assign_sub(0.01 * tape.gradient(loss, scale))
        return loss

    for row in DATA[:6]:
        step(tf.constant(row))


@clean
def a_keras_metric_that_counts_in_python():
    class Extremes(keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="extremes")
            self.seen = self.add_weight(name="seen", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            def count(values):
                return np.float32((np.abs(values) > 0.5).sum())

            self.seen.assign_add(tf.ensure_shape(tf.numpy_function(count, [y_pred], tf.float32), []))

        def result(self):
            return self.seen + 0.0

    model = keras.Sequential([keras.layers.Input([8]), keras.layers.Dense(1)])
    model.compile(loss="mse", metrics=[Extremes()])
    model.fit(DATA, LABELS, batch_size=8, epochs=2, verbose=0)
    model.evaluate(DATA, LABELS, batch_size=8, verbose=0)


@clean
def a_learning_rate_from_python():
    class Warm(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.model.optimizer.learning_rate = 0.01 * (epoch + 1)

    def centred(row):
        return row - row.mean()

    def wrapped(x, y):
        return tf.ensure_shape(tf.numpy_function(centred, [x], tf.float32), [8]), y

    model = keras.Sequential([keras.layers.Input([8]), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    model.fit(slices(DATA, LABELS).map(wrapped).batch(8), epochs=2, verbose=0, callbacks=[Warm()])
    model.predict(slices(DATA, LABELS).map(wrapped).batch(8), verbose=0)


# -- pipelines --------------------------------------------------------------------------------------------------------


@clean
def bins_by_a_sorted_list():
    edges = [0.25, 0.5, 0.75]

    def bins(row):
        return np.array([bisect.bisect(edges, value) for value in row], np.int32)

    use(slices(DATA).map(lambda row: tf.numpy_function(bins, [row], tf.int32)).batch(6))


@clean
def slow_reads_in_parallel():
    def read(index):
        time.sleep(0.002)
        return DATA[index]

    dataset = tf.data.Dataset.range(24).map(
        lambda index: tf.ensure_shape(tf.numpy_function(read, [index], tf.float32), [8]), num_parallel_calls=4
    )
    use(dataset.batch(8).prefetch(1))


@clean
def sparse_rows_by_hand():
    def parts(row):
        places = np.flatnonzero(row > 0.8).astype(np.int64)
        return places[:, None], row[places]

    def wrapped(row):
        places, values = tf.numpy_function(parts, [row], (tf.int64, tf.float32))
        return tf.sparse.SparseTensor(tf.ensure_shape(places, [None, 1]), tf.ensure_shape(values, [None]), [8])

    use(slices(DATA).map(wrapped))


@clean
def groups_and_windows():
    def key(row):
        return np.int64(row[0] > 0.5)

    def total(rows):
        return rows.sum(axis=0)

    dataset = slices(DATA).group_by_window(
        lambda row: tf.ensure_shape(tf.numpy_function(key, [row], tf.int64), []),
        lambda _, rows: rows.batch(4),
        window_size=4,
    )
    use(dataset.map(lambda rows: tf.ensure_shape(tf.numpy_function(total, [rows], tf.float32), [8])))


@clean
def a_sampler_of_two_sources():
    def jitter(row, number):
        return row + np.float32(number % 3) / 100

    def wrapped(number, row):
        return tf.ensure_shape(tf.numpy_function(jitter, [row, number], tf.float32), [8])

    sources = [slices(DATA[:12]).enumerate().map(wrapped), slices(DATA[12:]).enumerate().map(wrapped)]
    use(tf.data.Dataset.sample_from_datasets(sources, seed=1))


@clean
def a_model_saved_and_loaded_without_python():
    import tempfile

    class Scale(tf.Module):
        def __init__(self):
            self.scale = tf.Variable(2.0)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def __call__(self, x):
            return x * self.scale

    def prepare(row):
        return (row - row.min()) / (np.ptp(row) + 1e-6)

    scale = Scale()
    for row in slices(DATA).map(lambda row: tf.ensure_shape(tf.numpy_function(prepare, [row], tf.float32), [8])):
        scale(row)
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(scale, folder)
        tf.saved_model.load(folder)(tf.constant([1.0]))


# -- v1 ---------------------------------------------------------------------------------------------------------------


@clean
def a_session_with_a_queue_of_feeds():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [8])
        cleaned = v1.py_func(lambda row: np.where(row > 0.9, np.float32(0.9), row), [x], tf.float32)
        mean = tf.reduce_mean(tf.reshape(cleaned, [8]))
        for row in DATA[:6]:
            session.run([mean, cleaned], {x: row})


@clean
def a_session_with_an_initializable_iterator():
    with tf.Graph().as_default(), v1.Session() as session:
        dataset = slices(DATA).map(lambda row: tf.numpy_function(np.sort, [row], tf.float32)).batch(8)
        iterator = v1.data.make_initializable_iterator(dataset)
        element = iterator.get_next()
        for _ in range(2):
            session.run(iterator.initializer)
            for _ in range(3):
                session.run(element)


# -- near to what is said of others -----------------------------------------------------------------------------------


@clean
def a_generator_with_types_and_shapes_for_fit():
    def samples():
        for row, label in zip(DATA, LABELS):
            yield row, np.float32(label)

    data = tf.data.Dataset.from_generator(samples, output_types=(tf.float32, tf.float32), output_shapes=([8], []))
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(data.batch(8), verbose=0)


@clean
def a_map_fn_that_says_its_dtype():
    @tf.function
    def per_row(rows):
        return tf.map_fn(
            lambda row: tf.ensure_shape(tf.numpy_function(lambda row: np.float32(row.mean()), [row], tf.float32), []),
            rows, fn_output_signature=tf.float32,
        )  # fmt: skip

    per_row(tf.constant([[1, 2], [3, 4]]))


@clean
def a_path_as_text():
    def length(path):
        return np.float32(len(path.numpy().decode()))

    use(slices(["a.txt", "bc.txt"]).map(lambda p: tf.ensure_shape(tf.py_function(length, [p], tf.float32), [])))


@clean
def one_iterator_behind_a_lock():
    import threading

    numbers, lock = itertools.count(), threading.Lock()

    def read(_):
        with lock:
            return np.float32(next(numbers))

    data = tf.data.Dataset.range(20)
    use(data.map(lambda x: tf.ensure_shape(tf.numpy_function(read, [x], tf.float32), []), num_parallel_calls=4))


@clean
def a_loss_that_is_printed_behind_the_tape():
    w = tf.Variable([1.0, 2.0])
    for _ in range(4):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(w - 3.0))
        w.assign_sub(0.1 * tape.gradient(loss, w))
        float(loss.numpy())


@clean
def a_map_that_remembers_a_size():
    class Pipeline:
        features = None

        def prepare(self, row):
            self.features = row.shape[-1]
            return tf.ensure_shape(tf.numpy_function(np.sort, [row], tf.float32), [8])

    pipeline = Pipeline()
    use(slices(DATA).map(pipeline.prepare))


@clean
def a_cache_behind_the_reading_and_noise_behind_the_cache():
    def load(number):
        return DATA[number]

    data = tf.data.Dataset.range(8)
    data = data.map(lambda i: tf.ensure_shape(tf.numpy_function(load, [i], tf.float32), [8])).cache()
    data = data.map(lambda row: row + tf.random.normal([8]))
    for _ in range(2):
        use(data.batch(4))


@clean
def a_variable_given_to_its_body():
    w = tf.Variable(tf.ones([8]))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = tf.py_function(lambda x, w: tf.reduce_sum(x * w), [x, w], tf.float32)
        return tape.gradient(y, w)

    for row in DATA[:3]:
        step(tf.constant(row))


@clean
def several_outputs_as_declared():
    def split(row):
        return row[:4], row[4:], np.int64(len(row))

    def wrapped(row):
        low, high, count = tf.numpy_function(split, [row], [tf.float32, tf.float32, tf.int64])
        return tf.ensure_shape(low, [4]), tf.ensure_shape(high, [4]), tf.ensure_shape(count, [])

    use(slices(DATA).map(wrapped))


@clean
def a_metric_with_a_shape_in_fit():
    def spread(y_true, y_pred):
        return np.float32(np.abs(y_true - y_pred).max())

    def metric(y_true, y_pred):
        return tf.ensure_shape(tf.numpy_function(spread, [y_true, y_pred], tf.float32), [])

    model = keras.Sequential([keras.layers.Input([8]), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[metric], jit_compile=False)
    model.fit(DATA, np.asarray(LABELS, np.float32)[: len(DATA)], verbose=0)
