"""Calls of Python's and NumPy's own functions that are written otherwise than these take their values.

`random.choice` of a dict, `np.concatenate(a, b)`, `np.zeros(10, 3)`, a tuple inside a shape, a module that is called,
`x == None` of an array, an array's method of a list.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_ndarray, lookup

_Found = tuple[dict[ast.expr, str], str]
_JOINS = {"concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"}
_SHAPED = {"zeros", "ones", "empty", "full"}
_INDEX = re.compile(
    r"only integer scalar arrays|only 0-dimensional arrays|only length-1 arrays|takes (?:1|from 1 to \d) positional"
)
_DTYPE = re.compile(r"Cannot (?:interpret '.*' as a data type|construct a dtype)|data type .* not understood")
_TUPLE = "'tuple' object cannot be interpreted as an integer"
_MODULE = "'module' object is not callable"
_TRUTH = "The truth value of an array with more than one element is ambiguous"
_UNSEQUENCED = re.compile(
    r"Population must be a sequence|'(?:set|dict_\w+|frozenset)' object (?:is not subscriptable|"
    r"does not support item assignment)"
)
_LIST = re.compile(
    r"'list' object has no attribute '(astype|shape|reshape|mean|std|min|max|sum|ndim|dtype|T|flatten|ravel)'"
)
_OPERANDS = re.compile(r"operands could not be broadcast together with shapes \(([\d,]*)\) \(([\d,]*)\)")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if such a call stands in the failing line of a body or a generator."""
    spot, statement, text = situation.last, situation.statement, situation.message
    if spot is None or statement is None or not situation.data:
        return None
    for said, look in (
        (_UNSEQUENCED.search(text) or situation.kind == "KeyError", _sequence),
        (_INDEX.search(text), _joined), (_DTYPE.search(text), _shape), (_TUPLE in text, _nested),
        (_MODULE in text, _module), (_TRUTH in text, _none), (_LIST.search(text), _list),
        (_OPERANDS.search(text), _axis),
    ):  # fmt: skip
        found = next(look(spot, statement), None) if said else None
        if found is not None:
            pieces, cause = found
            edit = in_place(spot, pieces)
            advice = "" if edit or not pieces else f"Write {next(iter(pieces.values()))}."
            return Explanation(RULE, spot.file, spot.line, cause, edit, advice)
    return None


def _sequence(spot: Spot, statement: ast.stmt) -> Iterator[_Found]:
    """`random.choice(classes)` of a dict or a set, `random.shuffle(keys)` of its keys."""
    for call in calls(statement):
        last = dotted(call.func).rpartition(".")[2]
        if last not in ("choice", "sample", "shuffle", "choices") or not call.args:
            continue
        given = call.args[0]
        inner = given.func.value if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) else None
        value = lookup(given, spot) if inner is None else None
        views = inner is not None and given.func.attr in ("keys", "values", "items")  # type: ignore[attr-defined]
        kind = type(value).__name__
        if not views and kind not in ("dict", "set", "frozenset", "dict_keys", "dict_values", "dict_items"):
            continue
        text = spot.source.text(given)
        what = f"a {kind}" if not views else "a view of a dict"
        cause = (
            f"random.{last} takes its values by their places, and {short(text, 30)} is {what}, which has none. "
            "A list has."
        )
        if last != "shuffle":
            yield {given: f"list({text})"}, cause
            return
        made = _assigned(spot, text) if isinstance(given, ast.Name) else None
        if made is not None:
            yield {made: f"list({spot.source.text(made)})"}, cause
        else:
            yield {}, f"{cause} Shuffle a name that keeps it: `keys = list({text})`."


def _assigned(spot: Spot, name: str) -> ast.expr | None:
    """What the one assignment of a name in the function gives it."""
    made = [
        one.value for one in (ast.walk(spot.function) if spot.function is not None else ())
        if isinstance(one, ast.Assign) and [dotted(each) for each in one.targets] == [name]
    ]  # fmt: skip
    return made[0] if len(made) == 1 else None


def _joined(spot: Spot, statement: ast.stmt) -> Iterator[_Found]:
    """`np.concatenate(a, b)`."""
    for call in calls(statement):
        if dotted(call.func).rpartition(".")[2] not in _JOINS or len(call.args) < 2 or call.keywords:
            continue
        if any(isinstance(one, ast.Starred) for one in call.args) or isinstance(call.args[1], ast.Constant):
            continue
        if origins.number(origins.valued(call.args[1], spot)) is not None:  # an axis
            continue
        every = ", ".join(map(spot.source.text, call.args))
        text = spot.source.text(call.func)
        yield (
            {call: f"{text}(({every}))"},
            f"{text} takes one list or tuple of arrays, and was given {len(call.args)} of them.",
        )


def _shape(spot: Spot, statement: ast.stmt) -> Iterator[_Found]:
    """`np.zeros(10, 3)`."""
    for call in calls(statement):
        whole = [type(origins.number(origins.valued(one, spot))) is int for one in call.args]
        if dotted(call.func).rpartition(".")[2] not in _SHAPED - {"full"} or len(call.args) < 2 or not all(whole):
            continue
        every, text = ", ".join(map(spot.source.text, call.args)), spot.source.text(call.func)
        yield (
            {call: f"{text}(({every}))"},
            f"{text} takes the shape as one tuple: its second value is the dtype, and {spot.source.text(call.args[1])} "
            "is a size.",
        )


def _nested(spot: Spot, statement: ast.stmt) -> Iterator[_Found]:
    """`np.empty((size, self.dim, 3))` with a tuple for dim."""
    for call in calls(statement):
        for shape in (*call.args, *(word.value for word in call.keywords)):
            for part in shape.elts if isinstance(shape, (ast.Tuple, ast.List)) else ():
                value = lookup(part, spot)
                if type(value) is tuple and all(type(one) is int for one in value):
                    text = spot.source.text(part)
                    yield (
                        {part: f"*{text}"},
                        f"{text} is {value}, and a size is one number. A star puts its numbers there.",
                    )


def _module(spot: Spot, statement: ast.stmt) -> Iterator[_Found]:
    """`glob("*.png")` of `import glob`."""
    for call in calls(statement):
        value: Any = spot.value(call.func.id) if isinstance(call.func, ast.Name) else None
        name = getattr(value, "__name__", "") if type(value).__name__ == "module" else ""
        if name and callable(vars(value).get(name)):
            text = spot.source.text(call.func)
            yield {call.func: f"{text}.{name}"}, f"{text} is the module, and what is to be called is its {name}."


def _none(spot: Spot, statement: ast.stmt) -> Iterator[_Found]:
    """`if x == None:` of an array, and `if x > 0:`."""
    for one in ast.walk(statement):
        if not isinstance(one, ast.Compare) or len(one.ops) != 1 or not isinstance(one.ops[0], (ast.Eq, ast.NotEq)):
            continue
        right = one.comparators[0]
        if isinstance(right, ast.Constant) and right.value is None and is_ndarray(lookup(one.left, spot)):
            text = spot.source.text(one.left)
            sign = "is" if isinstance(one.ops[0], ast.Eq) else "is not"
            yield (
                {one: f"{text} {sign} None"},
                f"{text} is an array, and `==` compares each of its numbers. Whether there is none, `{sign}` asks.",
            )
    if isinstance(statement, (ast.If, ast.While)) and isinstance(statement.test, ast.Compare):
        left = lookup(statement.test.left, spot)
        member = isinstance(statement.test.ops[0], (ast.In, ast.NotIn))
        if is_ndarray(left) and left.size > 1 and not member:
            text, np = spot.source.text(statement.test), alias(spot, "numpy")
            yield (
                {},
                f"`{short(text, 40)}` is an array of {left.size:,} answers, and `if` needs one. For one of all numbers "
                f"write `({short(text, 40)}).all()` or `.any()`; for each by itself "
                f"`{np}.where({short(text, 30)}, a, b)`.",
            )


def _list(spot: Spot, statement: ast.stmt) -> Iterator[_Found]:
    """`xs.astype("float32")` of a list."""
    np = alias(spot, "numpy")
    for one in ast.walk(statement):
        if isinstance(one, ast.Attribute) and type(lookup(one.value, spot)) is list and not hasattr([], one.attr):
            text = spot.source.text(one.value)
            yield (
                {one.value: f"{np}.array({text})"},
                f"{text} is a list, and {one.attr} is of arrays. {np}.array makes one of it.",
            )


def _axis(spot: Spot, statement: ast.stmt) -> Iterator[_Found]:
    """`img * mask` of [8, 6, 3] and [8, 6]."""
    for one in ast.walk(statement):
        if not isinstance(one, ast.BinOp):
            continue
        left, right = lookup(one.left, spot), lookup(one.right, spot)
        if not is_ndarray(left) or not is_ndarray(right):
            continue
        for small, large, node in ((left, right, one.left), (right, left, one.right)):
            if small.ndim + 1 == large.ndim and small.shape == large.shape[:-1] and small.ndim > 1:
                text = spot.source.text(node)
                yield (
                    {node: f"{text}[..., None]"},
                    f"{text} is {list(small.shape)}, and the other {list(large.shape)}: axes are matched from the "
                    "last. With an axis of one at its end it goes with each channel.",
                )
