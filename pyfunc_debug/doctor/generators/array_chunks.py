"""A generator that goes through an array, one row or number at a time: whole slices of it, taken apart in C++."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Node

_ROWS, _NUMBERS, _LEAST = 4096, 500_000, 16
"""Rows of a slice and numbers in it at most; rows from which a slice is worth it."""


def pasted(facts: Facts, node: Node) -> str:
    """The generator that yields slices, their shape, and unbatch() behind it; "" where that cannot be said in lines.

    Args:
      facts: The recording.
      node: The generator's.
    """
    made, function = pastes.dataset_call(facts, node), facts.function(node)
    if made is None or function is None or made[0] != node.file:
        return ""
    file, call = made
    array = _array(facts, file, function)
    named = {one.arg: one.value for one in call.keywords}
    signature, shapes = named.get("output_signature"), pastes.argument(call, 2, "output_shapes")
    declared = _shape_in(signature) if signature is not None else shapes
    sizes = _sizes(declared) if declared is not None else None
    size = _rows(sizes) if sizes is not None else 0
    if array is None or sizes is None or declared is None or size < _LEAST or "args" in named:
        return ""
    place, name, new = array
    whole = ", ".join(["None", *map(str, sizes)])
    pieces: dict[ast.expr, str] = {
        place: new.format(name=name, size=size),
        declared: f"[{whole}]",
        pastes.end_of(call): ".unbatch()",
    }
    if isinstance(place, ast.Name):
        return _of_loop(facts, node, function, pieces, place, name, size)
    return pastes.all_replaced(facts, file, pieces)


def _of_loop(
    facts: Facts, node: Node, function: code.Definition, pieces: dict[ast.expr, str], place: ast.Name, name: str,
    size: int,
) -> str:  # fmt: skip
    """The loop of a generator over slices."""
    loop = next(one for one in code.own_nodes(function) if isinstance(one, ast.For))
    value = next(one.value for one in code.own_nodes(function) if isinstance(one, ast.Yield))
    assert value is not None
    index = loop.target.id if isinstance(loop.target, ast.Name) and place is not loop.iter else "start"
    del pieces[place]
    pieces |= {loop.target: index, loop.iter: f"range(0, len({name}), {size})"}
    pieces[value] = f"{name}[{index}:{index} + {size}]"
    return pastes.all_replaced(facts, node.file, pieces)


def _array(facts: Facts, file: str, function: code.Definition) -> tuple[ast.expr, str, str] | None:
    """What is replaced in a generator, the array that it goes through, and what stands there then."""
    slices = "({name}[start:start + {size}] for start in range(0, len({name}), {size}))"
    body = list(getattr(function, "body", ())) if isinstance(function, ast.FunctionDef) else []
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        del body[0]
    only = body[0] if len(body) == 1 else None
    given = function.body if isinstance(function, ast.Lambda) else getattr(only, "value", None)
    if isinstance(only, ast.Return) or isinstance(function, ast.Lambda):
        plain = isinstance(given, ast.Call) and ast.unparse(given.func) == "iter" and len(given.args) == 1
        over = given.args[0] if plain and isinstance(given, ast.Call) else None
        named = isinstance(over, ast.Name) and _is_array(facts, file, over.id)
        return (given, over.id, slices) if named and isinstance(over, ast.Name) and given is not None else None
    if not isinstance(only, ast.For) or only.orelse or len(only.body) != 1 or not isinstance(only.target, ast.Name):
        return None
    last = only.body[0]
    value = last.value.value if isinstance(last, ast.Expr) and isinstance(last.value, ast.Yield) else None
    if isinstance(value, ast.Name) and value.id == only.target.id and isinstance(only.iter, ast.Name):
        return (only.iter, only.iter.id, "") if _is_array(facts, file, only.iter.id) else None
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
        name = value.value.id
        whole = ast.unparse(only.iter) in (f"range(len({name}))", f"range({name}.shape[0])")
        picks = ast.unparse(value.slice) == only.target.id
        return (value.value, name, "") if whole and picks and _is_array(facts, file, name) else None
    return None


def _is_array(facts: Facts, file: str, name: str) -> bool:
    """Whether all that a file gives to a name are arrays of NumPy's, also behind `astype` or `reshape`."""
    numpy, made = pastes.module(facts, file, "numpy"), pastes.assigned(facts.tree(file), name)
    stored = [one for one in pastes.walk(facts.tree(file), ast.Name) if one.id == name]
    rebound = [one for one in stored if isinstance(one.ctx, ast.Store)]
    given = [one for one in pastes.walk(facts.tree(file), ast.arg) if one.arg == name]
    calls = all(isinstance(one, ast.Call) and code.chain_root(one) == numpy for one in made)
    return numpy is not None and bool(made) and calls and len(rebound) == len(made) and not given


def _shape_in(signature: ast.expr) -> ast.expr | None:
    """The shape in `tf.TensorSpec(shape, dtype)`."""
    if not isinstance(signature, ast.Call) or pastes.last_name(signature.func) != "TensorSpec":
        return None
    return pastes.argument(signature, 0, "shape")


def _sizes(shape: ast.expr) -> list[int] | None:
    """The sizes of a shape that the text says; None for any other."""
    if isinstance(shape, ast.Call) and pastes.last_name(shape.func) == "TensorShape" and len(shape.args) == 1:
        shape = shape.args[0]
    parts = shape.elts if isinstance(shape, (ast.Tuple, ast.List)) else None
    found = [getattr(one, "value", None) for one in parts or ()]
    whole = [one for one in found if type(one) is int]
    return whole if parts is not None and len(whole) == len(found) else None


def _rows(sizes: list[int]) -> int:
    """How many rows make a slice: 4,096, or less of large ones."""
    numbers = 1
    for one in sizes:
        numbers *= max(one, 1)
    rows = _ROWS
    while rows * numbers > _NUMBERS and rows > 1:
        rows //= 2
    return rows
