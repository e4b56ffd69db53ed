"""Programs about input pipelines that do not fail: as `programs_threads`."""

from __future__ import annotations

import csv
import io
import itertools
import logging
import os
import queue
import random
import tempfile

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import mapped_eager, near, triggers

# -- epoch-end --------------------------------------------------------------------------------------------------------


class Rows(keras.utils.PyDataset):
    def __init__(self, shuffle=True):
        super().__init__()
        self.shuffle = shuffle
        self.order = np.arange(12)
        self.on_epoch_end()

    def __len__(self):
        return 3

    def __iter__(self):
        return (self[i] for i in range(3))

    def __getitem__(self, at):
        return self.order[4 * at : 4 * at + 4].astype(np.float32)[:, None]

    def on_epoch_end(self):
        if self.shuffle:
            np.random.default_rng(len(self.order)).shuffle(self.order)


@triggers("epoch-end", says="yield from rows", pastes=True)
def a_sequence_behind_a_lambda():
    rows = Rows()
    data = tf.data.Dataset.from_generator(lambda: iter(rows), output_signature=tf.TensorSpec((None, 1)))
    for _ in range(3):
        list(data)


@triggers("epoch-end", says="yield from (rows[i] for i in range(3))", pastes=True)
def a_generator_expression_over_a_sequence():
    rows = Rows()
    data = tf.data.Dataset.from_generator(
        lambda: (rows[i] for i in range(3)), output_signature=tf.TensorSpec((None, 1))
    )
    for _ in range(3):
        list(data)


@triggers("epoch-end", says="__call__ is a method of Shuffled", pastes=True)
def a_sequence_that_asks_itself_by_getitem():
    class Shuffled:
        def __init__(self, labels):
            self.labels = labels
            self.indices = list(range(len(labels)))

        def __getitem__(self, at):
            return self.labels[self.indices[at]]

        def __call__(self):
            for i in range(len(self.labels)):
                yield self.__getitem__(i)

        def on_epoch_end(self):
            random.Random(3).shuffle(self.indices)

    data = tf.data.Dataset.from_generator(Shuffled(np.arange(9.0)), output_signature=tf.TensorSpec((), tf.float64))
    for _ in range(3):
        list(data)


@near("epoch-end")
def a_sequence_behind_a_lambda_that_does_not_shuffle():
    rows = Rows(shuffle=False)
    data = tf.data.Dataset.from_generator(lambda: rows, output_signature=tf.TensorSpec((None, 1)))
    for _ in range(3):
        list(data.take(3))


# -- bytes-compared ---------------------------------------------------------------------------------------------------

KINDS = ["cat", "dog"]
NUMBERS = {kind: number for number, kind in enumerate(KINDS)}


@triggers("bytes-compared", says="split = split.decode()", pastes=True)
def a_split_that_a_generator_is_told():
    def numbers(split):
        for i in range(4):
            if split == "train":
                yield 2 * i
            else:
                yield i

    data = tf.data.Dataset.from_generator(numbers, args=["train"], output_types=tf.int32)
    assert len(list(data)) == 4


@triggers("bytes-compared", says="names = [one.decode() for one in names]", pastes=True)
def names_that_a_helper_of_a_generator_looks_up():
    def number(name):
        return NUMBERS.get(name, -1)

    def numbers(names):
        for name in names:
            yield number(name)

    spec = tf.TensorSpec((), tf.int32)
    list(tf.data.Dataset.from_generator(numbers, args=[["cat", "dog"]], output_signature=spec))


@triggers("bytes-compared", says="number(kind.decode())", pastes=True)
def a_folder_that_a_helper_of_a_body_looks_up():
    def number(name):
        return NUMBERS.get(name, -1)

    def load(path):
        kind = path.split(b"/")[0]
        return np.int64(number(kind))

    data = tf.data.Dataset.from_tensor_slices(["cat/1.png", "dog/2.png"])
    list(data.map(lambda path: tf.numpy_function(load, [path], tf.int64)))


@triggers("bytes-compared", says="if isinstance(split, bytes) else split", pastes=True)
def a_generator_that_is_called_without_tensorflow_too():
    def numbers(split):
        yield 1 if split in KINDS else 0

    assert next(numbers("cat")) == 1
    list(tf.data.Dataset.from_generator(numbers, args=["cat"], output_signature=tf.TensorSpec((), tf.int32)))


@near("bytes-compared")
def a_generator_that_decodes_what_it_is_told():
    def numbers(split):
        name = split.decode()
        yield NUMBERS.get(name, -1)

    list(tf.data.Dataset.from_generator(numbers, args=["cat"], output_signature=tf.TensorSpec((), tf.int32)))


@near("bytes-compared")
def a_helper_that_is_given_text():
    def number(name):
        return NUMBERS.get(name, -1)

    def load(path):
        return np.int64(number(path.decode().split("/")[0]))

    data = tf.data.Dataset.from_tensor_slices(["cat/1.png", "dog/2.png"])
    list(data.map(lambda path: tf.numpy_function(load, [path], tf.int64)))


@near("bytes-compared")
def a_generator_that_closes_over_its_text():
    def numbers(split):
        yield 1 if split == "train" else 0

    list(tf.data.Dataset.from_generator(lambda: numbers("train"), output_signature=tf.TensorSpec((), tf.int32)))


# -- ran-out ----------------------------------------------------------------------------------------------------------


class Windows:
    def __init__(self, size):
        self.rows = np.arange(2 * size, dtype=np.float32).reshape(size, 2)

    def batches(self, size):
        """Batches of windows."""
        at = 0
        while at < len(self.rows) - size:
            yield self.rows[at : at + size], self.rows[at : at + size, :1]
            at += size

    def queued(self, size):
        while len(self.rows) > size:
            batch, self.rows = self.rows[:size], self.rows[size:]
            yield batch, batch[:, :1]


@triggers("ran-out", says="while True:", pastes=True)
def a_method_that_counts_its_batches():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(Windows(21).batches(4), steps_per_epoch=5, epochs=3, verbose=0)


@triggers("ran-out", says="  self.at = 0\n", pastes=True)
def a_method_that_counts_in_its_object():
    class Counted:
        def __init__(self, rows):
            self.rows = rows
            self.at = 0

        def batches(self):
            while self.at + 4 <= len(self.rows):
                batch = self.rows[self.at : self.at + 4]
                self.at += 4
                yield batch, batch[:, :1]

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(Counted(np.ones((20, 2), "float32")).batches(), steps_per_epoch=5, epochs=3, verbose=0)


@triggers("ran-out", says="let queued go on for ever")
def a_method_that_empties_a_queue():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(Windows(21).queued(4), steps_per_epoch=5, epochs=3, verbose=0)


# -- cached-shuffle ---------------------------------------------------------------------------------------------------


def twice(x):
    return 2 * x


@triggers("cached-shuffle", says="Remove the file of the cache first", pastes=True)
def a_cache_in_a_file_behind_shuffled_batches():
    data = tf.data.Dataset.range(15)
    data = data.shuffle(1000).batch(3).cache(f"{tempfile.mkdtemp()}/kept")
    for _ in range(3):
        list(data)


@triggers("cached-shuffle", says="ds = ds.cache()\n        ds = ds.shuffle(64)", pastes=True)
def a_cache_behind_a_shuffle_line_by_line():
    def prepare(ds):
        ds = ds.shuffle(64)
        ds = ds.map(twice)
        ds = ds.cache()
        ds = ds.batch(8)
        return ds.prefetch(2)

    train = prepare(tf.data.Dataset.range(32))
    for _ in range(3):
        for _batch in train:
            pass


@triggers("cached-shuffle", says="all 3 passes over this dataset", pastes=True)
def a_cache_behind_a_shuffle_in_fit():
    x = np.arange(32, dtype=np.float32)[:, None]
    data = (
        tf.data.Dataset.from_tensor_slices((x, x))
        .shuffle(buffer_size=32)
        .batch(8)
        .cache()
        .prefetch(2)
    )  # fmt: skip
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(data, epochs=3, verbose=0)


@triggers("cached-shuffle", says="dataset.cache().shuffle(...)")
def a_cache_behind_a_map_of_shuffled_batches():
    data = tf.data.Dataset.range(32).shuffle(32).batch(4).map(twice).cache()
    for _ in range(2):
        list(data)


@triggers("cached-shuffle", says="all 3 passes over this dataset", pastes=True)
def a_cache_between_a_shuffle_and_a_repeat():
    work = tempfile.mkdtemp()

    def input_fn(batch_size=3, epochs=3, shuffle_size=1000):
        train_dataset = tf.data.Dataset.range(15)
        train_dataset = (
            train_dataset.shuffle(shuffle_size)
            .batch(batch_size)
            .cache(f"{work}/cache_train")
            .repeat(epochs if epochs else 1)
        )
        return train_dataset

    list(input_fn())


@triggers("cached-shuffle", says="all passes of .repeat()", pastes=True)
def a_cache_between_a_shuffle_and_an_endless_repeat():
    x = np.arange(32, dtype=np.float32)[:, None]
    data = tf.data.Dataset.from_tensor_slices((x, x)).shuffle(32).batch(8).cache().repeat()
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(data, epochs=3, steps_per_epoch=4, verbose=0)


@near("cached-shuffle")
def a_repeat_in_front_of_the_cache():
    list(tf.data.Dataset.range(32).shuffle(32).repeat(3).cache())


@near("cached-shuffle")
def a_sample_that_a_cache_keeps():
    data = tf.data.Dataset.range(32).shuffle(32).take(8).cache()
    for _ in range(3):
        list(data)


@near("cached-shuffle")
def a_cache_between_two_shuffles():
    data = tf.data.Dataset.range(32).shuffle(32).cache().shuffle(32).batch(4)
    for _ in range(3):
        list(data)


@near("cached-shuffle")
def a_cache_of_what_is_held_out():
    val_data = tf.data.Dataset.range(32).shuffle(32).batch(4).cache()
    for _ in range(3):
        list(val_data)


@near("cached-shuffle")
def a_cache_behind_one_order():
    data = tf.data.Dataset.range(32).shuffle(32, reshuffle_each_iteration=False).batch(4).cache()
    for _ in range(3):
        list(data)


# -- structure --------------------------------------------------------------------------------------------------------


@near("structure")
def a_function_of_dicts_with_defaults():
    def scaled(row, key="first", by=2):
        return {**row, key: row[key] * by}

    rows = {"first": np.arange(4), "second": np.arange(4)}
    assert [int(one["first"]) for one in tf.data.Dataset.from_tensor_slices(rows).map(scaled)] == [0, 2, 4, 6]


# -- empty-epochs: passes of a repeat, and loops in several lines -----------------------------------------------------


@triggers("empty-epochs", says="2 of 3 passes over this dataset got no element at all", pastes=True)
def three_times_one_generator():
    def rows():
        yield from [1.0, 2.0, 3.0]

    made = rows()
    ds = tf.data.Dataset.from_generator(lambda: made, output_signature=tf.TensorSpec((), tf.float32))
    print(len(list(ds.repeat(3))))


@triggers("empty-epochs", says="from_generator(lambda: (float(i) for i in range(4)), output_signature", pastes=True)
def a_second_loop_in_another_line():
    made = (float(i) for i in range(4))
    ds = tf.data.Dataset.from_generator(lambda: made, output_signature=tf.TensorSpec((), tf.float32)).batch(2)
    count = sum(1 for _ in ds)
    for x in ds:
        print(count, x)


@triggers("empty-epochs", says="it gave self.made, used up", pastes=True)
def an_object_that_keeps_its_generator():
    class Data:
        def __init__(self, n):
            self.n = n
            self.made = self.rows()

        def rows(self):
            for i in range(self.n):
                yield float(i)

        def dataset(self):
            return tf.data.Dataset.from_generator(lambda: self.made, output_signature=tf.TensorSpec((), tf.float32))

    ds = Data(4).dataset()
    print(len(list(ds)))
    print(len(list(ds)))


@near("empty-epochs")
def a_list_that_is_repeated():
    rows = [1.0, 2.0]
    ds = tf.data.Dataset.from_generator(lambda: rows, output_signature=tf.TensorSpec((), tf.float32)).repeat(2)
    print(len(list(ds)))
    print(len(list(ds)))


@near("empty-epochs")
def one_generator_that_is_used_once():
    made = iter([1.0, 2.0])
    ds = tf.data.Dataset.from_generator(lambda: made, output_signature=tf.TensorSpec((), tf.float32))
    print(len(list(ds)))


@near("empty-epochs")
def two_looks_at_a_generator_without_an_end():
    made = itertools.count(1.0)
    ds = tf.data.Dataset.from_generator(lambda: made, output_signature=tf.TensorSpec((), tf.float32))
    print(len(list(ds.take(2))))
    print(len(list(ds.take(2))))


@near("empty-epochs")
def what_a_queue_had():
    waiting = queue.Queue()
    waiting.put(1.0)

    def rows():
        while not waiting.empty():
            yield waiting.get()

    ds = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((), tf.float32))
    print(len(list(ds)))
    print(len(list(ds)))


# -- output-contract --------------------------------------------------------------------------------------------------


def _tokens(texts):
    ids = [[len(word) for word in text.split()] for text in texts]
    return {
        "input_ids": ids,
        "token_type_ids": [[0] * len(row) for row in ids],
        "mask": [[1] * len(row) for row in ids],
    }


@triggers("output-contract", says='return [d["input_ids"], d["mask"]]', pastes=True)
def a_mask_that_is_another_of_three_values():
    def encode(texts):
        d = _tokens(text.decode() for text in texts.numpy())
        return list(d.values())

    def encoded(texts):
        out = tf.py_function(encode, [texts], [tf.int32, tf.int32])
        return {"input_ids": out[0], "mask": out[1]}

    list(tf.data.Dataset.from_tensor_slices(["a good film", "so very bad"]).batch(2).map(encoded))


@triggers("output-contract", says="return [image, label]", pastes=True)
def a_weight_between_the_two_that_are_unpacked():
    def load(i):
        image, weight, label = np.full((2, 2), i, np.float32), np.float32(0.5), np.float32(i)
        return image, weight, label

    def loaded(i):
        image, label = tf.py_function(load, [i], [tf.float32, tf.float32])
        return image, label

    list(tf.data.Dataset.range(2).map(loaded))


@triggers("output-contract", says='return [d["x"], tf.cast(y, tf.float32)]', pastes=True)
def values_that_are_taken_by_their_places():
    def load(i):
        d, y = {"x": tf.zeros(2), "w": tf.ones(2)}, i
        return d["x"], d["w"], tf.cast(y, tf.float32)

    def loaded(i):
        out = tf.py_function(load, [i], [tf.float32, tf.float32])
        x = out[0]
        y = out[1]
        return x, y

    list(tf.data.Dataset.range(2).map(loaded))


@triggers("output-contract", says="let load return the 2 that are wanted")
def three_values_without_names_for_two():
    def load(i):
        return np.zeros(2, np.float32), np.float32(0.5), np.float32(i)

    def loaded(i):
        x, y = tf.py_function(load, [i], [tf.float32, tf.float32])
        return x, y

    list(tf.data.Dataset.range(2).map(loaded))


@triggers("output-contract", says="[tf.float32, tf.float32, tf.float32]", pastes=True)
def three_values_that_are_used_as_a_list():
    def load(i):
        return np.zeros(2, np.float32), np.float32(0.5), np.float32(i)

    def loaded(i):
        return tuple(tf.py_function(load, [i], [tf.float32, tf.float32]))

    list(tf.data.Dataset.range(2).map(loaded))


# -- empty-epochs: a generator that reads an iterator from outside -----------------------------------------------------


@triggers("empty-epochs", says="output_signature=tf.TensorSpec(())).skip(6)", pastes=True)
def one_iterator_for_training_and_validation():
    numbers = [np.float32(i) for i in range(10)]
    it = iter(numbers)

    def gen():
        for x in it:
            yield x * 2

    train = tf.data.Dataset.from_generator(gen, output_signature=tf.TensorSpec(())).take(6)
    val = tf.data.Dataset.from_generator(gen, output_signature=tf.TensorSpec(()))
    for _ in range(2):
        for x in train.batch(2):
            assert x.shape == (2,)
        for x in val.batch(2):
            assert x.shape == (2,)


@triggers("empty-epochs", says="which is made once, in line", pastes=True)
def one_iterator_for_epochs_of_fit():
    x = np.random.rand(8, 3).astype("float32")
    pairs = zip(x, x[:, 0])

    def rows():
        while True:
            try:
                row, target = next(pairs)
            except StopIteration:
                return
            yield row, target

    spec = (tf.TensorSpec((3,)), tf.TensorSpec(()))
    data = tf.data.Dataset.from_generator(rows, output_signature=spec).batch(4)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(data, epochs=2, verbose=0)


@triggers("empty-epochs", says="a later pass got none", pastes=True)
def one_generator_for_two_datasets():
    def numbers():
        yield from map(np.float32, range(6))

    source = numbers()

    def halves():
        for one in source:
            yield one / 2

    first = tf.data.Dataset.from_generator(halves, output_signature=tf.TensorSpec(()))
    second = tf.data.Dataset.from_generator(halves, output_signature=tf.TensorSpec(()))
    counts = [len(list(one)) for one in (first, second)]
    assert counts[0] == 6


@near("empty-epochs")
def one_iterator_that_two_datasets_share_in_one_pass():
    items = iter([np.float32(i) for i in range(10)])

    def gen():
        for one in items:
            yield one + 1

    data = tf.data.Dataset.from_generator(gen, output_signature=tf.TensorSpec(()))
    assert (len(list(data.take(6))), len(list(data))) == (6, 4)


# -- empty-epochs: one iterator, made before the loop over epochs ------------------------------------------------------


@triggers("empty-epochs", says="pairs is one iterator", pastes=True)
def a_zip_before_the_epochs():
    doubled = tf.data.Dataset.range(4).map(lambda x: tf.numpy_function(lambda v: v * 2, [x], tf.int64))
    pairs = zip(doubled, tf.data.Dataset.range(4))
    for epoch in range(3):
        count = 0
        for x, y in pairs:
            count += int(x - y) >= 0
        print(epoch, count)


@triggers("empty-epochs", says="it was asked 2 times after its end", pastes=True)
def an_iter_before_the_epochs():
    it = iter(tf.data.Dataset.range(4))
    for epoch in range(3):
        loss = 0.0
        for x in it:
            loss += float(x)
        print(epoch, loss)


@triggers("empty-epochs", says="# batches stays the dataset", pastes=True)
def a_dataset_named_as_its_enumeration():
    batches = tf.data.Dataset.range(8).batch(4)
    batches = enumerate(batches)
    epoch = 0
    while epoch < 2:
        print([int(batch[0]) for _, batch in batches])
        epoch += 1


@near("empty-epochs")
def an_iterator_made_anew_where_it_ends():
    ds = tf.data.Dataset.range(3)
    it = iter(ds)
    for step in range(7):
        x = next(it, None)
        if x is None:
            it = iter(ds)
            x = next(it)
        print(step, int(x))


@near("empty-epochs")
def one_iterator_for_two_halves():
    it = iter(tf.data.Dataset.range(6))
    for part in range(2):
        print(part, [int(next(it)) for _ in range(3)])
    print(next(it, None), next(it, None))


@near("empty-epochs")
def an_iterator_in_the_loop():
    ds = tf.data.Dataset.range(4)
    for epoch in range(3):
        pairs = zip(ds, ds)
        print(epoch, sum(int(x) + int(y) for x, y in pairs))


# -- absolute-join ----------------------------------------------------------------------------------------------------


def _images():
    root = tempfile.mkdtemp()
    os.makedirs(os.path.join(root, "img"))
    os.makedirs(os.path.join(root, "mask"))
    for folder in ("img", "mask"):
        np.save(os.path.join(root, folder, "a.npy"), np.ones(2, np.float32))
    return root, [os.path.join(root, "img", "a.npy")] * 2


@triggers("absolute-join", says="os.path.basename(path)", pastes=True)
def a_mask_by_the_path_of_its_image():
    root, files = _images()

    def load(path):
        path = path.numpy().decode()
        return np.load(path), np.load(os.path.join(root, "mask", path))

    ds = tf.data.Dataset.from_tensor_slices(files)
    list(ds.map(lambda p: tf.py_function(load, [p], [tf.float32, tf.float32])))


@triggers("absolute-join", says="It was one in all of 2 calls", pastes=True)
def a_mask_by_bytes():
    root, files = _images()

    def load(image):
        name = image.decode("utf-8")
        mask_path = os.path.join(root + "/mask", name)
        return np.load(mask_path)

    list(tf.data.Dataset.from_tensor_slices(files).map(lambda p: tf.numpy_function(load, [p], tf.float32)))


@triggers("absolute-join", says="os.path.basename(tf.compat.as_str(path.numpy()))", pastes=True)
def a_mask_by_a_text_of_tensorflow():
    root, files = _images()
    folders = {"mask": os.path.join(root, "mask")}

    def load(path, number):
        return np.load(os.path.join(folders["mask"], tf.compat.as_str(path.numpy()))) * number.numpy()

    ds = tf.data.Dataset.from_tensor_slices((files, [1.0, 2.0]))
    list(ds.map(lambda p, n: tf.py_function(load, [p, n], tf.float32)))


@near("absolute-join")
def a_mask_by_the_name_of_its_image():
    root, files = _images()

    def load(path):
        path = path.numpy().decode()
        name = os.path.basename(path)
        return np.load(path), np.load(os.path.join(root, "mask", name))

    ds = tf.data.Dataset.from_tensor_slices(files)
    list(ds.map(lambda p: tf.py_function(load, [p], [tf.float32, tf.float32])))


@near("absolute-join")
def names_behind_a_folder():
    root, _ = _images()

    def load(name):
        return np.load(os.path.join(root, "img", name.decode()))

    list(tf.data.Dataset.from_tensor_slices(["a.npy"]).map(lambda p: tf.numpy_function(load, [p], tf.float32)))


@near("absolute-join")
def a_whole_path_that_comes_first():
    root, _ = _images()

    def load(folder, name):
        return np.load(os.path.join(folder.decode(), name.decode()))

    ds = tf.data.Dataset.from_tensor_slices(([root + "/img"], ["a.npy"]))
    list(ds.map(lambda f, n: tf.numpy_function(load, [f, n], tf.float32)))


@triggers("bytes-compared", says="img_size int32[2] x=4", pastes=True)
def a_mode_behind_a_list_in_the_inputs_of_a_body():
    def get_batch(line, img_size, mode):
        x = np.ones((4, 4), "float32")
        if mode == "train":
            x = x * 2
        return x

    ds = tf.data.Dataset.from_tensor_slices(["a", "b"])
    ds = ds.map(lambda line: tf.numpy_function(get_batch, inp=[line, [4, 4], "train"], Tout=tf.float32))
    for _ in ds:
        pass


@triggers("output-contract", says="float32 array, int, string tensor", pastes=True)
def a_path_that_is_returned_beside_what_is_declared():
    def load(path, size):
        return np.ones((int(size), 4), np.float32), 3, path

    data = tf.data.Dataset.from_tensor_slices((["a", "b"], [2, 3]))
    for _ in data.map(lambda path, size: tf.py_function(load, [path, size], [tf.float32, tf.int32])):
        pass


@triggers("output-contract", says="masts returned does not become variant", pastes=True)
def a_tout_of_no_array_and_an_exception_that_is_caught():
    def masts(ship):
        return np.arange(3)

    ships = tf.data.Dataset.range(2).map(lambda ship: tf.py_function(masts, [ship], tf.variant))
    try:
        list(ships)
    except Exception as error:
        print("went on", type(error).__name__)


# -- slow-read ---------------------------------------------------------------------------------------------------------

HALF_A_SECOND = "UPDATE call SET end_ns = start_ns + 500000000"


@triggers("slow-read", pastes=True, says="(`int(x)`)", clock=HALF_A_SECOND)
def a_number_read_in_each_round():
    def double(x):
        text = " ".join(str(i * int(x)) for i in range(600))
        return np.float32(len(text))

    list(mapped_eager(double, np.arange(6), num_parallel_calls=2))


@triggers("slow-read", pastes=True, says="400 elements at the most", clock=HALF_A_SECOND)
def a_tensor_gone_through_by_its_index():
    def smooth(signal):
        out = []
        for i in range(1, len(signal) - 1):
            out.append((float(signal[i - 1]) + float(signal[i]) + float(signal[i + 1])) / 3)  # noqa: PERF401
        return np.array(out, np.float32)

    list(mapped_eager(smooth, np.ones((6, 400), np.float32)))


@triggers("slow-read", pastes=True, says="reads the tensor words", clock=HALF_A_SECOND)
def texts_decoded_one_by_one():
    def lengths(words):
        found = []
        for word in words:
            found.append(len(word.numpy().decode("utf-8")))  # noqa: PERF401
        return np.array(found, np.float32)

    list(mapped_eager(lengths, np.array([["a", "bcd"] * 100] * 6)))


@triggers("slow-read", pastes=True, says="goes through the tensors parts[0] and parts[1]", clock=HALF_A_SECOND)
def records_of_eager_tensors():
    def make_example(*parts):
        feature = {
            "a": tf.train.Feature(float_list=tf.train.FloatList(value=parts[0])),
            "b": tf.train.Feature(float_list=tf.train.FloatList(value=parts[1])),
            "c": tf.train.Feature(int64_list=tf.train.Int64List(value=[parts[2].numpy()])),
        }
        return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()

    def written(*parts):
        return tf.reshape(tf.py_function(make_example, parts, tf.string), ())

    rows = np.ones((6, 200), np.float32)
    list(tf.data.Dataset.from_tensor_slices((rows, rows[:, :150], np.arange(6))).map(written))


def _numbers(value):
    return tf.train.Feature(float_list=tf.train.FloatList(value=value))


@triggers("slow-read", pastes=True, says="(`_numbers(x)`)", clock=HALF_A_SECOND)
def records_by_a_helper():
    def make_example(x):
        return tf.train.Features(feature={"x": _numbers(x)}).SerializeToString()

    list(tf.data.Dataset.from_tensor_slices(np.ones((6, 200), np.float32)).map(
        lambda x: tf.py_function(make_example, [x], tf.string)
    ))  # fmt: skip


@triggers("slow-read", pastes=True, says="reads the tensor signal", clock=HALF_A_SECOND)
def a_loop_over_all_inputs():
    def longest(*signals):
        return np.float32(max(sum(float(v) for v in signal) for signal in signals))

    rows = np.ones((6, 200), np.float32)
    data = tf.data.Dataset.from_tensor_slices((rows, rows))
    list(data.map(lambda *both: tf.py_function(longest, both, tf.float32)))


@near("slow-read", clock=HALF_A_SECOND)
def records_of_values():
    def make_example(*parts):
        return tf.train.Features(feature={
            "a": _numbers(parts[0].numpy()), "b": tf.train.Feature(int64_list=tf.train.Int64List(value=[parts[1]]))
        }).SerializeToString()  # fmt: skip

    rows = np.ones((6, 200), np.float32)
    list(tf.data.Dataset.from_tensor_slices((rows, np.arange(6))).map(
        lambda *parts: tf.py_function(make_example, parts, tf.string)
    ))  # fmt: skip


@near("slow-read", clock=HALF_A_SECOND)
def a_list_of_a_few_numbers():
    def total(box):
        return np.float32(sum(list(box)))

    list(mapped_eager(total, np.ones((6, 4), np.float32)))


@near("slow-read", clock=HALF_A_SECOND)
def a_number_read_before_the_loop():
    def double(x):
        factor = int(x)
        return np.float32(len(" ".join(str(i * factor) for i in range(600))))

    list(mapped_eager(double, np.arange(6)))


@near("slow-read", clock=HALF_A_SECOND)
def a_loop_over_an_array():
    def smooth(signal):
        signal = signal.numpy()
        return np.array([float(signal[i]) for i in range(len(signal))], np.float32)

    list(mapped_eager(smooth, np.ones((6, 400), np.float32)))


@near("slow-read", clock=HALF_A_SECOND)
def a_loop_over_the_rows_of_a_small_batch():
    def each(rows):
        return np.array([np.sum(rows[i]) for i in range(4)], np.float32)

    list(mapped_eager(each, np.ones((6, 4, 100), np.float32)))


@near("slow-read", clock=HALF_A_SECOND)
def a_numpy_functions_array():
    def smooth(signal):
        return np.array([float(signal[i]) for i in range(len(signal))], np.float32)

    data = tf.data.Dataset.from_tensor_slices(np.ones((6, 400), np.float32))
    list(data.map(lambda x: tf.numpy_function(smooth, [x], tf.float32)))


@near("slow-read", clock=HALF_A_SECOND)
def a_loop_under_a_tape():
    def summed(x):
        total = 0.0
        for i in range(len(x)):
            total += x[i] * x[i]
        return total

    x = tf.Variable(tf.ones(200))
    for _ in range(4):
        with tf.GradientTape() as tape:
            y = tf.py_function(summed, [x], tf.float32)
        tape.gradient(y, x)


# -- bytes-compared: texts that a loop goes through, or that have a name ----------------------------------------------


@triggers("bytes-compared", pastes=True)
def classes_in_a_loop():
    classes = ["cat", "dog"]

    def process(path):
        label = 0
        for number, name in enumerate(classes):
            if path.numpy() == name:
                label = number + 1
        return tf.constant(label)

    pets = tf.data.Dataset.from_tensor_slices(["cat", "dog"] * 3)
    list(pets.map(lambda path: tf.py_function(process, [path], tf.int32)))


@triggers("bytes-compared", pastes=True)
def keys_of_a_dict_in_a_loop():
    ids = {"cat": 1, "dog": 2}

    def process(name):
        found = 0
        for key, value in ids.items():
            if key == name:
                found = value
        return np.int64(found)

    pets = tf.data.Dataset.from_tensor_slices(["cat", "dog"] * 3)
    list(pets.map(lambda name: tf.numpy_function(process, [name], tf.int64)))


@triggers("bytes-compared", pastes=True)
def one_of_each_class_in_a_list():
    classes = ["cat", "dog"]

    def one_hot(name):
        return np.array([one == name for one in classes], np.float32)

    pets = tf.data.Dataset.from_tensor_slices(["cat", "dog"] * 3)
    list(pets.map(lambda name: tf.numpy_function(one_hot, [name], tf.float32)))


@triggers("bytes-compared", pastes=True)
def a_text_with_a_name():
    wanted = "dog"

    def is_wanted(name):
        return np.int64(name == wanted)

    pets = tf.data.Dataset.from_tensor_slices(["cat", "dog"] * 3)
    list(pets.map(lambda name: tf.numpy_function(is_wanted, [name], tf.int64)))


@near("bytes-compared")
def classes_encoded_in_a_loop():
    classes = ["cat", "dog"]

    def process(name):
        found = 0
        for number, one in enumerate(classes):
            one = one.encode()
            if one == name:
                found = number
        return np.int64(found)

    pets = tf.data.Dataset.from_tensor_slices(["cat", "dog"] * 3)
    list(pets.map(lambda name: tf.numpy_function(process, [name], tf.int64)))


@near("bytes-compared")
def a_loop_over_bytes():
    classes = [b"cat", b"dog"]

    def process(name):
        return np.int64(next(number for number, one in enumerate(classes) if one == name))

    pets = tf.data.Dataset.from_tensor_slices(["cat", "dog"] * 3)
    list(pets.map(lambda name: tf.numpy_function(process, [name], tf.int64)))


# -- bytes-as-text: YOLOv3_TensorFlow#33 ------------------------------------------------------------------------------


def parsed(body, dtype=tf.float32, function=tf.numpy_function, batch=0):
    lines = tf.data.Dataset.from_tensor_slices(["0.jpg 0 10 10 30 40", "1.jpg 1 5 5 20 25"])
    lines = lines.batch(batch) if batch else lines
    list(lines.map(lambda line: function(body, [line], dtype)))


@triggers("bytes-as-text", pastes=True, says="the slice leaves '0.jpg 0 10 10 30 4'")
def one_character_too_many_is_cut_off():
    def parse_line(line):
        line = str(line)
        line = line[2 : len(line) - 2]
        return [float(one) for one in line.split(" ")[1:]]

    def boxes(lines):
        return np.array([parse_line(line) for line in lines], np.float32)

    parsed(boxes, batch=2)


@triggers("bytes-as-text", pastes=True, says="decode() makes them text")
def the_first_word_of_a_line():
    def name(line):
        return len(str(line).split(" ")[0])

    parsed(name, tf.int64)


@triggers("bytes-as-text", pastes=True, says="`str(line.numpy())`")
def text_of_an_eager_tensor():
    def name(line):
        text = str(line.numpy())
        return len(text.strip().split(" ")[0])

    parsed(name, tf.int32, tf.py_function)


@triggers("bytes-as-text", pastes=True, says="`name` is bytes, and the text that it is put into has them")
def bytes_in_rows_of_csv():
    file = io.StringIO()

    def note(name, score):
        csv.writer(file).writerow([name, score])
        return np.float32(score)

    for _ in tf.data.Dataset.from_tensor_slices((["a", "b"], [0.5, 1.5])).map(
        lambda n, s: tf.numpy_function(note, [n, s], tf.float32)
    ):
        pass


@triggers("bytes-as-text", pastes=True, says="has them as")
def bytes_in_an_f_string_that_is_kept():
    known = {"a.npy": 1}

    def number(name):
        return np.int64(known.get(f"{name}.npy", 0))

    for _ in tf.data.Dataset.from_tensor_slices(["a", "b"]).map(lambda n: tf.numpy_function(number, [n], tf.int64)):
        pass


@near("bytes-as-text")
def bytes_in_an_f_string_that_is_shown():
    def number(name):
        print(f"reading {name}")
        logging.debug("reading %s" % name)  # noqa: UP031
        return np.int64(len(name))

    for _ in tf.data.Dataset.from_tensor_slices(["a", "b"]).map(lambda n: tf.numpy_function(number, [n], tf.int64)):
        pass


@near("bytes-as-text")
def a_slice_that_leaves_the_text():
    def name(line):
        text = str(line)[2:-1]
        return len(text.split(" ")[0])

    parsed(name, tf.int64)


@near("bytes-as-text")
def a_word_that_is_looked_for():
    def is_first(line):
        text = str(line)
        return int("0.jpg" in text)

    parsed(is_first, tf.int64)


@near("bytes-as-text")
def text_that_is_shown():
    def shown(line):
        if len(line) > 100:
            raise ValueError("too long: " + str(line))
        print("line", str(line))
        return len(line)

    parsed(shown, tf.int64)


@near("bytes-as-text")
def text_of_what_was_decoded():
    def name(line):
        line = line.decode()
        return len(str(line).split(" ")[0])

    parsed(name, tf.int64)


# -- cached-random: generators that a body seeds by its input ---------------------------------------------------------


@near("cached-random")
def a_generator_seeded_by_the_index_of_the_element():
    def noisy(index, x):
        seed = int(index)
        return x + np.random.default_rng(seed).normal(size=x.shape).astype(np.float32)

    rows = tf.data.Dataset.from_tensor_slices(np.zeros((4, 3), np.float32)).enumerate()
    rows = rows.map(lambda index, x: tf.numpy_function(noisy, [index, x], tf.float32)).cache()
    for _ in range(3):
        list(rows)


@triggers("cached-random")
def a_generator_of_its_own_that_nothing_seeds():
    def noisy(x):
        return x + np.random.default_rng().normal(size=x.shape).astype(np.float32)

    rows = tf.data.Dataset.from_tensor_slices(np.zeros((4, 3), np.float32))
    rows = rows.map(lambda x: tf.numpy_function(noisy, [x], tf.float32)).cache()
    for _ in range(3):
        list(rows)
