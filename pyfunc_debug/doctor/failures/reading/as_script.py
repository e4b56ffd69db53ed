"""A program in `main()`, or in the methods of an object, read as the script that it could be.

Causes follow a name from the line that failed to where it was made, in one function or in the file. In a program of
`def main()` the file has no names, and in one of a Trainer's `__init__` and `train` each is an attribute. Here the
statements of the functions that were running stand in the file itself, and `self.model` is a name with a value.
"""

from __future__ import annotations

import ast
import dataclasses
import types
from collections import ChainMap
from collections.abc import Iterator, Mapping
from typing import Any

from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.doctor.failures.reading.symbols import only_keeps

_OF_VALUES = (ast.Yield, ast.YieldFrom, ast.Await)


def as_script(source: Source, situation: Situation) -> Situation:
    """Puts the statements of the functions that were running, and of their object's other methods, into the file.

    The frames of the user's that call each other, without TensorFlow or Keras between, become one.
    """
    chain = _own_frames(source, situation)
    if not chain or _differ(chain[-1].variables, chain[-1].module):
        return situation
    last = chain[-1]
    functions: list[ast.FunctionDef] = []
    variables: dict[str, Any] = {}
    for spot in reversed(chain):
        function = _definition(source, spot)
        if function is not None and not _differ(spot.variables, variables):
            functions.append(function)
            variables = {**spot.variables, **variables}
    owner, kind = _owner(source, last)
    if kind is not None:
        fields, methods = vars(owner), _methods(kind, owner, {*variables, *last.module})
        functions += [one for one in _others(kind, fields, variables) if one not in functions]
        _Owned(set(fields), set(methods)).visit(kind)
        variables = {**variables, **methods, **{f"self.{name}": value for name, value in fields.items()}}
    if not functions:
        return situation
    for one in functions:
        _splice(source, one)
    module = ChainMap(variables, dict(last.module))
    inner = [
        dataclasses.replace(spot, module=module) if spot.source is source else spot
        for spot in situation.spots[situation.spots.index(last) + 1 :]
    ]
    whole = dataclasses.replace(last, variables=module, module=module, code="<module>")
    return dataclasses.replace(situation, spots=(whole, *inner))


def _own_frames(source: Source, situation: Situation) -> list[Spot]:
    """The outermost frames, up to the first that a library called."""
    found: list[Spot] = []
    for spot in situation.spots:
        inside = spot.code.startswith("<") and spot.code != "<module>"
        if spot.by or spot.generated or inside or spot.source is not source:
            break
        found.append(spot)
    return found


def _differ(some: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Whether a name stands for one thing here and another there."""
    return any(others[name] is not some[name] for name in some if name in others)


def _definition(source: Source, spot: Spot) -> ast.FunctionDef | None:
    """The function of a frame, if it is in no other."""
    found = spot.function
    if not isinstance(found, ast.FunctionDef) or found.name != spot.code or not _runs_at_once(found):
        return None
    inside = any(isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) for one in source.around(found))
    return None if inside else found


def _runs_at_once(function: ast.FunctionDef) -> bool:
    """Whether a call runs its statements, and these share no name with another scope."""
    other = (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)
    return not function.decorator_list and not any(isinstance(one, other) for one in own_nodes(function))


def _owner(source: Source, spot: Spot) -> tuple[Any, ast.ClassDef | None]:
    """`self` of a frame, and its class, if that extends no library's: what these keep is more than attributes."""
    owner, function = spot.variables.get("self"), spot.function
    kind = source.parent(function) if function is not None else None
    if not isinstance(kind, ast.ClassDef) or kind.name not in [one.__name__ for one in type(owner).__mro__]:
        return None, None
    return (owner, kind) if only_keeps(owner) else (None, None)


def _methods(kind: ast.ClassDef, owner: Any, taken: set[str]) -> dict[str, Any]:
    """The methods of a class that may be called by their names alone, with their object."""
    own = {one.name: vars(type(owner)).get(one.name) for one in kind.body if isinstance(one, ast.FunctionDef)}
    return {
        name: types.MethodType(method, owner) for name, method in own.items()
        if isinstance(method, types.FunctionType) and name not in taken
    }  # fmt: skip


def _others(kind: ast.ClassDef, fields: Mapping[str, Any], variables: Mapping[str, Any]) -> Iterator[ast.FunctionDef]:
    """`__init__`, and methods that take and give nothing, of which no name stands for something else in the frames."""
    for one in kind.body:
        if not isinstance(one, ast.FunctionDef) or not _runs_at_once(one):
            continue
        nodes = own_nodes(one)
        arguments = {each.arg for each in nodes if isinstance(each, ast.arg)} - {"self"}
        gives = any(isinstance(each, ast.Return) and each.value is not None for each in nodes)
        if gives or (arguments and one.name != "__init__"):
            continue
        bound = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        kept = {name for name in arguments - bound if name in fields and fields[name] is variables.get(name)}
        if not (arguments | bound) - kept & variables.keys():
            yield one


class _Owned(ast.NodeTransformer):
    """`self.model` as a name, and `self.step` of a method as that of a function."""

    def __init__(self, fields: set[str], methods: set[str]) -> None:
        self._fields, self._methods = fields, methods

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not isinstance(node.value, ast.Name) or node.value.id != "self":
            return self.generic_visit(node)
        if node.attr in self._methods and node.attr not in self._fields:
            return ast.copy_location(ast.Name(node.attr, node.ctx), node)
        return ast.copy_location(ast.Name(f"self.{node.attr}", node.ctx), node)


def _splice(source: Source, function: ast.FunctionDef) -> None:
    """Puts a function's statements where it stands: those of a method behind its class."""
    holder = source.parent(function)
    block = getattr(holder, "body", [])
    if function not in block:
        return
    statements = [_Plain().visit(one) for one in function.body]
    if not isinstance(holder, ast.ClassDef):
        place = block.index(function)
        block[place : place + 1] = statements
        return
    block.remove(function)
    around = source.block(holder) or source.tree.body
    place = around.index(holder) + 1
    while place < len(around) and around[place].lineno < function.lineno:
        place += 1
    around[place:place] = statements
    if not block:
        around.remove(holder)


class _Plain(ast.NodeTransformer):
    """`return x` of a function as `x`."""

    def visit_Return(self, node: ast.Return) -> ast.AST:
        return ast.copy_location(ast.Pass() if node.value is None else ast.Expr(node.value), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node
