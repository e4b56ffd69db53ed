"""Random models that one process saves and another loads, each recording or not: what the restored functions give.

    python -m tests.interception.saved_programs [COUNT] [SEED]

A SavedModel has only the names of Python functions, and TensorFlow runs whatever function has the name in the process
that loads it, right or wrong, or says that there is none. All of that must be as without us.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

SAVERS = ("stock", "record", "traced before", "exact")
LOADERS = ("stock", "record", "loaded before", "traced before", "ended", "exact")


def _kinds(tf: Any) -> list[Callable[[Any], Any]]:
    """Functions that are saved: all take and give three numbers."""

    def one(x: Any) -> Any:
        return tf.reshape(tf.py_function(lambda a: a * 2, [x], tf.float32), [3])

    def two(x: Any) -> Any:
        first, second = tf.py_function(lambda a: (a + 1, a * 3), [x], [tf.float32, tf.float32])
        return tf.reshape(first + second, [3])

    def none(x: Any) -> Any:
        tf.py_function(lambda a: None, [x], [])
        return x

    def nested(x: Any) -> Any:
        return tf.function(one)(x) + 1

    def branch(x: Any) -> Any:
        return tf.cond(tf.reduce_sum(x) > 0, lambda: two(x), lambda: x)

    def loop(x: Any) -> Any:
        return tf.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, one(v)), [0, x])[1]

    def plain(x: Any) -> Any:
        return tf.reshape(tf.numpy_function(lambda a: a - 1, [x], tf.float32), [3])

    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.py_function(lambda a: a * a * 2, [x], tf.float32) + one(x)
        return tape.gradient(y, x)

    def outer(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.function(one)(x) * tf.function(two)(x)
        return tape.gradient(y, x)

    def steps(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = loop(x)
        return tf.reshape(tape.gradient(y, x), [3])

    def some(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            _, y = tf.py_function(lambda i, a: (i, a * 3), [2, x], [tf.int32, tf.float32])
        found = tape.gradient(y, x)
        return x if found is None else tf.reshape(found, [3])

    return [one, two, none, nested, branch, loop, plain, slope, outer, steps, some]


@contextlib.contextmanager
def _recording(how: str, mode: str, file: str) -> Iterator[None]:
    import pyfunc_debug as pfd

    if how == mode:
        with pfd.record(file, gil=False):
            yield
    elif how == "exact" and mode == "record":
        with pfd.exact_gradients():
            yield
    else:
        yield


def _save(chance: random.Random, how: str, folder: str) -> None:
    import tensorflow as tf

    kinds = _kinds(tf)
    model, spec = tf.Module(), tf.TensorSpec([3])
    chosen = [chance.choice(kinds) for _ in range(chance.randint(1, 4))]
    model.made = [tf.function(kind, input_signature=[spec]) for kind in chosen]
    for number, made in enumerate(model.made):
        setattr(model, f"f{number}", made)
    others = [tf.function(kinds[0]) for _ in range(chance.randint(0, 2))]
    if how == "traced before":
        for other in others:
            other.get_concrete_function(spec)
        for made in model.made:
            made.get_concrete_function()
    with _recording("record" if how == "traced before" else how, "record", folder + ".pfrec"):
        for other in others:
            other.get_concrete_function(spec)
        for made in model.made:
            made.get_concrete_function()
        tf.saved_model.save(model, folder)


def _load(chance: random.Random, how: str, folder: str, file: str) -> list[Any]:
    import tensorflow as tf

    own: list[Any] = []
    x = tf.constant([3.0, 1.0, 2.0])

    def give(count: int, factor: float) -> Any:
        outs = [tf.float32] * count

        def body(a: Any) -> Any:
            return [a * (factor + one) for one in range(count)]

        return tf.function(lambda x: tf.add_n([tf.reshape(y, [3]) for y in tf.py_function(body, [x], outs)]))

    def trace() -> None:
        for function in own:
            function.get_concrete_function(tf.TensorSpec([3]))

    def answer(function: Any) -> Any:
        try:
            return [float(one) for one in function(x)]
        except (tf.errors.OpError, ValueError) as error:
            text = str(error).partition("Traceback")[0]
            text = re.sub(r"_[0-9]+", "_N", text.replace("pyfunc_", "token "))
            return f"{type(error).__name__}: {text}"

    def slope(function: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return answer(lambda _: tape.gradient(y, x))

    own += [give(chance.randint(1, 2), chance.randint(2, 9)) for _ in range(chance.randint(0, 5))]
    model: Any = None
    found: list[Any] = []
    with contextlib.ExitStack() as stack:
        if how == "loaded before":
            model = tf.saved_model.load(folder)
        if how == "traced before":
            trace()
        mode = how if how in ("stock", "exact") else "record"
        stack.enter_context(_recording(mode, "record", file))
        trace()
        model = model or tf.saved_model.load(folder)
        if how == "ended":
            stack.close()
        for _ in range(2):
            for number in range(9):
                function = getattr(model, f"f{number}", None)
                if function is not None:
                    found.append(answer(function))
            found += [answer(function) for function in own]
            found += [slope(function) for function in own]
    return found


def _in_child(work: Callable[[], Any]) -> Any:
    """What `work` gives in a fork of this process, whose TensorFlow has not started."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(writing, "w") as told:
            try:
                json.dump(work(), told)
            except BaseException as error:  # told to whoever compares
                json.dump(f"{type(error).__name__}: {error}", told)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        answer = told.read()
    os.waitpid(child, 0)
    return json.loads(answer)


def differences(seed: int, savers: tuple[str, ...] = SAVERS, loaders: tuple[str, ...] = LOADERS) -> dict[str, Any]:
    """By saver and loader, where what is restored differs from TensorFlow's own: what it gave, what it was to give."""
    import tensorflow  # noqa: F401 - once, for all children

    def save(how: str) -> Any:
        return _in_child(lambda: _save(random.Random(seed), how, f"{folder}/{how}"))

    def load(saver: str, how: str) -> Any:
        place = f"{folder}/{saver}-{how}.pfrec"
        return _in_child(lambda: _load(random.Random(seed + 1), how, f"{folder}/{saver}", place))

    with tempfile.TemporaryDirectory() as folder:
        wrong = {how: failed for how in ("stock", *savers) if (failed := save(how)) is not None}
        expected = load("stock", "stock")
        for saver in savers:
            for loader in loaders:
                found = load(saver, loader)
                if found != expected:
                    wrong[f"{saver}, {loader}"] = found, expected
    return wrong


def main(count: int, seed: int) -> int:
    """Prints what differs; the exit code is 0 when nothing does."""
    print(f"seeds {seed} to {seed + count - 1}", flush=True)
    failed = 0
    for number in range(seed, seed + count):
        wrong = differences(number)
        failed += bool(wrong)
        for name, what in wrong.items():
            print(number, name, what, flush=True)
    print(f"{count} models, {len(SAVERS)} ways to save, {len(LOADERS)} ways to load: {failed} differ")
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main(*map(int, [*sys.argv[1:], "3", "1"][:2])))
