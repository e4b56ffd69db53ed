"""Arithmetic with a dimension that is None at trace: `x.shape[0]` where the size is known only when the graph runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor.failures import wrapping
from pyfunc_debug.doctor.failures.dtypes import own_nodes
from pyfunc_debug.doctor.failures.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.rewrites import created
from pyfunc_debug.doctor.failures.situation import Situation, Spot
from pyfunc_debug.doctor.failures.source import dotted, indent_of, names, short
from pyfunc_debug.doctor.failures.symbols import alias, described, is_symbolic, lookup, root_is, shape_of

RULE = "symbolic-value"
_NONE = re.compile(r"NoneType|\bNone\b")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a None of a shape is why the program failed."""
    spot = situation.last
    if (
        spot is None
        or situation.body
        or situation.kind not in ("TypeError", "ValueError")
        or not _NONE.search(situation.message)
    ):
        return None
    statement = spot.source.statement(spot.line)
    if statement is None:
        return None
    header = [one for one in (wrapping.value_here(spot, statement),) if one is not None]
    for node in header:
        for read, tensor, value in _reads(node, spot):
            if _size(read, value) is None:
                return _explanation(spot, statement, tensor, value, _in_place(spot, node), read)
    return _bound_before(spot, statement, header)


def _reads(node: ast.AST, spot: Spot) -> Iterator[tuple[ast.Subscript, str, object]]:
    """`x.shape[0]` and `x.get_shape().as_list()[0]`, with `x` and its value."""
    for one in ast.walk(node):
        if not isinstance(one, ast.Subscript):
            continue
        owner = _tensor_of(one.value)
        value = lookup(owner, spot) if owner is not None else None
        if owner is not None and is_symbolic(value) and shape_of(value) is not None:
            yield one, spot.source.text(owner), value


def _tensor_of(node: ast.expr) -> ast.expr | None:
    """`x` of `x.shape`, `x.shape.as_list()`, `x.get_shape()`, `tf.keras.backend.int_shape(x)`."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("as_list", "get_shape")
    ):
        if node.func.attr == "get_shape":
            return node.func.value
        node = node.func.value
    if isinstance(node, ast.Attribute) and node.attr == "shape":
        return node.value
    if isinstance(node, ast.Call) and dotted(node.func).endswith("int_shape") and node.args:
        return node.args[0]
    return None


def _size(read: ast.Subscript, value: object) -> object:
    shape = shape_of(value) or ()
    try:
        index = ast.literal_eval(read.slice)
        return shape[index] if isinstance(index, int) else 0
    except (ValueError, IndexError, TypeError):
        return 0


def _in_place(spot: Spot, node: ast.expr) -> Edit | None:
    tf = alias(spot, "tensorflow")
    pieces: dict[ast.expr, str] = {}
    for one, name, other in _reads(node, spot):
        if _size(one, other) is None:
            pieces[one] = f"{tf}.shape({name})[{spot.source.text(one.slice)}]"
    for call in ast.walk(node):  # NumPy makes no array of such a size, and range has no such length
        if isinstance(call, ast.Call) and any(_inside(part, call) for part in pieces):
            makes = created(dotted(call.func).rpartition(".")[2]) if root_is(call.func, spot, "numpy") else None
            if makes or dotted(call.func) == "range":
                pieces[call.func] = f"{tf}.{makes or 'range'}"
    found = spot.source.replaced(pieces)
    return None if found is None else Edit(spot.file, found[0], found[1], (found[2],))


def _bound_before(spot: Spot, statement: ast.stmt, header: list[ast.expr]) -> Explanation | None:
    """`batch = x.shape[0]` or `b, h, w = x.shape`, and a later line that computes with it."""
    used = [name for node in header for name in names(node) if name in spot.variables and spot.variables[name] is None]
    function = spot.function
    if not used or function is None:
        return None
    tf = alias(spot, "tensorflow")
    for one in own_nodes(function):
        if not isinstance(one, ast.Assign) or one.lineno > spot.line or len(one.targets) != 1:
            continue
        target = one.targets[0]
        if isinstance(target, ast.Name) and target.id in used:
            for read, tensor, value in _reads(one.value, spot):
                if _size(read, value) is None:
                    return _explanation(spot, statement, tensor, value, _in_place(spot, one.value), read)
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(one.value, ast.Tuple):
            for part, value in zip(target.elts, one.value.elts):
                for read, tensor, owned in _reads(value, spot) if getattr(part, "id", "") in used else ():
                    if _size(read, owned) is None:
                        return _explanation(spot, statement, tensor, owned, _in_place(spot, one.value), read)
            continue
        if isinstance(target, (ast.Tuple, ast.List)) and any(getattr(part, "id", "") in used for part in target.elts):
            owner = _tensor_of(one.value)
            value = lookup(owner, spot) if owner is not None else None
            shape = shape_of(value) if is_symbolic(value) else None
            if owner is not None and shape is not None:
                name = spot.source.text(owner)
                sizes = [
                    f"{tf}.shape({name})[{index}]" if size is None else str(size) for index, size in enumerate(shape)
                ]
                blanks = indent_of(spot.source.lines[one.lineno - 1])
                line = f"{blanks}{spot.source.text(target).strip('()')} = {', '.join(sizes)}"
                edit = Edit(spot.file, one.lineno, one.end_lineno or one.lineno, (line,))
                return _explanation(spot, statement, name, value, edit, None)
    return None


def _explanation(
    spot: Spot, statement: ast.stmt, tensor: str, value: object, edit: Edit | None, read: ast.Subscript | None
) -> Explanation:
    code = short(spot.source.text(statement).split("\n")[0], 44)
    tf = alias(spot, "tensorflow")
    what = f"{tensor}.shape" if read is None else spot.source.text(read)
    cause = (
        f"`{code}` ran at trace, where {what} is None: {tensor} is {described(value)}, and the ? is known "
        "only when the "
        f"graph runs. {tf}.shape({tensor}) is a tensor that has it then."
    )
    return Explanation(RULE, spot.file, spot.line, cause, edit)


def _inside(node: ast.AST, other: ast.AST) -> bool:
    return any(one is node for one in ast.walk(other))
