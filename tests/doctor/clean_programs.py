"""Ordinary programs with nothing wrong in them, as users write them: pipelines, losses, environments, sessions."""

from __future__ import annotations

import collections
import json
import threading

import keras
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
PROGRAMS: list = []
DATA = np.random.default_rng(0).random((24, 8)).astype(np.float32)
LABELS = (DATA.sum(axis=1) > 4).astype(np.float32)
IMAGES = np.random.default_rng(1).integers(0, 255, (12, 8, 8, 3)).astype(np.uint8)


def clean(program):
    PROGRAMS.append(program)
    return program


def slices(*data):
    return tf.data.Dataset.from_tensor_slices(data if len(data) > 1 else data[0])


def use(dataset):
    for _ in dataset:
        pass


# -- pipelines --------------------------------------------------------------------------------------------------------


@clean
def decode_and_resize():
    def load(image):
        return (image[::2, ::2] / 255.0).astype(np.float32)

    def wrapped(image):
        out = tf.numpy_function(load, [image], tf.float32)
        out.set_shape([4, 4, 3])
        return out

    use(slices(IMAGES).map(wrapped).batch(4).prefetch(2))


@clean
def random_flip():
    def flip(image):
        return image[:, ::-1] if np.random.rand() < 0.5 else image

    use(slices(IMAGES).map(lambda x: tf.numpy_function(flip, [x], tf.uint8)).batch(4))


@clean
def random_crop_in_parallel_without_a_seed():
    def crop(image):
        top, left = np.random.randint(0, 4, 2)
        return np.ascontiguousarray(image[top : top + 4, left : left + 4])

    use(slices(IMAGES).map(lambda x: tf.numpy_function(crop, [x], tf.uint8), num_parallel_calls=tf.data.AUTOTUNE))


@clean
def a_generator_of_its_own():
    def noisy(x, index):
        rng = np.random.default_rng([7, int(index)])
        return (x + rng.normal(0, 0.1, x.shape)).astype(np.float32)

    dataset = slices(DATA).enumerate()
    use(dataset.map(lambda i, x: tf.numpy_function(noisy, [x, i], tf.float32), num_parallel_calls=4))


@clean
def normalize_each_row():
    def normalize(x):
        return (x - x.mean()) / (x.std() + 1e-6)

    use(slices(DATA).map(lambda x: tf.ensure_shape(tf.numpy_function(normalize, [x], tf.float32), [8])))


@clean
def tokens_of_lines():
    def tokenize(line):
        return np.array([len(word) for word in line.decode().split()], np.int64)

    lines = tf.constant(["the cat sat", "on", "the green mat today"])
    dataset = slices(lines).map(lambda x: tf.numpy_function(tokenize, [x], tf.int64))
    use(dataset.map(lambda x: tf.ensure_shape(x, [None])).padded_batch(2))


@clean
def json_records():
    records = [json.dumps({"x": i, "y": i * 2}) for i in range(8)]

    def parse(text):
        record = json.loads(text.numpy())
        return float(record["x"]), float(record["y"])

    use(slices(records).map(lambda x: tf.py_function(parse, [x], [tf.float32, tf.float32])).batch(3))


@clean
def filter_by_python():
    use(slices(DATA).filter(lambda x: tf.numpy_function(lambda x: x.sum() > 4, [x], tf.bool)))


@clean
def from_generator_with_shapes():
    def pairs():
        for i in range(10):
            yield np.full(3, i, np.float32), i

    signature = (tf.TensorSpec([3], tf.float32), tf.TensorSpec([], tf.int64))
    use(tf.data.Dataset.from_generator(pairs, output_signature=signature).shuffle(5).batch(4))


@clean
def interleave_files():
    def lines(name):
        return tf.data.Dataset.from_tensor_slices(
            tf.ensure_shape(tf.numpy_function(lambda n: np.arange(3) + len(n), [name], tf.int64), [None])
        )

    use(slices(["a", "bb", "ccc"]).interleave(lines, cycle_length=2))


@clean
def cached_and_repeated():
    dataset = slices(DATA).map(lambda x: tf.numpy_function(lambda x: x * 2, [x], tf.float32)).cache()
    for _ in range(6):
        use(dataset)


@clean
def one_dataset_for_each_split():
    for part in (DATA[:12], DATA[12:18], DATA[18:]):
        use(slices(part).map(lambda x: tf.numpy_function(lambda x: x + 1, [x], tf.float32)))


@clean
def reduce_in_python():
    slices(DATA).map(lambda x: tf.py_function(lambda x: tf.reduce_sum(x), [x], tf.float32)).reduce(
        tf.constant(0.0), lambda a, b: a + b
    )


@clean
def window_features():
    windows = slices(DATA[:, 0]).window(4, shift=2, drop_remainder=True).flat_map(lambda w: w.batch(4))
    use(windows.map(lambda w: tf.numpy_function(lambda w: np.array([w.min(), w.max()]), [w], tf.float32)))


@clean
def two_outputs():
    def split(x):
        return x[:4], x[4:]

    use(slices(DATA).map(lambda x: tf.numpy_function(split, [x], [tf.float32, tf.float32])))


@clean
def labels_as_one_hot():
    def one_hot(label):
        out = np.zeros(2, np.float32)
        out[int(label)] = 1
        return out

    use(slices(LABELS).map(lambda y: tf.numpy_function(one_hot, [y], tf.float32)))


@clean
def attention_masks():
    def mask(n):
        out = np.full((4, 4), -np.inf, np.float32)
        out[:, : int(n)] = 0
        return out

    use(slices([1, 2, 3, 4]).map(lambda n: tf.numpy_function(mask, [n], tf.float32)))


@clean
def missing_values_stay_missing():
    data = DATA.copy()
    data[3, 2] = np.nan
    use(slices(data).map(lambda x: tf.numpy_function(lambda x: x * 2, [x], tf.float32)))


@clean
def ragged_rows():
    rows = tf.ragged.constant([[1.0, 2.0], [3.0], [4.0, 5.0, 6.0]])

    @tf.function
    def lengths(rows):
        return tf.py_function(lambda r: tf.cast(r.row_lengths(), tf.int64), [rows], tf.int64)

    lengths(rows)


@clean
def a_vocabulary_that_is_looked_up():
    vocabulary = {b"cat": 1, b"dog": 2}

    def look_up(words):
        return np.array([vocabulary.get(word, 0) for word in words], np.int64)

    use(slices([["cat", "dog"], ["cow", "cat"]]).map(lambda x: tf.numpy_function(look_up, [x], tf.int64)))


@clean
def statistics_while_reading():
    seen = collections.Counter()

    def count(x):
        seen[int(x.shape[0])] += 1
        return x

    use(slices(DATA).map(lambda x: tf.numpy_function(count, [x], tf.float32)))


@clean
def a_counter_with_a_lock():
    lock, state = threading.Lock(), {"n": 0}

    def count(x):
        with lock:
            state["n"] += 1
        return x

    use(slices(DATA).map(lambda x: tf.numpy_function(count, [x], tf.float32), num_parallel_calls=4))


@clean
def in_place_on_a_copy():
    def clip(x):
        x = np.array(x)
        x[x > 0.5] = 0.5
        return x

    use(slices(DATA).map(lambda x: tf.numpy_function(clip, [x], tf.float32)))


@clean
def take_only_some():
    use(slices(DATA).map(lambda x: tf.numpy_function(lambda x: x, [x], tf.float32)).repeat().take(30))


@clean
def bucketed_batches():
    lengths = np.random.default_rng(2).integers(1, 9, 40)
    dataset = slices(lengths).map(lambda n: tf.ones([n]))
    dataset = dataset.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3, 6], [4, 4, 4])
    use(dataset.map(lambda x: tf.numpy_function(lambda x: x.sum(axis=1), [x], tf.float32)))


# -- functions --------------------------------------------------------------------------------------------------------


@clean
def a_python_branch():
    def huber(x, m):
        return x**2 if tf.abs(x) <= m else m**2 * (1 - 2 * tf.math.log(m) + tf.math.log(x**2))

    @tf.function
    def step(x, m):
        return tf.py_function(huber, [x, m], tf.float32)

    for x in (0.5, 1.5, 2.5):
        step(tf.constant(x), tf.constant(1.0))


@clean
def training_and_inference():
    @tf.function
    def run(x, training):
        y = tf.numpy_function(lambda x: x * 2, [x], tf.float32)
        return y * 0.5 if training else y

    for training in (True, True, False, True, False):
        run(tf.constant(DATA), training)


@clean
def a_last_batch_that_is_smaller():
    @tf.function
    def run(x):
        return tf.reduce_sum(tf.numpy_function(lambda x: x + 1, [x], tf.float32))

    for batch in slices(DATA).batch(10):
        run(batch)


@clean
def any_length():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def run(x):
        return tf.numpy_function(lambda x: x[::-1].copy(), [x], tf.float32)

    for n in range(1, 9):
        run(tf.ones([n]))


@clean
def a_loop_in_the_graph():
    @tf.function
    def run(n):
        total = tf.constant(0.0)
        for i in tf.range(n):
            total += tf.ensure_shape(tf.numpy_function(lambda i: np.float32(i), [i], tf.float32), [])
        return total

    run(tf.constant(5))


@clean
def a_branch_in_the_graph():
    @tf.function
    def run(x):
        if x > 0:
            return tf.py_function(lambda x: x * 2, [x], tf.float32)
        return x

    run(tf.constant(1.0))
    run(tf.constant(2.0))


@clean
def map_fn_over_rows():
    @tf.function
    def run(x):
        return tf.map_fn(lambda row: tf.numpy_function(lambda r: r.max(), [row], tf.float32), x)

    run(tf.constant(DATA))


@clean
def eager_calls():
    for row in DATA[:6]:
        tf.py_function(lambda x: tf.reduce_max(x), [tf.constant(row)], tf.float32)


@clean
def printing_progress():
    lines = []

    @tf.function
    def run(x):
        tf.py_function(lambda x: lines.append(f"{float(x):.2f}"), [tf.reduce_sum(x)], [])
        return x * 2

    for row in DATA[:5]:
        run(tf.constant(row))


@clean
def several_models_with_a_step_each():
    def make(scale):
        @tf.function
        def step(x):
            return tf.numpy_function(lambda x: x * scale, [x], tf.float32)

        return step

    for step in [make(np.float32(scale)) for scale in (1, 2)]:
        for row in DATA:
            step(tf.constant(row))


@clean
def variables_are_made_once():
    class Counter(tf.Module):
        def __init__(self):
            self.n = None

        @tf.function
        def __call__(self, x):
            if self.n is None:
                self.n = tf.Variable(0.0)
            self.n.assign_add(tf.numpy_function(lambda x: x.sum(), [x], tf.float32))
            return self.n

    counter = Counter()
    for row in DATA[:4]:
        counter(tf.constant(row))


@clean
def a_retry_inside_the_body():
    attempts = collections.Counter()

    def fetch(x):
        for _ in range(3):
            try:
                attempts[int(x)] += 1
                if attempts[int(x)] < 2:
                    raise OSError("temporary")
                return x
            except OSError:
                continue
        return x

    use(tf.data.Dataset.range(5).map(lambda x: tf.numpy_function(fetch, [x], tf.int64)))


@clean
def strings_out():
    use(tf.data.Dataset.range(4).map(lambda x: tf.numpy_function(lambda x: f"item {x}".encode(), [x], tf.string)))


# -- gradients, losses, metrics ---------------------------------------------------------------------------------------


def descend(loss, steps=4):
    w = tf.Variable(tf.ones([8]))
    optimizer = keras.optimizers.SGD(0.01)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            value = loss(y, tf.reduce_sum(x * w, axis=1))
        optimizer.apply_gradients([(tape.gradient(value, w), w)])
        return value

    for x, y in slices(DATA, LABELS).batch(6).take(steps):
        step(x, y)


@clean
def a_loss_in_python():
    descend(lambda y, p: tf.py_function(lambda y, p: tf.reduce_mean((y - p) ** 2), [y, p], tf.float32))


@clean
def a_loss_with_labels_in_numpy():
    def loss(y, p):
        weights = np.where(y.numpy() > 0, 2.0, 1.0).astype(np.float32)
        return tf.reduce_mean(weights * (y - p) ** 2)

    descend(lambda y, p: tf.py_function(loss, [y, p], tf.float32))


@clean
def a_gradient_by_hand():
    @tf.custom_gradient
    def loss(y, p):
        value = tf.numpy_function(lambda y, p: np.mean((y - p) ** 2), [y, p], tf.float32)
        return value, lambda dy: (None, dy * 2 * (p - y) / tf.cast(tf.size(p), tf.float32))

    descend(loss)


@clean
def a_metric_beside_the_loss():
    def loss(y, p):
        tf.numpy_function(lambda y, p: ((p > 0.5) == (y > 0.5)).mean().astype(np.float32), [y, p], tf.float32)
        return tf.reduce_mean((y - p) ** 2)

    descend(loss)


@clean
def a_gradient_after_each_forward_pass():
    f = tf.function(lambda x: tf.py_function(lambda x: tf.reduce_sum(x * x), [x], tf.float32))
    for row in DATA[:4]:
        x = tf.constant(row)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        tape.gradient(y, x)


@clean
def labels_from_python():
    w = tf.Variable(1.0)

    @tf.function
    def step(x):
        target = tf.numpy_function(lambda x: x * 2, [x], tf.float32)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((target - w * x) ** 2)
        return tape.gradient(loss, w)

    for row in DATA[:4]:
        step(tf.constant(row))


@clean
def stop_gradient_says_it():
    w = tf.Variable(2.0)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            scale = tf.stop_gradient(tf.numpy_function(lambda x: x.max(), [x], tf.float32))
            loss = tf.reduce_sum(w * x / scale)
        return tape.gradient(loss, w)

    for row in DATA[:4]:
        step(tf.constant(row))


@clean
def a_confusion_matrix():
    matrix = np.zeros((2, 2), np.int64)

    def update(y, p):
        np.add.at(matrix, (y.astype(int), (p > 0.5).astype(int)), 1)
        return np.int64(len(y))

    for x, y in slices(DATA, LABELS).batch(8):
        tf.numpy_function(update, [y, tf.reduce_mean(x, axis=1)], tf.int64)


# -- Keras ------------------------------------------------------------------------------------------------------------


def fit(model, dataset=None, **options):
    model.compile(optimizer="sgd", loss=options.pop("loss", "mse"), metrics=options.pop("metrics", None))
    data = dataset if dataset is not None else slices(DATA, LABELS).batch(8)
    model.fit(data, epochs=2, verbose=0, **options)
    model.evaluate(data, verbose=0)
    model.predict(DATA[:8], verbose=0)


def dense(*layers):
    return keras.Sequential([keras.Input((8,)), *layers, keras.layers.Dense(1)])


@clean
def fit_with_a_pipeline():
    def scale(x, y):
        x = tf.ensure_shape(tf.numpy_function(lambda x: x * 2 - 1, [x], tf.float32), [8])
        return x, y

    fit(dense(), slices(DATA, LABELS).map(scale).batch(8))


@clean
def fit_with_a_loss_in_python():
    def loss(y, p):
        value = tf.py_function(lambda y, p: tf.reduce_mean(tf.abs(y - p)), [y, p], tf.float32)
        value.set_shape([])
        return value

    fit(dense(), loss=loss)


@clean
def fit_with_a_metric_in_numpy():
    def accuracy(y, p):
        p = p[:, 0]
        value = tf.numpy_function(lambda y, p: ((p > 0.5) == (y > 0.5)).mean().astype(np.float32), [y, p], tf.float32)
        value.set_shape([])
        return value

    fit(dense(), metrics=[accuracy])


@clean
def fit_with_a_layer_in_python():
    class Scaled(keras.layers.Layer):
        def call(self, x):
            y = tf.py_function(lambda x: x * 2.0, [x], tf.float32)
            y.set_shape(x.shape)
            return y

    fit(dense(Scaled()))


@clean
def fit_with_a_callback():
    losses = []

    class Keep(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            losses.append(logs["loss"])

    fit(dense(), callbacks=[Keep()])


@clean
def fit_with_a_generator():
    def batches():
        for start in range(0, 24, 8):
            yield DATA[start : start + 8], LABELS[start : start + 8]

    signature = (tf.TensorSpec([None, 8], tf.float32), tf.TensorSpec([None], tf.float32))
    fit(dense(), tf.data.Dataset.from_generator(batches, output_signature=signature))


@clean
def fit_with_a_py_dataset():
    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 3

        def __getitem__(self, i):
            return DATA[8 * i : 8 * i + 8], LABELS[8 * i : 8 * i + 8]

    fit(dense(), Batches())


# -- environments -----------------------------------------------------------------------------------------------------


class Corridor:
    """An environment with a state of its own, as gym's."""

    def __init__(self):
        self.position = 0

    def step(self, action):
        self.position = max(0, min(9, self.position + (1 if action else -1)))
        return np.array([self.position], np.float32), np.float32(self.position == 9), np.int32(self.position == 9)


@clean
def an_environment():
    env = Corridor()

    @tf.function
    def step(action):
        return tf.numpy_function(env.step, [action], [tf.float32, tf.float32, tf.int32])

    for i in range(30):
        step(tf.constant(i % 3 != 0))


@clean
def an_episode_in_the_graph():
    env = Corridor()

    @tf.function
    def episode():
        rewards = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        for t in tf.range(10):
            _, reward, _ = tf.numpy_function(env.step, [t % 2 == 0], [tf.float32, tf.float32, tf.int32])
            rewards = rewards.write(t, tf.ensure_shape(reward, []))
        return rewards.stack()

    for _ in range(3):
        episode()


@clean
def a_replay_buffer():
    memory: collections.deque = collections.deque(maxlen=20)

    def remember(x):
        memory.append(x.copy())
        return np.int64(len(memory))

    for row in DATA:
        tf.numpy_function(remember, [tf.constant(row)], tf.int64)


# -- v1 ---------------------------------------------------------------------------------------------------------------


def session(build, runs=3, feed=None):
    with tf.Graph().as_default(), v1.Session() as s:
        made = build()
        s.run(v1.global_variables_initializer())
        for i in range(runs):
            s.run(made[0], {made[1]: feed(i)} if feed else None)


@clean
def a_session_with_py_func():
    def build():
        x = v1.placeholder(tf.float32, [None])
        return v1.py_func(lambda x: x * 2, [x], tf.float32), x

    session(build, feed=lambda i: np.arange(i + 1, dtype=np.float32))


@clean
def a_session_with_numpy_function_in_a_dataset():
    def build():
        dataset = slices(DATA).map(lambda x: tf.numpy_function(lambda x: x + 1, [x], tf.float32)).repeat()
        return (v1.data.make_one_shot_iterator(dataset).get_next(),)

    session(build)


@clean
def a_session_that_trains():
    def build():
        x = v1.placeholder(tf.float32, [8])
        w = v1.get_variable("w", [8])
        target = v1.py_func(lambda x: x.sum(), [x], tf.float32)
        loss = (tf.reduce_sum(w * x) - target) ** 2
        return v1.train.GradientDescentOptimizer(0.01).minimize(loss), x

    session(build, feed=lambda i: DATA[i])


@clean
def a_session_with_a_summary():
    def build():
        x = v1.placeholder(tf.float32, [8])
        return tf.py_function(lambda x: tf.reduce_mean(x), [x], tf.float32), x

    session(build, feed=lambda i: DATA[i])
