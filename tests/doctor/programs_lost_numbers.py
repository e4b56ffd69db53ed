"""Programs whose numbers get lost: cut in an array of whole numbers, kept nowhere, drawn once, or of another scale."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

ROWS = np.random.default_rng(0).random((24, 4)).astype("float32")
IMAGES = np.random.default_rng(1).random((24, 20, 12, 3)).astype("float32")
BYTES = np.random.default_rng(2).integers(0, 255, (24, 8, 8)).astype("uint8")
MASKS = (np.random.default_rng(3).integers(0, 2, (8, 6, 6, 1)) * 255).astype("uint8")
REWARDS = np.random.default_rng(5).integers(0, 2, (8, 10))
SMALL = np.random.default_rng(4).random((8, 6, 6, 3)).astype("float32")

top = np.random.randint(0, 4)
flip = np.random.random()
fixed = 2


def made(body, data, Tout=tf.float32):  # noqa: N803
    return list(tf.data.Dataset.from_tensor_slices(data).map(lambda x: tf.numpy_function(body, [x], Tout)))


# -- lost-fraction: stored into whole numbers --------------------------------------------------------------------------


@triggers("lost-fraction", severity="error", says="into out, which line", pastes=True)
def shares_in_an_array_of_int():
    def padded(x):
        out = np.zeros(6, dtype=int)
        out[1:5] = x
        return out.astype(np.float32)

    made(padded, ROWS)


@triggers("lost-fraction", says="a quotient, into out", pastes=True)
def quotients_in_an_array_like_the_image():
    def scale(x):
        out = np.zeros_like(x)
        for row in range(x.shape[0]):
            out[row] = x[row] / 255.0
        return out.astype(np.float32)

    made(scale, BYTES)


@triggers("lost-fraction", says="and Tout to match")
def quotients_that_are_returned_as_they_are():
    def halves(x):
        out = np.empty(x.shape, np.int64)
        out[:] = x / 2
        return out

    made(halves, BYTES, tf.int64)


@triggers("lost-fraction", says="running, a product with 0.9, into out", pastes=True)
def discounted_returns_in_an_array_like_the_rewards():
    def discount(rewards):
        out = np.zeros_like(rewards)
        running = 0
        for t in reversed(range(len(rewards))):
            running = rewards[t] + 0.9 * running
            out[t] = running
        return out.astype(np.float32)

    made(discount, REWARDS)


@triggers("lost-fraction", says="a product with 0.99, into returns", pastes=True)
def discounted_returns_by_a_default():
    def discount(rewards, gamma=0.99):
        returns = np.zeros(len(rewards), dtype=np.int64)
        total = 0
        for t in range(len(rewards) - 1, -1, -1):
            total *= gamma
            total += rewards[t]
            returns[t] = total
        return returns.astype(np.float32)

    made(discount, REWARDS)


@triggers("lost-fraction", says="a product with 0.5, into smooth", pastes=True)
def averages_in_an_array_like_the_counts():
    def smoothed(counts):
        smooth = np.empty_like(counts)
        smooth[0] = counts[0]
        for t in range(1, len(counts)):
            smooth[t] = 0.5 * counts[t] + 0.5 * smooth[t - 1]
        return smooth.astype(np.float32)

    made(smoothed, REWARDS)


@near("lost-fraction")
def returns_without_a_discount():
    def discount(rewards, gamma=1.0):
        out = np.zeros_like(rewards)
        running = 0
        for t in reversed(range(len(rewards))):
            running = rewards[t] + gamma * running
            out[t] = running
        return out.astype(np.float32)

    made(discount, REWARDS)


@near("lost-fraction")
def products_that_are_rounded_before():
    def scaled(rewards):
        out = np.zeros_like(rewards)
        for t in range(len(rewards)):
            value = 0.7 * rewards[t]
            value = round(value)
            out[t] = value
        return out.astype(np.float32)

    made(scaled, REWARDS)


@near("lost-fraction")
def products_for_an_array_of_floats():
    def discount(rewards):
        rewards = rewards.astype(np.float32)
        out = np.zeros_like(rewards)
        running = 0
        for t in reversed(range(len(rewards))):
            running = rewards[t] + 0.9 * running
            out[t] = running
        return out

    made(discount, REWARDS)


@near("lost-fraction")
def whole_numbers_in_an_array_of_int():
    def padded(x):
        out = np.zeros(10, dtype=int)
        out[1:9] = x[0]
        return out.astype(np.float32)

    made(padded, BYTES)


@near("lost-fraction")
def quotients_that_are_rounded():
    def scale(x):
        out = np.zeros_like(x)
        out[:] = np.round(x / 2)
        return out

    made(scale, BYTES, tf.uint8)


@near("lost-fraction")
def an_array_of_floats():
    def scale(x):
        out = np.zeros_like(x, dtype=np.float32)
        out[:] = x / 255
        return out

    made(scale, BYTES)


@near("constant-output")
def zeros_that_lost_fraction_explains():
    def padded(x):
        out = np.zeros(6, dtype=int)
        out[1:5] = x
        return out.astype(np.float32)

    made(padded, ROWS)


# -- unscaled-mask -----------------------------------------------------------------------------------------------------


def trained(data):
    model = keras.Sequential([keras.layers.Conv2D(1, 3, padding="same", activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy")
    model.fit(data.batch(4), verbose=0)


@triggers("unscaled-mask", severity="error", says="with 0 and 255 only", pastes=True)
def a_mask_of_pixels():
    def prep(image, mask):
        return image, mask.astype(np.float32)

    def load(image, mask):
        image, mask = tf.numpy_function(prep, [image, mask], [tf.float32, tf.float32])
        return tf.ensure_shape(image, [6, 6, 3]), tf.ensure_shape(mask, [6, 6, 1])

    trained(tf.data.Dataset.from_tensor_slices((SMALL, MASKS)).map(load))


@triggers("unscaled-mask", says="compares a prediction with 0 or 1", pastes=True)
def a_mask_beside_an_image_that_is_scaled():
    def prep(i):
        image = (SMALL[i] * 255).astype(np.uint8) / 255.0
        mask = np.float32(MASKS[i])
        return image.astype(np.float32), mask

    def load(i):
        image, mask = tf.numpy_function(prep, [i], [tf.float32, tf.float32])
        return tf.ensure_shape(image, [6, 6, 3]), tf.ensure_shape(mask, [6, 6, 1])

    trained(tf.data.Dataset.range(8).map(load))


@triggers("unscaled-mask", says="/ 255", pastes=True)
def a_mask_for_an_object_of_a_loss():
    def prep(image, mask):
        return [image * 2, mask.astype("float32")]

    def prep_pair(image, mask):
        pair = prep(image, mask)
        return pair[0], pair[1]

    def load(image, mask):
        image, mask = tf.numpy_function(prep_pair, [image, mask], [tf.float32, tf.float32])
        return tf.ensure_shape(image, [6, 6, 3]), tf.ensure_shape(mask, [6, 6, 1])

    data = tf.data.Dataset.from_tensor_slices((SMALL, MASKS)).map(load)
    model = keras.Sequential([keras.layers.Conv2D(1, 3, padding="same", activation="sigmoid")])
    model.compile("sgd", keras.losses.BinaryCrossentropy())
    model.fit(data.batch(4), verbose=0)


@near("unscaled-mask")
def a_mask_that_is_scaled():
    def prep(image, mask):
        return image, (mask / 255).astype(np.float32)

    def load(image, mask):
        image, mask = tf.numpy_function(prep, [image, mask], [tf.float32, tf.float32])
        return tf.ensure_shape(image, [6, 6, 3]), tf.ensure_shape(mask, [6, 6, 1])

    trained(tf.data.Dataset.from_tensor_slices((SMALL, MASKS)).map(load))


@near("unscaled-mask")
def a_mask_that_is_scaled_behind_it():
    def prep(image, mask):
        return image, mask.astype(np.float32)

    def load(image, mask):
        image, mask = tf.numpy_function(prep, [image, mask], [tf.float32, tf.float32])
        return tf.ensure_shape(image, [6, 6, 3]), tf.ensure_shape(mask, [6, 6, 1])

    data = tf.data.Dataset.from_tensor_slices((SMALL, MASKS)).map(load)
    trained(data.map(lambda image, mask: (image, mask / 255)))


@near("unscaled-mask")
def a_mask_of_another_loss():
    def prep(image, mask):
        return image, mask.astype(np.float32)

    def load(image, mask):
        image, mask = tf.numpy_function(prep, [image, mask], [tf.float32, tf.float32])
        return tf.ensure_shape(image, [6, 6, 3]), tf.ensure_shape(mask, [6, 6, 1])

    data = tf.data.Dataset.from_tensor_slices((SMALL, MASKS)).map(load)
    model = keras.Sequential([keras.layers.Conv2D(1, 3, padding="same")])
    model.compile("sgd", "mse")
    model.fit(data.batch(4), verbose=0)


# -- dropped-result and unchanged-input --------------------------------------------------------------------------------


@triggers("dropped-result", says="x[:, ::-1] gives a view of it, which nothing keeps", pastes=True)
def a_view_that_nothing_keeps():
    def turn(x):
        x[:, ::-1]
        return x

    made(turn, IMAGES)


@triggers("dropped-result", says="x * 2 gives a new array, which nothing keeps", pastes=True)
def a_product_that_nothing_keeps():
    def double(x):
        x * 2
        return x

    made(double, IMAGES)


@near("dropped-result")
def a_key_that_has_to_be_there():
    known = {"scale": 2.0}

    def scaled(x):
        options = dict(known)
        options["scale"]
        return (x * options["scale"]).astype(np.float32)

    made(scaled, ROWS)


@triggers("unchanged-input", says="augment returned its input unchanged in all 24 recorded calls", pastes=True)
def results_under_names_that_nothing_reads():
    def augment(x):
        turned = np.flip(x, 1)
        bright = turned * 1.2  # noqa: F841
        return x

    made(augment, IMAGES)


@near("unchanged-input")
def numbers_that_are_looked_at_while_debugging():
    def same(x):
        mean = x.mean()  # noqa: F841
        size = x.shape  # noqa: F841
        return x

    made(same, IMAGES)


@near("unchanged-input")
def an_identity_that_is_meant():
    def same(x):
        y = np.asarray(x)
        return y

    made(same, IMAGES)


# -- same-draws: drawn once by the file, seeded by a name --------------------------------------------------------------


@triggers("same-draws", says="top was drawn once", pastes=True)
def a_crop_at_one_place():
    def crop(x):
        return x[top : top + 8]

    made(crop, IMAGES)


@triggers("same-draws", says="flip was drawn once", pastes=True)
def a_flip_that_the_file_decides():
    def turn(x):
        if flip > 0.5:
            x = x[:, ::-1]
        return x.copy()

    made(turn, IMAGES)


@triggers("same-draws", says="seeds its random numbers with self.seed in each call")
def a_seed_that_an_object_holds():
    class Augment:
        def __init__(self, seed=1):
            self.seed = seed

        def __call__(self, x):
            rng = np.random.default_rng(self.seed)
            return np.roll(x, rng.integers(1, 3), axis=1)

    made(Augment(), IMAGES)


@near("same-draws")
def a_place_that_is_written_out():
    def crop(x):
        return x[fixed : fixed + 8]

    made(crop, IMAGES)


@near("same-draws")
def a_seed_that_counts():
    class Augment:
        def __init__(self):
            self.seed = 1

        def __call__(self, x):
            rng = np.random.default_rng(self.seed)
            self.seed += 1
            return np.roll(x, rng.integers(1, 3), axis=1)

    made(Augment(), IMAGES)


# -- swapped-sides: crops ----------------------------------------------------------------------------------------------


@triggers("swapped-sides", says="y is a row, and is drawn by the width (w)", pastes=True)
def a_crop_by_the_other_side():
    def crop(x):
        h, w, _ = x.shape
        y = np.random.randint(0, w - 8)
        left = np.random.randint(0, h - 8)
        return x[y : y + 8, left : left + 8]

    made(crop, IMAGES)


@near("swapped-sides")
def a_crop_by_its_sides():
    def crop(x):
        h, w, _ = x.shape
        y = np.random.randint(0, h - 8)
        left = np.random.randint(0, w - 8)
        return x[y : y + 8, left : left + 8]

    made(crop, IMAGES)
