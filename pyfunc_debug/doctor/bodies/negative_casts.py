"""Casts in a body to a dtype without a sign of what has negative numbers: `(x - x.mean()).astype(np.uint8)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import Given, as_given, given, returned
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.records import Node

_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_SIGNED = ("float", "double", "float16", "float32", "float64", "int16", "int32", "int64")
_MEANS = ("mean", "reduce_mean", "average")
_SPREADS = ("std", "reduce_std")
_OPS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_DEPTH = 6


@dataclass(frozen=True)
class NegativeCast:
    """A cast that loses negative numbers.

    Attributes:
      cast: The cast.
      dtype: Its dtype as an expression of the source; None for `np.uint8(x)`.
      kind: The dtype, as `uint8`.
      value: What is cast.
      why: What makes it negative, as the end of a sentence.
      call: A call that proves it.
    """

    cast: ast.Call
    dtype: ast.expr | None
    kind: str
    value: ast.expr
    why: str
    call: int


def negative_casts(facts: Facts, group: Sequence[Node], function: Definition) -> Iterator[NegativeCast]:
    """Casts to unsigned whole numbers whose values had negative ones in a recorded call."""
    for one in code.own_nodes(function):
        found = _cast(one)
        if found is None or not isinstance(one, ast.Call):
            continue
        value, dtype, kind = found
        proof = _of_own_mean(facts, group, function, one, value, kind)
        proof = proof or _of_numbers(facts, group, function, value)
        if proof is not None:
            yield NegativeCast(one, dtype, kind, value, *proof)


def _cast(node: ast.AST) -> tuple[ast.expr, ast.expr | None, str] | None:
    """What is cast to a dtype without a sign, and the dtype."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    name = pastes.last_name(node.func)
    if name == "astype" and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        value, dtype = node.func.value, node.args[0]
    elif name == "cast" and len(node.args) == 2:
        value, dtype = node.args
    elif name in _UNSIGNED and len(node.args) == 1:
        return node.args[0], None, name
    else:
        return None
    kind = ast.unparse(dtype).strip("'\"").rpartition(".")[2]
    return (value, dtype, kind) if kind in _UNSIGNED else None


def _of_own_mean(
    facts: Facts, group: Sequence[Node], function: Definition, cast: ast.Call, value: ast.expr, kind: str
) -> tuple[str, int] | None:
    """`x - x.mean()`, perhaps divided by its spread: what is around 0 has a mean near 0 as long as nothing wraps."""
    value = _made(function, value)
    spread = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div) and _is_spread(function, value.right)
    if spread and isinstance(value, ast.BinOp):
        value = _made(function, value.left)
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Sub):
        return None
    mean = _made(function, value.right)
    of = _averaged(mean)
    if of is None or ast.dump(_bare(of)) != ast.dump(_bare(value.left)):
        return None
    if isinstance(mean, ast.Call) and pastes.last_name(mean.func) == "reduce_mean":  # of uint8 it is uint8, too
        name = as_given(function, value.left)
        if _widened(value.left) is None and not any("float" in one.dtype for one in given(facts, group, name)):
            return None
    names = {one.id for one in ast.walk(value.left) if isinstance(one, ast.Name)}
    between = [
        one for one in code.own_nodes(function)
        if isinstance(one, (ast.Name, ast.Subscript)) and code.root(one) in names and isinstance(one.ctx, ast.Store)
        and mean.lineno < one.lineno < value.lineno
    ]  # fmt: skip
    results = pastes.returns(function)
    first = [one.elts[0] if isinstance(one, (ast.Tuple, ast.List)) and one.elts else one for one in results]
    if between or len(first) != 1 or _made(function, first[0]) is not cast:
        return None
    seen = [one for one in returned(facts, group) if one.dtype == kind and one.mean is not None]
    proof = next((one for one in seen if (one.mean or 0) > 1), None)
    return None if proof is None else ("what is less than its own mean is negative", proof.call)


def _of_numbers(facts: Facts, group: Sequence[Node], function: Definition, value: ast.expr) -> tuple[str, int] | None:
    """`x / 127.5 - 1` of an input that a call gave numbers for which it is negative."""
    made = _made(function, value)
    value = made if isinstance(made, ast.BinOp) else value
    names = {name for one in ast.walk(value) if isinstance(one, ast.Name) and (name := as_given(function, one))}
    if len(names) != 1:
        return None
    name = names.pop()
    for one in given(facts, group, name):
        if one.low is None or one.high is None or not one.shape:
            continue
        ends = [(end, _at(function, value, name, one, end)) for end in (one.low, one.high)]
        known = [(end, result) for end, result in ends if result is not None]
        if len(known) == 2 and min(result for _, result in known) <= -1:
            end, result = min(known, key=lambda each: each[1])
            if result > -2 and "int" in one.dtype and not _has_fractions(value):
                return None  # `labels - 1`: 255 stands for what a loss leaves out
            return f"{end:g} becomes {result:.4g}", one.call
    return None


def _at(function: Definition, node: ast.expr, name: str, one: Given, end: float, depth: int = _DEPTH) -> float | None:
    """What an expression of one parameter, used once, is where the parameter is a number; None where that is unsure."""
    if isinstance(node, ast.Constant):
        return float(node.value) if isinstance(node.value, (int, float)) and code.is_number(node) else None
    if not depth:
        return None
    if isinstance(node, ast.Call):
        inside = _widened(node)
        return None if inside is None else _at(function, inside, name, one, end, depth - 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, _OPS):
        if not _is_wide(function, node, one):
            return None
        left, right = (_at(function, side, name, one, end, depth - 1) for side in (node.left, node.right))
        numbers = [side for side in (node.left, node.right) if isinstance(side, ast.Constant)]
        if left is None or right is None or len(numbers) != 1:
            return None
        if isinstance(node.op, ast.Div):
            return left / right if numbers[0] is node.right and right else None
        return {ast.Add: left + right, ast.Sub: left - right}.get(type(node.op), left * right)
    return end if as_given(function, node) == name else None


def _is_wide(function: Definition, node: ast.BinOp, one: Given) -> bool:
    """Whether an operation's result can be negative: in fractions, or in whole numbers of a dtype with a sign."""
    if not one.dtype.startswith("u") or isinstance(node.op, ast.Div):
        return True
    fractions = any(isinstance(side, ast.Constant) and isinstance(side.value, float) for side in ast.walk(node))
    divided = any(isinstance(side, ast.BinOp) and isinstance(side.op, ast.Div) for side in ast.walk(node))
    return fractions or divided or any(_widened(side) is not None for side in ast.walk(node))


def _has_fractions(value: ast.expr) -> bool:
    return any(
        isinstance(one, ast.Div) or (isinstance(one, ast.Constant) and isinstance(one.value, float))
        for one in ast.walk(value)
    )


def _widened(node: ast.AST) -> ast.expr | None:
    """What is cast to fractions, or to whole numbers with a sign."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    name = pastes.last_name(node.func)
    kind = pastes.last_name(node.args[-1]).strip("'\"") if node.args else ""
    if name == "astype" and isinstance(node.func, ast.Attribute) and len(node.args) == 1 and kind in _SIGNED:
        return node.func.value
    if name == "cast" and len(node.args) == 2 and kind in _SIGNED:
        return node.args[0]
    return node.args[0] if name in _SIGNED and len(node.args) == 1 else None


def _averaged(node: ast.expr) -> ast.expr | None:
    """What a mean is taken of: `x.mean()`, `np.mean(x, axis=0, keepdims=True)`."""
    if not isinstance(node, ast.Call) or pastes.last_name(node.func) not in _MEANS:
        return None
    if any(one.arg in ("where", "weights") for one in node.keywords):
        return None
    if isinstance(node.func, ast.Attribute) and pastes.last_name(node.func.value) not in ("np", "numpy", "tf", "math"):
        return node.func.value if node.func.attr == "mean" else None
    return node.args[0] if node.args else None


def _is_spread(function: Definition, node: ast.expr) -> bool:
    """Whether a divisor is `x.std()`, perhaps with a small number beside it."""
    parts = [node, *(part for part in ast.walk(node) if isinstance(part, ast.Name))]
    calls = [one for part in parts for one in ast.walk(_made(function, part)) if isinstance(one, ast.Call)]
    return any(pastes.last_name(one.func) in _SPREADS for one in calls)


def _bare(node: ast.expr) -> ast.expr:
    """An expression without the casts around it."""
    while (inside := _widened(node)) is not None:
        node = inside
    return node


def _made(function: Definition, node: ast.expr) -> ast.expr:
    """What a name was given by the one assignment before its line; others as they are."""
    for _ in range(_DEPTH):
        if not isinstance(node, ast.Name) or isinstance(function, ast.Lambda):
            return node
        before = [
            one for one in code.own_nodes(function)
            if isinstance(one, ast.stmt) and one.lineno < node.lineno and node.id in code.stored_names(one)
        ]  # fmt: skip
        last = before[-1] if before else None
        if (
            not isinstance(last, ast.Assign)
            or last not in function.body
            or [ast.unparse(one) for one in last.targets] != [node.id]
        ):
            return node
        node = last.value
    return node
