"""What `compile` is given and Keras leaves out in silence, and settings of optimizers that nothing reads."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

# -- uncounted-loss ---------------------------------------------------------------------------------------------------


@triggers("uncounted-loss", says="the last one is compared with nothing", pastes=True)
def one_loss_for_two_outputs():
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    inputs = keras.Input((3,))
    outputs = [keras.layers.Dense(1)(inputs), keras.layers.Dense(1)(inputs)]
    model = keras.Model(inputs, outputs)
    model.compile("sgd", loss=["mse"])
    model.fit(x, [y, y], verbose=0)


@triggers("uncounted-loss", says="computes the first only, 'mse'", pastes=True)
def two_losses_for_one_output():
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", loss=['mse', 'mae'])  # fmt: skip
    model.fit(x, y, verbose=0)


@triggers("uncounted-loss", says="one output, and a list of 2 losses", pastes=True)
def losses_that_are_objects_for_one_output():
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    inputs = tf.keras.Input((3,))
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(inputs))
    model.compile("sgd", [tf.keras.losses.MeanSquaredError(), tf.keras.losses.MeanAbsoluteError()])
    model.fit(x, y, verbose=0)


@near("uncounted-loss")
def a_loss_for_each_output():
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    inputs = keras.Input((3,))
    model = keras.Model(inputs, [keras.layers.Dense(1)(inputs), keras.layers.Dense(1)(inputs)])
    model.compile("sgd", loss=["mse", "mae"])
    model.fit(x, [y, y], verbose=0)


@near("uncounted-loss")
def one_loss_in_a_list():
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", loss=["mse"])
    model.fit(x, y, verbose=0)


@near("uncounted-loss")
def an_output_that_is_said_to_have_no_loss():
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    inputs = keras.Input((3,))
    model = keras.Model(inputs, outputs=[keras.layers.Dense(1)(inputs), keras.layers.Dense(1)(inputs)])
    model.compile("sgd", loss=["mse", None])
    model.fit(x, [y, y], verbose=0)


@near("uncounted-loss")
def a_subclassed_model_of_unknown_outputs():
    class Two(keras.Model):
        def __init__(self):
            super().__init__()
            self.a, self.b = keras.layers.Dense(1), keras.layers.Dense(1)

        def call(self, x):
            return self.a(x), self.b(x)

    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = Two()
    model.compile("sgd", loss=["mse", "mae"])
    model.fit(x, (y, y), verbose=0)


# -- last-layer, and what it is compared with -------------------------------------------------------------------------


def trained(layer, loss, y, x=None):
    x = np.ones((8, 3), "float32") if x is None else x
    model = keras.Sequential([keras.layers.Input(x.shape[1:]), layer])
    model.compile("sgd", loss)
    model.fit(x, y, verbose=0)


@triggers("last-layer", says="gives no number below 0: it never reaches them", pastes=True)
def targets_below_zero_for_a_relu():
    x, y = np.ones((8, 3), "float32"), -np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1, activation="relu")])
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0)


@triggers("last-layer", says="fit(images / 255.0, images / 255.0", pastes=True)
def pixels_for_a_sigmoid():
    images = np.linspace(0, 255, 80, dtype="float32").reshape(8, 10)
    model = keras.Sequential([keras.layers.Input((10,)), keras.layers.Dense(10, activation="sigmoid")])
    model.compile("sgd", loss="mse")
    model.fit(images, images, verbose=0)


@triggers("last-layer", says="each class needs a sigmoid of its own", pastes=True)
def several_classes_a_row_for_a_softmax():
    x, y = np.ones((8, 3), "float32"), np.array([[1, 1, 0], [0, 1, 1]] * 4)
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(3, activation="softmax")])
    model.compile("sgd", "binary_crossentropy")
    model.fit(x, y, verbose=0)


@triggers("last-layer", says="the targets are 0 to 7", pastes=True)
def targets_of_a_dataset_for_a_sigmoid():
    x, y = np.ones((8, 3), "float32"), np.arange(8, dtype="float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", keras.losses.MeanSquaredError())
    model.fit(tf.data.Dataset.from_tensor_slices((x, y)).shuffle(8).batch(4), verbose=0)


@near("last-layer")
def targets_that_a_tanh_reaches():
    trained(keras.layers.Dense(1, activation="tanh"), "mse", np.linspace(-1, 1, 8))


@near("last-layer")
def labels_that_are_smoothed():
    trained(keras.layers.Dense(2, activation="softmax"), "categorical_crossentropy", np.full((8, 2), 0.5))


@near("last-layer")
def large_targets_for_a_relu():
    trained(keras.layers.Dense(1, activation="relu"), "mae", np.arange(8.0))


@near("last-layer")
def numbers_of_classes_for_a_softmax():
    trained(keras.layers.Dense(4, activation="softmax"), "sparse_categorical_crossentropy", np.arange(8) % 4)


@near("last-layer")
def a_loss_of_the_programs_own_behind_a_sigmoid():
    trained(keras.layers.Dense(1, activation="sigmoid"), lambda y, p: (y - 10 * p) ** 2, np.arange(8.0))


# -- regression-accuracy ----------------------------------------------------------------------------------------------


@triggers("regression-accuracy", says="hit a class", pastes=True)
def accuracy_of_a_regression():
    x, y = np.ones((8, 3), "float32"), np.linspace(0, 9, 8, dtype="float32")[:, None]
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["accuracy"])
    model.fit(x, y, verbose=0)


@triggers("regression-accuracy", says='history.history["val_mae"]', pastes=True)
def accuracy_of_a_regression_that_is_read():
    x, y = np.ones((8, 3), "float32"), np.linspace(0, 9, 8, dtype="float32")[:, None]
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["accuracy"])
    history = model.fit(x, y, validation_split=0.5, verbose=0)
    assert len(history.history["val_accuracy"]) == 1


@triggers("regression-accuracy", says='Dense(1, activation="linear") with mae', pastes=True)
def accuracy_beside_another_metric():
    x, y = np.ones((8, 3), "float32"), np.linspace(0, 9, 8, dtype="float32")[:, None]
    model = keras.Sequential()
    model.add(keras.layers.Input((3,)))
    model.add(keras.layers.Dense(1, activation="linear"))
    model.compile(optimizer="sgd", loss="mae", metrics=["mse", "acc"])
    model.fit(x, y, verbose=0)


@triggers("regression-accuracy", says="predicts numbers", pastes=True)
def accuracy_of_a_functional_model_with_a_loss_that_is_an_object():
    x, y = np.ones((8, 3), "float32"), np.linspace(0, 9, 8, dtype="float32")[:, None]
    inputs = tf.keras.Input((3,))
    outputs = tf.keras.layers.Dense(1)(inputs)
    model = tf.keras.Model(inputs, outputs)
    model.compile("sgd", loss=tf.keras.losses.MeanSquaredError(), metrics=["accuracy"])
    model.fit(x, y, verbose=0)


@near("regression-accuracy")
def accuracy_of_a_squared_error_behind_a_sigmoid():
    x, y = np.ones((8, 3), "float32"), np.array([[0], [1]] * 4, "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "mse", metrics=["accuracy"])
    model.fit(x, y, verbose=0)


@near("regression-accuracy")
def accuracy_of_classes():
    x, y = np.ones((8, 3), "float32"), np.array([0, 1] * 4)
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, verbose=0)


@near("regression-accuracy")
def squared_errors_of_vectors_of_classes():
    x, y = np.ones((8, 3), "float32"), np.eye(2, dtype="float32")[[0, 1] * 4]
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse", metrics=["accuracy"])
    model.fit(x, y, verbose=0)


# -- ignored-rate -----------------------------------------------------------------------------------------------------


@triggers("ignored-rate", says="self.model.optimizer.lr = ...", pastes=True)
def a_rate_that_a_callback_sets():
    class Decay(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.model.optimizer.lr = 0.1 / (epoch + 1)

    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0, epochs=2, callbacks=[Decay()])


@triggers("ignored-rate", says="the learning rate stays as it was", pastes=True)
def a_rate_that_is_set_between_two_calls_of_fit():
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0)
    model.optimizer.lr = 0.001
    model.fit(x, y, verbose=0)


@triggers("ignored-rate", says="opt.lr = ...", pastes=True)
def a_rate_of_an_optimizer_with_a_name():
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    opt = tf.keras.optimizers.SGD(0.1)
    model = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile(opt, "mse")
    opt.lr = 0.5
    model.fit(x, y, verbose=0)


@near("ignored-rate")
def a_learning_rate_that_is_set():
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0)
    model.optimizer.learning_rate = 0.001
    model.fit(x, y, verbose=0)


@near("ignored-rate")
def an_lr_of_something_else():
    class Config:
        lr = 0.1

    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    config = Config()
    config.lr = 0.01
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(config.lr), "mse")
    model.fit(x, y, verbose=0)


@near("ignored-rate")
def an_lr_of_a_schedule_of_ones_own():
    class Schedule(keras.optimizers.schedules.LearningRateSchedule):
        def __init__(self, lr):
            self.lr = lr

        def __call__(self, step):
            return self.lr

    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(Schedule(0.1)), "mse")
    model.fit(x, y, verbose=0)


# -- missed-weight: tf#98283 ------------------------------------------------------------------------------------------


@triggers("missed-weight", says="weights for 3, which no row has for its label, and none for 0: 3 of 9", pastes=True)
def weights_that_count_classes_from_one():
    x, y = np.ones((9, 3), "float32"), np.array([0, 1, 2] * 3)
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(3, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(x, y, class_weight={1: 1.0, 2: 2.0, 3: 3.0}, verbose=0)


@triggers("missed-weight", says="weights for '0', '1', which no row has", pastes=True)
def weights_by_texts():
    x, y = np.ones((8, 3), "float32"), np.array([[0], [1]] * 4)
    weights = {str(one): 1.0 + one for one in range(2)}
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy")
    model.fit(x, y, class_weight=weights, verbose=0)


@triggers("missed-weight", says="none for 3: 3 of 9 rows", pastes=True)
def weights_by_number_for_labels_from_one():
    x, y = np.ones((9, 3), "float32"), np.array([1, 2, 3] * 3)
    balanced = np.array([0.5, 1.0, 2.0])
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(4, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(x, y, class_weight=dict(enumerate(balanced)), verbose=0)


@near("missed-weight")
def a_weight_for_each_class():
    x, y = np.ones((9, 3), "float32"), np.array([0, 1, 2] * 3)
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(3, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(x, y, class_weight={0: 1.0, 1: 2.0, 2: 3.0}, verbose=0)


@near("missed-weight")
def a_weight_for_the_rare_class_alone():
    x, y = np.ones((8, 3), "float32"), np.array([0, 0, 0, 1] * 2)
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy")
    model.fit(x, y, class_weight={1: 5.0}, verbose=0)


@near("missed-weight")
def a_weight_for_a_class_that_this_part_of_the_data_lacks():
    x, y = np.ones((8, 3), "float32"), np.eye(3)[[0, 1] * 4]
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(3, activation="softmax")])
    model.compile("sgd", "categorical_crossentropy")
    model.fit(x, y, class_weight={0: 1.0, 1: 2.0, 2: 3.0}, verbose=0)


# -- last-batch: tfx#2861 ---------------------------------------------------------------------------------------------


@triggers("last-batch", says="RMSE.update_state puts each batch's number", pastes=True)
def a_metric_that_keeps_the_last_batch():
    class RMSE(keras.metrics.Metric):
        def __init__(self, name="rmse", **kwargs):
            super().__init__(name=name, **kwargs)
            self.value = self.add_weight(name="value", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.value.assign(tf.sqrt(tf.reduce_mean(tf.square(tf.cast(y_true, tf.float32) - y_pred))))

        def result(self):
            return self.value

    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[RMSE()])
    model.fit(x, y, batch_size=4, verbose=0)


@triggers("last-batch", says="self.f1.assign", pastes=True)
def a_metric_that_computes_its_number_first():
    class F1(tf.keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="f1")
            self.f1 = self.add_weight(name="f1", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            hits = tf.reduce_sum(y_true * tf.round(y_pred))
            f1 = 2.0 * hits / (tf.reduce_sum(y_true) + tf.reduce_sum(tf.round(y_pred)) + 1e-7)
            self.f1.assign(f1)

        def result(self):
            return self.f1

    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy", metrics=[F1()])
    model.fit(x, y, batch_size=4, verbose=0)


@triggers("last-batch", says="is that of the last batch", pastes=True)
def a_metric_with_a_reset_of_its_own():
    class Bias(keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="bias")
            self.bias = self.add_weight(name="bias", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.bias.assign(keras.ops.mean(y_pred) - keras.ops.mean(y_true))

        def result(self):
            return self.bias

        def reset_state(self):
            self.bias.assign(0.0)

    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Bias()])
    model.fit(x, y, batch_size=4, verbose=0)


@near("last-batch")
def a_metric_that_adds():
    class Total(keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="total")
            self.total = self.add_weight(name="total", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.total.assign(self.total + keras.ops.sum(y_pred))

        def result(self):
            return self.total

    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Total()])
    model.fit(x, y, batch_size=4, verbose=0)


@near("last-batch")
def a_metric_with_a_number_of_rows():
    class Mean(keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="mean")
            self.total = self.add_weight(name="total", initializer="zeros")
            self.rows = self.add_weight(name="rows", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.total.assign_add(keras.ops.sum(y_pred))
            self.rows.assign_add(keras.ops.cast(keras.ops.shape(y_pred)[0], "float32"))

        def result(self):
            return self.total / self.rows

    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Mean()])
    model.fit(x, y, batch_size=4, verbose=0)


@near("last-batch")
def a_metric_of_the_largest():
    class Largest(keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="largest")
            self.most = self.add_weight(name="most", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            most = keras.ops.maximum(self.most, keras.ops.max(y_pred))
            self.most.assign(most)

        def result(self):
            return self.most

    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Largest()])
    model.fit(x, y, batch_size=4, verbose=0)


@triggers("last-batch", severity="error", says="divides the last batch alone by the count of all", pastes=True)
def a_metric_that_assigns_beside_a_count():
    class Error(keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="error")
            self.total = self.add_weight(name="total", initializer="zeros")
            self.count = self.add_weight(name="count", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            error = tf.numpy_function(lambda a, b: np.abs(a - b).max(), [y_true, y_pred], tf.float32)
            self.total.assign(tf.reshape(error, []))
            self.count.assign_add(1.0)

        def result(self):
            return self.total / self.count

    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Error()])
    model.fit(x, y, batch_size=4, verbose=0)


@triggers("last-batch", says="self.hits.assign), and adds up self.rows", pastes=True)
def a_metric_that_assigns_beside_a_number_of_rows():
    class Hits(keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="hits")
            self.hits = self.add_weight(name="hits", initializer="zeros")
            self.rows = self.add_weight(name="rows", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            same = tf.cast(tf.equal(tf.cast(y_true, tf.float32), tf.round(y_pred)), tf.float32)
            self.hits.assign(tf.reduce_sum(same))
            self.rows.assign_add(tf.cast(tf.shape(y_true)[0], tf.float32))

        def result(self):
            return tf.math.divide_no_nan(self.hits, self.rows)

    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Hits()])
    model.fit(x, y, batch_size=4, verbose=0)


@near("last-batch")
def a_metric_that_adds_by_hand_beside_a_count():
    class Mean(keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="mean")
            self.total = self.add_weight(name="total", initializer="zeros")
            self.count = self.add_weight(name="count", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.total.assign(self.total + keras.ops.mean(y_pred))
            self.count.assign_add(1.0)

        def result(self):
            return self.total / self.count

    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Mean()])
    model.fit(x, y, batch_size=4, verbose=0)


# -- batch-loss -------------------------------------------------------------------------------------------------------


def with_loss(loss, outputs=5):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(outputs)])
    model.compile("sgd", loss)
    model.fit(np.ones((16, 4), "float32"), np.ones((16, outputs), "float32"), batch_size=8, verbose=0)


@triggers("batch-loss", says="keras.ops.sqrt(keras.ops.sum(keras.ops.square(y_pred - y_true), axis=-1))", pastes=True)
def a_distance_over_the_rows():  # keras#10408
    def distance(y_true, y_pred):
        return keras.ops.sqrt(keras.ops.sum(keras.ops.square(y_pred - y_true), axis=0))

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(5)])
    model.compile("sgd", loss=distance)
    model.fit(np.ones((16, 4), "float32"), np.ones((16, 5), "float32"), verbose=0)


@triggers("batch-loss", says="tf.reduce_sum(squares, -1)", pastes=True)
def a_distance_over_the_rows_in_steps():
    def distance(labels, scores):
        squares = (labels - scores) ** 2
        added = tf.reduce_sum(squares, 0)
        return tf.sqrt(added + 1e-6)

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    model.compile("sgd", [distance])
    model.fit(np.ones((16, 4), "float32"), np.ones((16, 3), "float32"), verbose=0)


@triggers("batch-loss", pastes=True)
def a_method_that_takes_the_root_over_the_rows():
    class Losses:
        def distance(self, y_true, y_pred):
            return tf.sqrt(tf.reduce_sum(tf.abs(y_true - y_pred), axis=[0]))

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    model.compile("sgd", Losses().distance)
    model.fit(np.ones((16, 4), "float32"), np.ones((16, 3), "float32"), verbose=0)


@near("batch-loss")
def a_distance_of_each_row():
    def distance(y_true, y_pred):
        return tf.sqrt(tf.reduce_sum(tf.square(y_pred - y_true), axis=-1))

    with_loss(distance)


@near("batch-loss")
def a_root_mean_square_of_each_column():
    def columnwise(y_true, y_pred):
        return tf.sqrt(tf.reduce_mean(tf.square(y_pred - y_true), axis=0))

    with_loss(columnwise)


@near("batch-loss")
def a_share_of_what_varies():
    def explained(y_true, y_pred):
        rest = tf.reduce_sum(tf.square(y_pred - y_true), axis=0)
        whole = tf.reduce_sum(tf.square(y_true - 0.5), axis=0)
        return tf.reduce_mean(rest / whole)

    with_loss(explained)


@near("batch-loss")
def sums_over_the_rows_that_are_averaged():
    def distance(y_true, y_pred):
        return tf.reduce_mean(tf.sqrt(tf.reduce_sum(tf.square(y_pred - y_true), axis=0)))

    with_loss(distance)
