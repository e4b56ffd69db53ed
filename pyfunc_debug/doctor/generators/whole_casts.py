"""The line on which what a generator yields was scaled to [0, 1], and made whole numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Definition
from pyfunc_debug.doctor.failures.reading.nodes import argument

_LEAST_SCALE = 100
"""What divides pixels: a division of classes by 2 is meant."""
_WHOLE = {"uint8", "uint16", "int8", "int16", "int32", "int64", "int"}
_SAME = {
    "array", "asarray", "ascontiguousarray", "concat", "concatenate", "constant", "convert_to_tensor", "copy",
    "expand_dims", "flip", "numpy", "pad", "ravel", "repeat", "reshape", "resize", "squeeze", "stack", "tile",
    "transpose", "vstack",
}  # fmt: skip
"""What leaves an array's numbers, or its fractions."""
_MAKERS = ("empty", "zeros", "empty_like", "zeros_like")
_DEPTH = 10


@dataclass(frozen=True)
class WholeCast:
    """A place that cuts fractions.

    Attributes:
      node: The expression: a cast, a division `//`, or what is put into an array of whole numbers.
      dtype: The dtype that does it; None for `//`.
      image: What has fractions.
      known: Whether the dtype is known to be one of whole numbers: `x.dtype` is not.
    """

    node: ast.expr
    dtype: ast.expr | None
    image: ast.expr
    known: bool = True


def whole_cast(tree: ast.Module, function: Definition, value: ast.expr) -> WholeCast | None:
    """Where a value of a function was scaled and made whole; None where its source does not show that.

    Args:
      tree: The file.
      function: The function that gives the value.
      value: The expression, a node of the function.
    """
    for owner, one in _steps(tree, function, value):
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.FloorDiv) and _is_scale(one.right):
            return WholeCast(one, None, one.left)
        found = _cast(tree, one)
        if found is not None:
            return found if _is_scaled(tree, owner, found.image) else None
        slot = _slot(tree, owner, one)
        if slot is not None:
            return slot
    return None


def _cast(tree: ast.Module, node: ast.expr) -> WholeCast | None:
    if not isinstance(node, ast.Call):
        return None
    name, dtype, image = pastes.last_name(node.func), None, node.args[0] if node.args else None
    if name == "astype" and isinstance(node.func, ast.Attribute):
        dtype, image = argument(node, 0, "dtype"), node.func.value
    elif name in ("cast", "array", "asarray"):
        dtype = argument(node, 1, "dtype")
    elif name in _WHOLE - {"int"} and len(node.args) == 1:
        dtype = node.func
    if dtype is None or image is None:
        return None
    is_whole, of_other = _is_whole(tree, dtype), isinstance(dtype, ast.Attribute) and dtype.attr == "dtype"
    return WholeCast(node, dtype, image, is_whole) if is_whole or of_other else None


def _slot(tree: ast.Module, function: Definition, node: ast.expr) -> WholeCast | None:
    """`x[i] = img / 255`, where x was made by `np.empty(shape, dtype=int)`."""
    if not isinstance(node, ast.Name):
        return None
    made = _before(function, node)
    if not isinstance(made, ast.Call) or pastes.last_name(made.func) not in _MAKERS:
        return None
    dtype = argument(made, 1, "dtype")
    puts = [
        one.value for one in code.own_nodes(function)
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Subscript)
        and isinstance(one.targets[0].value, ast.Name) and one.targets[0].value.id == node.id
    ]  # fmt: skip
    if dtype is None or not _is_whole(tree, dtype) or len(puts) != 1 or not _is_scaled(tree, function, puts[0]):
        return None
    return WholeCast(puts[0], dtype, puts[0])


def _is_scaled(tree: ast.Module, function: Definition, value: ast.expr) -> bool:
    """Whether a value was divided by 255, or by its maximum."""
    for owner, one in _steps(tree, function, value):
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div):
            return _is_scale(one.right)
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult):
            return _is_share(one.right) or _is_share(one.left)
        if isinstance(one, ast.Call) and pastes.last_name(one.func) in ("divide", "true_divide") and len(one.args) > 1:
            return _is_scale(one.args[1])
        changed = _statement_before(owner, one) if isinstance(one, ast.Name) else None
        if isinstance(changed, ast.AugAssign):
            return isinstance(changed.op, ast.Div) and _is_scale(changed.value)
    return False


def _is_scale(by: ast.expr) -> bool:
    if isinstance(by, ast.Call):
        return pastes.last_name(by.func) in ("max", "amax", "reduce_max", "float32") and (
            pastes.last_name(by.func) != "float32" or (len(by.args) == 1 and _is_scale(by.args[0]))
        )
    return isinstance(by, ast.Constant) and isinstance(by.value, (int, float)) and by.value >= _LEAST_SCALE


def _is_share(by: ast.expr) -> bool:
    """Whether an expression is `1 / 255`."""
    return (
        isinstance(by, ast.BinOp) and isinstance(by.op, ast.Div) and _is_scale(by.right)
        and isinstance(by.left, ast.Constant) and by.left.value == 1
    )  # fmt: skip


def _is_whole(tree: ast.Module, dtype: ast.expr) -> bool:
    if isinstance(dtype, ast.Name) and dtype.id not in _WHOLE:
        given = pastes.assigned(tree, dtype.id)
        return len(given) == 1 and not isinstance(given[0], ast.Name) and _is_whole(tree, given[0])
    if isinstance(dtype, ast.Constant):
        return dtype.value in _WHOLE
    return isinstance(dtype, (ast.Name, ast.Attribute)) and pastes.last_name(dtype) in _WHOLE


def _steps(tree: ast.Module, function: Definition, value: ast.expr) -> Iterator[tuple[Definition, ast.expr]]:
    """A value, and what it was made of, as long as its numbers stay: with the function that holds each."""
    for _ in range(_DEPTH):
        yield function, value
        made: ast.expr | None = None
        if isinstance(value, ast.Name):
            made = _before(function, value)
            if isinstance(made, ast.List) and not made.elts:
                made = _appended(function, value.id)
        elif isinstance(value, ast.Subscript):
            made = value.value
        elif isinstance(value, ast.Call):
            name = pastes.last_name(value.func)
            called = [
                one for one in code.all_nodes(tree) if isinstance(one, ast.FunctionDef) and one.name == name
            ]  # fmt: skip
            gives = pastes.returns(called[0]) if len(called) == 1 else []
            if len(gives) == 1:
                function, made = called[0], gives[0]
            elif name in _SAME and not called:
                is_method = isinstance(value.func, ast.Attribute) and not _is_module(tree, value.func.value)
                made = value.func.value if is_method and isinstance(value.func, ast.Attribute) else (
                    value.args[0] if value.args else None
                )  # fmt: skip
        if made is None:
            return
        value = made


def _is_module(tree: ast.Module, node: ast.expr) -> bool:
    """Whether an expression begins with a module: `np`, `tf.image`."""
    names = {
        (name.asname or name.name).partition(".")[0] for one in pastes.walk(tree, ast.Import) for name in one.names
    } | {name.asname or name.name for one in pastes.walk(tree, ast.ImportFrom) for name in one.names}
    return code.root(node) in names


def _before(function: Definition, name: ast.Name) -> ast.expr | None:
    """What a name is where it is read; None where that depends on a branch or a loop."""
    found = _statement_before(function, name)
    simple = isinstance(found, ast.Assign) and len(found.targets) == 1 and isinstance(found.targets[0], ast.Name)
    return found.value if simple and isinstance(found, ast.Assign) else None


def _statement_before(function: Definition, name: ast.Name) -> ast.stmt | None:
    """The last statement that stores a name before it is read, in the blocks around it."""
    parents = {child: one for one in ast.walk(function) for child in ast.iter_child_nodes(one)}
    node: ast.AST = name
    while node in parents and node is not function:
        parent = parents[node]
        for block in (getattr(parent, field, None) for field in ("body", "orelse", "finalbody")):
            if isinstance(block, list) and node in block:
                for one in reversed(block[: block.index(node)]):
                    if name.id in code.stored_names(one):
                        return one if isinstance(one, (ast.Assign, ast.AugAssign)) else None
        if isinstance(parent, ast.For) and name.id in code.stored_names(parent.target):
            return None
        node = parent
    return None


def _appended(function: Definition, name: str) -> ast.expr | None:
    """What the only `append` puts into a list."""
    puts = [
        one.args[0] for one in code.own_nodes(function)
        if isinstance(one, ast.Call) and one.args and ast.unparse(one.func) == f"{name}.append"
    ]  # fmt: skip
    return puts[0] if len(puts) == 1 else None
