"""The program that the browser tests record: a tf.data pipeline, a step with a gradient, some failures."""

SETUP = """
%load_ext pyfunc_debug
import time
import numpy as np, tensorflow as tf

def decode(i):
    i = int(i)
    if i % 60 == 59:
        raise ValueError(f"no <b>JPEG</b>: images/cat-{i}.jpg")
    y, x = np.mgrid[0:32, 0:32] / 32
    image = np.stack([.4 + .4 * y, .6 + .25 * y, .9 - .05 * y], -1)
    image[(x - .3 - i % 5 / 10) ** 2 + (y - .25) ** 2 < .01] = (.98, .88, .5)
    image[y > .65 + .1 * np.sin(x * 9 + i)] = (.3, .45, .3)
    return (image * 255).astype(np.uint8)

def augment(x):
    x = x.astype(np.float32) / 255
    return np.clip(x * np.random.uniform(.8, 1.2), 0, 1).astype(np.float32)

def log_huber(y, x):
    error = y - x
    return tf.reduce_mean(tf.math.log1p(error ** 2))

def images(n):
    ds = tf.data.Dataset.range(n)
    ds = ds.map(lambda i: tf.numpy_function(decode, [i], tf.uint8), num_parallel_calls=3).ignore_errors()
    ds = ds.map(lambda x: tf.ensure_shape(
        tf.numpy_function(augment, [x], tf.float32), [32, 32, 3]), num_parallel_calls=3)
    return ds.batch(4).prefetch(2)

w = tf.Variable(.5)

@tf.function
def train_step(x, lr):
    with tf.GradientTape() as tape:
        loss = tf.py_function(log_huber, [w * x, x], tf.float32)
    w.assign_sub(lr * tape.gradient(loss, w))
    return loss
"""
TRACED = """%%pyfunc_trace --values full -o train.pfrec
for step, x in enumerate(images(STEPS * 4)):
    loss = train_step(x, .01 if step < STEPS / 2 else .02)
    time.sleep(PAUSE)
round(float(loss), 1) < 1"""


def traced(steps: int, pause: float) -> str:
    return TRACED.replace("STEPS", str(steps)).replace("PAUSE", str(pause))
