"""Lines that asked a symbolic tensor for its value, in functions whose failure was caught."""

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, tried, triggers


@triggers("trace-failed", says="return np.sort(x.numpy()) * 2")
def a_line_that_sorts_values():
    @tf.function
    def ordered(x):
        best = np.sort(x.numpy()) * 2
        return tf.reduce_sum(best)

    tried(ordered, tf.constant([2.0, 1.0]))


@triggers("trace-failed", says="into a function of its own")
def values_in_a_comprehension():
    @tf.function
    def total(*parts):
        arrays = [one.numpy() for one in parts]
        return sum(arrays)

    tried(total, tf.constant(1.0))


@triggers("trace-failed", says="into a function of its own")
def values_that_are_added():
    @tf.function
    def total(x):
        found = 1.0
        found += x.numpy()
        return found

    tried(total, tf.constant(1.0))


@triggers("trace-failed", says="into a function of its own")
def values_that_numpy_goes_on_with():
    def load(x):
        found = x.numpy() + 1
        found[0] = 0
        return found.astype("float32")

    tried(tf.data.Dataset.from_tensor_slices([[1, 2]]).map, load)


@triggers("trace-failed", says="into a function of its own")
def values_in_a_loop_and_a_condition():
    @tf.function
    def count(x):
        for one in range(int(x.numpy())):
            x = x + one
        return x

    @tf.function
    def sign(x):
        if x.numpy() > 0:
            return x
        return -x

    tried(count, tf.constant(1.0))
    tried(sign, tf.constant(1.0))


@triggers("trace-failed", says="into a function of its own")
def values_of_two_names():
    @tf.function
    def parts(x):
        low, high = x.numpy().min(), x.numpy().max()
        return high - low

    tried(parts, tf.constant([1.0, 2.0]))


# -- stale-closure: the length of a list -------------------------------------------------------------------------------


@triggers("stale-closure", says="acc=acc", pastes=True)
def a_list_that_grows_and_is_counted():
    acc = []

    @tf.function
    def step(x):
        for _ in range(len(acc)):
            x = x + 1.0
        return x

    for k in range(3):
        acc.append(float(k))
        step(tf.constant(1.0))


@near("stale-closure")
def a_list_that_is_only_counted():
    acc = [1.0, 2.0]

    @tf.function
    def step(x):
        for _ in range(len(acc)):
            x = x + 1.0
        return x

    for _ in range(3):
        acc[0] += 1.0
        step(tf.constant(1.0))


@triggers("trace-only", says="self.rows[self.ptr].assign(x)")
def a_buffer_of_tensor_arrays_that_a_traced_method_writes():
    class Buffer(tf.Module):
        def __init__(self, size):
            super().__init__()
            self.rows = tf.TensorArray(tf.float32, size=size, clear_after_read=False)
            self.ptr, self.max_size = 0, size

        @tf.function
        def store(self, x):
            self.rows = self.rows.write(self.ptr, x)
            self.ptr = (self.ptr + 1) % self.max_size

    buffer = Buffer(4)
    for i in range(3):
        buffer.store(tf.constant(float(i)))


# -- identity-test -----------------------------------------------------------------------------------------------------


@triggers("identity-test", pastes=True, says="`zero is True` is always False")
def what_another_function_gives_compared_by_is():
    @tf.function
    def is_zero(value):
        return value == 0

    @tf.function
    def answer(value):
        zero = is_zero(value)
        if zero is True:
            return tf.constant("zero")
        return tf.constant("other")

    answer(tf.constant(0))


@triggers("identity-test", pastes=True, says="`tf.reduce_any(x > 3) is False` is always False")
def an_op_compared_by_is():
    @tf.function
    def clip(x):
        if tf.reduce_any(x > 3) is False:
            return x
        return tf.minimum(x, 3.0)

    clip(tf.constant([1.0, 2.0]))


@triggers("identity-test", pastes=True, says="`flag is not True` is always True")
def an_argument_compared_by_is():
    @tf.function
    def keep(x, flag):
        if flag is not True:
            x = x * 0.0
        return x

    keep(tf.constant(1.0), tf.constant(True))


@near("identity-test")
def a_flag_of_pythons():
    @tf.function
    def step(x, training=False):
        if training is True:
            x = x * 2.0
        return x

    step(tf.constant(1.0), training=True)
    step(tf.constant(1.0))


@near("identity-test")
def an_argument_that_may_be_none():
    @tf.function
    def masked(x, mask=None):
        if mask is not None:
            x = x * mask
        return x

    masked(tf.constant([1.0]), tf.constant([0.0]))


@near("identity-test")
def a_setting_from_outside():
    settings = {"clip": True}

    @tf.function
    def step(x):
        clip = settings["clip"]
        if clip is True:
            x = tf.minimum(x, 1.0)
        return x

    step(tf.constant(3.0))


# -- function-in-loop: vectorized_map ----------------------------------------------------------------------------------


@triggers("function-in-loop", pastes=True, says="tf.vectorized_map traced its function 12 times, once in each call")
def a_vectorized_map_for_each_batch():
    def double(pair):
        x, y = pair
        return x * y

    out = []
    for start in range(12):
        x = tf.ones((4, 3)) * start
        out.append(tf.vectorized_map(double, [x, x + 1.0]))
    assert float(out[2][0, 0]) == 6.0


@near("function-in-loop")
def a_vectorized_map_in_a_function():
    @tf.function
    def mapped(x):
        return tf.vectorized_map(lambda row: row * 2, x)

    for start in range(12):
        mapped(tf.ones((4, 3)) * start)


@near("function-in-loop")
def a_vectorized_map_now_and_then():
    for start in range(4):
        tf.vectorized_map(lambda row: row * 2, tf.ones((4, 3)) * start)
