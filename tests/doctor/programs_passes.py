"""Programs that cut a dataset by an unknown count, pass over it with changed values, or give Keras memory again."""

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers


@triggers("unknown-count", says="sum(1 for _ in ds)", pastes=True)
def a_split_of_a_generator():
    def gen():
        for i in range(10):
            yield np.float32(i)

    ds = tf.data.Dataset.from_generator(gen, output_signature=tf.TensorSpec((), tf.float32))
    n = ds.cardinality().numpy()
    train = ds.take(int(0.8 * n))
    for x in train:
        assert x >= 0


@triggers("unknown-count", says="skips all", pastes=True)
def what_is_left_of_a_filter():
    ds = tf.data.Dataset.range(12).filter(lambda x: x % 2 == 0)
    size = tf.data.experimental.cardinality(ds)
    left = size // 2
    val = ds.skip(left)
    print(len(list(val)))


@triggers("unknown-count", pastes=True)
def parts_of_an_interleave():
    ds = tf.data.Dataset.range(3).interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(4))
    size = int(ds.cardinality())
    first = int(0.5 * size)
    one, other = ds.take(first), ds.skip(first)
    print(len(list(one)), len(list(other)))


@near("unknown-count")
def a_split_of_known_length():
    ds = tf.data.Dataset.range(10)
    n = ds.cardinality().numpy()
    print(len(list(ds.take(int(0.8 * n)))), len(list(ds.skip(int(0.8 * n)))))


@near("unknown-count")
def all_on_purpose():
    ds = tf.data.Dataset.range(10).filter(lambda x: x > 3)
    n = ds.cardinality()
    print(int(n), len(list(ds.take(-1))))


@near("unknown-count")
def a_program_that_asks():
    ds = tf.data.Dataset.range(10).filter(lambda x: x > 3)
    n = int(ds.cardinality())
    if n < 0:
        n = sum(1 for _ in ds)
    print(len(list(ds.take(n // 2))), len(list(ds.take(-1))))


@triggers("reused-memory", says="yield (buffer.copy(),)", pastes=True)
def a_buffer_of_a_generator():
    def batches():
        buffer, count = np.zeros((2, 3), "float32"), 0
        while True:
            buffer[...] = count
            count += 1
            yield (buffer,)

    inputs = tf.keras.Input((3,))
    model = tf.keras.Model(inputs, tf.keras.layers.Rescaling(1.0)(inputs))
    print(model.predict(batches(), steps=3, verbose=0)[:, 0])


@near("reused-memory")
def labels_that_stay():
    def batches():
        labels = np.zeros((2, 3), "float32")
        while True:
            yield np.random.rand(2, 3).astype("float32"), labels

    inputs = tf.keras.Input((3,))
    model = tf.keras.Model(inputs, tf.keras.layers.Rescaling(1.0)(inputs))
    model.compile("sgd", "mse")
    print(model.evaluate(batches(), steps=3, verbose=0))


@triggers("cut-gradient", says="stands between it and the loss", pastes=True)
def a_square_of_numpy_without_a_graph():
    w = tf.Variable(2.0)

    def square(a):
        return np.square(a)

    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = tf.numpy_function(square, [w], tf.float32) * 2.0
        print(tape.gradient(loss, w))


@triggers("cut-gradient")
def a_lambda_without_a_graph():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.numpy_function(lambda a: np.sum(a**3), [x], tf.float32)
    print(tape.gradient(y, x))


@near("cut-gradient")
def a_metric_beside_the_loss():
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w * w)
        shown = tf.numpy_function(lambda a: np.sqrt(a), [loss], tf.float32)
    print(shown, tape.gradient(loss, w))


@triggers("stale-closure", says="`noise[0]` was 0.5")
def noise_that_is_to_shrink():
    noise = [0.5]

    def shifted(x):
        return x + noise[0]

    ds = tf.data.Dataset.from_tensor_slices(np.ones((2,), "float32")).map(shifted)
    for _ in range(3):
        print([float(x) for x in ds])
        noise[0] = noise[0] * 0.5


@triggers("stale-closure", pastes=True)
def an_epoch_of_an_object():
    class Data:
        def __init__(self):
            self.epoch = 0.0

        def weighted(self, x):
            return x * self.epoch

    data = Data()
    ds = tf.data.Dataset.from_tensor_slices(np.ones((2,), "float32")).map(data.weighted)
    for epoch in range(3):
        data.epoch = epoch
        print([float(x) for x in ds])


@near("stale-closure")
def names_of_a_loop_that_makes_datasets():
    base, made = tf.data.Dataset.range(3), []
    for scale in (1, 2, 3):
        made += [base.map(lambda x: x * scale)]  # noqa: B023
    for _ in range(2):
        print([[int(x) for x in ds] for ds in made])


@near("stale-closure")
def a_body_reads_it_at_each_call():
    epoch = [0]
    ds = tf.data.Dataset.range(2).map(lambda x: tf.numpy_function(lambda a: a * epoch[0], [x], tf.int64))
    for _ in range(3):
        epoch[0] += 1
        print([int(x) for x in ds])


@near("stale-closure")
def the_dataset_is_made_again():
    for noise in (0.5, 0.25):
        ds = tf.data.Dataset.from_tensor_slices(np.ones((2,), "float32")).map(lambda x: x + noise)  # noqa: B023
        for _ in range(2):
            print([float(x) for x in ds])


# -- counted-elements --------------------------------------------------------------------------------------------------

SLOW_PASSES = (
    "UPDATE meta SET value = json_replace(value, '$[0].step_ns', 60000000000, '$[1].step_ns', 60000000000) "
    "WHERE key = 'inputs'"
)


@triggers("counted-elements", says="steps_of reads all of data only to count it", pastes=True, clock=SLOW_PASSES)
def a_loop_that_counts_what_a_generator_gives():
    rows = [np.float32(row) for row in range(6)]

    def gen():
        for place, row in enumerate(rows):
            yield row * place

    def steps_of(data):
        steps = 0
        for _ in data:
            steps += 1
        return steps

    ds = tf.data.Dataset.from_generator(gen, output_signature=tf.TensorSpec((), tf.float32))
    ds = ds.batch(2)
    print(steps_of(ds))
    for x in ds:
        assert x.shape == 2


@triggers("counted-elements", says="int(doubled.cardinality())", pastes=True, clock=SLOW_PASSES)
def a_sum_of_ones_over_a_map_of_known_length():
    doubled = tf.data.Dataset.range(6).map(lambda x: tf.numpy_function(lambda y: y * 2, [x], tf.int64))
    total = sum(1 for _ in doubled)
    for x in doubled:
        assert x < 2 * total


@triggers("counted-elements", says="assert_cardinality(n)", clock=SLOW_PASSES)
def the_length_of_a_list_behind_a_filter():
    kept = tf.data.Dataset.range(6).map(lambda x: tf.numpy_function(lambda y: y * 2, [x], tf.int64))
    kept = kept.filter(lambda x: x > 2)
    size = len(list(kept))
    for x in kept:
        assert x < 9 * size


@near("counted-elements", clock=SLOW_PASSES)
def a_loop_that_measures_how_fast_data_are_read():
    doubled = tf.data.Dataset.range(6).map(lambda x: tf.numpy_function(lambda y: y * 2, [x], tf.int64))
    count = 0
    for _ in doubled:
        count += 1
    print(count)


@near("counted-elements", clock=SLOW_PASSES)
def a_loop_that_counts_and_adds():
    doubled = tf.data.Dataset.range(6).map(lambda x: tf.numpy_function(lambda y: y * 2, [x], tf.int64))
    count = total = 0
    for x in doubled:
        count += 1
        total += int(x)
    for x in doubled:
        assert x < 2 * total * count


@near("counted-elements")
def a_count_that_takes_no_time():
    doubled = tf.data.Dataset.range(6).map(lambda x: tf.numpy_function(lambda y: y * 2, [x], tf.int64))
    total = sum(1 for _ in doubled)
    for x in doubled:
        assert x < 2 * total
