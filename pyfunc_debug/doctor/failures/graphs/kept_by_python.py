"""A number that Python keeps of each step, `self.means.append(float(x))`, taken by a py_function as the graph runs."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, root_is, symbolic_parts

_CONVERTS = ("float", "int", "bool", "str", "array", "asarray", "float32", "float64", "int32", "int64")
_KEEPS = ("append", "appendleft", "add")


def edit(spot: Spot, statement: ast.stmt) -> Edit | None:
    """The statement, and the one behind it that keeps its result, as one py_function; None for everything else.

    Args:
      spot: The frame that failed.
      statement: Its statement.
    """
    source = spot.source
    if isinstance(statement, ast.Expr):
        keeps, value, last, name = statement.value, _kept(statement.value), statement, ""
    elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        after = _following(spot, statement)
        name, value = statement.targets[0].id, statement.value
        if not isinstance(after, ast.Expr) or not _is(_kept(after.value), name) or _reads(spot, name) != 1:
            return None
        keeps, last = after.value, after
    else:
        return None
    tensor = _converted(value) if value is not None else None
    if tensor is None or value is None or not isinstance(keeps, ast.Call) or not symbolic_parts(tensor, spot):
        return None
    if not all(root_is(one.func, spot, "tensorflow") for one in calls(tensor)):
        return None
    tf, name = alias(spot, "tensorflow"), name or "value"
    kept = source.text(value).replace(source.text(tensor), name, 1)
    indent = indent_of(source.lines[statement.lineno - 1])
    text = f"{indent}{tf}.py_function(lambda {name}: {source.text(keeps.func)}({kept}), [{source.text(tensor)}], [])"
    return Edit(spot.file, statement.lineno, last.end_lineno or last.lineno, (text,))


def _kept(node: ast.expr) -> ast.expr | None:
    """`x` of `self.means.append(x)`."""
    found = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS
    return node.args[0] if found and isinstance(node, ast.Call) and len(node.args) == 1 else None


def _is(node: ast.expr | None, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _converted(node: ast.expr) -> ast.expr | None:
    """The tensor in `float(x)`, `np.array(x)`, `x.numpy()`, `float(x.numpy())`; None where nothing is converted."""
    found = None
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("numpy", "item") and not node.args:
            node = found = node.func.value
        elif dotted(node.func).rpartition(".")[2] in _CONVERTS and len(node.args) == 1 and not node.keywords:
            node = found = node.args[0]
        else:
            break
    return found


def _following(spot: Spot, statement: ast.stmt) -> ast.stmt | None:
    parent = spot.source.parent(statement)
    body: list[ast.stmt] = getattr(parent, "body", [])
    place = next((index for index, one in enumerate(body) if one is statement), None)
    return body[place + 1] if place is not None and place + 1 < len(body) else None


def _reads(spot: Spot, name: str) -> int:
    function = spot.function
    every = ast.walk(function) if function is not None else ()
    return sum(isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load) for one in every)
