"""Programs made from templates, each line with the counts that the gutter must show, and what it shows of them.

    python -m tests.truth.gutter_programs --programs 100 --seed 7

A line ends in `#: t2 r3 g14`: run twice while graphs were traced, three times in bodies, fourteen times by graphs. `g-`
is a line that the graph runs but may not be told of (folded, fused, renamed): then "-" is right, and a number must be
the true one in brackets, `g-(3)`. What a line does not name must not be there.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import random
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

from tests import forked
from tests.truth.command import arguments

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

_MARK = re.compile(r"#:((?: [trg][\d()-]+)+)$")
HEAD = """\
import contextlib
import functools
import numpy as np
import tensorflow as tf

X = tf.constant(1.0)
"""


def _loop_over_range(r: random.Random) -> str:
    n, runs, at = r.randint(2, 9), r.randint(1, 4), r.randint(1, 8)
    hit = max(0, n - at) if at < n else 0
    return f"""
    @tf.function
    def f(x):
        for i in tf.range({n}):  #: t2 g{runs * (n + 1)}
            if i >= {at}:  #: t1 g{runs * n}
                x = tf.sin(x)  #: t1{f" g{runs * hit}" if hit else ""}
            else:
                x = tf.cos(x)  #: t1 g{runs * (n - hit)}
        return tf.exp(x)  #: t1 g{runs}

    for _ in range({runs}):
        f(X)
    """


def _loop_over_dataset(r: random.Random) -> str:
    n, runs = r.randint(2, 9), r.randint(1, 4)
    return f"""
    data = tf.data.Dataset.range({n})

    @tf.function
    def f(x):
        for e in data:  #: t2 g{runs * (n + 1)}
            x = x + tf.sin(tf.cast(e, tf.float32))  #: t1 g{runs * n}
            if x > 1e9:  #: t1 g{runs * n}
                x = tf.exp(x)  #: t1
        return tf.cosh(x)  #: t1 g{runs}

    for _ in range({runs}):
        f(X)
    """


def _while(r: random.Random) -> str:
    n, runs = r.randint(2, 8), r.randint(1, 4)
    return f"""
    @tf.function
    def f(x):
        i = tf.constant(0)  #: t1
        while i < {n}:  #: t2 g{runs * (n + 1)}
            x = tf.tanh(x)  #: t1 g{runs * n}
            i = i + 1  #: t1 g{runs * n}
        return x  #: t1

    for _ in range({runs}):
        f(X)
    """


def _unrolled(r: random.Random) -> str:
    n, runs = r.randint(2, 6), r.randint(1, 4)
    return f"""
    def helper(x):
        return tf.sinh(x)  #: t2 g{runs * 2}

    @tf.function
    def f(x):
        for _ in range({n}):  #: t{n + 1}
            x = tf.sin(x)  #: t{n} g{runs * n}
        return helper(x) - helper(tf.exp(x))  #: t1 g{runs}

    for _ in range({runs}):
        f(X)
    """


def _folded(r: random.Random) -> str:
    n, runs = r.randint(2, 6), r.randint(1, 4)
    return f"""
    @tf.function
    def f(x):
        scale = tf.constant(2.0) * 3.0  #: t1 g-({runs})
        for _ in range({n}):  #: t{n + 1}
            x = x + tf.constant(1.0) * 2.0  #: t{n} g-({runs * n})
        unused = tf.sin(x)  #: t1 g-({runs})
        return x * scale  #: t1 g-({runs})

    for _ in range({runs}):
        f(X)
    """


def _with(r: random.Random) -> str:
    runs = r.randint(1, 5)
    return f"""
    def body(x):
        with np.errstate(all="ignore"):  #: r{runs}
            y = x + 1  #: r{runs}
        with contextlib.nullcontext() as a, contextlib.nullcontext():  #: r{runs}
            with contextlib.suppress(ValueError):  #: r{runs}
                raise ValueError  #: r{runs}
        return y  #: r{runs}

    @tf.function
    def f(x):
        with tf.name_scope("scope"):  #: t1
            y = tf.numpy_function(body, [x], tf.float32)  #: t1 g-({runs})
        return tf.sin(y)  #: t1 g{runs}

    for _ in range({runs}):
        f(X)
    """


def _match(r: random.Random) -> str:
    runs = r.randint(3, 6)
    return f"""
    def body(x):
        match int(x) % 3:  #: r{runs}
            case 0:
                y = 1.0  #: r{len([k for k in range(runs) if k % 3 == 0])}
            case 1:
                y = 2.0  #: r{len([k for k in range(runs) if k % 3 == 1])}
            case _:
                y = 3.0  #: r{len([k for k in range(runs) if k % 3 == 2])}
        return np.float32(y)  #: r{runs}

    for i in range({runs}):
        tf.py_function(body, [tf.constant(float(i))], tf.float32)
    """


def _shared(r: random.Random) -> str:
    a, b = r.randint(1, 4), r.randint(1, 4)
    return f"""
    def both(x): return tf.sin(x)  #: t2 g{a + b}

    @tf.function
    def one(x):
        return both(x)  #: t1

    @tf.function
    def two(x):
        return tf.exp(both(x))  #: t1 g{b}

    for _ in range({a}):
        one(X)
    for _ in range({b}):
        two(X)
    """


def _bodies(r: random.Random) -> str:
    n, runs = r.randint(1, 5), r.randint(1, 5)
    return f"""
    def body(x):
        total = 0.0  #: r{runs}
        for i in range({n}):  #: r{runs * (n + 1)}
            if i % 2:  #: r{runs * n}
                total += 1  #:{f" r{runs * (n // 2)}" if n // 2 else " t-"}
            else:
                total += sum(k for k in range(i))  #: r{runs * (n - n // 2)}
        try:
            raise KeyError(total)  #: r{runs}
        except KeyError:  #: r{runs}
            pass  #: r{runs}
        return x  #: r{runs}

    @tf.function
    def f(x):
        return tf.py_function(body, [x], tf.float32)  #: t1 g-({runs})

    for _ in range({runs}):
        f(X)
    """


def _mapped(r: random.Random) -> str:
    n, parallel = r.randint(2, 9), r.randint(1, 4)
    return f"""
    def load(e):
        e = tf.cast(e, tf.float32)  #: t1 g{n}
        if e > 1.5:  #: t1 g{n}
            e = tf.sinh(e)  #: t1{f" g{n - 2}" if n > 2 else ""}
        else:
            e = tf.cosh(e)  #: t1 g2
        return e  #: t1

    list(tf.data.Dataset.range({n}).map(load, num_parallel_calls={parallel}))
    """


def _nested_functions(r: random.Random) -> str:
    n, runs = r.randint(1, 6), r.randint(1, 4)
    return f"""
    @tf.function
    def f(x):
        y = tf.tanh(x)  #: t1 g{runs * (n + 1)}
        return y * tf.cos(y)  #: t1 g{runs * (n + 1)}

    @tf.function
    def outer(x):
        for _ in tf.range({n}):  #: t2 g{runs * (n + 1)}
            x = f(x)  #: t1
        return f(x)  #: t1

    for _ in range({runs}):
        outer(X)
    """


def _break_and_continue(r: random.Random) -> str:
    n, runs, at = r.randint(4, 9), r.randint(1, 3), r.randint(1, 3)
    return f"""
    @tf.function
    def f(x):
        for i in tf.range({n}):  #: t2 g-({runs * (at + 1)})
            if i == {at}:  #: t1 g-({runs * (at + 1)})
                break  #: t1
            x = tf.sin(x)  #: t1 g{runs * at}
        for j in tf.range({n}):  #: t2 g-({runs * (n + 1)})
            if j % 2 == 0:  #: t1 g-({runs * n})
                continue  #: t1
            x = tf.cos(x)  #: t1 g{runs * (n // 2)}
        return tf.exp(x)  #: t1 g{runs}

    for _ in range({runs}):
        f(X)
    """


def _nested_loops(r: random.Random) -> str:
    a, b, runs = r.randint(2, 4), r.randint(2, 4), r.randint(1, 3)
    return f"""
    @tf.function
    def f(x):
        for _ in tf.range({a}):  #: t2 g{runs * (a + 1)}
            x = tf.sin(x)  #: t1 g{runs * a}
            for _ in tf.range({b}):  #: t2 g{runs * a * (b + 1)}
                x = tf.cos(x)  #: t1 g{runs * a * b}
        return x  #: t1

    for _ in range({runs}):
        f(X)
    """


def _training_step(r: random.Random) -> str:
    runs = r.randint(2, 5)
    return f"""
    class Trainer:
        def __init__(self):
            self.w = tf.Variable([[1.0], [2.0]])
            self.seen = tf.Variable(0)
            self.optimizer = tf.keras.optimizers.SGD(0.1)
            self.optimizer.build([self.w])

        def forward(self, x):
            h = tf.matmul(x, self.w)  #: t1 g-({runs})
            return tf.tanh(h)  #: t1 g{runs}

        @tf.function
        def step(self, x, y):
            with tf.GradientTape() as tape:  #: t1
                out = self.forward(x)  #: t1
                loss = tf.reduce_mean(tf.square(out - y))  #: t1 g{runs}
            grads = tape.gradient(loss, [self.w])  #: t1 g-({runs})
            self.optimizer.apply_gradients(zip(grads, [self.w]))  #: t1 g-({runs})
            self.seen.assign_add(1)  #: t1 g-({runs})
            return loss  #: t1

    trainer = Trainer()
    for _ in range({runs}):
        trainer.step(tf.ones([4, 2]), tf.ones([4, 1]))
    """


def _two_objects(r: random.Random) -> str:
    a, b = r.randint(1, 4), r.randint(1, 4)
    return f"""
    class Scaled(tf.Module):
        def __init__(self, k):
            super().__init__()
            self.k = k

        @tf.function
        def __call__(self, x):
            y = tf.sinh(x)  #: t2 g{a + b}
            return self.scale(y)  #: t2

        def scale(self, y):
            return tf.cosh(y) * self.k  #: t2 g{a + b}

    one, two = Scaled(2.0), Scaled(3.0)
    for _ in range({a}):
        one(X)
    for _ in range({b}):
        two(X)
    """


def _map_fn_and_scan(r: random.Random) -> str:
    n, runs = r.randint(2, 6), r.randint(1, 3)
    return f"""
    def each(e):
        s = tf.sin(e)  #: t1 g{runs * n}
        return tf.exp(s)  #: t1 g{runs * n}

    def carry(a, e):
        return tf.cosh(a) * e  #: t1 g{runs * n}

    @tf.function
    def f(x):
        y = tf.map_fn(each, x)  #: t1 g-({runs})
        z = tf.scan(carry, y, tf.constant(0.5))  #: t1 g-({runs})
        return tf.reduce_sum(z)  #: t1 g{runs}

    for _ in range({runs}):
        f(tf.ones([{n}]))
    """


def _cond_and_while_loop(r: random.Random) -> str:
    n, runs = r.randint(2, 6), r.randint(1, 3)
    return f"""
    @tf.function
    def f(x):
        def small():
            return tf.sin(x)  #: t1 g{runs}

        def large():
            return tf.cos(x)  #: t1

        def more(i, v):
            return tf.less(i, {n})  #: t1 g{runs * (n + 1)}

        def body(i, v):
            v = tf.sinh(v) * 0.1  #: t1 g{runs * n}
            return i + 1, v  #: t1 g{runs * n}

        y = tf.cond(x < 10.0, small, large)  #: t1 g{runs}
        i, y = tf.while_loop(more, body, [tf.constant(0), y])  #: t1 g-({runs})
        return tf.exp(y)  #: t1 g{runs}

    for _ in range({runs}):
        f(X)
    """


def _filtered_pipeline(r: random.Random) -> str:
    n = r.randint(4, 12)
    odd = n // 2
    return f"""
    def keep(e):
        return tf.equal(tf.math.floormod(e, 2), 1)  #: t1 g{n}

    def f(e):
        e = tf.cast(e, tf.float32)  #: t1 g{odd}
        return tf.sin(e)  #: t1 g{odd}

    def g(e):
        return tf.cosh(e)  #: t1 g{-(-odd // 2)}

    list(tf.data.Dataset.range({n}).filter(keep).map(f).batch(2).map(g))
    """


def _one_function_in_two_datasets(r: random.Random) -> str:
    a, b = r.randint(2, 6), r.randint(2, 6)
    return f"""
    def f(e):
        e = tf.cast(e, tf.float32)  #: t2 g{a + b}
        return tf.sinh(e)  #: t2 g{a + b}

    list(tf.data.Dataset.range({a}).map(f))
    list(tf.data.Dataset.range({b}).map(f, num_parallel_calls=2))
    """


def _several_of_one_name(r: random.Random) -> str:
    a, b, c = r.randint(1, 4), r.randint(1, 4), r.randint(1, 4)
    return f"""
    def make(k):
        @tf.function
        def f(x):
            for _ in tf.range(2):  #: t4 g{3 * (a + b)}
                x = tf.sin(x)  #: t2 g{2 * (a + b)}
            return x * k  #: t2 g{a + b}

        return f

    @tf.function
    def f(x):
        return tf.sin(x) * 2.0  #: t1 g{c}

    one, two = make(2.0), make(3.0)
    for _ in range({a}):
        one(X)
    for _ in range({b}):
        two(X)
    for _ in range({c}):
        f(X)
    """


def _comprehension_and_multi_line(r: random.Random) -> str:
    n, runs = r.randint(2, 5), r.randint(1, 4)
    return f"""
    @tf.function
    def f(x):
        parts = [tf.sin(x + float(k)) for k in range({n})]  #: t1 g{runs}
        y = tf.add_n(  #: t1 g{runs}
            parts,
            name="total",
        )
        y = (  #: t1 g{runs}
            tf.exp(y)
            * tf.cosh(
                y
            )
        )
        return tf.tan(y) if {n} > 1 else y  #: t1 g{runs}

    for _ in range({runs}):
        f(X)
    """


def _decorators(r: random.Random) -> str:
    a, b = r.randint(1, 4), r.randint(1, 4)
    return f"""
    def twice(function):
        @functools.wraps(function)
        def wrapper(x):
            x = tf.sinh(x)  #: t2 g{a + b}
            return function(tf.cosh(x))  #: t2 g{a + b}

        return wrapper

    @tf.function
    @twice
    def f(x):
        y = tf.exp(x)  #: t1 g{a}
        return y  #: t1

    @tf.function
    @twice
    def g(x):
        x = tf.tan(x)  #: t1 g{b}

        return tf.sin(x)  #: t1 g{b}

    for _ in range({a}):
        f(X)
    for _ in range({b}):
        g(X)
    """


def _keras_fit(r: random.Random) -> str:
    batches, epochs = r.randint(2, 4), r.randint(1, 2)
    return f"""
    class Layer(tf.keras.layers.Layer):
        def call(self, x):
            y = tf.sin(x)  #: t1 g{batches * epochs}
            return self.twice(y)  #: t1

        def twice(self, y):
            return tf.cosh(y)  #: t1 g{batches * epochs}

    def loss(truth, prediction):
        return tf.reduce_mean(tf.abs(truth - prediction))  #: t1 g{batches * epochs}

    model = tf.keras.Sequential([tf.keras.layers.Input([2]), Layer(), tf.keras.layers.Dense(1)])
    model.compile("sgd", loss=loss)
    model.fit(tf.zeros([{4 * batches}, 2]), tf.zeros([{4 * batches}, 1]), batch_size=4, epochs={epochs}, verbose=0)
    """


def _early_return_and_raise(r: random.Random) -> str:
    runs = r.randint(2, 5)
    return f"""
    def check(x):
        if x > 100.0:  #: t1 g{runs}
            tf.print("large", x)  #: t1
        return tf.sin(x)  #: t1 g{runs}

    @tf.function
    def f(x):
        x = check(x)  #: t1
        if x < -5.0:  #: t1 g{runs}
            return tf.zeros([])  #: t1
        elif x > 5.0:  #: t1 g{runs}
            return tf.exp(x)  #: t1
        else:
            return tf.cosh(x)  #: t1 g{runs}

    for k in range({runs}):
        f(tf.constant(float(k)))
    """


def _bodies_shared(r: random.Random) -> str:
    a, b = r.randint(1, 4), r.randint(1, 4)
    return f"""
    def tidy(v):
        return v + 1.0  #: r{a + b}

    def body(v):
        w = tidy(v)  #: r{a + b}
        while w > 100.0:  #: r{a + b}
            w = w / 2.0  #: t-
        return np.float32(w)  #: r{a + b}

    @tf.function
    def one(x):
        return tf.numpy_function(body, [x], tf.float32)  #: t1 g-({a})

    @tf.function
    def two(x):
        return tf.sin(tf.numpy_function(body, [x], tf.float32))  #: t1 g{b}

    for _ in range({a}):
        one(X)
    for _ in range({b}):
        two(X)
    """


TEMPLATES: tuple[Callable[[random.Random], str], ...] = (
    _loop_over_range, _loop_over_dataset, _while, _unrolled, _folded, _with, _match, _shared, _bodies, _mapped,
    _nested_functions, _break_and_continue, _nested_loops, _training_step, _two_objects, _map_fn_and_scan,
    _cond_and_while_loop, _filtered_pipeline, _one_function_in_two_datasets, _several_of_one_name,
    _comprehension_and_multi_line, _decorators, _keras_fit, _early_return_and_raise, _bodies_shared,
)  # fmt: skip


def make(r: random.Random, number: int) -> str:
    """The text of a program: one to three templates, each in a function of its own, so that names repeat."""
    parts = [HEAD]
    picked = [TEMPLATES[number % len(TEMPLATES)], *r.choices(TEMPLATES, k=r.randint(0, 2))]
    for index, template in enumerate(picked):
        parts.append(f"\n\ndef part{index}():" + textwrap.indent(textwrap.dedent(template(r)), "    ").rstrip())
    parts.append("\n\n" + "\n".join(f"part{index}()" for index in range(len(picked))))
    return "\n".join(parts) + "\n"


def planted(text: str) -> dict[int, str]:
    """The counts that the lines name, by line."""
    found = {number: _MARK.search(line) for number, line in enumerate(text.splitlines(), 1)}
    return {number: match[1].strip() for number, match in found.items() if match}


def shown(lines: list[object]) -> dict[int, dict[str, str]]:
    """The same as it was counted: t, r and g, by line; "+" is at least."""
    found: dict[int, dict[str, str]] = {}
    for one in lines:
        mine = found.setdefault(one.line, {})
        more = "+" if one.capped else ""
        if one.kind == "line":
            if one.traced:
                mine["t"] = f"{one.traced}{more}"
            if one.ran:
                mine["r"] = f"{one.ran}{more}"
        elif one.kind == "graph" and one.ran is not None:
            mine["g"] = f"{one.ran}{more}"
    return found


def wrong(wanted: str, got: dict[str, str]) -> bool:
    """Whether a line shows something else than it must."""
    given = dict(re.findall(r"([trg])(\d+|-(?:\(\d+\))?)", wanted))
    for kind in "trg":
        want, have = given.get(kind), got.get(kind)
        if want is not None and want.startswith("-"):
            if have is not None and have != want[2:-1]:
                return True
        elif want != have:
            return True
    return False


def false(wanted: str, got: dict[str, str]) -> bool:
    """Whether a line shows a number that is not true; "-" in its place is only less than could be said."""
    given = dict(re.findall(r"([trg])(\d+|-(?:\(\d+\))?)", wanted))
    return any(have != given.get(kind, "").removeprefix("-").strip("()") for kind, have in got.items())


def judge(text: str, lines: list[object]) -> tuple[int, list[str]]:
    """Number of marked lines, and what is wrong with which."""
    got = shown(lines)
    source = text.splitlines()
    marks = planted(text)
    bad = [
        f"{'FALSE ' * false(wanted, got.get(number, {}))}{number}: {source[number - 1].strip()}  "
        f"shows {got.get(number, {})}"
        for number, wanted in marks.items()
        if wrong(wanted, got.get(number, {}))
    ]
    return len(marks), bad


def run_here(path: Path, folder: Path) -> list[object]:
    """Counts of a program's lines, recorded in this process."""
    import pyfunc_debug as pfd

    gc.collect()  # graphs of the program before, with functions of the same names, would be candidates too
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    with pfd.record(folder / f"{path.stem}.pfrec", lines="graph") as recording, contextlib.redirect_stdout(None):
        spec.loader.exec_module(module)
    return list(recording.reader.lines(str(path)))


def run_shell(path: Path, folder: Path) -> list[object]:
    """The same with `pyfunc-debug record --lines --graph-lines`."""
    import pyfunc_debug as pfd

    file = folder / f"{path.stem}.cli.pfrec"
    done = forked.run("-m", "pyfunc_debug", "record", "-o", file, "--lines", "--graph-lines", path)
    assert done.returncode == 0, done.stderr
    return list(pfd.open(file).reader.lines(str(path)))


def programs(seed: int, count: int) -> Iterator[str]:
    """Texts of programs."""
    r = random.Random(seed)
    for number in range(count):
        yield make(r, number)


def main() -> int:
    """The command."""
    given = arguments(__doc__, shell=3)  # of these, the first 3 run by the shell command too
    total = 0
    bad: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        for number, text in enumerate(programs(given.seed, given.programs)):
            path = Path(name) / f"program{number}.py"
            path.write_text(text)
            for run in (run_here, run_shell) if number < given.shell else (run_here,):
                lines, mistakes = judge(text, run(path, Path(name)))
                total += lines
                bad += [f"program {number} ({run.__name__}) {one}" for one in mistakes]
    print("\n".join(bad))
    untrue = sum(" FALSE " in one for one in bad)
    print(f"{given.programs} programs: {total - len(bad)} of {total} lines right, {untrue} with a false number")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
