"""Programs whose names do not say what they hold: inputs in another order, letters for words, names of one call."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

ROWS = np.random.default_rng(0).random((24, 4)).astype("float32")
CLASSES = np.arange(24) % 3
TEXTS = ["the cat sat on the mat", "a dog ran", "the dog sat", "a cat ran away"] * 3
TOKENS = [np.random.default_rng(number).integers(1, 50, 3 + number % 11) for number in range(12)]

strength = 0.0
margin = 0.0
kept = 1.0
warmth = 0.0


# -- swapped-arguments -------------------------------------------------------------------------------------------------


@triggers("swapped-arguments", says="precision is given y_pred, y_true, and names them y_true, y_pred", pastes=True)
def a_metric_of_swapped_inputs():
    def precision(y_true, y_pred):
        return np.float32((y_true * y_pred).sum() / max(y_pred.sum(), 1))

    def metric(y_true, y_pred):
        return tf.numpy_function(precision, [y_pred, y_true], tf.float32)

    metric(tf.constant([1.0, 0.0, 1.0]), tf.constant([1.0, 1.0, 1.0]))


@triggers("swapped-arguments", says="what it calls image is mask", pastes=True)
def a_map_of_swapped_inputs():
    def crop(image, mask):
        return image[:2], mask[:2]

    def prepared(image, mask):
        return tf.numpy_function(crop, [mask, image], [tf.float32, tf.float32])

    list(tf.data.Dataset.from_tensor_slices((ROWS, ROWS * 0)).map(prepared))


@triggers("swapped-arguments", says="what it calls low is high", pastes=True)
def three_inputs_in_a_method():
    class Clip:
        def cut(self, x, low, high):
            return np.clip(x, low, high)

        def __call__(self, x, low, high):
            return tf.py_function(self.cut, inp=[x, high, low], Tout=tf.float32)

    Clip()(tf.constant(ROWS), tf.constant(0.2), tf.constant(0.8))


@near("swapped-arguments")
def inputs_in_their_order():
    def crop(image, mask):
        return image[:2], mask[:2]

    def prepared(image, mask):
        return tf.numpy_function(crop, [image, mask], [tf.float32, tf.float32])

    list(tf.data.Dataset.from_tensor_slices((ROWS, ROWS * 0)).map(prepared))


@near("swapped-arguments")
def inputs_of_other_names():
    def distance(a, b):
        return np.abs(a - b)

    def apart(b, c):
        return tf.numpy_function(distance, [b, c], tf.float32)

    apart(tf.constant(ROWS), tf.constant(ROWS + 1))


@near("swapped-arguments")
def one_input_twice():
    def product(x, y):
        return x * y

    def square(y):
        return tf.numpy_function(product, [y, y], tf.float32)

    square(tf.constant(ROWS))


# -- letters-for-words -------------------------------------------------------------------------------------------------


@triggers("letters-for-words", says="a loop over text.decode() gives its letters one by one", pastes=True)
def letters_of_a_text():
    vocab = {w: i + 1 for i, w in enumerate(sorted({w for t in TEXTS for w in t.split()}))}

    def encode(text):
        ids = [vocab.get(w, 0) for w in text.decode()]
        return np.array((ids + [0] * 12)[:12], np.int64)

    list(tf.data.Dataset.from_tensor_slices(TEXTS).map(lambda t: tf.numpy_function(encode, [t], tf.int64)))


@triggers("letters-for-words", says="gives its letters one by one", pastes=True)
def letters_in_a_loop():
    words = sorted({w for t in TEXTS for w in t.split()})
    index = dict(zip(words, range(1, 99)))

    def encode(text):
        sentence = text.decode("utf-8").lower()
        total = 0
        for word in sentence:
            if word in index:
                total += index[word]
        return np.int64(total)

    list(tf.data.Dataset.from_tensor_slices(TEXTS).map(lambda t: tf.numpy_function(encode, [t], tf.int64)))


@triggers("letters-for-words", says="word_index (line", pastes=True)
def letters_in_an_eager_body():
    word_index = {w: n for n, w in enumerate(" ".join(TEXTS[:2]).split(), 1)}

    def encode(text):
        text = text.numpy().decode()
        return np.int64(len([word_index.get(w, 0) for w in text.strip()]))

    list(tf.data.Dataset.from_tensor_slices(TEXTS).map(lambda t: tf.py_function(encode, [t], tf.int64)))


@near("letters-for-words")
def words_of_a_text():
    vocab = {w: i + 1 for i, w in enumerate(sorted({w for t in TEXTS for w in t.split()}))}

    def encode(text):
        return np.int64(sum(vocab.get(w, 0) for w in text.decode().split()))

    list(tf.data.Dataset.from_tensor_slices(TEXTS).map(lambda t: tf.numpy_function(encode, [t], tf.int64)))


@near("letters-for-words")
def letters_among_letters():
    chars = {c: i + 1 for i, c in enumerate(sorted({c for t in TEXTS for c in t}))}

    def encode(text):
        return np.int64(sum(chars.get(c, 0) for c in text.decode()))

    list(tf.data.Dataset.from_tensor_slices(TEXTS).map(lambda t: tf.numpy_function(encode, [t], tf.int64)))


@near("letters-for-words")
def letters_that_are_counted():
    vocab = {w: i + 1 for i, w in enumerate(sorted({w for t in TEXTS for w in t.split()}))}

    def encode(text):
        spaces = sum(1 for c in text.decode() if c == " ")
        return np.int64(spaces + vocab.get("cat", 0))

    list(tf.data.Dataset.from_tensor_slices(TEXTS).map(lambda t: tf.numpy_function(encode, [t], tf.int64)))


# -- lost-assignment ---------------------------------------------------------------------------------------------------


@triggers("lost-assignment", says="jitter reads the module's strength", pastes=True)
def a_callback_with_a_name_of_its_own():
    def jitter(x):
        return (x + strength).astype(np.float32)

    class Warm(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            strength = 0.1 * epoch  # noqa: F841

    data = tf.data.Dataset.from_tensor_slices((ROWS, CLASSES))
    data = data.map(lambda x, y: (tf.ensure_shape(tf.numpy_function(jitter, [x], tf.float32), [4]), y)).batch(8)
    model = keras.Sequential([keras.layers.Dense(3)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(data, epochs=2, verbose=0, callbacks=[Warm()])


@triggers("lost-assignment", says="assigns margin in set_margin, where that is a name of its own", pastes=True)
def a_setter_of_a_name_of_its_own():
    def hinge(x):
        return np.maximum(x - margin, 0).astype(np.float32)

    def set_margin(value):
        margin = value  # noqa: F841

    set_margin(0.5)
    list(tf.data.Dataset.from_tensor_slices(ROWS).map(lambda x: tf.numpy_function(hinge, [x], tf.float32)))


@triggers("lost-assignment", says="a name of its own, which nothing reads", pastes=True)
def a_generator_that_reads_it():
    def rows():
        for row in ROWS:
            yield row * warmth

    def warm_up():
        warmth = 1.0  # noqa: F841

    warm_up()
    list(tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((4,), tf.float32)))


@near("lost-assignment")
def a_global_that_is_assigned():
    def scaled(x):
        return (x * kept).astype(np.float32)

    def keep(value):
        global kept
        kept = value

    keep(1.0)
    list(tf.data.Dataset.from_tensor_slices(ROWS).map(lambda x: tf.numpy_function(scaled, [x], tf.float32)))


@near("lost-assignment")
def a_local_name_that_is_read():
    def scaled(x):
        return (x * kept).astype(np.float32)

    def summed():
        kept = sum(range(3))
        return kept

    assert summed() == 3
    list(tf.data.Dataset.from_tensor_slices(ROWS).map(lambda x: tf.numpy_function(scaled, [x], tf.float32)))


@near("lost-assignment")
def a_name_that_no_body_reads():
    def plain(x):
        return x

    def later():
        strength = None  # noqa: F841

    later()
    list(tf.data.Dataset.from_tensor_slices(ROWS).map(lambda x: tf.numpy_function(plain, [x], tf.float32)))


# -- unfilled-array ----------------------------------------------------------------------------------------------------


def padded(body):
    return list(tf.data.Dataset.range(12).map(lambda i: tf.numpy_function(body, [i], tf.int64)))


@triggers("unfilled-array", says="fills out[:len(ids)] only", pastes=True)
def rows_that_are_filled_in_part():
    def encode(i):
        ids = TOKENS[i][:16]
        out = np.empty(16, np.int64)
        out[:len(ids)] = ids  # fmt: skip
        return out

    padded(encode)


@triggers("unfilled-array", says="other numbers in each run", pastes=True)
def a_length_that_has_a_name():
    def encode(i):
        count = min(len(TOKENS[i]), 16)
        row = np.empty((16,), dtype=np.int64)
        row[0:count] = TOKENS[i][:count]
        return row

    padded(encode)


@triggers("unfilled-array", says="is memory that nobody filled", pastes=True)
def a_generator_of_such_rows():
    def rows():
        for tokens in TOKENS:
            row = np.empty(20, np.int64)
            row[: len(tokens)] = tokens
            yield row

    list(tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((20,), tf.int64)))


@near("unfilled-array")
def zeros_that_are_filled_in_part():
    def encode(i):
        out = np.zeros(16, np.int64)
        out[: len(TOKENS[i])] = TOKENS[i]
        return out

    padded(encode)


@near("unfilled-array")
def an_array_that_is_filled_in_two_pieces():
    def encode(i):
        out = np.empty(16, np.int64)
        out[: len(TOKENS[i])] = TOKENS[i]
        out[len(TOKENS[i]) :] = 0
        return out

    padded(encode)


@near("unfilled-array")
def an_array_that_is_filled_first():
    def encode(i):
        out = np.empty(16, np.int64)
        out.fill(0)
        out[: len(TOKENS[i])] = TOKENS[i]
        return out

    padded(encode)


@near("unfilled-array")
def an_array_that_is_filled_as_a_whole():
    def encode(i):
        out = np.empty(len(TOKENS[i]), np.int64)
        out[:] = TOKENS[i]
        return out

    padded(encode)


# -- wrong-batches: arrays by an order, and by places ------------------------------------------------------------------


@triggers("wrong-batches", says="takes rows in the shuffled order of order", pastes=True)
def inputs_by_an_order_and_labels_by_places():
    def flow(batch_size=8):
        order = np.random.permutation(len(ROWS))
        for i in range(0, len(ROWS), batch_size):
            ids = order[i : i + batch_size]
            yield ROWS[ids], CLASSES[i : i + batch_size]

    signature = (tf.TensorSpec((None, 4), tf.float32), tf.TensorSpec((None,), tf.int64))
    list(tf.data.Dataset.from_generator(flow, output_signature=signature))


@triggers("wrong-batches", says="each row gets the partner of another one", pastes=True)
def a_shuffled_list_of_places():
    def flow():
        places = list(range(len(ROWS)))
        np.random.shuffle(places)
        for start in range(0, len(ROWS), 6):
            x = ROWS[places[start : start + 6]]
            y = CLASSES[start : start + 6]
            yield x, y

    signature = (tf.TensorSpec((None, 4), tf.float32), tf.TensorSpec((None,), tf.int64))
    list(tf.data.Dataset.from_generator(flow, output_signature=signature))


@near("wrong-batches")
def both_by_an_order():
    def flow(batch_size=8):
        order = np.random.permutation(len(ROWS))
        for i in range(0, len(ROWS), batch_size):
            ids = order[i : i + batch_size]
            yield ROWS[ids], CLASSES[ids]

    signature = (tf.TensorSpec((None, 4), tf.float32), tf.TensorSpec((None,), tf.int64))
    list(tf.data.Dataset.from_generator(flow, output_signature=signature))


@near("wrong-batches")
def labels_that_have_the_order_already():
    def flow(batch_size=8):
        order = np.random.permutation(len(ROWS))
        labels = CLASSES[order]
        for i in range(0, len(ROWS), batch_size):
            yield ROWS[order[i : i + batch_size]], labels[i : i + batch_size]

    signature = (tf.TensorSpec((None, 4), tf.float32), tf.TensorSpec((None,), tf.int64))
    list(tf.data.Dataset.from_generator(flow, output_signature=signature))


def flow_of_rows():
    while True:
        for start in range(0, 24, 8):
            yield ROWS[start : start + 8], CLASSES[start : start + 8]


@triggers("wrong-batches", says="each next(flow) takes another batch", pastes=True)
def labels_of_the_next_batch():
    def pairs():
        flow = flow_of_rows()
        for _ in range(6):
            x = next(flow)[0]
            y = next(flow)[1]
            yield x, y

    signature = (tf.TensorSpec((None, 4), tf.float32), tf.TensorSpec((None,), tf.int64))
    list(tf.data.Dataset.from_generator(pairs, output_signature=signature))


@near("wrong-batches")
def two_flows_side_by_side():
    def pairs():
        flow, other = flow_of_rows(), flow_of_rows()
        for _ in range(6):
            yield next(flow)[0], next(other)[1]

    signature = (tf.TensorSpec((None, 4), tf.float32), tf.TensorSpec((None,), tf.int64))
    list(tf.data.Dataset.from_generator(pairs, output_signature=signature))


@triggers("wrong-batches", says="grow: they have 8, 16, 24 ... rows", pastes=True)
def lists_that_grow_in_each_of_two_passes():
    def batches():
        xs, ys = [], []
        for count, (row, label) in enumerate(zip(ROWS, CLASSES), 1):
            xs.append(row)
            ys.append(label)
            if count % 8 == 0:
                yield np.array(xs), np.array(ys)

    signature = (tf.TensorSpec((None, 4), tf.float32), tf.TensorSpec((None,), tf.int64))
    data = tf.data.Dataset.from_generator(batches, output_signature=signature)
    list(data.repeat(2))


# -- batch-statistics: shares ------------------------------------------------------------------------------------------


@triggers("batch-statistics", severity="error", says="e.sum() is the sum over all 8 rows of a batch", pastes=True)
def shares_of_a_whole_batch():
    def soft(a):
        e = np.exp(a @ np.ones((4, 3)))
        return (e / e.sum()).astype(np.float32)

    list(tf.data.Dataset.from_tensor_slices(ROWS).batch(8).map(lambda x: tf.numpy_function(soft, [x], tf.float32)))


@triggers("batch-statistics", says="and not by themselves", pastes=True)
def shares_by_a_function_of_numpy():
    def soft(logits):
        scores = np.exp(logits - logits.max())
        return scores / np.sum(scores)

    list(tf.data.Dataset.from_tensor_slices(ROWS).batch(6).map(lambda x: tf.numpy_function(soft, [x], tf.float32)))


@near("batch-statistics")
def shares_of_one_row():
    def soft(a):
        e = np.exp(a)
        return e / e.sum()

    list(tf.data.Dataset.from_tensor_slices(ROWS).map(lambda x: tf.numpy_function(soft, [x], tf.float32)).batch(8))


@near("batch-statistics")
def weights_of_the_rows():
    def weighted(a):
        w = a[:, 0]
        return w / w.sum()

    list(tf.data.Dataset.from_tensor_slices(ROWS).batch(8).map(lambda x: tf.numpy_function(weighted, [x], tf.float32)))


# -- wrap-around: squares ----------------------------------------------------------------------------------------------

CLIPS = (np.random.default_rng(0).normal(size=(6, 40)) * 8000).astype("int16")


@triggers("wrap-around", says="computes x ** 2 in int16", pastes=True)
def the_energy_of_a_clip():
    def energy(x):
        return np.float32((x ** 2).mean())  # fmt: skip

    list(tf.data.Dataset.from_tensor_slices(CLIPS).map(lambda x: tf.numpy_function(energy, [x], tf.float32)))


@triggers("wrap-around", says="computes x * x in int16", pastes=True)
def the_sum_of_squares():
    def power(x):
        return np.sum(x * x)

    list(tf.data.Dataset.from_tensor_slices(CLIPS).map(lambda x: tf.numpy_function(power, [x], tf.int64)))


@triggers("wrap-around", says="and Tout to match")
def squares_of_the_same_dtype():
    def power(x):
        return x ** 2  # fmt: skip

    list(tf.data.Dataset.from_tensor_slices(CLIPS).map(lambda x: tf.numpy_function(power, [x], tf.int16)))


@near("wrap-around")
def squares_of_small_numbers():
    def power(x):
        return np.sum(x ** 2) + x[0] ** 3  # fmt: skip

    list(tf.data.Dataset.from_tensor_slices(CLIPS // 4000).map(lambda x: tf.numpy_function(power, [x], tf.int64)))


@near("nan-born")
def a_root_of_squares_that_wrapped():
    def rms(x):
        return np.sqrt(np.mean(x * x)).astype(np.float32)

    list(tf.data.Dataset.from_tensor_slices(CLIPS).map(lambda x: tf.numpy_function(rms, [x], tf.float32)))
