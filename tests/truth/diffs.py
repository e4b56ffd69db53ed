"""Pairs of recordings whose differences are known, and what `diff` says of them.

    python -m tests.truth.diffs --pairs 200 --seed 1

Each pair is recorded for real in three policies. Its truth is computed by NumPy from the arrays that the body returned.
A false "equal" is one where the truth is not; a false "different" is one where the truth is equal, or close (unless the
note says that how far apart they are is not known).
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.analysis.equality import NOT_KNOWN
from pyfunc_debug.values.digest import MOST_STRINGS
from tests.truth.command import arguments

POLICIES = ("summary", "sample", "full")
TYPES = (
    tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int32, tf.int64, tf.uint8, tf.bool, tf.complex64, tf.string,
)  # fmt: skip
SHAPES = ((), (1,), (2,), (7,), (3, 4), (5, 5), (0,), (2, 0), (40,), (33, 31), (2000,), (70_000,), (300, 301))
CALLS = 4


@dataclass
class Pair:
    """What the body returns in each call of the two recordings; `order`: that of the second one's calls."""

    dtype: tf.DType
    left: list[np.ndarray]
    right: list[np.ndarray]
    changes: list[str]
    order: list[int] = field(default_factory=lambda: list(range(CALLS)))


def make_array(dtype: tf.DType, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    if dtype == tf.string:
        words = [b"", b"a", b"b", b"ab", b"\x00", b"\xff\xfe", "käse".encode(), b"a" * 70]
        array = np.empty(shape, object)
        array.reshape(-1)[:] = [words[i] for i in random.integers(0, len(words), array.size)]
        return array
    kind = dtype.as_numpy_dtype
    if dtype.is_bool:
        return random.integers(0, 2, shape).astype(bool)
    if dtype.is_integer:
        return random.integers(0, 200, shape).astype(kind)
    numbers = random.choice(
        [random.normal(0, 1, shape), random.integers(0, 3, shape) * 1.0, 1e4 + random.normal(0, 1, shape),
         np.full(shape, 2.5), random.normal(0, 1e-6, shape)]
    ) if shape else random.normal(0, 1, shape)  # fmt: skip
    numbers = np.asarray(numbers)
    if dtype.is_complex:
        numbers = numbers + 1j * random.normal(0, 1, shape)
    numbers = np.asarray(numbers.astype(kind))
    if numbers.size and random.random() < 0.3:
        flat = numbers.reshape(-1)
        flat[random.integers(0, flat.size, 1 + flat.size // 10)] = random.choice([np.nan, np.inf, -np.inf, 0.0])
    return numbers


def change(array: np.ndarray, dtype: tf.DType, random: np.random.Generator) -> tuple[np.ndarray, str]:
    """An array of the same type, changed in one way, or not at all."""
    names = ["nothing", "nothing", "reversed", "two swapped", "shuffled", "one changed", "rolled", "other shape"]
    if dtype.is_floating or dtype.is_complex:
        names += ["near", "one near", "signs of zeros", "other NaN", "near and shuffled", "beyond", "one far less"]
    name = str(random.choice(names))
    new = array.copy()
    flat = new.reshape(-1)
    if name == "reversed":
        flat[:] = flat[::-1].copy()
    elif name == "two swapped" and flat.size > 1:
        i, j = random.choice(flat.size, 2, replace=False)
        flat[[i, j]] = flat[[j, i]]
    elif name == "shuffled":
        random.shuffle(flat)
    elif name == "rolled":
        flat[:] = np.roll(flat, 1)
    elif name == "one changed" and flat.size:
        i = random.integers(flat.size)
        flat[i] = (flat[i] + b"x") if dtype == tf.string else not flat[i] if dtype.is_bool else flat[i] + 1
    elif name == "other shape":
        new = array.reshape(*array.shape, 1)
    elif name == "near":
        new = np.asarray((new * (1 + 1e-6 * random.uniform(-1, 1, new.shape))).astype(new.dtype))
    elif name == "one near" and flat.size:
        flat[random.integers(flat.size)] *= 1 + 1e-6
    elif name == "signs of zeros":
        flat[flat == 0] *= -1
    elif name == "other NaN":
        flat[np.isnan(flat)] = -flat.dtype.type(np.nan)
    elif name == "near and shuffled":
        random.shuffle(flat)
        new = np.asarray((new * (1 + 1e-6)).astype(new.dtype))
    elif name == "beyond":
        new = np.asarray((new * (1 + 1e-2)).astype(new.dtype))
    elif name == "one far less" and flat.size:
        flat[random.integers(flat.size)] = -1e4
    return new, name


def make_pair(random: np.random.Generator) -> Pair:
    dtype = TYPES[random.integers(len(TYPES))]
    pair = Pair(dtype, [], [], [])
    for _ in range(CALLS):
        left = make_array(dtype, SHAPES[random.integers(len(SHAPES))], random)
        right, name = change(left, dtype, random)
        pair.left.append(left)
        pair.right.append(right)
        pair.changes.append(name)
    if random.random() < 0.3:
        random.shuffle(pair.order)
    return pair


def truth(left: np.ndarray, right: np.ndarray, relative: float = 1e-5, absolute: float = 1e-8) -> str:
    """`equal`, `close` or `different`, from the elements."""
    if left.shape != right.shape:
        return "different"
    if left.dtype == object:
        return "equal" if left.tolist() == right.tolist() else "different"
    wide = np.complex128 if left.dtype.kind == "c" else np.float64
    if left.dtype.kind not in "iub":
        left, right = left.astype(wide), right.astype(wide)
    parts = [(left, right)] if left.dtype.kind != "c" else [(left.real, right.real), (left.imag, right.imag)]
    if all(np.array_equal(one, other, equal_nan=one.dtype.kind == "f") for one, other in parts):
        return "equal"
    same = np.ones(left.shape, bool)
    for one, other in parts:
        same &= (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore"):
        apart = np.abs(left.astype(wide) - right.astype(wide))
        near = np.isfinite(apart) & (apart <= absolute + relative * np.abs(right.astype(wide)))
    return "close" if bool((same | near).all()) else "different"


def record(arrays: list[np.ndarray], order: list[int], dtype: tf.DType, values: str) -> pfd.Recording:
    def body(x):
        return arrays[int(x)]

    with pfd.record(values=values, gil=False) as recording:
        for number in order:
            tf.numpy_function(body, [np.float32(number)], dtype)
    return recording


def check(pair: Pair) -> tuple[Counter[str], list[str]]:
    """What `diff` said, by policy, truth and verdict; and where it was wrong."""
    found: Counter[str] = Counter()
    wrong = []
    for policy in POLICIES:
        left = record(pair.left, list(range(CALLS)), pair.dtype, policy)
        right = record(pair.right, pair.order, pair.dtype, policy)
        said = left.diff(right)
        if sum(said.counts.values()) != CALLS:
            wrong.append(f"{policy}: {dict(said.counts)} for {CALLS} calls")
        rows = {row.left: row for row in said.rows}
        for number in range(CALLS):
            real = truth(pair.left[number], pair.right[number])
            row = rows.get(number + 1)
            status = "equal" if row is None else row.status
            notes = " ".join(value.note for value in row.values) if row is not None else ""
            found[f"{policy}: {real} said {status}"] += 1
            about = f"{policy} {pair.dtype.name}{list(pair.left[number].shape)} {pair.changes[number]}: {notes}"
            if status == "equal" and real != "equal":
                wrong.append(f"false equal: {about}")
            if status == "different" and real != "different" and NOT_KNOWN not in notes:
                wrong.append(f"false different, is {real}: {about}")
            if policy == "full" and status != real:
                wrong.append(f"said {status}, is {real}: {about}")
            if (
                real == "equal"
                and status != "equal"
                and not (pair.dtype == tf.string and pair.left[number].size > MOST_STRINGS)
            ):
                wrong.append(f"equal, not seen: {about}")
        left.close()
        right.close()
    return found, wrong


def check_all(pairs: int, seed: int) -> tuple[Counter[str], list[str]]:
    """As `check`, of so many pairs."""
    random = np.random.default_rng(seed)
    found: Counter[str] = Counter()
    wrong: list[str] = []
    for number in range(pairs):
        counts, errors = check(make_pair(random))
        found += counts
        wrong += [f"pair {number} of seed {seed}: {error}" for error in errors]
    return found, wrong


def main() -> int:
    given = arguments(__doc__, "pairs", 200)
    found, wrong = check_all(given.pairs, given.seed)
    print(f"{given.pairs} pairs, {sum(found.values())} calls compared")
    for what, count in sorted(found.items()):
        print(f"  {what}: {count}")
    print("\n".join(wrong) or "0 false equal, 0 false different")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
