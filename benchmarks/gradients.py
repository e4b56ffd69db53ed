"""What exact gradients cost: the same loop with and without, taken in turns, with an A/A pair to show the noise.

    python -m benchmarks.gradients [ROUNDS]

Prints medians of the ratio to stock TensorFlow, of wall and of CPU time: on a machine that others use
as well only the second means something. Stock nodes are traced before anything is switched on; nodes with call
ids are traced while on. Each round measures every variant once, in a new order, so that drift hits all alike.
"""

import os
import random
import statistics
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf

import pyfunc_debug as pfd

_WORK = 45_000  # about 1 ms of Python


def body(x):
    return x * x


def slow(x):
    sum(range(_WORK))
    return x * x


def make(function):
    @tf.function
    def forward(x):
        return tf.ensure_shape(tf.py_function(function, [x], tf.float32), [])

    @tf.function
    def both(x, steps):
        total = tf.zeros([])
        for _ in tf.range(steps):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.ensure_shape(tf.py_function(function, [x], tf.float32), [])
            total += tf.ensure_shape(tape.gradient(y, x), [])
        return total

    @tf.function
    def only_forward(x, steps):
        total = tf.zeros([])
        for _ in tf.range(steps):
            total += tf.ensure_shape(tf.py_function(function, [x], tf.float32), [])
        return total

    return both, only_forward


def seconds(function, steps):
    start = time.perf_counter(), time.process_time()
    function(tf.constant(3.0), tf.constant(steps))
    return (time.perf_counter() - start[0]) / steps, (time.process_time() - start[1]) / steps


def compare(name, stock, again, ours, steps, rounds, target, switched):
    """Interleaved medians of ours/stock and of again/stock (the noise)."""
    ratios, noise, base = [], [], []
    for function in (stock, again, ours):
        seconds(function, 5)
    for _ in range(rounds):
        found = {}
        variants = [("stock", stock), ("again", again), ("ours", ours)]
        random.shuffle(variants)
        for variant, function in variants:
            if variant == "ours" and switched is not None:
                switched.on()
            found[variant] = seconds(function, steps)
            if switched is not None:
                switched.off()
        base.append(found["stock"])
        ratios.append([ours / stock for ours, stock in zip(found["ours"], found["stock"])])
        noise.append([again / stock for again, stock in zip(found["again"], found["stock"])])
    for place, what in enumerate(("wall", "cpu")):
        mine = [ratio[place] for ratio in ratios]
        low, _, high = statistics.quantiles(mine, n=4)
        null = statistics.median(ratio[place] for ratio in noise)
        stock_us = statistics.median(one[place] for one in base) * 1e6
        print(
            f"{name:42s} {what:4s} {statistics.median(mine):.3f} [{low:.3f}, {high:.3f}]  A/A {null:.3f}  "
            f"target {target}  stock {stock_us:,.0f} us",
            flush=True,
        )


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    stock, stock_again, stock_slow = make(body), make(body), make(slow)
    slow_again = make(slow)
    for both, only in (stock, stock_again, stock_slow, slow_again):
        seconds(both, 2)
        seconds(only, 2)
    switch = pfd.exact_gradients()
    ours, ours_slow = make(body), make(slow)
    for both, only in (ours, ours_slow):
        seconds(both, 2)
        seconds(only, 2)
    switch.off()
    print(f"TensorFlow {tf.__version__}, {rounds} rounds, median ratio to stock [quartiles]")
    compare("forward and backward, tight loop, exact", stock[0], stock_again[0], ours[0], 300, rounds, 1.35, switch)
    slow_ones = stock_slow[0], slow_again[0], ours_slow[0]
    compare("forward and backward, 1 ms body, exact", *slow_ones, 60, rounds, 1.02, switch)
    compare("forward without a tape, tight loop, exact", stock[1], stock_again[1], ours[1], 1000, rounds, 1.08, switch)


if __name__ == "__main__":
    main()
