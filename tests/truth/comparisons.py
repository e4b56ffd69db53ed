"""Programs of which it is known whether they are the same as a graph and eagerly, and what `compare` says of them.

    python -m tests.truth.comparisons --programs 100 --seed 1

A program is a chain of steps, each of a kind whose truth is known: whether values differ, what the notes must name, and
what must be found unchanged afterwards.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf

import pyfunc_debug as pfd
from tests.truth.command import arguments


@dataclass
class Step:
    """A step from one vector to the next.

    Attributes:
      apply: What it does to the vector.
      kind: Its name in the counts.
      differs: Whether its result is another as a graph than eagerly.
      frozen: Whether the graph keeps a random number.
      notes: What the notes must hold, in one of them each.
      state: Reads what must be the same afterwards.
    """

    apply: Callable[[Any], Any]
    kind: str
    differs: bool = False
    frozen: bool = False
    notes: list[tuple[str, ...]] = field(default_factory=list)
    state: Callable[[], Any] = lambda: None


def node(body, x, function=tf.numpy_function):
    return tf.ensure_shape(function(body, [x], x.dtype), x.shape)


def pure(number: float) -> Step:
    def pure_body(v):
        return v * np.float32(number) + np.float32(1)

    return Step(lambda x: node(pure_body, x), "pure body")


def eager_body(number: float) -> Step:
    def tensor_body(v):
        return tf.sin(v) * number

    return Step(lambda x: node(tensor_body, x, tf.py_function), "py_function")


def frozen_counter(number: float) -> Step:
    seen: list[int] = []

    def apply(x):
        seen.append(1)
        return x + float(len(seen)) * 10

    return Step(apply, "Python counter in traced code", differs=True, notes=[("`seen`", "changed once, when traced")])


def silent_counter(number: float) -> Step:
    calls: list[int] = []

    def apply(x):
        calls.append(1)
        return x

    return Step(apply, "Python list in traced code", notes=[("`calls`", "changed once, when traced")])


def mode(number: float) -> Step:
    return Step(lambda x: x * (2.0 if tf.executing_eagerly() else 3.0), "asks whether it is eager", differs=True)


def drawn(number: float) -> Step:
    return Step(lambda x: x + float(np.random.rand()), "numpy.random in traced code", frozen=True,
                notes=[("numpy.random", "the graph keeps")])  # fmt: skip


def drawn_by_python(number: float) -> Step:
    return Step(lambda x: x + random.random(), "random in traced code", frozen=True,
                notes=[("random", "the graph keeps")])  # fmt: skip


def drawn_by_generator(number: float) -> Step:
    rng = np.random.default_rng(int(number * 100))
    return Step(lambda x: x + float(rng.random()), "a Generator in traced code", frozen=True,
                notes=[("rng", "the graph keeps")], state=lambda: repr(rng.bit_generator.state))  # fmt: skip


def noise(number: float) -> Step:
    def noisy_body(v):
        return v + np.random.rand(*v.shape).astype(np.float32)

    return Step(lambda x: node(noisy_body, x), "numpy.random in a body")


def generator_noise(number: float) -> Step:
    source = np.random.default_rng(int(number * 100))

    def generator_body(v):
        return v + source.random(v.shape).astype(np.float32)

    return Step(
        lambda x: node(generator_body, x), "a Generator in a body", state=lambda: repr(source.bit_generator.state)
    )


def stateful(number: float) -> Step:
    count = [0]

    def stateful_body(v):
        count[0] += 1
        return v + np.float32(count[0])

    return Step(lambda x: node(stateful_body, x), "a body that keeps state", differs=True,
                notes=[("stateful_body", "keeps state in `count`")])  # fmt: skip


def writer(number: float) -> Step:
    def writing_body(v):
        v += np.float32(2)
        return v

    return Step(lambda x: node(writing_body, x + 0.0), "a body that writes into its input",
                notes=[("writing_body", "writes into its input `v`")])  # fmt: skip


def writer_to_argument(number: float) -> Step:
    def aliasing_body(v):
        v[...] = 7
        return np.full_like(v, 3)

    return Step(lambda x: node(aliasing_body, x), "a body that writes into an argument",
                notes=[("aliasing_body", "writes into its input `v`")])  # fmt: skip


def writer_to_captured(number: float) -> Step:
    captured = tf.constant(np.full(300, number, np.float32))  # too large to become a constant of the graph

    def capturing_body(v):
        v += 1
        return v[:4].copy()

    def apply(x):
        return x + tf.ensure_shape(tf.numpy_function(capturing_body, [captured], tf.float32), [4])

    return Step(apply, "a body that writes into a captured tensor",
                notes=[("capturing_body", "writes into its input `v`")],
                state=lambda: captured.numpy().tolist())  # fmt: skip


def captured_array(number: float) -> Step:
    table = np.full(4, number, np.float32)

    def table_body(v):
        result = v + table
        table[0] += 1
        return result

    return Step(lambda x: node(table_body, x), "a body that writes into a captured array",
                notes=[("table_body", "keeps state in `table`")], state=table.tolist)  # fmt: skip


def variable(number: float) -> Step:
    weight = tf.Variable(number)

    def apply(x):
        weight.assign_add(1.0)
        return x * weight

    return Step(apply, "a variable", state=lambda: float(weight.numpy()))


def variable_written(number: float) -> Step:
    weights = tf.Variable(np.full(4, number, np.float32))

    def variable_body(v):
        v -= 1
        return v.copy()

    return Step(lambda x: x + node(variable_body, weights.read_value()), "a body that writes into a variable's value",
                notes=[("variable_body", "writes into its input `v`")],
                state=lambda: weights.numpy().tolist())  # fmt: skip


KINDS = (
    pure, pure, eager_body, frozen_counter, silent_counter, mode, drawn, drawn_by_python, drawn_by_generator, noise,
    generator_noise, stateful, writer, writer_to_captured, captured_array, variable, variable_written,
)  # fmt: skip


def check(dice: random.Random) -> tuple[list[str], list[str]]:
    """The kinds of one program's steps, and what was wrong with what `compare` said or left behind."""
    makers = dice.sample(KINDS, dice.randint(1, 3))
    if dice.random() < 0.25:
        makers = [writer_to_argument, *makers]
    steps = [make(dice.choice([0.5, 1.25, 2.0])) for make in makers]

    @tf.function
    def program(x):
        for step in steps:
            x = step.apply(x)
        return x

    given = np.arange(4, dtype=np.float32) if dice.random() < 0.5 else tf.constant([1.0, 2.0, 3.0, 4.0])
    was = np.array(given).tolist()
    before = [step.state() for step in steps]
    streams = random.getstate(), np.random.get_state()[1].tolist()
    found = pfd.compare(program, given, gradients=dice.random() < 0.3)
    wrong = []
    if np.array(given).tolist() != was:
        wrong.append(f"the caller's argument changed from {was} to {np.array(given).tolist()}")
    if (random.getstate(), np.random.get_state()[1].tolist()) != streams:
        wrong.append("the random states changed")
    for step, state in zip(steps, before):
        if step.state() != state:
            wrong.append(f"{step.kind}: changed from {str(state)[:200]} to {str(step.state())[:200]}")
        missing = [words for words in step.notes if not any(all(one in note for one in words) for note in found.notes)]
        wrong += [f"{step.kind}: no note with {words} in {found.notes}" for words in missing]
    differs, frozen = any(step.differs for step in steps), any(step.frozen for step in steps)
    # One stream for both: eagerly the body finds it one number further on.
    differs |= {drawn, noise} <= set(makers)
    if found.equal != (not differs and not frozen):
        wrong.append(f"equal={found.equal}, but differs={differs}, frozen={frozen}: {found}")
    if (found.first is not None) != differs:
        wrong.append(f"first is {found.first}")
    if bool(found.frozen) != frozen:
        wrong.append(f"frozen is {found.frozen}")
    if differs and not ("graph" in str(found) and "eager" in str(found)):
        wrong.append(f"it is not said which is which: {found}")
    return [step.kind for step in steps], wrong


def check_all(programs: int, seed: int) -> tuple[Counter[str], list[str]]:
    """As `check`, of so many programs."""
    dice = random.Random(seed)
    np.random.seed(seed & 0xFFFF)
    kinds: Counter[str] = Counter()
    wrong: list[str] = []
    for number in range(programs):
        steps, errors = check(dice)
        kinds.update(steps)
        wrong += [f"program {number} of seed {seed} ({', '.join(steps)}): {error}" for error in errors]
    return kinds, wrong


def main() -> int:
    given = arguments(__doc__)
    kinds, wrong = check_all(given.programs, given.seed)
    print(f"{given.programs} programs")
    for what, count in sorted(kinds.items()):
        print(f"  {what}: {count}")
    print("\n".join(wrong) or "nothing wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
