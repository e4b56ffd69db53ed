"""What counting lines costs: the same program recorded with and without lines=True, in turns, as ratios.

Run: python benchmarks/lines.py. Prints the median of paired ratios; a busy machine shows in the spread.
"""

import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

import pyfunc_debug as pfd

tf.get_logger().setLevel("ERROR")
REPEATS = 5
X = tf.constant([1.0, 2.0])


def one_line(v):
    return v


def hot_loop(v):
    total = 0
    for number in range(3000):
        total += number
    return v


def graph_of(body):
    @tf.function
    def graph(x):
        return tf.numpy_function(body, [x], tf.float32)

    graph(X)
    return graph


def traced():
    for _ in range(5):

        @tf.function
        def graph(x):
            for _ in range(20):
                if tf.reduce_sum(x) > 0.0:  # noqa: SIM108 - a branch of the graph is what is traced
                    x = x * 0.5
                else:
                    x = x + 1.0
            return x

        graph.get_concrete_function(X)


def fit():
    model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
    model.compile(loss="mse")
    model.fit(tf.zeros([64, 4]), tf.zeros([64, 1]), verbose=0)


def calls(body, count=100):
    graph = graph_of(body)

    def run():
        for _ in range(count):
            graph(X)

    return run


def measure(program, lines):
    with pfd.record(values="none", gil=False, lines=lines):
        start = time.perf_counter()
        program()
        return time.perf_counter() - start


def main():
    programs = {
        "trace a function with 20 branches, 5 times": traced,
        "100 calls of a body of one line": calls(one_line),
        "100 calls of a loop of 3,000 rounds": calls(hot_loop),
        "Keras: build and fit": fit,
    }
    print(f"{'program':44} {'ratio':>6} {'spread':>13}")
    for name, program in programs.items():
        measure(program, False), measure(program, True)
        ratios = []
        for _ in range(REPEATS):
            without = measure(program, False)
            ratios.append(measure(program, True) / without)
        ratios.sort()
        print(f"{name:44} {statistics.median(ratios):6.2f} {ratios[0]:6.2f}-{ratios[-1]:.2f}")


if __name__ == "__main__":
    main()
