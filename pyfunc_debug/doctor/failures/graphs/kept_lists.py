"""Lists that a loop of a graph collects in: the symbols stay inside the loop, a TensorArray brings the values out."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.dtypes import Guess, assignments, own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    dtype_of,
    is_symbolic,
    root_is,
    shape_of,
    symbolic_parts,
)

_LONGEST = 24
"""Lines that a paste may hold."""
_WRITES = ("append", "insert")
_STACKS = {"stack", "convert_to_tensor", "constant"}


def in_arrays(spot: Spot, function: ast.AST, decorated: bool = False, leaked: str = "") -> tuple[Edit, bool] | None:
    """A function's lists that its loops over tensors write into, as TensorArrays.

    Args:
      spot: A frame of the function: knows its module, and its variables where it still ran.
      function: Its definition.
      decorated: Whether `@tf.function` is to stand above it, where AutoGraph does not convert it yet.
      leaked: Dtype of the tensor that left a loop, if the failure says it.

    Returns:
      What to paste, and whether all dtypes in it are known; None where something else is done with the lists.
    """
    if not isinstance(function, ast.FunctionDef):
        return None
    if any(root_is(one.func, spot, "numpy") or dotted(one.func).endswith(".numpy") for one in calls(function)):
        return None  # it would need values besides
    source, tf = spot.source, alias(spot, "tensorflow")
    pieces: dict[ast.expr, str] = {}
    sure = True
    loops = [one for one in own_nodes(function) if isinstance(one, (ast.For, ast.While)) and _in_graph(one, spot)]
    for name, made in _lists(function).items():
        used = _used(source, function, name)
        written = [one for one in used if isinstance(one, ast.Call)]
        if not any(one in ast.walk(loop) for one in written for loop in loops):
            continue
        dtype, shape = _element(spot, function, name, written, leaked)
        sure = sure and dtype is not None
        read = [one for one in used if not isinstance(one, ast.Call)]
        front = [_method(one) == "insert" for one in written]
        if any(front) and not all(front):
            return None
        options = ["size=0", "dynamic_size=True", *([f"element_shape={shape}"] if shape else [])]
        options += ["clear_after_read=False"] if len(read) > 1 else []
        array = f"{tf}.TensorArray({dtype or f'{tf}.float32'}, {', '.join(options)})"
        pieces |= dict.fromkeys(made, array)
        for one in used:
            found = _appended(source, one, name) if isinstance(one, ast.Call) else _read(source, one, name, spot)
            if found is None or (any(front) and any(way in found[1] for way in (".read(", ".concat()"))):
                return None
            reversed_ = any(front) and not isinstance(one, ast.Call) and found[1].endswith(".stack()")
            pieces[found[0]] = f"{found[1]}[::-1]" if reversed_ else found[1]
    pieces |= dict(_items(source, function, loops))
    if not pieces:
        return None
    pieces = _outermost(pieces)
    first, last = min(one.lineno for one in pieces), max(one.end_lineno or one.lineno for one in pieces)
    head: tuple[str, ...] = ()
    if decorated and not function.decorator_list:
        first = function.lineno
        head = (f"{indent_of(source.lines[first - 1])}{wrapping.converting(spot, function)}",)
    if last - first >= _LONGEST:
        return None
    return Edit(spot.file, first, last, (*head, *source.spliced(pieces, first, last))), sure


def _in_graph(loop: ast.For | ast.While, spot: Spot) -> bool:
    """Whether a loop becomes one of the graph's: over tf.range, or a tensor; of any other `while` nothing is known."""
    if isinstance(loop, ast.While):
        return True
    if isinstance(loop.iter, ast.Call):
        counted = dotted(loop.iter.func) == "range" and bool(symbolic_parts(loop.iter, spot))
        return counted or root_is(loop.iter.func, spot, "tensorflow")
    name = dotted(loop.iter)
    return bool(name) and (is_symbolic(spot.value(name)) or name not in spot.module)


def _lists(function: ast.FunctionDef) -> dict[str, list[ast.expr]]:
    """Names that begin as empty lists, and all the expressions that make them so."""
    found: dict[str, list[ast.expr]] = {}
    other = set()
    for one in own_nodes(function):
        for target in one.targets if isinstance(one, ast.Assign) else []:
            if not isinstance(target, ast.Name):
                continue
            value = one.value  # type: ignore[attr-defined]
            if isinstance(value, ast.List) and not value.elts:
                found.setdefault(target.id, []).append(value)
            else:
                other.add(target.id)
    return {name: made for name, made in found.items() if name not in other}


def _used(source: Source, function: ast.FunctionDef, name: str) -> list[ast.expr]:
    """The calls of its `append` and `insert`, and all other places where a list is read."""
    found: list[ast.expr] = []
    for one in ast.walk(function):
        if not isinstance(one, ast.Name) or one.id != name or not isinstance(one.ctx, ast.Load):
            continue
        method = source.parent(one)
        call = source.parent(method) if isinstance(method, ast.Attribute) and method.attr in _WRITES else None
        found.append(call if isinstance(call, ast.Call) else one)
    return found


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _appended(source: Source, call: ast.Call, name: str) -> tuple[ast.expr, str] | None:
    """`append(x)`, and `insert(0, x)` of a list that is read from its end then."""
    place, value = call.args[:-1], call.args[-1] if call.args else None
    first = [isinstance(one, ast.Constant) and type(one.value) is int and one.value == 0 for one in place]
    if value is None or isinstance(value, ast.Lambda) or not isinstance(source.parent(call), ast.Expr) or call.keywords:
        return None
    if first != ([True] if _method(call) == "insert" else []):
        return None
    return call, f"{name} = {name}.write({name}.size(), {source.text(value)})"


def _read(source: Source, node: ast.expr, name: str, spot: Spot) -> tuple[ast.expr, str] | None:
    """What stands for a list where it is read: the values stacked, in one of the ways that are meant by it."""
    around = source.parent(node)
    if isinstance(around, ast.Attribute):  # another method
        return None
    if isinstance(around, ast.Subscript) and around.value is node:
        index = around.slice
        if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
            return around, f"{name}.read({name}.size() - {source.text(index.operand)})"
        return None if isinstance(index, (ast.Slice, ast.Tuple)) else (around, f"{name}.read({source.text(index)})")
    if isinstance(around, ast.Call) and around.args[:1] == [node]:
        called = dotted(around.func).rpartition(".")[2]
        rest = [*around.args[1:], *(one.value for one in around.keywords)]
        first_axis = all(isinstance(one, ast.Constant) and one.value == 0 for one in rest)
        if called == "len":
            return around, f"{name}.size()"
        if called in _STACKS and first_axis:
            return around, f"{name}.stack()"
        if called == "concat" and first_axis:
            return around, f"{name}.concat()"
        if called in ("stack", "concat"):
            return None
        if called in ("add_n", "sum") and not rest:
            return around, f"{alias(spot, 'tensorflow')}.reduce_sum({name}.stack(), 0)"
    return node, f"{name}.stack()"


def _element(
    spot: Spot, function: ast.FunctionDef, name: str, written: list[ast.Call], leaked: str
) -> tuple[str | None, str]:
    """Dtype and static shape of what a list holds: of what it held when the program failed, else by the source."""
    held: Any = spot.variables.get(name)
    tf = alias(spot, "tensorflow")
    nested = isinstance(held, list) and bool(held) and isinstance(held[0], list)
    while isinstance(held, list) and held:
        held = held[0]
        if is_symbolic(held):
            shape = shape_of(held)
            sizes = "" if nested or shape is None else ", ".join("None" if one is None else str(one) for one in shape)
            return f"{tf}.{dtype_of(held)}", f"[{sizes}]" if shape is not None and not nested else ""
    if leaked and len(_lists(function)) == 1:
        return f"{tf}.{leaked}", ""
    found = {Guess(spot, assignments(function)).of(one.args[-1]) for one in written if one.args}
    if len(found) == 1 and None not in found:
        return found.pop(), ""
    kinds = {dtype_of(one) for one in spot.variables.values() if is_symbolic(one) and "float" in dtype_of(one)}
    return (f"{tf}.{kinds.pop()}" if len(kinds) == 1 else None), ""


def _items(
    source: Source, function: ast.FunctionDef, loops: list[ast.For | ast.While]
) -> Iterator[tuple[ast.expr, str]]:
    """`parts[j] = x` of a list in a loop, as a new list: AutoGraph keeps names, not what they hold."""
    lists = {
        target.id for one in own_nodes(function) if isinstance(one, ast.Assign) for target in one.targets
        if isinstance(target, ast.Name) and isinstance(one.value, (ast.List, ast.ListComp))
    }  # fmt: skip
    for loop in loops:
        for one in own_nodes(loop):
            target = one.target if isinstance(one, ast.AugAssign) else None
            if isinstance(one, ast.Assign) and len(one.targets) == 1:
                target = one.targets[0]  # type: ignore[assignment]
            if not isinstance(target, ast.Subscript) or dotted(target.value) not in lists:
                continue
            if isinstance(target.slice, (ast.Slice, ast.Tuple)):
                continue
            name, index = source.text(target.value), source.text(target.slice)
            value = source.text(one.value)  # type: ignore[attr-defined]
            if isinstance(one, ast.AugAssign):
                value = f"{name}[{index}] {_SIGNS.get(type(one.op), '+')} ({value})"
            whole = ast.Name("item", ast.Load())
            whole.lineno, whole.col_offset = one.lineno, one.col_offset  # type: ignore[attr-defined]
            whole.end_lineno, whole.end_col_offset = one.end_lineno, one.end_col_offset  # type: ignore[attr-defined]
            after = str(int(index) + 1) if index.isdigit() else f"{index} + 1"
            yield whole, f"{name} = {name}[:{index}] + [{value}] + {name}[{after}:]"


_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def _outermost(pieces: Mapping[ast.expr, str]) -> dict[ast.expr, str]:
    """Without what stands inside another: `S.append(S_n)`, whose text takes the inner one's."""
    found = dict(pieces)
    for one in pieces:
        for other in pieces:
            if one is not other and one in ast.walk(other):
                inner, text = found.pop(one, None), found[other]
                name = getattr(one, "id", "")
                found[other] = text.replace(f", {name})", f", {inner})") if inner and name else text
    return found
