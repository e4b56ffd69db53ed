"""Advice against retraces, followed: generated functions are called twice, and what `explain` advises is done.

    python -m tests.truth.retraces --pairs 500 --seed 7

Each function is called with two sets of arguments that need two graphs. The advice is applied to the function or to its
arguments; then both calls must give what the plain function gives, and need no more graphs than the advice promises.
"""

from __future__ import annotations

import collections
import importlib.util
import random
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import pyfunc_debug as pfd
from tests.truth.command import arguments

DTYPES = ("float32", "float64", "int32", "int64", "float16")
HARMLESS = (
    "x * k",
    "k * x",
    "x + k",
    "x - k",
    "k - x",
    "x / k",
    "x + x * k",
    "(x * k) * k",
    "-x * k",
    "tf.multiply(x, k)",
    "tf.add(x, k)",
    "tf.maximum(x, k)",
    "tf.reduce_sum(x) * k",
    "tf.reduce_max(x, axis=-1) + k",
    "tf.abs(x) * k",
    "tf.square(x) + k",
    "tf.py_function(lambda a, b: a, [x, k], tf.{dtype})",
    "tf.numpy_function(lambda a, b: a, [x, k], tf.{dtype}) + x",
    "tf.where(x > k, x, x)",
    "tf.cast(k, tf.{dtype}) * x",
    "tf.stack([x, x]) * k",
    "x",
    "tf.zeros([2])",
    "x * 2 + k * x",
    "x[0] * k",
    "x[..., :1] + k",
    "tf.shape(x)",
    "tf.size(x) * 2",
    "tf.zeros_like(x) + k",
    "tf.identity(x) * W",
    "tf.exp(tf.cast(x, tf.float32)) * k",
    "tf.reduce_mean(x) * k",
    "x * k + tf.cast(tf.shape(x)[0], x.dtype)",
)
DECIDING = (
    "sum([x for _ in range(k)]) if k else x",
    "x if k > 2 else -x",
    "tf.zeros([k]) ",
    "tf.one_hot([0], k)",
    "tf.repeat(x, k)",
    "tf.reshape(x, [x.shape[0], -1])",
    "tf.constant(list(range(x.shape[0])))",
    "x * x.shape[-1]",
    "x * len(x)",
    "tf.reduce_sum(x, axis=k % 1)",
    "tf.constant(k)",
    "k",
    "(x, k)",
    "x ** k",
    "x // k",
    "x % k",
    "x * (k + 1)",
    "tf.constant(str(k))",
    "tf.cast(k * 1.5, tf.float32)",
    "{{1: x}}.get(k, -x)",
    "x * [1, 2, 3][k % 3]",
    "max(k, 2) * x",
    "tf.constant(x.shape.rank)",
    "x * int(k)",
    "x * (1 if isinstance(k, int) else 2)",
    "tf.split(x, x.shape[0])[0]",
    "tf.concat([x] * max(k, 1), 0)",
    "f'{{k}}' and x",
    "helper(x, k)",
    "tf.fill([2], k)",
    "tf.range(k)",
    "tf.transpose(x) * k",
    "tf.random.stateless_uniform([2], seed=[k, 1])",
    "x.numpy() if hasattr(x, 'numpy') and k is None else x",
    "x + SCALE[min(k, 1)]",
    "tf.ensure_shape(x, x.shape) * k",
    "tf.convert_to_tensor(k) + tf.convert_to_tensor(k)",
    "tf.cast(x.shape[0] * k, tf.float32)",
)
PROGRAMS = (
    "y = tf.cast(x > k, x.dtype)\n    return y * x",
    "y = x\n    for i in range(k if isinstance(k, int) and 0 <= k < 4 else 2):\n        y = y + x\n    return y",
    "y = x\n    for i in range(3):\n        y = y + x * k\n    return y",
    "half = k / 2\n    return x * half",
    "scale = lambda v: v * k\n    return scale(x)",
    "return tf.clip_by_value(x, -k, k)",
    "return tf.pow(x, k)",
    "return tf.math.divide_no_nan(x, k)",
    "return {'y': x * k, 'k': k}",
    "return tf.tile(x, [min(abs(int(k)), 3)] * len(x.shape))",
    "y = tf.fill(tf.shape(x), k)\n    return tf.cast(y, x.dtype) + x",
    "return tf.cast(np.sqrt(abs(k)), x.dtype) * x",
    "print(k)\n    return x - k",
    "assert k is not None\n    return tf.identity(x, name=f'n{abs(int(k))}') * k",
    "n = tf.shape(x)[0]\n    return x * tf.cast(n, x.dtype) + k",
    "first, *rest = x.shape.as_list()\n    return tf.reshape(x, [first, -1]) * k",
    "try:\n        return x * k\n    except TypeError:\n        return x",
    "if k:\n        return x * k\n    return x",
    "def inner(v, j=k):\n        return v * j\n    return inner(x)",
    "y = tf.TensorArray(x.dtype, 2, clear_after_read=False)\n    return y.write(0, x).write(1, x * k).stack()",
    "y = tf.map_fn(lambda row: row * k, x)\n    return tf.reduce_sum(y)",
    "acc = tf.zeros_like(x)\n    for row in tf.range(3):\n        acc += x * k\n    return acc",
    "y = tf.cast(k, x.dtype)\n    return tf.cast(x, tf.float32) * tf.cast(y, tf.float32)",
    "a = b = x * k\n    return a + b",
    "x, y = x * k, x + k\n    return x - y",
    "return (x * k if x.shape.rank else x) + k",
    "y = k\n    k = x\n    return y * k",
    "with tf.name_scope('scope'):\n        y = x * k\n    return y",
    "return tf.py_function(lambda v: v * k, [x], x.dtype)",
    "return tf.numpy_function(lambda v, j: v, [x, k], x.dtype)",
)
"""Bodies of several statements, as users write them."""
KINDS = (
    "number", "number", "size", "rank", "both", "mixed", "dtype", "flag", "structure", "name", "several", "several",
)  # fmt: skip
STRUCTURES = (
    ("x['a'] * k + x['b']", "dict"), ("x[0] * k + x[1]", "list"), ("x[0] + x[1]", "tuple"), ("len(x) * x[0]", "list"),
    ("sum(x)", "list"), ("tf.add_n(list(x))", "tuple"), ("x['a'] * tf.cast(x['b'], x['a'].dtype)", "dict"),
)  # fmt: skip


@dataclass
class Case:
    """A function's text, and its two sets of arguments as source texts."""

    text: str
    calls: tuple[tuple[str, str], tuple[str, str]]
    function: Any = None


def make_cases(number: int, seed: int) -> list[Case]:
    """Functions and pairs of calls; the same for the same seed."""
    chance = random.Random(seed)
    return [_case(chance) for _ in range(number)]


def _case(chance: random.Random) -> Case:
    dtype = chance.choice(DTYPES)
    floats = dtype.startswith("float")
    kind = chance.choice(KINDS)
    shapes = [[chance.randint(1, 4) for _ in range(chance.randint(1, 3))]] * 2
    if kind in ("size", "both"):
        other = list(shapes[0])
        where = chance.randrange(len(other))
        other[where] += chance.randint(1, 3)
        shapes = [shapes[0], other]
    elif kind == "rank":
        shapes = [shapes[0], [1, *shapes[0]]]
    tensors = [_tensor(shape, dtype) for shape in shapes]
    numbers = [_number(chance, floats), _number(chance, floats)]
    if kind in ("size", "rank", "dtype", "structure") or numbers[0] == numbers[1]:
        numbers[1] = numbers[0]
    body = chance.choice(HARMLESS if chance.random() < 0.6 else DECIDING)
    if body in DECIDING:  # a size of three thousand million is too much for this machine
        numbers = [text.replace("3000000000", "4") for text in numbers]
    if kind == "dtype":
        tensors[1] = _tensor(shapes[0], chance.choice(DTYPES))
    elif kind == "mixed":
        numbers[1] = f"tf.constant({numbers[0]}, tf.{chance.choice(('int32', 'float32', dtype))})"
    elif kind == "flag":
        numbers = chance.sample(["True", "False", "None", "'a'", "'b'", "1", "(1, 2)", "tf.float32", "tf.float64"], 2)
        body = chance.choice(
            ("x if k else -x", "x", "x if k is None else -x", "tf.cast(x, k) if hasattr(k, 'size') else x")
        )
    elif kind == "name":
        body = chance.choice(
            ("x * k\n    return y", "x\n    y *= k\n    return y", "x + k\n    y = y * y\n    return tf.reduce_sum(y)")
        )
        body = f"@{body}"
    elif kind == "several":
        body = f"#{chance.choice(PROGRAMS)}"
        if chance.random() < 0.3:
            tensors[1] = _tensor([shapes[0][0] + 1, *shapes[0][1:]], dtype)
    elif kind == "structure":
        body, shape = chance.choice(STRUCTURES)
        one, two = tensors[0], _tensor([shapes[0][0] + 1, *shapes[0][1:]], dtype)
        numbers[1] = _number(chance, floats)
        pairs = [(one, one), chance.choice([(two, two), (one, one)])]
        if chance.random() < 0.2:
            pairs[1] = (*pairs[1], one)
        forms = {"dict": lambda a: "{" + ", ".join(f"'{'abc'[at]}': {one}" for at, one in enumerate(a)) + "}",
                 "list": lambda a: f"[{', '.join(a)}]", "tuple": lambda a: f"({', '.join(a)},)"}  # fmt: skip
        tensors = [forms[shape](pair) for pair in pairs]
        if chance.random() < 0.2:
            tensors[1] = forms["tuple" if shape == "list" else "list"](pairs[1])
    body = body.replace("{dtype}", dtype).replace("{{", "{").replace("}}", "}")
    text = f"def case(x, k=None):\n    return {body}\n"
    if body.startswith("#"):
        text = f"def case(x, k=None):\n    {body[1:]}\n"
    if body.startswith("@"):
        text = f"def case(x, k=None):\n    y = {body[1:]}\n"
    return Case(text, ((tensors[0], numbers[0]), (tensors[1], numbers[1])))


def _tensor(shape: list[int], dtype: str) -> str:
    return f"tf.reshape(tf.cast(tf.range(1, {1 + int(np.prod(shape))}), tf.{dtype}), {shape})"


def _number(chance: random.Random, floats: bool) -> str:
    if floats and chance.random() < 0.5:
        return repr(round(chance.uniform(-3, 3), 2))
    return str(chance.choice((0, 1, 2, 3, 5, 7, -1, 3_000_000_000)))


# -- following --------------------------------------------------------------------------------------------------------


def load(cases: list[Case], folder: Path) -> None:
    """Writes the functions into one module, so that they have a source, and imports it."""
    head = (
        "import numpy as np\nimport tensorflow as tf\n\nW = tf.Variable(2.0)\nSCALE = [1, 2]\n\n\n"
        "def helper(x, k):\n    return x * k\n\n\n"
    )
    texts = [case.text.replace("def case", f"def case_{at}", 1) for at, case in enumerate(cases)]
    path = folder / "retraced.py"
    path.write_text(head + "\n\n".join(texts))
    spec = importlib.util.spec_from_file_location("retraced", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for at, case in enumerate(cases):
        case.function = getattr(module, f"case_{at}")


def judge(case: Case) -> tuple[str, str]:
    """What became of a case, and the advice: `followed`, `wrong`, `raised`, `no advice`, or why it does not count."""
    function = tf.function(case.function)
    try:
        calls = [tuple(eval(text, {"tf": tf}) for text in call) for call in case.calls]
        expected = [tf.nest.map_structure(np.asarray, function(*call)) for call in calls]
    except Exception:
        return "does not run", ""
    rows = pfd.explain(function).rows
    if len(rows) < 2:
        return "one graph", ""
    advice = rows[1].avoid
    if advice is None:
        return "no advice", " | ".join(rows[1].reason)
    try:
        found, graphs, allowed = follow(advice, case.function, calls)
    except Exception as error:
        return "raised", f"{advice}: {type(error).__name__}: {str(error)[:200]}"
    if graphs > allowed:
        return "wrong", f"{advice}: {graphs} graphs"
    for one, other in zip(expected, found):
        try:
            tf.nest.map_structure(_compare, one, other)
        except (AssertionError, TypeError, ValueError) as error:
            return "wrong", f"{advice}: {str(error)[:200]}"
    return "followed", advice


def _compare(wanted: Any, found: Any) -> None:
    if wanted.dtype.kind not in "fiu":
        np.testing.assert_array_equal(wanted, found)
    elif np.isfinite(wanted).all():  # what a float16 cannot hold is no question of advice
        np.testing.assert_allclose(wanted, found, rtol=2e-2 if np.float16 in (wanted.dtype, found.dtype) else 1e-5)


def follow(advice: str, plain: Any, calls: list[tuple[Any, ...]]) -> tuple[list[Any], int, int]:
    """Does what is advised.

    Returns:
      What both calls return then, how many graphs they needed, and how many the advice allows.
    """
    options: dict[str, Any] = {}
    allowed = 1
    arguments = [list(call) for call in calls]
    for part in advice.split("; "):
        if part.startswith("input_signature="):
            options["input_signature"] = eval(part.partition("=")[2], {"tf": tf})
            if len(options["input_signature"]) < 2:
                arguments = [one[: len(options["input_signature"])] for one in arguments]
        elif part == "reduce_retracing=True":
            options["reduce_retracing"], allowed = True, 2
        elif match := re.fullmatch(r"always pass `(.*)` as a tensor: tf.constant\((.*), tf.(\w+)\)", part):
            for one in arguments:
                _replace(
                    one,
                    match[1],
                    lambda value, dtype=match[3]: tf.constant(value, dtype) if not tf.is_tensor(value) else value,
                )
        elif match := re.match(r"tf.cast `(.*)` to tf.(\w+) before the call", part):
            for one in arguments:
                _replace(one, match[1], lambda value, dtype=match[2]: tf.cast(value, dtype))
        elif match := re.fullmatch(r"always pass `(.*)` as a (list|tuple)", part):
            for one in arguments:
                _replace(one, match[1], {"list": list, "tuple": tuple}[match[2]])
        else:
            raise AssertionError(f"nobody knows how to follow {part!r}")
    function = tf.function(plain, **options)
    found = [tf.nest.map_structure(np.asarray, function(*one)) for one in arguments]
    return found, function.experimental_get_tracing_count(), allowed


def _replace(arguments: list[Any], path: str, change: Any) -> None:
    """Changes the argument that a path such as `x['a']` means."""
    name, keys = re.match(r"(\w+)(.*)", path).groups()  # type: ignore[union-attr]
    at = "xk".index(name)
    if not keys:
        arguments[at] = change(arguments[at])
        return
    key = eval(keys[1:-1])
    kind = type(arguments[at])
    parts = dict(arguments[at]) if kind is dict else list(arguments[at])
    parts[key] = change(parts[key])
    arguments[at] = parts if kind is not tuple else tuple(parts)


def survey(pairs: int, seed: int) -> tuple[collections.Counter[str], list[tuple[str, str, Case]]]:
    """Judges cases: how many of each outcome, and those that are wrong or raised."""
    cases = make_cases(pairs, seed)
    counts: collections.Counter[str] = collections.Counter()
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        load(cases, Path(folder))
        for case in cases:
            outcome, advice = judge(case)
            counts[outcome] += 1
            if outcome in ("wrong", "raised"):
                bad.append((outcome, advice, case))
    return counts, bad


def main() -> int:
    """Prints the survey; the exit code is 1 when advice was wrong or raised."""
    given = arguments(__doc__, "pairs", 500)
    counts, bad = survey(given.pairs, given.seed)
    for outcome, advice, case in bad:
        print(f"{outcome}: {advice}\n{case.text}    {case.calls}\n")
    print(dict(counts.most_common()))
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
