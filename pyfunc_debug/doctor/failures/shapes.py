"""Shapes that a body returns: from its recorded calls, or a guess from its source."""

from __future__ import annotations

import ast
import json
from typing import Any

from pyfunc_debug.doctor.failures.dtypes import assignments
from pyfunc_debug.doctor.failures.situation import Query, Spot
from pyfunc_debug.doctor.failures.source import Function
from pyfunc_debug.doctor.failures.symbols import is_symbolic, shape_of

Shape = tuple[int | None, ...]
_MAKE = {"zeros", "ones", "empty", "full", "random", "rand", "normal", "uniform", "integers", "randint"}
_KEEP = {
    "numpy", "astype", "copy", "sin", "cos", "exp", "sqrt", "abs", "square", "clip", "tanh", "asarray",
    "array", "float32",
    "sort", "flip", "fliplr", "flipud", "log", "log1p", "cast", "identity", "zeros_like", "ones_like",
    "round", "convert_to_tensor",
    "constant",
}  # fmt: skip


def recorded(rows: Query, node: int) -> tuple[dict[int, Shape], int]:
    """What all recorded calls of a node returned.

    Returns:
      For each output the shape that holds for all calls, with None where a size varies (outputs whose rank varies are
      left out); and the number of calls.
    """
    found = rows(
        "SELECT v.position, v.shape, count(*) FROM value v JOIN call c ON c.id = v.call WHERE c.node = ? AND "
        "c.kind = 'forward' AND v.role = 'output' AND v.shape IS NOT NULL GROUP BY v.position, v.shape",
        (node,),
    )
    shapes: dict[int, list[Shape]] = {}
    calls: dict[int, int] = {}
    for position, text, count in found:
        shapes.setdefault(position, []).append(tuple(json.loads(text)))
        calls[position] = calls.get(position, 0) + count
    merged = {}
    for position, seen in shapes.items():
        if len({len(shape) for shape in seen}) == 1:
            merged[position] = tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*seen))
    return merged, max(calls.values(), default=0)


def guessed(function: Function, spot: Spot) -> list[Shape | None]:
    """The shapes that a body's source says it returns, one an output; None where it does not say."""
    assigned = {} if isinstance(function, ast.Lambda) else assignments(function)
    value: ast.expr | None = function.body if isinstance(function, ast.Lambda) else None
    if not isinstance(function, ast.Lambda):
        from pyfunc_debug.doctor.failures.nodes import return_value, return_values

        value = return_value(function)
        if value is None:  # several, which may agree
            every = [_guesses(one, spot, assigned) for one in return_values(function)]
            return every[0] if every and all(one == every[0] for one in every) else []
    if value is None:
        return []
    return _guesses(value, spot, assigned)


def shape_of_value(value: ast.expr, function: Function, spot: Spot) -> Shape | None:
    """The shape that the source says of an expression in a function; None where it does not say."""
    return _of(value, spot, {} if isinstance(function, ast.Lambda) else assignments(function), 0)


def _guesses(value: ast.expr, spot: Spot, assigned: dict[str, ast.expr]) -> list[Shape | None]:
    if isinstance(value, ast.Tuple):
        return [_of(one, spot, assigned, 0) for one in value.elts]
    return [_of(value, spot, assigned, 0)]


def _of(node: ast.expr, spot: Spot, assigned: dict[str, ast.expr], depth: int) -> Shape | None:
    if depth > 12:
        return None
    if isinstance(node, ast.Name):
        if node.id in assigned:
            return _of(
                assigned[node.id], spot, {name: one for name, one in assigned.items() if name != node.id}, depth + 1
            )
        value = spot.value(node.id)
        return shape_of(value) if is_symbolic(value) else _value(value)
    if isinstance(node, ast.Constant):
        return ()
    if isinstance(node, (ast.List, ast.Tuple)):
        inner = _of(node.elts[0], spot, assigned, depth + 1) if node.elts else ()
        return None if inner is None else (len(node.elts), *inner)
    if isinstance(node, ast.BinOp):
        left, right = (_of(one, spot, assigned, depth + 1) for one in (node.left, node.right))
        if left is None or right is None:
            return None
        return left if len(left) >= len(right) else right
    if isinstance(node, ast.Compare) and len(node.comparators) == 1:
        return _of(ast.BinOp(node.left, ast.Add(), node.comparators[0]), spot, assigned, depth + 1)
    if isinstance(node, ast.UnaryOp):
        return _of(node.operand, spot, assigned, depth + 1)
    if isinstance(node, ast.Subscript):
        return _sliced(node, _of(node.value, spot, assigned, depth + 1))
    if isinstance(node, ast.Call):
        return _call(node, spot, assigned, depth)
    return None


def _call(node: ast.Call, spot: Spot, assigned: dict[str, ast.expr], depth: int) -> Shape | None:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    size = next((one.value for one in node.keywords if one.arg in ("size", "shape")), None)
    if name in _MAKE:
        given = size or (
            node.args[0] if node.args and name not in ("normal", "uniform", "integers", "randint") else None
        )
        if name == "rand":
            given = ast.Tuple(list(node.args), ast.Load())
        return None if given is None else _literal(given, spot)
    if name in ("int32", "int64", "float64", "uint8", "float32") and node.args:
        return _of(node.args[0], spot, assigned, depth + 1)
    if name in ("float", "int", "len", "sum", "mean", "max", "min") and not node.keywords:
        return ()
    if name in _KEEP:
        owner = (
            node.func.value if isinstance(node.func, ast.Attribute) and name in ("numpy", "astype", "copy") else None
        )
        given = owner or (node.args[0] if node.args else None)
        return None if given is None else _of(given, spot, assigned, depth + 1)
    if name == "reshape" and node.args:
        return _literal(node.args[-1], spot)
    return None


def _literal(node: ast.expr, spot: Spot) -> Shape | None:
    parts = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    sizes: list[int | None] = []
    for part in parts:
        value: Any = spot.value(part.id) if isinstance(part, ast.Name) else getattr(part, "value", None)
        if isinstance(value, tuple) and len(parts) == 1:
            return value
        if not isinstance(value, int) or value < 0:
            return None
        sizes.append(value)
    return tuple(sizes)


def _sliced(node: ast.Subscript, shape: Shape | None) -> Shape | None:
    if shape is None:
        return None
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    sizes: list[int | None] = []
    rest = list(shape)
    for part in parts:
        if not rest:
            return None
        size = rest.pop(0)
        if isinstance(part, ast.Slice):
            whole = part.lower is None and part.upper is None and (part.step is None or _is_reversal(part.step))
            sizes.append(size if whole else None)
        elif not isinstance(part, ast.Constant):
            return None
    return (*sizes, *rest)


def _is_reversal(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and getattr(node.operand, "value", 0) == 1


def _value(value: Any) -> Shape | None:
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return shape
    return () if isinstance(value, (int, float, str, bytes)) else None


def written(shape: Shape) -> str:
    """`[None, 28, 28]`, as one types it."""
    return f"[{', '.join(str(size) for size in shape)}]"
