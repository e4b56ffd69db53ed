"""Random programs, stock and in every mode of ours: results, texts, printed stacks, names, numbers, randomness, memory.

    python -m tests.interception.random_programs [--count 200] [--modes 3] [--seed N]

What is not compared (docs/limits.md): the numbers at the ends of functions' names, our one frame in a body's stack, how
a wrong number of values is said, and what we say on stderr. Each program runs in a fork of a process that has imported
TensorFlow and not used it: once stock, and once in each of `--modes` of our modes, which take turns. What differs is
printed with the seed that makes the same program again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import re
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

from tests.interception import no_traces

PIECES = """
say(tf.{kind}(lambda x: {expr}, [tf.constant({a})], tf.float32))

f{n} = tf.function(lambda x: tf.{kind}(lambda x: {expr}, [x], tf.float32), autograph=False)
say(f{n}(tf.constant({a})), f{n}(tf.constant({b})))
names(f{n}, tf.TensorSpec([]))

@tf.function
def g{n}(x):
    say('traced', x.shape)
    return tf.{kind}(lambda x: {expr}, [x], tf.float32)
for size in ({i}, {j}):
    say(g{n}(tf.fill([size], {a})))

def body{n}(v):
    return v * v * {a}
h{n} = tf.function(lambda x: tf.py_function(body{n}, [x], tf.float32))
with tf.GradientTape() as tape:
    x = tf.Variable({b}, name='v{n}')
    y = h{n}(x)
say(tape.gradient(y, x), x.name)

ds = tf.data.Dataset.range({i})
ds = ds.map(lambda x: tf.{kind}(lambda v: v * {j}, [x], tf.int64), num_parallel_calls={j})
say(*[one.numpy() for one in ds])

ds = tf.data.Dataset.from_generator(lambda: iter(range({i})), output_signature=tf.TensorSpec((), tf.int32))
say(*[one.numpy() for one in ds.batch({j})])

def step{n}(i, v):
    return i + 1, tf.{kind}(lambda u: u + 1, [v], tf.float32)
w{n} = tf.function(lambda x: tf.while_loop(lambda i, v: i < {i}, step{n}, (0, x)), autograph=False)
say(w{n}(tf.constant({a}))[1])

say(tf.map_fn(lambda x: tf.{kind}(lambda x: {expr}, [x], tf.float32), tf.fill([{i}], {a})))

def bad{n}(x):
    raise {error}('no {n}')
attempt(tf.function(lambda x: tf.{kind}(bad{n}, [x], tf.float32)), {a})

def worse{n}(x):
    raise {error}('eager {n}')
attempt(lambda: tf.{kind}(worse{n}, [1.0], tf.float32))

attempt(tf.function(lambda x: tf.numpy_function(lambda v: np.float64(v), [x], tf.float32)), {a})

attempt(tf.function(lambda x: tf.{kind}(lambda v: [v], [x], [tf.float32] * 2)), {a})

attempt(tf.function(lambda x: tf.{kind}(lambda v: None, [x], tf.float32)), {a})

def over{n}(x):
    raise StopIteration
attempt(tf.function(lambda x: tf.{kind}(over{n}, [x], tf.float32)), {a})

def never{n}(x):
    return tf.{kind}(lambda v: v, [x], tf.float32) + 'text'
attempt(tf.function(never{n}), {a})

tf.random.set_seed({i})
def chance{n}(v):
    return v + np.float32(np.random.rand())
r{n} = tf.function(lambda x: tf.{kind}(chance{n}, [x + tf.random.uniform([])], tf.float32))
say(r{n}(tf.constant({a})), random.random(), tf.random.uniform([]))

def loud{n}(x):
    print('body {n}', x)
    return x
say(tf.function(lambda x: tf.{kind}(loud{n}, [x], tf.float32))({a}))

def sorry{n}(x):
    warnings.warn('body {n}')
    return x
say(tf.{kind}(sorry{n}, [{a}], tf.float32))

def where{n}(x):
    say(*[one.name for one in traceback.extract_stack() if one.name != '__call__'])  # we have one more of these
    return x
say(tf.function(lambda x: tf.{kind}(where{n}, [x], tf.float32))({a}))

m = tf.Module()
m.f = tf.function(
    lambda x: tf.{kind}(lambda v: v + {j}, [x], tf.float32), input_signature=[tf.TensorSpec([], tf.float32)]
)
tf.saved_model.save(m, 'saved{n}')
back{n} = tf.saved_model.load('saved{n}')
ops = [op for f in back{n}.f.concrete_functions for op in f.graph.get_operations()]
say([op.get_attr('token') for op in ops if 'PyFunc' in op.type])
attempt(back{n}.f, tf.constant({a}))
del m, ops
gc.collect()
attempt(back{n}.f, tf.constant({a}))

part{n} = functools.partial(lambda k, v: v * k, {a})
say(tf.{kind}(part{n}, [tf.constant({b})], tf.float32))
say(tf.function(lambda: tf.{kind}(part{n}, [tf.constant({b})], tf.float32))())

with tf.Graph().as_default() as graph:
    y = tf.compat.v1.py_func(lambda v: v + {j}, [tf.constant({a})], tf.float32, stateful={bool})
    say([op.name for op in graph.get_operations()])
    with tf.compat.v1.Session() as session:
        say(session.run(y))
""".strip().split("\n\n")


def program(seed: int) -> str:
    """A program's text."""
    rng = random.Random(seed)
    lines = []
    for number in range(rng.randint(3, 7)):
        kind = rng.choice(["py_function", "numpy_function"])
        lines.append(
            rng.choice(PIECES).format(
                kind=kind, n=number, a=rng.choice(["1.0", "2.5", "-3.0"]), b=rng.choice(["4.0", "0.5"]),
                i=rng.randint(2, 5), j=rng.randint(1, 3), expr=rng.choice(["x + 1", "x * 2", "x - x"]),
                error=rng.choice(["ValueError", "KeyError", "TypeError", "ZeroDivisionError", "MemoryError"]),
                bool=rng.choice(["True", "False"]),
            )
        )  # fmt: skip
    return "\n".join(lines)


def run(text: str, mode: str, folder: str) -> dict[str, Any]:
    """Runs a program in this process; what could show a difference."""
    import functools
    import gc

    import numpy as np
    import tensorflow as tf

    said: list[str] = []

    def say(*values: Any) -> None:
        said.append(" ".join(str(getattr(one, "numpy", lambda one=one: one)()) for one in values))

    def attempt(function: Any, *args: Any) -> None:
        try:
            say(function(*args))
        except Exception as error:
            said.append(f"{type(error).__mro__} {error}")
            said.append(traceback.format_exc())

    def names(function: Any, *specs: Any) -> None:
        concrete = function.get_concrete_function(*specs)
        said.append(f"{concrete.name} {[(op.name, op.type) for op in concrete.graph.get_operations()]}")

    file = Path(folder) / "program.py"
    file.write_text(text)
    os.chdir(folder)
    random.seed(1)
    np.random.seed(1)
    scope = {
        "tf": tf, "np": np, "random": random, "functools": functools, "gc": gc, "warnings": warnings,
        "traceback": traceback, "say": say, "attempt": attempt, "names": names, "__name__": "__main__",
    }  # fmt: skip

    def main() -> None:
        try:
            exec(compile(text, str(file), "exec"), scope)
        except Exception as error:
            said.append("".join(traceback.format_exception(type(error), error, error.__traceback__.tb_next)))

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        no_traces.on_and_off(mode, folder, main)
    scope.clear()
    state = no_traces.state()
    keep = ["tokens", "tape cache", "seed", "random", "numpy", "signals", "default graph", "warnings"]
    graphs = [one for one in state["memory"] if one[0] in _KINDS]
    return {
        "said": said,
        "out": out.getvalue(),
        "err": _OURS.sub("", err.getvalue()),
        "graphs": graphs,
        **{k: state[k] for k in keep},
    }


_KINDS = ("FuncGraph", "Graph", "ConcreteFunction", "AtomicFunction", "GradientTape", "Operation", "ResourceVariable")
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_NUMBER = re.compile(r"(__(?:inference|forward|backward)_[\w<>]*?)_\d+")
_FILE = re.compile(r"__autograph_generated_file\w+")
_COUNTED = re.compile(
    r"ValueError: (pyfunc_\d+ returns \d+ values, but expects to see \d+ values\.).*?ValueError: \1(\\n)*"
)
_OURS = re.compile(r"^pyfunc_debug: .*\n", re.M)
_LINE = re.compile(r"^\d{4}-\d\d-\d\d .*?\] |^[IWE]0000 .*?\] ", re.M)


def normal(found: dict[str, Any]) -> str:
    """Without addresses, times, and the numbers at the ends of functions' names, which are higher with us."""
    text = _FILE.sub("generated", json.dumps(found, indent=1))
    text = _COUNTED.sub(r"\1\\n", text)
    return _NUMBER.sub(r"\1", _ADDRESS.sub("0x", _LINE.sub("", text)))


def forked(text: str, mode: str) -> str:
    """What a program does in a process of its own."""
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory(prefix="program") as folder:
        child = os.fork()
        if not child:
            os.close(reading)
            try:
                found = normal(run(text, mode, folder)).replace(folder, "FOLDER")
            except BaseException:
                found = f"{mode}: {traceback.format_exc()}"
            with os.fdopen(writing, "w") as pipe:
                pipe.write(found)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            found = pipe.read()
        os.waitpid(child, 0)
    return found


def differences(seed: int, modes: list[str]) -> dict[str, list[str]]:
    """By mode, the lines in which a program differs from stock."""
    text = program(seed)
    stock = forked(text, "stock").splitlines()
    wrong = {}
    for mode in modes:
        ours = forked(text, mode).splitlines()
        if ours != stock:
            import difflib

            wrong[mode] = [line[:1500] for line in difflib.unified_diff(stock, ours, "stock", mode, n=0, lineterm="")]
    return wrong


def main() -> int:
    """The exit code is 0 when nothing differed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--modes", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10_000))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    modes, wrong, runs = no_traces.MODES, 0, 0
    for number in range(options.count):
        mine = [modes[(number * options.modes + one) % len(modes)] for one in range(options.modes)]
        runs += len(mine)
        for mode, lines in differences(options.seed + number, mine).items():
            wrong += 1
            print(f"-- seed {options.seed + number}, {mode}", *lines[:12], sep="\n", flush=True)
    print(f"{options.count} programs, {runs} runs in {len(modes)} modes: {wrong} differ from stock")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
