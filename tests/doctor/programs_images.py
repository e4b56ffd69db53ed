"""Programs that do not fail, whose bodies lose what an image shows: as `programs_threads`."""

from __future__ import annotations

import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import mapped, mapped_eager, near, triggers

# -- garbled-image ----------------------------------------------------------------------------------------------------


@triggers("garbled-image", severity="error", says="img.transpose(1, 2, 0)", pastes=True)
def channels_first_that_reshape_puts_last():
    def load(img):
        return img.reshape(8, 10, 3).astype(np.float32) / 255

    list(mapped(load, np.random.default_rng(0).integers(0, 256, (4, 3, 8, 10), np.uint8)))


@triggers("garbled-image", says="np.transpose(pixels, [1, 2, 0])", pastes=True)
def sizes_that_have_names():
    C, H, W = 3, 8, 10  # noqa: N806

    def load(img):
        pixels = img.numpy()
        return np.reshape(pixels, (H, W, C))

    list(mapped_eager(load, np.random.default_rng(0).random((4, C, H, W)).astype(np.float32)))


@triggers("garbled-image", says="img, which is [3, 8, 10]", pastes=True)
def a_mapped_function_without_a_body():
    def load(img):
        return tf.reshape(img, [8, 10, 3])

    list(tf.data.Dataset.from_tensor_slices(tf.random.normal([4, 3, 8, 10])).map(load))


@triggers("garbled-image", says="tf.transpose(x, [0, 2, 3, 1])", pastes=True)
def a_batch_in_a_traced_function():
    @tf.function
    def step(x):
        return tf.reshape(x, (-1, 8, 10, 3)) * 2.0

    step(tf.random.normal([2, 3, 8, 10]))


@triggers("garbled-image", says="tf.image.resize(img, (4, 4)).numpy().astype(img.dtype)", pastes=True)
def resize_of_numpy():
    def small(img):
        return np.resize(img, (4, 4, 3)).astype(np.float32) / 255

    list(mapped(small, np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3), np.uint8)))


@triggers("garbled-image", says="repeats it until it has as many", pastes=True)
def resize_of_numpy_that_repeats_a_gray_image():
    SIZE = 12  # noqa: N806

    def large(img):
        pixels = img.numpy()
        return np.resize(pixels, (SIZE, SIZE))

    list(mapped_eager(large, np.random.default_rng(0).random((4, 8, 8)).astype(np.float32)))


@triggers("garbled-image", says="cv2.resize(img, (8, 6))", pastes=True)
def resize_of_numpy_for_a_file():
    import cv2

    name = os.path.join(tempfile.mkdtemp(), "one.png")
    cv2.imwrite(name, np.arange(360, dtype=np.uint8).reshape(10, 12, 3))

    def load(path):
        img = cv2.imread(path.decode())
        img = np.resize(img, (6, 8, 3))
        return (img / 255.0).astype(np.float32)

    list(mapped(load, [name, name]))


@triggers("garbled-image", says="np.array(img.resize((8, 6)))", pastes=True)
def resize_of_numpy_for_an_image_of_pil():
    from PIL import Image

    name = os.path.join(tempfile.mkdtemp(), "two.png")
    Image.fromarray(np.arange(360, dtype=np.uint8).reshape(10, 12, 3)).save(name)

    def rows():
        for path in [name, name]:
            img = Image.open(path)
            yield np.resize(img, (6, 8, 3))

    list(tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((6, 8, 3), tf.uint8)))


@triggers("garbled-image", says="cv2.resize(img, (W, H))", pastes=True)
def a_width_for_a_height_that_reshape_hides():
    import cv2

    H, W = 6, 8  # noqa: N806

    def small(img):
        return cv2.resize(img, (H, W))

    def load(img):
        out = tf.numpy_function(small, [img], tf.float32)
        return tf.reshape(out, (H, W, 3))

    list(tf.data.Dataset.from_tensor_slices(np.ones((4, 20, 30, 3), np.float32)).map(load))


@triggers("garbled-image", says="cv2.resize takes the width first", pastes=True)
def a_gray_image_with_its_label():
    import cv2

    def small(img, label):
        return cv2.resize(img, (6, 8)), label

    def load(img, label):
        out, label = tf.numpy_function(small, [img, label], [tf.float32, tf.int64])
        return tf.reshape(tf.cast(out, tf.float16), [6, 8]), tf.reshape(label, [])

    data = np.ones((4, 20, 30), np.float32), np.arange(4)
    list(tf.data.Dataset.from_tensor_slices(data).map(load))


@triggers("garbled-image", says="tf.transpose(out, [1, 2, 0])", pastes=True)
def channels_first_of_a_body_that_reshape_puts_last():
    def bands(seed):
        return np.random.default_rng(seed).random((3, 8, 10), np.float32)

    def load(seed):
        out = tf.numpy_function(bands, [seed], tf.float32)
        return tf.reshape(out, [8, 10, 3])

    list(tf.data.Dataset.range(3).map(load))


@near("garbled-image")
def a_result_that_reshape_leaves_as_it_is():
    import cv2

    H, W = 6, 8  # noqa: N806

    def small(img):
        return cv2.resize(img, (W, H))

    def load(img):
        out = tf.numpy_function(small, [img], tf.float32)
        return tf.reshape(out, (H, W, 3))

    list(tf.data.Dataset.from_tensor_slices(np.ones((4, 20, 30, 3), np.float32)).map(load))


@near("garbled-image")
def resize_of_numpy_that_repeats_a_row_of_numbers():
    import cv2

    name = os.path.join(tempfile.mkdtemp(), "three.png")
    cv2.imwrite(name, np.zeros((10, 12, 3), np.uint8))

    def load(path):
        img = cv2.imread(path.decode())
        hist = np.bincount(img.ravel(), minlength=8)[:8]
        return np.resize(hist, (4, 8)).astype(np.float32) + np.resize(img.mean((0, 1)), (4, 8)).astype(np.float32)

    list(mapped(load, [name, name]))


@near("garbled-image")
def a_result_that_is_transposed_before():
    def bands(seed):
        return np.random.default_rng(seed).random((3, 8, 10), np.float32)

    def load(seed):
        out = tf.numpy_function(bands, [seed], tf.float32)
        out = tf.transpose(out, [1, 2, 0])
        return tf.reshape(out, [8, 10, 3])

    list(tf.data.Dataset.range(3).map(load))


@near("garbled-image")
def a_table_that_is_cut_into_other_rows():
    def table(seed):
        return np.random.default_rng(seed).random((8, 6), np.float32)

    def load(seed):
        return tf.reshape(tf.numpy_function(table, [seed], tf.float32), [6, 8])

    list(tf.data.Dataset.range(3).map(load))


@near("garbled-image")
def an_axis_of_one_that_moves():
    def load(img):
        return img.reshape(8, 10, 1)

    list(mapped(load, np.ones((4, 1, 8, 10), np.float32)))


@near("garbled-image")
def heads_that_are_split_and_joined():
    @tf.function
    def attend(x):
        heads = tf.transpose(tf.reshape(x, (2, 8, 2, 5)), [0, 2, 1, 3])
        return tf.reshape(tf.transpose(heads, [0, 2, 1, 3]), (2, 8, 10))

    attend(tf.random.normal([2, 8, 10]))


@near("garbled-image")
def a_row_that_becomes_an_image():
    def load(row):
        return row.reshape(8, 10, 3)

    list(mapped(load, np.ones((4, 240), np.float32)))


@near("garbled-image")
def a_row_that_is_repeated():
    def longer(row):
        return np.resize(row, (12,))

    list(mapped(longer, np.ones((4, 5), np.float32)))


@near("garbled-image")
def a_square_image_that_keeps_its_sizes():
    def load(img):
        return np.reshape(img, (8, 8, 3))

    list(mapped(load, np.ones((4, 8, 8, 3), np.float32)))


# -- lost-fraction ----------------------------------------------------------------------------------------------------


@triggers("lost-fraction", severity="error", says="return (img * 255).astype(np.uint8)", pastes=True)
def an_image_of_fractions_as_bytes():
    def to_bytes(img):
        return img.astype(np.uint8)

    list(mapped(to_bytes, np.random.default_rng(0).random((4, 8, 8, 3)).astype(np.float32), tf.uint8))


@triggers("lost-fraction", says="pixels has nothing else", pastes=True)
def fractions_in_an_eager_body():
    def to_bytes(img):
        pixels = img.numpy()
        return np.uint8(pixels)

    list(mapped_eager(to_bytes, np.random.default_rng(0).random((4, 8, 8)).astype(np.float32), tf.uint8))


@triggers("lost-fraction", says="img / 255", pastes=True)
def a_division_without_a_fraction():
    def scale(img):
        return (img // 255).astype(np.float32)

    list(mapped(scale, np.random.default_rng(0).integers(0, 255, (4, 8, 8, 3), np.uint8)))


@triggers("lost-fraction", says="tf.cast((img * 255), tf.uint8)", pastes=True)
def fractions_that_tensorflow_casts():
    def to_bytes(img):
        return tf.cast(img, tf.uint8)

    list(mapped_eager(to_bytes, np.random.default_rng(0).random((4, 8, 8)).astype(np.float32), tf.uint8))


@triggers("lost-fraction", says="(img / 255).astype(np.float32)", pastes=True)
def pixels_that_are_scaled_and_made_bytes():
    def scale(img):
        return (img / 255).astype(np.uint8)

    images = np.random.default_rng(0).integers(0, 255, (4, 8, 8, 3), np.uint8)
    dataset = tf.data.Dataset.from_tensor_slices(images)
    list(dataset.map(lambda img: tf.numpy_function(scale, [img], tf.uint8)))


@triggers("lost-fraction", says="Tout=[tf.float32, tf.int64]", pastes=True)
def scaled_pixels_beside_a_label():
    def scale(img, label):
        return tf.cast(img / 255, tf.uint8), label

    images = np.random.default_rng(0).integers(0, 255, (4, 8, 8, 3), np.uint8)
    dataset = tf.data.Dataset.from_tensor_slices((images, np.arange(4)))
    list(dataset.map(lambda img, label: tf.py_function(func=scale, inp=[img, label], Tout=[tf.uint8, tf.int64])))


@near("lost-fraction")
def dark_pixels_of_which_a_bound_makes_a_mask():
    def bright(img):
        return (img / 255 > 0.5).astype(np.uint8)

    list(mapped(bright, np.random.default_rng(0).integers(0, 255, (4, 8, 8, 3), np.uint8), tf.uint8))


@near("lost-fraction")
def a_mask_of_zeros_and_ones():
    def to_bytes(mask):
        return mask.astype(np.uint8)

    list(mapped(to_bytes, np.random.default_rng(0).integers(0, 2, (4, 8, 8)).astype(np.float32), tf.uint8))


@near("lost-fraction")
def a_bound():
    def to_mask(img):
        return (img > 0.5).astype(np.uint8)

    list(mapped(to_mask, np.random.default_rng(0).random((4, 8, 8)).astype(np.float32), tf.uint8))


@near("lost-fraction")
def fractions_that_are_scaled_before():
    def to_bytes(img):
        return (img * 255).astype(np.uint8)

    list(mapped(to_bytes, np.random.default_rng(0).random((4, 8, 8)).astype(np.float32), tf.uint8))


@near("lost-fraction")
def three_classes_that_become_two():
    def merge(labels):
        return labels // 2

    list(mapped(merge, np.random.default_rng(0).integers(0, 3, (4, 8, 8), np.uint8), tf.uint8))


@near("lost-fraction")
def bits_of_bytes():
    def high_bit(img):
        return img // 128

    list(mapped(high_bit, np.random.default_rng(0).integers(0, 256, (4, 8, 8), np.uint8), tf.uint8))


# -- broadcast-loss: in bodies ----------------------------------------------------------------------------------------


@triggers("broadcast-loss", says="y_true - y_pred[..., 0]", pastes=True)
def a_metric_of_numpy():
    def rmse(y_true, y_pred):
        return np.sqrt(np.mean((y_true - y_pred) ** 2)).astype("float32")

    for n in (8, 8):
        tf.numpy_function(rmse, [tf.random.normal([n]), tf.random.normal([n, 1])], tf.float32)


@triggers("broadcast-loss", says="true is [8] and guess is [8, 1]", pastes=True)
def an_eager_body_with_names_of_its_own():
    def error(y_true, y_pred):
        true = y_true.numpy()
        guess = y_pred.numpy()
        return np.abs(true - guess).mean()

    tf.py_function(error, [tf.random.normal([8]), tf.random.normal([8, 1])], tf.float32)


@triggers("broadcast-loss", says="makes that [32, 32]", pastes=True)
def a_metric_of_fit():
    def error(y_true, y_pred):
        return np.float32(np.mean(np.abs(np.subtract(y_true, y_pred))))

    def metric(y_true, y_pred):
        return tf.ensure_shape(tf.numpy_function(error, [tf.reshape(y_true, [-1]), y_pred], tf.float32), [])

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[metric])
    model.fit(np.ones((32, 2)), np.ones((32, 1)), verbose=0)


@triggers("broadcast-loss", says="compares two arrays of different ranks: y_true is [32] and", pastes=True)
def an_accuracy_of_fit():
    def share(y_true, y_pred):
        return np.mean(np.equal(y_true, np.round(y_pred)).astype(np.float32))

    def accuracy(y_true, y_pred):
        return tf.ensure_shape(tf.numpy_function(share, [tf.reshape(y_true, [-1]), y_pred], tf.float32), [])

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy", metrics=[accuracy])
    model.fit(np.ones((32, 2)), np.ones((32, 1)), verbose=0)


@triggers("broadcast-loss", says="(y_pred > 0.5)[..., 0]", pastes=True)
def an_accuracy_of_a_threshold():
    def share(y_true, y_pred):
        right = (y_true.astype(bool)) == (y_pred > 0.5)
        return np.float32(right.mean())

    tf.numpy_function(share, [tf.ones([8]), tf.random.normal([8, 1])], tf.float32)


@triggers("broadcast-loss", says="np.rint(guess)[..., 0]", pastes=True)
def an_error_rate_of_an_eager_body():
    def wrong(y_true, y_pred):
        guess = y_pred.numpy()
        return np.mean(y_true.numpy() != np.rint(guess)).astype(np.float32)

    tf.py_function(wrong, [tf.ones([8]), tf.random.normal([8, 1])], tf.float32)


@near("broadcast-loss")
def labels_compared_with_labels():
    def share(y_true, y_pred):
        return np.mean(np.equal(y_true, np.round(y_pred)).astype(np.float32))

    tf.numpy_function(share, [tf.ones([8, 1]), tf.random.normal([8, 1])], tf.float32)


@near("broadcast-loss")
def pairs_of_one_class():
    def neighbours(labels, column):
        return np.sum(labels == column, axis=1).astype(np.float32).mean()

    tf.numpy_function(neighbours, [tf.ones([8]), tf.ones([8, 1])], tf.float32)


@near("broadcast-loss")
def a_column_that_is_taken_first():
    def rmse(y_true, y_pred):
        y_pred = y_pred[:, 0]
        return np.sqrt(np.mean((y_true - y_pred) ** 2)).astype("float32")

    tf.numpy_function(rmse, [tf.random.normal([8]), tf.random.normal([8, 1])], tf.float32)


@near("broadcast-loss")
def two_rows():
    def rmse(y_true, y_pred):
        return np.sqrt(np.mean((y_true - y_pred) ** 2)).astype("float32")

    tf.numpy_function(rmse, [tf.random.normal([8]), tf.random.normal([8])], tf.float32)


@near("broadcast-loss")
def all_distances():
    def distances(one, other):
        return np.abs(one - other).astype("float32")

    tf.numpy_function(distances, [tf.random.normal([8]), tf.random.normal([8, 1])], tf.float32)


# -- wrap-around: eager bodies, and fractions --------------------------------------------------------------------------


@triggers("wrap-around", says="np.clip(image.astype(np.int64) + 70, 0, 255)", pastes=True)
def bytes_of_an_eager_body():
    def brighten(image):
        image = image.numpy()
        return image + 70

    list(mapped_eager(brighten, np.array([[10, 120, 250], [0, 100, 200]], np.uint8), tf.uint8))


@triggers("wrap-around", says="tf.clip_by_value(tf.cast(image, tf.int32) + 70, 0, 255)", pastes=True)
def a_tensor_of_bytes():
    def brighten(image):
        return image + 70

    list(mapped_eager(brighten, np.array([[10, 120, 250], [0, 100, 200]], np.uint8), tf.uint8))


@triggers("wrap-around", says="return (image.astype(np.float32) - 128)", pastes=True)
def bytes_around_zero():
    def center(image):
        return (image - 128).astype(np.float32) / 128

    list(mapped(center, np.array([[10, 120, 250], [0, 100, 200]], np.uint8)))


@near("wrap-around")
def a_tensor_that_is_cast_first():
    def brighten(image):
        image = tf.cast(image, tf.float32)
        return image + 70

    list(mapped_eager(brighten, np.array([[10, 120, 250], [0, 100, 200]], np.uint8)))


# -- unknown-shape: the width first ------------------------------------------------------------------------------------


@triggers("unknown-shape", says="cv2.resize(img, (W, H))", pastes=True)
def a_size_for_opencv_with_the_height_first():
    import cv2

    H, W = 4, 6  # noqa: N806

    def small(img):
        return cv2.resize(img, (H, W)).astype(np.float32)

    def load(img):
        out = tf.numpy_function(small, [img], tf.float32)
        out.set_shape([H, W, 3])
        return tf.reduce_mean(out)

    list(tf.data.Dataset.from_tensor_slices(np.ones((3, 8, 12, 3), np.uint8)).map(load))


@triggers("unknown-shape", says="cv2.resize(img.numpy(), SIZE[::-1]", pastes=True)
def a_size_that_has_a_name():
    import cv2

    SIZE = (4, 6)  # noqa: N806

    def small(img):
        return cv2.resize(img.numpy(), SIZE, interpolation=cv2.INTER_AREA)

    def load(img):
        out = tf.py_function(small, [img], tf.uint8)
        out.set_shape([*SIZE, 3])
        return tf.reduce_max(out)

    list(tf.data.Dataset.from_tensor_slices(np.ones((3, 8, 12, 3), np.uint8)).map(load))


@triggers("unknown-shape", says="out = tf.transpose(out, [1, 2, 0])", pastes=True)
def channels_that_come_first():
    def read(i):
        return np.full((3, 8, 8), i, np.float32)

    def load(i):
        out = tf.numpy_function(read, [i], tf.float32)
        out.set_shape([None, None, 3])
        return tf.reduce_mean(out)

    list(tf.data.Dataset.range(4).map(load))


@triggers("unknown-shape", says="out = tf.transpose(out, [0, 2, 3, 1])", pastes=True)
def channels_of_batches_that_come_first():
    def read(i):
        return tf.ones((len(i), 1, 6, 8)) * tf.reshape(tf.cast(i, tf.float32), (-1, 1, 1, 1))

    def load(i):
        out = tf.py_function(read, [i], tf.float32)
        out.set_shape([None, 6, 8, 1])
        return tf.reduce_mean(out)

    list(tf.data.Dataset.range(4).batch(2).map(load))


@triggers("unknown-shape", says="out = tf.ensure_shape(out, [4, 6, 3])", pastes=True)
def height_and_width_that_may_be_meant():
    def read(i):
        return np.full((4, 6, 3), i, np.float32)

    def load(i):
        out = tf.numpy_function(read, [i], tf.float32)
        out.set_shape([6, 4, 3])
        return tf.reduce_mean(out)

    list(tf.data.Dataset.range(4).map(load))


@triggers("wrap-around", says="200 + 100 and more", pastes=True)
def a_mean_of_two_images():
    def mixed(a, b):
        return (a + b) // 2

    a, b = np.full((2, 4, 4), 200, np.uint8), np.full((2, 4, 4), 100, np.uint8)
    ds = tf.data.Dataset.from_tensor_slices((a, b)).map(lambda x, y: tf.numpy_function(mixed, [x, y], tf.uint8))
    print([x.numpy().max() for x in ds])


@triggers("wrap-around", says="10 - 20 and less", pastes=True)
def a_difference_of_two_frames():
    def moved(a, b):
        return np.abs(a - b).astype(np.float32)

    a, b = np.full((2, 4, 4), 10, np.uint8), np.full((2, 4, 4), 20, np.uint8)
    ds = tf.data.Dataset.from_tensor_slices((a, b)).map(lambda x, y: tf.numpy_function(moved, [x, y], tf.float32))
    print([x.numpy().max() for x in ds])


@near("wrap-around")
def a_difference_that_fits():
    def left(a, b):
        return a - b

    a, b = np.full((2, 4, 4), 200, np.uint8), np.full((2, 4, 4), 100, np.uint8)
    ds = tf.data.Dataset.from_tensor_slices((a, b)).map(lambda x, y: tf.numpy_function(left, [x, y], tf.uint8))
    print([x.numpy().max() for x in ds])


# -- wrap-around: casts of negative numbers ----------------------------------------------------------------------------


def bright_pixels():
    return np.random.default_rng(0).integers(0, 256, (4, 6, 6), np.uint8)


@triggers("wrap-around", severity="error", says="what is less than its own mean is negative", pastes=True)
def what_is_less_than_the_mean_as_bytes():
    def around_the_mean(image):
        return (image - image.mean()).astype(np.uint8)

    ds = tf.data.Dataset.from_tensor_slices(bright_pixels())
    list(ds.map(lambda x: tf.numpy_function(around_the_mean, [x], tf.uint8)))


@triggers("wrap-around", says="casts image to uint8", pastes=True)
def a_normalized_image_as_bytes():
    def standard(image):
        image = image.astype(np.float32)
        mean = np.mean(image)
        image = (image - mean) / (np.std(image) + 1e-7)
        return image.astype("uint8"), np.int64(1)

    ds = tf.data.Dataset.from_tensor_slices(bright_pixels())
    list(ds.map(lambda x: tf.numpy_function(standard, [x], [tf.uint8, tf.int64])))


@triggers("wrap-around", says="0 becomes -1", pastes=True)
def an_image_between_minus_one_and_one_as_bytes():
    def scaled(image):
        image = image.numpy()
        return (image / 127.5 - 1.0).astype(np.uint8)

    ds = tf.data.Dataset.from_tensor_slices(np.array([[0, 120, 255], [0, 90, 255]], np.uint8))
    list(ds.map(lambda x: tf.py_function(scaled, [x], tf.uint8)))


@triggers("wrap-around", says="0 becomes -128", pastes=True)
def a_tensor_around_zero_as_bytes():
    def centered(image):
        return tf.cast(tf.cast(image, tf.float32) - 128.0, tf.uint8)

    ds = tf.data.Dataset.from_tensor_slices(np.array([[0, 120, 255], [0, 90, 255]], np.uint8))
    list(ds.map(lambda x: tf.py_function(centered, [x], tf.uint8)))


@near("wrap-around")
def the_distance_from_the_mean_as_bytes():
    def distance(image):
        return np.abs(image - image.mean()).astype(np.uint8)

    list(mapped(distance, bright_pixels(), tf.uint8))


@near("wrap-around")
def more_contrast_within_its_bounds():
    def stronger(image):
        return np.clip((image - image.mean()) * 2 + 128, 0, 255).astype(np.uint8)

    list(mapped(stronger, bright_pixels(), tf.uint8))


@near("wrap-around")
def bytes_of_what_is_never_negative():
    def darker(image):
        return (image.astype(np.float32) - 20.0).astype(np.uint8)

    list(mapped(darker, np.maximum(bright_pixels(), 20), tf.uint8))


@near("wrap-around")
def the_least_of_an_image_taken_off():
    def from_zero(image):
        return (image - image.min()).astype(np.uint8)

    list(mapped(from_zero, bright_pixels(), tf.uint8))


@near("wrap-around")
def a_label_that_is_left_out_as_the_last_byte():
    def from_zero(labels):
        return (labels - 1).astype(np.uint8)

    list(mapped(from_zero, np.array([[0, 1], [2, 150]]), tf.uint8))
