"""More programs that do not fail: pipelines and data into Keras, after threads of users that nothing was said of."""
# ruff: noqa: N806, PERF401

from __future__ import annotations

import glob
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers


def classifier(**options):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy", **options)
    return model


def folder_of_images(*names):
    folder = tempfile.mkdtemp()
    for name in names or ("a_1.png", "b_0.png", "c_1.png", "d_0.png"):
        tf.io.write_file(os.path.join(folder, name), tf.io.encode_png(np.zeros((4, 4, 3), "uint8")))
    return folder


# -- zipped-rest ------------------------------------------------------------------------------------------------------


@triggers("zipped-rest", says="images has 9 elements, labels 6, so that the last 3 of images are never read")
def labels_of_fewer_images():
    images = tf.data.Dataset.from_tensor_slices(np.random.rand(9, 3).astype("float32"))
    labels = tf.data.Dataset.from_tensor_slices(np.random.rand(6, 1).astype("float32"))
    for x, y in tf.data.Dataset.zip((images, labels)).batch(3):
        assert x.shape[0] == y.shape[0]


@triggers("zipped-rest", says="the last 1 of b is never read")
def pairs_for_a_model():
    a = tf.data.Dataset.from_tensor_slices(np.random.rand(8, 3).astype("float32"))
    b = tf.data.Dataset.from_tensor_slices(np.random.rand(9, 1).astype("float32"))
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(tf.data.Dataset.zip(a, b).batch(4), verbose=0)


@triggers("zipped-rest", says="zip ends with the shorter one: the first dataset has 5 elements, the second 4")
def classes_of_fewer_files():
    names = [f"{n}.png" for n in range(5)]
    sizes = tf.data.Dataset.from_tensor_slices(names).map(tf.strings.length)
    ds = tf.data.Dataset.zip((sizes.prefetch(1), tf.data.Dataset.from_tensor_slices([0, 1, 1, 0])))
    for _ in range(2):
        for size, kind in ds.batch(2):
            assert size.shape == kind.shape


@near("zipped-rest")
def labels_of_each_image():
    images = tf.data.Dataset.from_tensor_slices(np.random.rand(6, 3).astype("float32"))
    labels = tf.data.Dataset.from_tensor_slices(np.random.rand(6, 1).astype("float32"))
    for x, y in tf.data.Dataset.zip((images, labels)).batch(3):
        assert x.shape[0] == y.shape[0]


@near("zipped-rest")
def horses_and_zebras():
    horses = tf.data.Dataset.from_tensor_slices(np.random.rand(6, 3).astype("float32"))
    zebras = tf.data.Dataset.from_tensor_slices(np.random.rand(9, 3).astype("float32"))
    for x, y in tf.data.Dataset.zip((horses, zebras)).batch(3):
        assert x.shape == y.shape


@near("zipped-rest")
def labels_beside_a_counter_and_a_few_on_purpose():
    images = tf.data.Dataset.from_tensor_slices(np.random.rand(9, 3).astype("float32")).take(4)
    labels = tf.data.Dataset.from_tensor_slices(np.random.rand(6, 1).astype("float32"))
    for x, y in tf.data.Dataset.zip((images, labels)).batch(3):
        assert x.shape[0] == y.shape[0]
    for _, y in tf.data.Dataset.zip((tf.data.Dataset.counter(), labels)):
        assert y.shape == (1,)


@near("zipped-rest")
def values_and_the_next_ones():
    labels = tf.data.Dataset.from_tensor_slices(np.arange(6.0))
    for x, y in tf.data.Dataset.zip((labels, labels.skip(1))):
        assert float(x) < float(y)


# -- unweighted-metric: tensorflow#51902 ------------------------------------------------------------------------------


@triggers("unweighted-metric", says="the weights of what validates, w, count in the loss only", pastes=True)
def weights_of_a_dataset_that_validates():
    x, y = np.random.rand(8, 3), np.random.randint(0, 2, (8, 1))
    w = np.where(y[:, 0] == 1, 5.0, 1.0)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy", metrics=["accuracy"])
    val = tf.data.Dataset.from_tensor_slices((x, y, w)).batch(4)
    model.fit(x, y, sample_weight=w, validation_data=val, verbose=0)


@triggers("unweighted-metric", says='metrics=[keras.metrics.AUC(name="auc")] take every row alike', pastes=True)
def weights_in_a_tuple_that_validates():
    x, y, weights = np.random.rand(8, 3), np.random.randint(0, 2, (8, 1)), np.random.rand(8)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile(
        optimizer="sgd",
        loss="binary_crossentropy",
        metrics=[keras.metrics.AUC(name="auc")],
    )
    model.fit(x, y, batch_size=4, validation_data=(x, y, weights), verbose=0)


@triggers("unweighted-metric", says="the weights of evaluate, rows,", pastes=True)
def weights_of_evaluate():
    x, y, rows = np.random.rand(8, 3), np.random.randint(0, 2, (8, 1)), np.random.rand(8)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy", metrics=["accuracy"])
    model.evaluate(x, y, sample_weight=rows, verbose=0)


@triggers("unweighted-metric", says="the weights of what validates, weight,", pastes=True)
def weights_that_a_map_puts_beside_the_labels():
    def weighed(x, y):
        weight = tf.cast(y * 2 + 1, tf.float32)
        return x, y, weight

    x, y = np.random.rand(8, 3), np.random.randint(0, 2, (8, 1))
    rows = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)
    val = rows.map(weighed).cache()
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile(loss="binary_crossentropy", optimizer="sgd", metrics=["accuracy"])
    model.fit(rows.map(weighed), validation_data=val, verbose=0)


@near("unweighted-metric")
def weights_that_balance_the_training_only():
    x, y, w = np.random.rand(8, 3), np.random.randint(0, 2, (8, 1)), np.random.rand(8)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy", metrics=["accuracy"])
    model.fit(x, y, sample_weight=w, validation_data=(x, y), verbose=0)


@near("unweighted-metric")
def weighted_metrics_beside_the_others():
    x, y, w = np.random.rand(8, 3), np.random.randint(0, 2, (8, 1)), np.random.rand(8)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy", metrics=["accuracy"], weighted_metrics=[])
    model.fit(x, y, validation_data=(x, y, w), verbose=0)


@near("unweighted-metric")
def weights_and_a_loss_alone():
    x, y, w = np.random.rand(8, 3), np.random.randint(0, 2, (8, 1)), np.random.rand(8)
    model = classifier()
    model.fit(x, y, validation_data=(x, y, w), verbose=0)


# -- unsorted-files: keras#14416 --------------------------------------------------------------------------------------


@triggers(
    "unsorted-files", says="image_dataset_from_directory sorts the paths of its files, and label_list", pastes=True
)
def labels_in_the_order_of_a_walk():
    folder = folder_of_images()
    label_list = []
    for _, _, image_files in os.walk(folder):
        for image_file in image_files:
            label_list.append(int(image_file[2]))
    ds = keras.utils.image_dataset_from_directory(folder, labels=label_list, label_mode="int", image_size=(4, 4))
    for _, y in ds:
        assert y.shape == (4,)


@triggers("unsorted-files", says="labels are in the order of os.listdir(folder), which is any", pastes=True)
def labels_of_a_list_of_names():
    folder = folder_of_images()
    labels = [int(name[2]) for name in os.listdir(folder)]
    ds = keras.utils.image_dataset_from_directory(folder, labels=labels, image_size=(4, 4), batch_size=2)
    for _, y in ds:
        assert y.shape == (2,)


@triggers("unsorted-files", says="images and masks are paired by position, and glob.glob(", pastes=True)
def images_and_masks_of_two_folders():
    images = glob.glob(folder_of_images() + "/*.png")
    masks = glob.glob(os.path.join(folder_of_images("a.png", "b.png", "c.png", "d.png"), "*.png"))
    for image, mask in tf.data.Dataset.from_tensor_slices((images, masks)).batch(2):
        assert image.shape == mask.shape


@triggers("unsorted-files", says="X and Y are paired by position", pastes=True)
def arrays_that_two_loops_fill():
    first, second = folder_of_images(), folder_of_images("x1.png", "x0.png", "x3.png", "x2.png")
    X, Y = [], []
    for name in os.listdir(first):
        X.append([float(name[2])] * 3)
    for name in sorted(os.listdir(second)):
        Y.append(float(name[1]) % 2)
    X = np.array(X)
    Y = np.array(Y)
    model = classifier()
    model.fit(X, Y, verbose=0)


@triggers("unsorted-files", says="files and labels are paired by position, and os.listdir(folder) gives", pastes=True)
def labels_of_a_table_for_files_of_a_folder():
    folder = folder_of_images("0.png", "1.png", "10.png", "2.png")
    table = os.path.join(folder, "labels.npy")
    np.save(table, np.array([0, 1, 0, 1]))
    labels = np.load(table).astype("float32")
    files = [os.path.join(folder, one) for one in os.listdir(folder) if one.endswith(".png")]

    def load(path):
        return np.float32(len(path))

    data = tf.data.Dataset.from_tensor_slices((files, labels))
    list(data.map(lambda path, y: (tf.numpy_function(load, [path], tf.float32), y)))


@near("unsorted-files")
def labels_of_a_table_that_are_taken_by_their_files():
    folder = folder_of_images()
    table = os.path.join(folder, "labels.npy")
    np.save(table, np.array([0, 1, 0, 1]))
    names = [one for one in os.listdir(folder) if one.endswith(".png")]
    labels = np.load(table)[[ord(one[0]) - ord("a") for one in names]]
    data = tf.data.Dataset.from_tensor_slices(([os.path.join(folder, one) for one in names], labels))
    list(data.map(lambda path, y: (tf.strings.length(path), y)))


@near("unsorted-files")
def sorted_images_and_masks():
    images = sorted(glob.glob(folder_of_images() + "/*.png"))
    masks = glob.glob(os.path.join(folder_of_images("a.png", "b.png", "c.png", "d.png"), "*.png"))
    masks.sort()
    for image, mask in tf.data.Dataset.from_tensor_slices((images, masks)).batch(2):
        assert image.shape == mask.shape


@near("unsorted-files")
def names_and_the_labels_in_them():
    folder = folder_of_images()
    files = os.listdir(folder)
    labels = [int(name[2]) for name in files]
    for name, _ in zip(files, labels):
        assert name.endswith(".png")
    for _, y in tf.data.Dataset.from_tensor_slices((files, labels)).batch(2):
        assert y.shape == (2,)


def paired(files, labels):
    for name, label in zip(files, labels):
        assert int(name[2]) == label


@near("unsorted-files")
def lists_that_a_function_is_given():
    files = os.listdir(folder_of_images())
    labels = [int(name[2]) for name in files]
    paired(files, labels)


@near("unsorted-files")
def one_loop_that_fills_both():
    X, Y = [], []
    for name in os.listdir(folder_of_images()):
        X.append([float(name[2])] * 3)
        Y.append(float(name[2]))
    model = classifier()
    model.fit(np.array(X), np.array(Y), verbose=0)


@near("unsorted-files")
def labels_in_the_order_of_sorted_names():
    folder = folder_of_images()
    labels = [int(name[2]) for name in sorted(os.listdir(folder))]
    ds = keras.utils.image_dataset_from_directory(folder, labels=labels, image_size=(4, 4), batch_size=2)
    for _, y in ds:
        assert y.shape == (2,)
