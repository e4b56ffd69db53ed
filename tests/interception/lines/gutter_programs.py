"""Programs with planted counts: `#: t2 r3` says that a line runs twice at trace and three times at run (- is never)."""

# ruff: noqa: SIM108 - branches are what is counted here

from __future__ import annotations

import functools
import re
import threading

import tensorflow as tf

X = tf.constant([1.0, 2.0])
PLANTED = re.compile(r"#: t(\d+|-) r(\d+|-)$")


def planted(text):
    """(line number -> (traced, ran)) of the annotations in a source text."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = PLANTED.search(line)
        if match:
            found[number] = tuple(None if count == "-" else int(count) for count in match.groups())
    return found


def node(body, x):
    return tf.ensure_shape(tf.py_function(body, [x], tf.float32), x.shape)


def if_else():
    @tf.function
    def f(x):
        y = x + 1.0  #: t1 r-
        if tf.reduce_sum(y) > 0.0:  #: t1 r-
            y = y * 2.0  #: t1 r-
        else:
            y = y * 3.0  #: t1 r-
        return y  #: t1 r-

    f(X)
    f(X)


def python_if():
    @tf.function
    def f(x, flag):
        if flag:  #: t2 r-
            x = x + 1.0  #: t1 r-
        else:
            x = x - 1.0  #: t1 r-
        return x  #: t2 r-

    f(X, True)
    f(X, False)
    f(X, True)


def tensor_for():
    @tf.function
    def f(x):
        for i in tf.range(5):
            x = x + tf.cast(i, tf.float32)  #: t1 r-
        return x  #: t1 r-

    f(X)


def tensor_while():
    @tf.function
    def f(x):
        while tf.reduce_sum(x) < 100.0:
            x = x * 2.0  #: t1 r-
        return x  #: t1 r-

    f(X)


def python_for():
    @tf.function
    def f(x):
        for k in range(4):  #: t5 r-
            x = x + float(k)  #: t4 r-
        return x  #: t1 r-

    f(X)


def python_while():
    @tf.function
    def f(x):
        k = 0  #: t1 r-
        while k < 3:  #: t4 r-
            k += 1  #: t3 r-
        return x  #: t1 r-

    f(X)


def python_break():
    @tf.function
    def f(x):
        for k in range(10):  #: t3 r-
            if k == 2:  #: t3 r-
                break  #: t1 r-
            x = x + 1.0  #: t2 r-
        return x  #: t1 r-

    f(X)


def python_continue():
    @tf.function
    def f(x):
        for k in range(4):  #: t5 r-
            if k % 2:  #: t4 r-
                continue  #: t2 r-
            x = x + 1.0  #: t2 r-
        return x  #: t1 r-

    f(X)


def early_return():
    @tf.function
    def f(x, flag):
        if flag:  #: t2 r-
            return x  #: t1 r-
        x = x + 1.0  #: t1 r-
        return x  #: t1 r-

    f(X, True)
    f(X, False)


def return_in_loop():
    @tf.function
    def f(x):
        for k in range(10):
            x = x + 1.0  #: t3 r-
            if k == 2:  #: t3 r-
                return x  #: t1 r-
        return x

    f(X)


def elif_and():
    @tf.function
    def f(x, k):
        if k == 1 and x is not None:  #: t3 r-
            x = x + 1.0  #: t1 r-
        elif k == 2:  #: t2 r-
            x = x + 2.0  #: t1 r-
        else:
            x = x + 3.0  #: t1 r-
        return x  #: t3 r-

    f(X, 1)
    f(X, 2)
    f(X, 3)


def comprehension():
    @tf.function
    def f(x):
        parts = [x * float(k) for k in range(3)]  #: t1 r-
        more = [
            x + float(k)
            for k in range(3)
        ]  # fmt: skip
        return tf.add_n(parts + more)  #: t1 r-

    f(X)


def multi_line_call():
    @tf.function
    def f(x):
        x = tf.add(  #: t1 r-
            x,
            1.0,
        )
        return x  #: t1 r-

    f(X)


def nested_def():
    @tf.function
    def f(x):
        def inner(y):
            z = y + 1.0  #: t3 r-
            return z  #: t3 r-

        for _ in range(3):  #: t4 r-
            x = inner(x)  #: t3 r-
        return x  #: t1 r-

    f(X)


def helper(x):
    y = x + 1.0  #: t2 r-
    return y  #: t2 r-


@tf.autograph.experimental.do_not_convert
def unconverted(x):
    y = x * 2.0  #: t2 r-
    return y  #: t2 r-


def helpers():
    @tf.function
    def f(x):
        x = helper(x)  #: t1 r-
        x = helper(x)  #: t1 r-
        x = unconverted(unconverted(x))  #: t1 r-
        return x  #: t1 r-

    f(X)


def without_autograph():
    @tf.function(autograph=False)
    def f(x):
        for k in range(3):  #: t4 r-
            x = x + float(k)  #: t3 r-
        return x  #: t1 r-

    f(X)


def decorate(function):
    @functools.wraps(function)
    def wrapper(x):
        x = x + 1.0  #: t1 r-
        return function(x)  #: t1 r-

    return wrapper


def decorated():
    @tf.function
    @decorate
    def f(x):
        y = x * 2.0  #: t1 r-
        return y  #: t1 r-

    f(X)


class Model(tf.Module):
    @tf.function
    def run(self, x):
        x = x + 1.0  #: t2 r-
        return x  #: t2 r-


def method():
    model = Model()
    model.run(X)
    model.run(tf.zeros([3]))
    model.run(X)


def recursion():
    def down(x, k):
        if k == 0:  #: t4 r-
            return x  #: t1 r-
        return down(x + 1.0, k - 1)  #: t3 r-

    tf.function(lambda x: down(x, 3))(X)


def bodies():
    def body(v):
        v = v + 1.0  #: t- r5
        if v[0] > 3.0:  #: t- r5
            v = v * 1.0  #: t- r3
        else:
            v = v * 2.0  #: t- r2
        for _ in range(2):  #: t- r15
            v = v + 0.0  #: t- r10
        return v  #: t- r5

    @tf.function
    def f(x):
        return node(body, x)  #: t1 r-

    for start in (0.0, 1.0, 3.0, 4.0, 5.0):
        f(tf.constant([start, 0.0]))


def body_in_a_loop():
    def body(v):
        w = v + 1.0  #: t- r6
        return w  #: t- r6

    @tf.function
    def f(x):
        for _ in tf.range(3):
            x = node(body, x)  #: t1 r-
        return x  #: t1 r-

    f(X)
    f(X)


def body_defined_inside():
    @tf.function
    def f(x):
        def body(v):
            w = v + 1.0  #: t- r3
            return w  #: t- r3

        return node(body, x)  #: t1 r-

    for _ in range(3):
        f(X)


def map_in_parallel():
    def body(v):
        w = v + 1  #: t- r40
        for _ in range(3):  #: t- r160
            w = w + 0  #: t- r120
        return w  #: t- r40

    def mapped(v):
        return tf.numpy_function(body, [v], tf.int64)  #: t1 r-

    list(tf.data.Dataset.range(40).map(mapped, num_parallel_calls=4, deterministic=False))


def body_also_called_outside():
    def body(v):
        w = v + 1.0  #: t- r20
        return w  #: t- r20

    done = threading.Event()

    def elsewhere():
        while not done.is_set():
            body(X)

    @tf.function
    def f(x):
        return node(body, x)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    for _ in range(20):
        f(X)
    done.set()
    thread.join()


def threads():
    def body(v):
        w = v + 1.0  #: t- r80
        return w  #: t- r80

    @tf.function
    def f(x):
        y = node(body, x)  #: t1 r-
        return y  #: t1 r-

    f(X)

    def work():
        for _ in range(20):
            f(X)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers[1:]:
        worker.start()
    for _ in range(19):
        f(X)
    for worker in workers[1:]:
        worker.join()


class Layer(tf.keras.layers.Layer):
    def call(self, x):
        x = x * 2.0
        return self.extra(x)

    def extra(self, x):
        y = x + 1.0
        return y


def eager_body():
    def body(v):
        w = v + 1.0  #: t- r2
        return w  #: t- r2

    tf.py_function(body, [X], tf.float32)
    tf.numpy_function(body, [X], tf.float32)


def side_effects():
    seen = []

    @tf.function
    def f(x):
        seen.append(1)  #: t2 r-
        return x  #: t2 r-

    f(X)
    f(X)
    f(tf.zeros([3]))


PROGRAMS = [
    if_else, python_if, tensor_for, tensor_while, python_for, python_while, python_break, python_continue, early_return,
    return_in_loop, elif_and, comprehension, multi_line_call, nested_def, helpers, without_autograph, decorated, method,
    recursion, bodies, body_in_a_loop, body_defined_inside, map_in_parallel, body_also_called_outside, threads,
    eager_body, side_effects,
]  # fmt: skip


def wrong_lines():
    """Runs all programs; (line, planted, counted) where they differ."""
    import pathlib

    import pyfunc_debug as pfd

    with pfd.record(gil=False, lines=True) as recording:
        for program in PROGRAMS:
            program()
    assert not recording.meta["troubles"], recording.meta["troubles"]
    counts = {line.line: (line.traced, line.ran) for line in recording.reader.lines(__file__) if line.kind == "line"}
    wanted = planted(pathlib.Path(__file__).read_text())
    wrong = [(line, both, counts.get(line, (None, None))) for line, both in wanted.items()]
    return len(wanted), [one for one in wrong if one[1] != one[2]], recording


if __name__ == "__main__":
    total, wrong, _ = wrong_lines()
    print(f"{total} planted lines, {len(wrong)} wrong")
    for one in wrong:
        print("  ", *one)
    raise SystemExit(bool(wrong))
