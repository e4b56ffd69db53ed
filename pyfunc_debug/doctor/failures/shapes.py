"""Shapes that a body returns: from its recorded calls, or a guess from its source."""

from __future__ import annotations

import ast
import json
from typing import Any

from pyfunc_debug.doctor.failures.dtypes import own_nodes
from pyfunc_debug.doctor.failures.situation import Query, Spot
from pyfunc_debug.doctor.failures.source import Function, dotted
from pyfunc_debug.doctor.failures.symbols import is_symbolic, lookup, root_is, shape_of

Shape = tuple[int | None, ...]
_Assigned = dict[str, list[tuple[ast.expr | None, bool]]]
"""What a function's names are assigned one after another, None for what is not known; and whether that always runs."""
_MAKE = {"zeros", "ones", "empty", "full", "random", "rand", "normal", "uniform", "integers", "randint"}
_SIZED = {"normal", "uniform", "integers", "randint"}
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
    assigned = _assignments(function)
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
    return _of(value, spot, _assignments(function), 0)


def _assignments(function: Function) -> _Assigned:
    found: _Assigned = {}
    if isinstance(function, ast.Lambda):
        return found
    for one in own_nodes(function):
        if not isinstance(one, ast.Assign):
            continue
        for target in one.targets:
            for name in (part for part in ast.walk(target) if isinstance(part, ast.Name)):
                if isinstance(name.ctx, ast.Store):
                    value = one.value if name is target else None
                    found.setdefault(name.id, []).append((value, one in function.body))
    return found


def _guesses(value: ast.expr, spot: Spot, assigned: _Assigned) -> list[Shape | None]:
    if isinstance(value, ast.Tuple):
        return [_of(one, spot, assigned, 0) for one in value.elts]
    return [_of(value, spot, assigned, 0)]


def _of(node: ast.expr, spot: Spot, assigned: _Assigned, depth: int) -> Shape | None:
    if depth > 12:
        return None
    if isinstance(node, ast.Name):
        if assigned.get(node.id):
            *before, (last, always) = assigned[node.id]
            rest = {**assigned, node.id: before}
            found = None if last is None else _of(last, spot, rest, depth + 1)
            return found if always or found == _of(node, spot, rest, depth + 1) else None
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
    if isinstance(node, ast.Attribute):
        return _value(lookup(node, spot))
    if isinstance(node, ast.Call):
        return _call(node, spot, assigned, depth)
    return None


def _call(node: ast.Call, spot: Spot, assigned: _Assigned, depth: int) -> Shape | None:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    size = next((one.value for one in node.keywords if one.arg in ("size", "shape")), None)
    if name in _MAKE:
        place = 2 if name in _SIZED else 0
        given = size or (node.args[place] if len(node.args) > place else None)
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
    if name == "resize" and len(node.args) > 1 and root_is(node.func, spot, "tensorflow"):
        image, sizes = _of(node.args[0], spot, assigned, depth + 1), _literal(node.args[1], spot)
        return None if image is None or sizes is None or len(image) < 3 else (*image[:-3], *sizes, image[-1])
    return _own(node, spot, depth)


def _own(node: ast.Call, spot: Spot, depth: int) -> Shape | None:
    """What one of the user's own functions in the same file returns, of what its source says by itself."""
    name = dotted(node.func)
    if "." in name and not name.startswith("self."):
        return None
    found = [
        one for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.FunctionDef) and one.name == name.rpartition(".")[2]
    ]  # fmt: skip
    if not name or len(found) != 1:
        return None
    values = [one.value for one in own_nodes(found[0]) if isinstance(one, ast.Return) and one.value is not None]
    inner = Spot(spot.file, found[0].lineno, {"self": spot.variables.get("self")}, spot.module, "")
    return _of(values[0], inner, _assignments(found[0]), depth + 4) if len(values) == 1 else None


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
        elif not isinstance(part, ast.Constant) and not _is_number(part):
            return None
    return (*sizes, *rest)


def _is_number(node: ast.expr) -> bool:
    """`index.numpy()` and `int(index)`: one number, for all that the source says."""
    return (
        isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in ("numpy", "int") and len(node.args) < 2
    )


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
