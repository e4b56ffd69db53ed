"""Lists of Python numbers that a body returned: TensorFlow converts them one by one."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.returned_kinds import NUMBERS, Kind, all_calls, as_array, by_body, finding
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = ("slow-conversion",)
_SLOW_NS = 200_000
_SLOW_TOTAL_NS = 20_000_000
_SLOW_SHARE = 0.3
_SLOW_NUMBERS = 1000
_LEAST_SAMPLES = 3


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body."""
    for kinds in by_body(facts):
        if (found := _slow(facts, kinds)) is not None:
            yield found


def _slow(facts: Facts, kinds: list[Kind]) -> Finding | None:
    """Lists of Python numbers, which TensorFlow converts one by one."""
    lists = [kind for kind in kinds if "list" in kind.shown or ("tuple of" in kind.shown and kind.sampled)]
    sampled, took = sum(kind.sampled for kind in lists), sum(kind.convert_ns for kind in lists)
    if (
        sampled < _LEAST_SAMPLES
        or max(map(_numbers, lists), default=0) < _SLOW_NUMBERS
        or not any(kind.shown.endswith(("float", "int", "bool", "str")) for kind in lists)
    ):
        return None
    every = all_calls(facts, lists)
    mean, calls = took / sampled, every.count
    whole = every.total_ns / max(every.count, 1)
    if mean < _SLOW_NS or mean * calls < _SLOW_TOTAL_NS or not whole or mean / whole < _SLOW_SHARE:
        return None
    kind = lists[0]
    dtype = (kind.declared or list(kind.node.tout) or ["float32"])[0]
    return finding(
        facts, lists, "warning",
        f"{kind.node.body} returned Python numbers ({kind.shown}), which TensorFlow converts one by one: "
        f"{mean / 1e6:.2f} ms of the {whole / 1e6:.2f} ms that a call took",
        _arrays(facts, kind) or f"return np.asarray(..., np.{dtype})  # best built as an array from the start",
        (f"the conversion was timed in {sampled:,} of {calls:,} calls: {took / 1e6:.1f} ms",),
        rule=NAMES[0],
    )  # fmt: skip


def _numbers(kind: Kind) -> int:
    """How many numbers `list of 2 list of 300 float` are."""
    return math.prod(int(one) for one in re.findall(r" of (\d+)", kind.shown))


def _arrays(facts: Facts, kind: Kind) -> str:
    """The body's `return` lines with an array in the place of each list of numbers."""
    declared = kind.declared or list(kind.node.tout)
    if not declared or any(one not in NUMBERS for one in declared):
        return ""
    several = kind.node.kind == "py_function" or len(declared) > 1  # then what is returned is a list of outputs

    def make(value: ast.expr, text: str) -> str | None:
        if not several or kind.count != len(declared):
            return as_array(facts, kind.node, text, declared[0]) if len(declared) == 1 else None
        if isinstance(value, (ast.List, ast.Tuple)) and len(value.elts) == len(declared):
            every = [pastes.text_of(facts, kind.node.file, one) for one in value.elts]
            return f"[{', '.join(as_array(facts, kind.node, one, to) for one, to in zip(every, declared))}]"
        if len(set(declared)) > 1:
            return None
        return f"[{as_array(facts, kind.node, 'one', declared[0])} for one in {text}]"

    return pastes.returning(facts, kind.node, make)
