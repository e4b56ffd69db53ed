"""More programs that do not fail: data into Keras, after threads of users that were written down one by one."""
# ruff: noqa: N806

from __future__ import annotations

import os
import tempfile

import keras
import numpy as np
import tensorflow as tf
from PIL import Image

from tests.doctor.programs import near, triggers


def classifier(width, classes=2):
    model = keras.Sequential([keras.Input((width,)), keras.layers.Dense(classes, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


# -- sorted-split: keras#8346, keras#4298, keras#6422 -----------------------------------------------------------------


@triggers("sorted-split", says="it validates with class 2 only, of 3 classes", pastes=True)
def rows_that_stand_class_by_class():
    x = np.random.rand(120, 4).astype("float32")
    y = np.repeat(np.arange(3), 40)
    model = classifier(4, 3)
    model.fit(x, y, validation_split=0.3, epochs=2, verbose=0)


@triggers("sorted-split", says="data[order], labels[order]", pastes=True)
def one_hot_labels_of_lists_filled_folder_by_folder():
    X, Y = [], []
    for label in range(2):
        for _ in range(40):
            X.append(np.random.rand(4) + label)
            Y.append(label)
    data = np.array(X)
    labels = keras.utils.to_categorical(Y)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, activation="softmax")])
    model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
    model.fit(data, labels, batch_size=16, epochs=2, validation_split=0.2, shuffle=True, verbose=0)


@triggers("sorted-split", says="[left[order], right[order]], y[order]", pastes=True)
def two_inputs_and_classes_that_are_never_trained():
    left, right = np.random.rand(100, 3), np.random.rand(100, 3)
    y = np.concatenate([np.random.randint(0, 2, 80), np.full(20, 2)])
    one, other = keras.Input((3,)), keras.Input((3,))
    joined = keras.layers.Concatenate()([one, other])
    model = keras.Model([one, other], keras.layers.Dense(3, activation="softmax")(joined))
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit([left, right], y, validation_split=0.2, epochs=1, verbose=0)


@near("sorted-split")
def rows_in_random_order():
    x = np.random.rand(120, 4).astype("float32")
    y = np.random.permutation(np.repeat(np.arange(3), 40))
    classifier(4, 3).fit(x, y, validation_split=0.3, epochs=1, verbose=0)


@near("sorted-split")
def numbers_that_are_no_classes():
    x = np.random.rand(120, 4).astype("float32")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(x, np.repeat(np.arange(3.0), 40), validation_split=0.3, epochs=1, verbose=0)


@near("sorted-split")
def rows_in_order_that_are_not_split():
    x = np.random.rand(120, 4).astype("float32")
    y = np.repeat(np.arange(3), 40)
    classifier(4, 3).fit(x, y, validation_data=(x[::3], y[::3]), epochs=1, verbose=0)


# -- shuffled-results: keras#6499, keras#11427, keras#6234 ------------------------------------------------------------


def pictures():
    folder = tempfile.mkdtemp()
    for number, kind in enumerate(("cat", "dog")):
        os.makedirs(os.path.join(folder, kind))
        for name in range(20):
            image = Image.fromarray(np.full((4, 4, 3), 200 * number + name, np.uint8))
            image.save(os.path.join(folder, kind, f"{name}.png"))
    return folder


def flat():
    return keras.Sequential([keras.Input((4, 4, 3)), keras.layers.Flatten(), keras.layers.Dense(1)])


@triggers("shuffled-results", says="what predict gives of test_generator does not fit", pastes=True)
def predictions_of_a_directory_beside_its_classes():
    datagen = tf.keras.preprocessing.image.ImageDataGenerator(rescale=1 / 255)
    test_generator = datagen.flow_from_directory(pictures(), target_size=(4, 4), class_mode="binary", shuffle=True)
    probabilities = flat().predict(test_generator, verbose=0)
    y_pred = np.where(probabilities[:, 0] > 0.5, 1, 0)
    y_true = test_generator.classes
    print("accuracy", np.mean(y_pred == y_true))


@triggers("shuffled-results", says="in_order = datagen.flow_from_directory(", pastes=True)
def predictions_of_what_was_trained_on():
    datagen = tf.keras.preprocessing.image.ImageDataGenerator(rescale=1 / 255)
    generator = datagen.flow_from_directory(pictures(), target_size=(4, 4), class_mode="binary")
    model = flat()
    model.compile("adam", "mse")
    model.fit(generator, epochs=1, verbose=0)
    predicted = model.predict(generator, verbose=0)
    print([(name, one) for name, one in zip(generator.filenames, predicted)])


@triggers("shuffled-results", says="flow(X_test, batch_size=32, shuffle=False)", pastes=True)
def predictions_of_arrays_beside_their_labels():
    X_test = np.random.rand(64, 4, 4, 3)
    Y_test = X_test.mean((1, 2, 3)) > 0.5
    datagen = tf.keras.preprocessing.image.ImageDataGenerator()
    scores = flat().predict(datagen.flow(X_test, batch_size=32), verbose=0)
    print(np.mean((scores.ravel() > 0.5) == Y_test))


@triggers("shuffled-results", says="what predict gives of self.generator does not fit", pastes=True)
def predictions_of_a_callback_beside_the_classes_of_its_generator():
    class Scores(keras.callbacks.Callback):
        def __init__(self, generator=None):
            super().__init__()
            self.generator = generator

        def on_epoch_end(self, epoch, logs=None):
            true_classes = self.generator.classes
            predictions = self.model.predict(self.generator, verbose=0)
            print("close", np.isclose(true_classes, np.ravel(predictions)))

    datagen = tf.keras.preprocessing.image.ImageDataGenerator(rescale=1 / 255)
    train = datagen.flow_from_directory(pictures(), target_size=(4, 4), class_mode="binary")
    held = datagen.flow_from_directory(pictures(), target_size=(4, 4), class_mode="binary")
    model = flat()
    model.compile("adam", "mse")
    scores = Scores(held)
    model.fit(train, epochs=1, validation_data=held, callbacks=[scores], verbose=0)


@near("shuffled-results")
def predictions_of_a_directory_in_order():
    datagen = tf.keras.preprocessing.image.ImageDataGenerator(rescale=1 / 255)
    generator = datagen.flow_from_directory(pictures(), target_size=(4, 4), class_mode="binary", shuffle=False)
    predicted = flat().predict(generator, verbose=0).ravel() > 0.5
    print(np.mean(predicted == generator.classes))


@near("shuffled-results")
def predictions_of_a_directory_by_themselves():
    datagen = tf.keras.preprocessing.image.ImageDataGenerator(rescale=1 / 255)
    generator = datagen.flow_from_directory(pictures(), target_size=(4, 4), class_mode="binary")
    predicted = flat().predict(generator, verbose=0)
    print(predicted.mean(), len(generator.classes))


# -- endless-epoch ----------------------------------------------------------------------------------------------------


@near("endless-epoch")
def a_directory_knows_how_many_batches_it_has():
    datagen = tf.keras.preprocessing.image.ImageDataGenerator(rescale=1 / 255)
    generator = datagen.flow_from_directory(pictures(), target_size=(4, 4), batch_size=4, class_mode="binary")
    model = flat()
    model.compile("adam", "mse")
    model.fit(generator, epochs=2, verbose=0)


# -- wrong-batches: keras#3572, keras#3985, keras#7729 ----------------------------------------------------------------


def regression(width):
    model = keras.Sequential([keras.Input((width,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


@triggers("wrong-batches", says="sets i to 0 in each turn of `while`", pastes=True)
def a_counter_that_begins_again_in_each_turn():
    x, y = np.random.rand(64, 4).astype("float32"), np.random.rand(64).astype("float32")
    seen = []

    def generator(batch_size=8):
        while True:
            i = 0
            batch_x = x[i * batch_size : (i + 1) * batch_size]
            batch_y = y[i * batch_size : (i + 1) * batch_size]
            seen.append(len(batch_x))
            i += 1
            yield batch_x, batch_y

    regression(4).fit(generator(), steps_per_epoch=8, epochs=2, verbose=0)
    assert set(seen) == {8}


@triggers("wrong-batches", says="`len(dataset)` is 2, the number of arrays", pastes=True)
def a_counter_and_the_length_of_a_pair():
    x, y = np.random.rand(64, 4).astype("float32"), np.random.rand(64).astype("float32")

    def data_generator(batch_rows=16):
        dataset = (x, y)
        dataset_size = len(dataset)
        while True:
            i = 0
            yield dataset[0][i : i + batch_rows], dataset[1][i : i + batch_rows]
            i += batch_rows
            if i + batch_rows > dataset_size:
                i = 0

    regression(4).fit(data_generator(), steps_per_epoch=4, epochs=2, verbose=0)


@triggers("wrong-batches", says="they have 16, 32, 48, 64 ... rows. X and y are filled on", pastes=True)
def lists_that_are_never_emptied():
    rows = [(np.random.rand(4).astype("float32"), float(i % 2)) for i in range(64)]

    def generate(batch_size=16):
        X, y = [], []
        while True:
            for i, (features, label) in enumerate(rows):
                X.append(features)
                y.append(label)
                if (i + 1) % batch_size == 0:
                    yield np.array(X), np.array(y)

    regression(4).fit(generate(), steps_per_epoch=4, epochs=2, verbose=0)


@triggers("wrong-batches", says="make inputs and targets new for each turn of the loop", pastes=True)
def lists_that_are_made_for_each_row():
    lines = [(np.random.rand(4).astype("float32"), float(i % 2)) for i in range(64)]

    def gen(batchsz=16):
        count = 0
        while True:
            for features, label in lines:
                inputs = []
                targets = []
                inputs.append(features)
                targets.append(label)
                count += 1
                if count >= batchsz:
                    count = 0
                    X = np.array(inputs)
                    yield X, np.array(targets)

    regression(4).fit(gen(), steps_per_epoch=4, epochs=2, verbose=0)


@triggers("wrong-batches", says="changes x itself, again in each pass", pastes=True)
def a_slice_that_is_scaled_in_place():
    x, y = np.random.rand(64, 4).astype("float32") * 255, np.random.rand(64).astype("float32")

    def generator(batch_size=16):
        while True:
            for i in range(0, len(x), batch_size):
                batch_x = x[i : i + batch_size]
                batch_x /= 255.0
                yield batch_x, y[i : i + batch_size]

    regression(4).fit(generator(), steps_per_epoch=4, epochs=3, verbose=0)


@triggers("wrong-batches", says="it never reads idx", pastes=True)
def an_index_that_is_never_read():
    class Data(keras.utils.PyDataset):
        def __init__(self, x, y, batch_size):
            super().__init__()
            self.x, self.y, self.batch_size = x, y, batch_size

        def __len__(self):
            return len(self.x) // self.batch_size

        def __getitem__(self, idx):
            batch_x = self.x[: self.batch_size]
            batch_y = self.y[: self.batch_size]
            return batch_x, batch_y

    regression(4).fit(Data(np.random.rand(64, 4), np.random.rand(64), 16), epochs=2, verbose=0)


@triggers("wrong-batches", says="its slice ends at (idx + 2) * self.size - idx", pastes=True)
def slices_that_do_not_follow_each_other():
    x = np.ones((160, 4), "float32")

    class Rows(keras.utils.PyDataset):
        def __init__(self, x, size, **kwargs):
            super().__init__(**kwargs)
            self.x, self.size = x, size

        def __len__(self):
            return len(self.x) // self.size

        def __getitem__(self, idx):
            rows = self.x[idx * self.size : (idx + 2) * self.size - idx]
            return rows, rows[:, :1]

    regression(4).fit(Rows(x, 32), verbose=0)


@near("wrong-batches")
def slices_that_follow_each_other_of_a_plain_number():
    x = np.ones((160, 4), "float32")

    class Rows(keras.utils.PyDataset):
        def __init__(self, x, size, **kwargs):
            super().__init__(**kwargs)
            self.x, self.size = x, size

        def __len__(self):
            return 4

        def __getitem__(self, idx):
            rows = self.x[idx * 32 : (idx + 1) * 32]
            return rows[: 32 - idx], rows[: 32 - idx, :1]

    regression(4).fit(Rows(x, 32), verbose=0)


@near("wrong-batches")
def one_batch_that_is_all_the_data():
    x, y = np.random.rand(16, 4), np.random.rand(16)

    def whole():
        while True:
            for i in range(0, len(x), 16):
                yield x[i : i + 16], y[i : i + 16]

    regression(4).fit(whole(), steps_per_epoch=2, epochs=3, verbose=0)


@near("wrong-batches")
def lists_that_are_emptied():
    rows = [(np.random.rand(4).astype("float32"), float(i % 2)) for i in range(64)]

    def generate(batch_size=16):
        X, y = [], []
        while True:
            for features, label in rows:
                X.append(features)
                y.append(label)
                if len(X) == batch_size:
                    yield np.array(X), np.array(y)
                    X.clear()
                    y = []

    regression(4).fit(generate(), steps_per_epoch=4, epochs=2, verbose=0)


@near("wrong-batches")
def a_slice_that_is_scaled_into_another_array():
    x, y = np.random.rand(64, 4).astype("float32") * 255, np.random.rand(64).astype("float32")

    def generator(batch_size=16):
        while True:
            for i in range(0, len(x), batch_size):
                batch_x = x[i : i + batch_size].astype("float32")
                batch_x /= 255.0
                yield batch_x, y[i : i + batch_size]

    regression(4).fit(generator(), steps_per_epoch=4, epochs=3, verbose=0)


@near("wrong-batches")
def batches_of_one_row_as_they_are_meant():
    lines = [(np.random.rand(4).astype("float32"), float(i % 2)) for i in range(16)]

    def one_by_one():
        while True:
            for features, label in lines:
                inputs, targets = [], []
                inputs.append(features)
                targets.append(label)
                yield np.array(inputs), np.array(targets)

    regression(4).fit(one_by_one(), steps_per_epoch=16, epochs=2, verbose=0)


# -- nan-loss of a metric: keras#5078 ---------------------------------------------------------------------------------


@triggers("nan-loss", says="tf.math.divide_no_nan(tp, tf.reduce_sum(tf.round(y_pred)))", pastes=True)
def a_precision_of_batches_without_positives():
    x, y = np.random.rand(64, 4).astype("float32"), np.zeros((64, 1), "float32")

    def precision(y_true, y_pred):
        tp = tf.reduce_sum(tf.round(y_true * y_pred))
        return tp / tf.reduce_sum(tf.round(y_pred))

    low = keras.initializers.Constant(-3.0)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid", bias_initializer=low)])
    model.compile("adam", "binary_crossentropy", metrics=[precision])
    model.fit(x, y, epochs=2, validation_data=(x, y), verbose=0)


@near("nan-loss")
def a_precision_that_is_never_of_nothing():
    x, y = np.random.rand(64, 4).astype("float32"), np.ones((64, 1), "float32")

    def recall(y_true, y_pred):
        return tf.reduce_sum(tf.round(y_true * y_pred)) / tf.reduce_sum(y_true)

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("adam", "binary_crossentropy", metrics=[recall])
    model.fit(x, y, epochs=2, verbose=0)


# -- epoch-end: mpkuse/cartwheel_train#7 ------------------------------------------------------------------------------


@triggers("epoch-end", says="it ran in __init__", pastes=True)
def a_method_that_keras_does_not_call():
    class Pits(keras.utils.PyDataset):
        def __init__(self, x, y, batch_size):
            super().__init__()
            self.x, self.y, self.batch_size = x, y, batch_size
            self.indexes = np.arange(len(x))
            self.on_epoch_start()

        def __len__(self):
            return len(self.x) // self.batch_size

        def __getitem__(self, idx):
            rows = self.indexes[idx * self.batch_size : (idx + 1) * self.batch_size]
            return self.x[rows], self.y[rows]

        def on_epoch_start(self):
            np.random.shuffle(self.indexes)

    regression(4).fit(Pits(np.random.rand(64, 4), np.random.rand(64), 16), epochs=2, verbose=0)


@near("epoch-end")
def a_method_of_another_name_that_is_called():
    class Pits(keras.utils.PyDataset):
        def __init__(self, x, y, batch_size):
            super().__init__()
            self.x, self.y, self.batch_size = x, y, batch_size
            self.indexes = np.arange(len(x))

        def __len__(self):
            return len(self.x) // self.batch_size

        def __getitem__(self, idx):
            rows = self.indexes[idx * self.batch_size : (idx + 1) * self.batch_size]
            return self.x[rows], self.y[rows]

        def on_epoch_start(self):
            np.random.shuffle(self.indexes)

        def on_epoch_end(self):
            self.on_epoch_start()

    regression(4).fit(Pits(np.random.rand(64, 4), np.random.rand(64), 16), epochs=2, verbose=0)


# -- wrong-batches: of one class each ---------------------------------------------------------------------------------


@triggers("wrong-batches", says="hold one class each", pastes=True, severity="warning")
def a_generator_over_rows_that_stand_class_by_class():
    x, y = np.random.rand(120, 4).astype("float32"), np.repeat(np.arange(3), 40)

    def generate(batch_size=10):
        while True:
            for i in range(0, len(x), batch_size):
                batch_x, batch_y = x[i : i + batch_size], y[i : i + batch_size]
                yield batch_x, batch_y

    classifier(4, 3).fit(generate(), steps_per_epoch=12, epochs=2, verbose=0)


@near("wrong-batches")
def a_validation_over_rows_that_stand_class_by_class():
    x, y = np.random.rand(120, 4).astype("float32"), np.repeat(np.arange(3), 40)

    def in_order(batch_size=10):
        while True:
            for i in range(0, len(x), batch_size):
                yield x[i : i + batch_size], y[i : i + batch_size]

    mixed = np.random.permutation(len(x))
    classifier(4, 3).fit(x[mixed], y[mixed], validation_data=in_order(), validation_steps=12, epochs=2, verbose=0)


# -- unscaled-input ---------------------------------------------------------------------------------------------------


@triggers("unscaled-input", says="x * (1 / 255)", pastes=True)
def an_image_of_a_file_beside_a_scaled_directory():
    folder = pictures()
    train = tf.keras.preprocessing.image.ImageDataGenerator(rescale=1 / 255).flow_from_directory(
        folder, target_size=(4, 4), class_mode="binary"
    )
    model = flat()
    model.compile("adam", "mse")
    model.fit(train, epochs=1, verbose=0)
    img = keras.utils.load_img(os.path.join(folder, "dog", "1.png"), target_size=(4, 4))
    x = keras.utils.img_to_array(img)
    x = np.expand_dims(x, axis=0)
    print(model.predict(x, verbose=0))


@triggers("unscaled-input", says="model.evaluate(x_test / 255.0, y_test", pastes=True)
def test_rows_beside_scaled_rows():
    def load_data():
        return [(np.random.randint(0, 255, (32, 4)).astype("float32"), np.random.rand(32)) for _ in range(2)]

    (x_train, y_train), (x_test, y_test) = load_data()
    x_train = x_train / 255.0
    model = regression(4)
    model.fit(x_train, y_train, epochs=1, verbose=0)
    print(model.evaluate(x_test, y_test, verbose=0))


@triggers("unscaled-input", says="image[None] / 255.0", pastes=True)
def an_image_beside_a_dataset_that_divides():
    images = np.random.randint(0, 255, (16, 4, 4, 3)).astype("uint8")
    path = os.path.join(tempfile.mkdtemp(), "one.png")
    Image.fromarray(images[0]).save(path)
    train_ds = tf.data.Dataset.from_tensor_slices((images, np.ones(16))).batch(4)
    scaled_ds = train_ds.map(lambda x, y: (tf.cast(x, tf.float32) / 255.0, y))
    model = flat()
    model.compile("adam", "mse")
    model.fit(scaled_ds, epochs=1, verbose=0)
    image = keras.utils.img_to_array(keras.utils.load_img(path))
    print(model.predict(image[None], verbose=0))


@near("unscaled-input")
def an_image_that_is_scaled_too():
    folder = pictures()
    train = tf.keras.preprocessing.image.ImageDataGenerator(rescale=1 / 255).flow_from_directory(
        folder, target_size=(4, 4), class_mode="binary"
    )
    model = flat()
    model.compile("adam", "mse")
    model.fit(train, epochs=1, verbose=0)
    img = keras.utils.load_img(os.path.join(folder, "dog", "1.png"), target_size=(4, 4))
    x = np.expand_dims(keras.utils.img_to_array(img), axis=0)
    x /= 255.0
    print(model.predict(x, verbose=0))


@near("unscaled-input")
def test_rows_that_are_scaled_too():
    def load_data():
        return [(np.random.randint(0, 255, (32, 4)).astype("float32"), np.random.rand(32)) for _ in range(2)]

    (x_train, y_train), (x_test, y_test) = load_data()
    x_train, x_test = x_train / 255.0, x_test / 255.0
    model = regression(4)
    model.fit(x_train, y_train, epochs=1, verbose=0)
    print(model.evaluate(x_test, y_test, verbose=0))


@near("unscaled-input")
def rows_that_nobody_scales():
    def load_data():
        return [(np.random.rand(32, 4).astype("float32"), np.random.rand(32)) for _ in range(2)]

    (x_train, y_train), (x_test, y_test) = load_data()
    model = regression(4)
    model.fit(x_train, y_train, epochs=1, verbose=0)
    print(model.evaluate(x_test, y_test, verbose=0))


# -- shuffled-apart: keras-preprocessing#219 --------------------------------------------------------------------------


@triggers("shuffled-apart", says="without one seed for both", pastes=True)
def images_and_masks_without_a_seed():
    one, other = pictures(), pictures()
    image_datagen = tf.keras.preprocessing.image.ImageDataGenerator(rotation_range=90)
    mask_datagen = tf.keras.preprocessing.image.ImageDataGenerator(rotation_range=90)
    image_generator = image_datagen.flow_from_directory(one, class_mode=None, target_size=(4, 4), batch_size=4)
    mask_generator = mask_datagen.flow_from_directory(other, class_mode=None, target_size=(4, 4), batch_size=4)

    def train_generator():
        for img, mask in zip(image_generator, mask_generator):
            yield img / 255.0, mask[:, :1, 0, 0] / 255.0

    model = flat()
    model.compile("adam", "mse")
    model.fit(train_generator(), steps_per_epoch=3, epochs=1, verbose=0)


@near("shuffled-apart")
def images_and_masks_of_one_seed():
    one, other = pictures(), pictures()
    datagen = tf.keras.preprocessing.image.ImageDataGenerator(rotation_range=90)
    image_generator = datagen.flow_from_directory(one, class_mode=None, target_size=(4, 4), batch_size=4, seed=7)
    mask_generator = datagen.flow_from_directory(other, class_mode=None, target_size=(4, 4), batch_size=4, seed=7)

    def train_generator():
        for img, mask in zip(image_generator, mask_generator):
            yield img / 255.0, mask[:, :1, 0, 0] / 255.0

    model = flat()
    model.compile("adam", "mse")
    model.fit(train_generator(), steps_per_epoch=3, epochs=1, verbose=0)


# -- last-layer -------------------------------------------------------------------------------------------------------


@triggers("last-layer", says="gives 1 for every input", pastes=True)
def one_unit_with_softmax():
    def build():
        model = keras.models.Sequential()
        model.add(keras.Input((4,)))
        model.add(keras.layers.Dense(8, activation="relu"))
        model.add(keras.layers.Dense(1, activation="softmax"))
        model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
        return model

    x = np.random.rand(32, 4)
    build().fit(x, x[:, 0] > 0.5, epochs=1, verbose=0)


@triggers("last-layer", says='Dense(3, activation="softmax")', pastes=True)
def logits_for_a_loss_by_its_name():
    inputs = keras.Input((4,))
    hidden = keras.layers.Dense(8)(inputs)
    outputs = keras.layers.Dense(3)(hidden)
    model = keras.Model(inputs=inputs, outputs=outputs)
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(np.random.rand(32, 4), np.arange(32) % 3, epochs=1, verbose=0)


@triggers("last-layer", says="without sigmoid it is any number", pastes=True)
def a_rectified_probability():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="relu")])
    model.compile(optimizer="adam", loss="binary_crossentropy")
    model.fit(np.random.rand(32, 4), np.arange(32) % 2, epochs=1, verbose=0)


@near("last-layer")
def logits_for_a_loss_that_takes_them():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(np.random.rand(32, 4), np.arange(32) % 3, epochs=1, verbose=0)


@near("last-layer")
def softmax_as_a_layer_of_its_own():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.Activation("softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(np.random.rand(32, 4), np.arange(32) % 3, epochs=1, verbose=0)


@near("last-layer")
def a_number_for_a_loss_of_numbers():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(np.random.rand(32, 4), np.random.rand(32), epochs=1, verbose=0)


# -- cached-random ----------------------------------------------------------------------------------------------------


@near("cached-random")
def a_function_that_is_called_by_names_draws_nothing():
    def sample(value):
        return np.full(shape=(3,), fill_value=value, dtype=np.float32)

    def body(x):
        return sample(value=x)

    data = tf.data.Dataset.range(8).map(lambda x: tf.numpy_function(body, [x], tf.float32)).cache()
    for _ in range(3):
        list(data)


# -- counted-steps ----------------------------------------------------------------------------------------------------


def batches_of(samples, batch_size=4):
    while True:
        for start in range(0, len(samples), batch_size):
            rows = np.array(samples[start : start + batch_size], "float32")[:, None]
            yield rows, rows


def one_unit():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


@triggers("counted-steps", says="steps_per_epoch=-(-len(samples) // 4)", pastes=True)
def a_step_for_each_sample():
    samples = list(range(12))
    one_unit().fit(batches_of(samples, batch_size=4), steps_per_epoch=len(samples), epochs=2, verbose=0)


@triggers("counted-steps", says="validation_steps=-(-len(held) // size)", pastes=True)
def steps_of_samples_that_are_held_out_too():
    samples, held, size = list(range(12)), list(range(8)), 4
    batch_size = size
    train = batches_of(samples, batch_size)
    test = batches_of(held, batch_size=size)
    one_unit().fit(
        train, steps_per_epoch=len(samples), validation_data=test, validation_steps=len(held), verbose=0
    )  # fmt: skip


@triggers("counted-steps", says="goes over them some 4 times", pastes=True)
def steps_of_rows_without_a_size_in_the_call():
    rows = np.arange(12)
    model = one_unit()
    model.fit(x=batches_of(rows), steps_per_epoch=len(rows), verbose=0)


@triggers("counted-steps", says="gen.train_batches counts rows", pastes=True)
def steps_that_an_object_counts():
    class Pairs:
        def __init__(self, keys, batch_size):
            self.keys, self.batch_size = keys, 0
            self.batch_size = batch_size
            self.train_batches = len(keys)

        def generate(self):
            rows = []
            while True:
                for key in self.keys:
                    rows.append([float(key)])
                    if len(rows) == self.batch_size:
                        yield np.array(rows), np.array(rows)
                        rows = []

    gen = Pairs(list(range(12)), 4)
    one_unit().fit(gen.generate(), steps_per_epoch=gen.train_batches, verbose=0)


@near("counted-steps")
def steps_of_batches_that_an_object_counts():
    class Pairs:
        def __init__(self, keys, batch_size):
            self.batches = np.array_split(np.array(keys, "float32")[:, None], len(keys) // batch_size)
            self.steps = len(self.batches)

        def generate(self):
            while True:
                for rows in self.batches:
                    yield rows, rows

    gen = Pairs(list(range(12)), 4)
    one_unit().fit(gen.generate(), steps_per_epoch=gen.steps, verbose=0)


@near("counted-steps")
def one_yield_for_each_caption():
    captions = ["a dog runs", "a cat sits on a mat", "the dog sat"]

    def steps(texts):
        while True:
            for text in texts:
                words = text.split()
                yield np.ones((len(words), 4), np.float32), np.ones((len(words), 1), np.float32)

    flow = steps(captions)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(flow, steps_per_epoch=len(captions), epochs=2, verbose=0)


@near("counted-steps")
def batches_of_one_row():
    samples = list(range(6))
    one_unit().fit(batches_of(samples, 1), steps_per_epoch=len(samples), verbose=0)


@near("counted-steps")
def steps_that_are_divided():
    samples = list(range(12))
    one_unit().fit(batches_of(samples, 4), steps_per_epoch=len(samples) // 4, verbose=0)


@near("counted-steps")
def a_step_for_each_of_other_things():
    samples, files = list(range(12)), ["a", "b"]
    one_unit().fit(batches_of(samples, 4), steps_per_epoch=len(files), verbose=0)


class TwelveRows(keras.utils.PyDataset):
    def __init__(self, batch_size):
        super().__init__()
        self.batch_size = batch_size

    def __len__(self):
        return -(-12 // self.batch_size)

    def __getitem__(self, at):
        rows = np.arange(12, dtype=np.float32)[at * self.batch_size : (at + 1) * self.batch_size, None]
        return rows, rows


@triggers("counted-steps", says="len(train) counts batches already", pastes=True)
def batches_of_a_sequence_divided_again():
    batch_size = 2
    train = TwelveRows(batch_size)
    held = TwelveRows(batch_size)
    one_unit().fit(
        train, validation_data=held, steps_per_epoch=int(np.ceil(len(train) / batch_size)),
        validation_steps=len(held) // batch_size, epochs=2, verbose=0,
    )  # fmt: skip


@triggers("counted-steps", says="len(data) counts batches already", pastes=True)
def batches_of_a_dataset_divided_again():
    batch_size = 2
    data = tf.data.Dataset.from_tensor_slices((np.ones((12, 1)), np.ones((12, 1)))).batch(batch_size)
    model = one_unit()
    model.fit(data, steps_per_epoch=len(data) // batch_size, epochs=2, verbose=0)


@near("counted-steps")
def a_part_of_the_batches():
    train = TwelveRows(2)
    one_unit().fit(train, steps_per_epoch=len(train) // 3, epochs=2, verbose=0)


@near("counted-steps")
def rows_of_a_dataset_divided():
    batch_size = 2
    rows = tf.data.Dataset.from_tensor_slices((np.ones((12, 1)), np.ones((12, 1))))
    batches = rows.batch(batch_size)
    one_unit().fit(batches, steps_per_epoch=len(rows) // batch_size, epochs=2, verbose=0)


@near("counted-steps")
def elements_that_are_batched_later():
    batch_size = 2
    data = tf.data.Dataset.from_tensor_slices((np.ones((12, 1)), np.ones((12, 1))))
    steps = len(data) // batch_size
    data = data.batch(batch_size)
    one_unit().fit(data, steps_per_epoch=steps, epochs=2, verbose=0)
