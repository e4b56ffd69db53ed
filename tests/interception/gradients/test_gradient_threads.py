"""Many threads differentiate one tf.function at once."""

import pytest

from tests.interception.gradients.test_gradients import run

THREADS = """
import sys, threading
import tensorflow as tf
import pyfunc_debug as pfd
tf.config.threading.set_inter_op_parallelism_threads(int(sys.argv[1]))
pfd.exact_gradients()

@tf.function
def f(x):
    return tf.py_function(lambda x: x * x, [x], tf.float32)

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)

step(tf.constant(0.0))
wrong = []

def work(k):
    for i in range(250):
        x = float(k * 1000 + i)
        if float(step(tf.constant(x))) != 2 * x:
            wrong.append(x)

threads = [threading.Thread(target=work, args=(k,)) for k in range(16)]
for one in threads: one.start()
for one in threads: one.join()
from pyfunc_debug.interception.gradients.hub import live_tapes
print(len(wrong), live_tapes())
"""


@pytest.mark.parametrize("inter_op", ["2", pytest.param("16", marks=pytest.mark.more)])
def test_sixteen_threads_get_hundreds_of_gradients_each_all_their_own(inter_op):
    assert run("-c", THREADS, inter_op).split() == ["0", "0"]
