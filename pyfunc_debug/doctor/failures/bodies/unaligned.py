"""Arrays that a product or a join does not take: `np.dot(W, x)` for `np.dot(x, W)`, a column among rows."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_ndarray

_PRODUCT = re.compile(
    r"shapes \(.*\) and \(.*\) not aligned|matmul: Input operand \d has a mismatch in its core dimension"
)
_JOIN = re.compile(
    r"all the input array dimensions except for the concatenation axis must match exactly"
    r"|all the input arrays must have same number of dimensions"
)
_JOINS: dict[str, Callable[..., Any]] = {
    "concatenate": np.concatenate, "vstack": np.vstack, "hstack": np.hstack,
    "column_stack": np.column_stack,
}  # fmt: skip
_OTHERS = (
    ("{}.T", "its axes the other way round"),
    ("{}[None]", "an axis in front"),
    ("{}[:, None]", "an axis behind"),
)
_WIDTH = 30


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line of a body or a generator has one of these, and one other form fits."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not situation.data or situation.kind != "ValueError":
        return None
    if _PRODUCT.search(situation.message):
        return next(filter(None, (_product(spot, *one) for one in _products(statement))), None)
    if _JOIN.search(situation.message):
        return next(filter(None, (_joined(spot, call) for call in calls(statement))), None)
    return None


def _products(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The two sides of each product."""
    for one in ast.walk(statement):
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.MatMult):
            yield one.left, one.right
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in ("dot", "matmul"):
            if len(one.args) == 2:
                yield one.args[0], one.args[1]
            elif len(one.args) == 1 and one.func.attr == "dot":
                yield one.func.value, one.args[0]


def _product(spot: Spot, left: ast.expr, right: ast.expr) -> Explanation | None:
    one, other = _shaped(left, spot), _shaped(right, spot)
    if one is None or other is None or _fits(np.dot, one, other):
        return None
    text, atom = spot.source.text, spot.source.atom
    names = short(text(left), _WIDTH), short(text(right), _WIDTH)
    cause = (
        f"{names[0]} is {list(one.shape)} and {names[1]} {list(other.shape)}: a product goes over the last axis of the "
        "first and the first of the second, and these differ."
    )
    ways = [
        ((other, one), {left: text(right), right: text(left)}, "The other way round they fit."),
        ((one.T, other), {left: f"{atom(left)}.T"}, f"With {names[0]} turned they fit."),
        ((one, other.T), {right: f"{atom(right)}.T"}, f"With {names[1]} turned they fit."),
    ]
    fit = [(pieces, said) for arrays, pieces, said in ways if _fits(np.dot, *arrays)]
    if not fit:  # one of them is of another size
        return None
    if len(fit) > 1:
        advice = "Turn one of them by .T, or exchange them."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    return Explanation(RULE, spot.file, spot.line, f"{cause} {fit[0][1]}", in_place(spot, fit[0][0]), "", "likely")


def _joined(spot: Spot, call: ast.Call) -> Explanation | None:
    join = _JOINS.get(dotted(call.func).rpartition(".")[2])
    if join is None or not call.args:
        return None
    nodes = call.args[0].elts if isinstance(call.args[0], (ast.List, ast.Tuple)) else []
    axis = [word.value for word in call.keywords if word.arg == "axis"] or call.args[len(call.args[:1]) : 2]
    at = origins.number(origins.valued(axis[0], spot)) if axis and join is np.concatenate else None
    arrays = [_shaped(one, spot) for one in nodes]
    known = [one for one in arrays if one is not None]
    if len(known) < 2 or len(known) != len(arrays):
        return None
    make = (lambda given: join(given, axis=at)) if at is not None else join
    if _fits(make, known):
        return None
    said = ", ".join(f"{short(spot.source.text(one), 20)} {list(array.shape)}" for one, array in zip(nodes, known))
    name = spot.source.text(call.func)
    cause = f"{name} joins {said}: all axes but the one it joins along have to be equal."
    found = []
    for place, node in enumerate(nodes):
        for node_text, form, what in _forms(spot, node, known[place]):
            with suppress(Exception):
                changed = [*known[:place], form, *known[place + 1 :]]
                if _fits(make, changed):
                    found.append((node, node_text, what))
    odd = [one for one in found if known[nodes.index(one[0])].ndim <= min(array.ndim for array in known)]
    found = odd or found
    if not found or len({id(one[0]) for one in found}) != 1:
        return Explanation(
            RULE, spot.file, spot.line, cause, None, "Give them the same sizes there, or join along another axis."
        )
    node, new, what = found[0]
    cause += f" With {what}, {short(spot.source.text(node), 20)} fits."
    return Explanation(RULE, spot.file, spot.line, cause, in_place(spot, {node: new}), "", "likely")


def _forms(spot: Spot, node: ast.expr, array: Any) -> Iterator[tuple[str, Any, str]]:
    """Other forms of an array: the text, what it gives, and what is said of it."""
    inner = node.value if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) else None
    if inner is not None and ast.unparse(node.slice) == "(:, None)":  # type: ignore[attr-defined]
        yield f"{spot.source.text(inner)}[None]", array.reshape(1, -1), "its axis of one in front"
    text = spot.source.atom(node)
    for form, what in _OTHERS:
        with suppress(IndexError):
            made = {"{}.T": lambda: array.T, "{}[None]": lambda: array[None], "{}[:, None]": lambda: array[:, None]}[
                form
            ]()
            if made.shape != array.shape:
                yield form.format(text), made, what


def _shaped(node: ast.expr, spot: Spot) -> Any:
    """Zeros of an array's shape, which take no memory; None of anything else."""
    value = origins.valued(node, spot)
    if not is_ndarray(value) or not value.ndim or value.dtype.kind not in "biufc":
        return None
    return np.broadcast_to(np.zeros((), np.int8), value.shape)


def _fits(make: Callable[..., Any], *given: Any) -> bool:
    try:
        make(*given)
    except Exception:
        return False
    return True
