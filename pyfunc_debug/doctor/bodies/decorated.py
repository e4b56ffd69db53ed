"""Calls of bodies that are decorated to be a node's, read as calls of py_function.

    @tf.numpy_function(Tout=tf.float32)
    def halved(x): ...

    y = halved(x)  # is tf.numpy_function(halved, [x], Tout=tf.float32)

Who asks a file's tree for calls of py_function gets both forms, with the parts in the places of the user's own text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pyfunc_debug.program.syntax import copied, expression

_Body = ast.FunctionDef | ast.AsyncFunctionDef
_MAKERS = ("py_function", "numpy_function")


class List(ast.List):  # named as its base, likewise
    """`[x]` of a call `halved(x)`: it stands where `x` does."""


class Name(ast.Name):  # likewise
    """A parameter that no text has: `x` of `.map(lambda x: halved(x))`, where `.map(halved)` is written."""


class Call(ast.Call):  # named as its base, by which `ast.NodeVisitor` and `ast.unparse` take it
    """`halved(x)`, read as `tf.numpy_function(halved, [x], Tout=tf.float32)`.

    It stands where `halved(x)` does, and so do `halved` and `x`. The function and Tout stand where the decorator is:
    other text for them is a change of the decorator's line.

    Attributes:
      written: The call as it is written; for `halved` in `.map(halved)`, the name.
      head: What new text for it begins with: "lambda x: " where no more than the name is written.
      maker: The decorator.
      body: The function below it.
    """

    written: ast.expr
    head: str
    maker: ast.Call
    body: _Body


def decorator(function: ast.AST) -> ast.Call | None:
    """`tf.numpy_function(Tout=tf.float32)` above a function that is a node's body; None for any other."""
    for one in getattr(function, "decorator_list", ()):
        words = [word.arg for word in one.keywords] if isinstance(one, ast.Call) and not one.args else []
        if isinstance(one, ast.Call) and _name(one.func) in _MAKERS and "Tout" in words:
            return one
    return None


def in_python(call: ast.Call, name: str) -> str:
    """What calls the body itself, of this name, and makes no node: `halved.__wrapped__` of a decorated one."""
    return f"{name}.__wrapped__" if isinstance(call, Call) else name


def desugar(tree: ast.Module) -> list[tuple[Call, ast.Call]]:
    """Puts the calls of py_function in the place of those of decorated bodies.

    Returns:
      The calls for bodies of which only the name is written, which are not put there, and the calls that get the name.
    """
    every = list(ast.walk(tree))
    defined = [one for one in every if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
    if not any(decorator(one) is not None for one in defined):
        return []
    bodies = _bodies(every, defined)
    for node in reversed(every):  # the inner ones first
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                value[:] = [_read(part, bodies) for part in value]
            else:
                setattr(node, name, _read(value, bodies))
    found = [(_mapped(one, bodies), one) for one in every if isinstance(one, ast.Call) and _name(one.func) == "map"]
    return [(call, one) for call, one in found if call is not None]


def _bodies(every: list[ast.AST], defined: list[_Body]) -> dict[str, _Body]:
    """Decorated bodies by what they are called by: `halved`, or `self.halved` of a static method."""
    classes = {id(one): holder for holder in every if isinstance(holder, ast.ClassDef) for one in holder.body}
    others = {one.id for one in every if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    others |= {one.arg for one in every if isinstance(one, ast.arg)}
    others |= {one.asname or one.name for one in every if isinstance(one, ast.alias)}
    found: dict[str, _Body] = {}
    for one in defined:
        holder = classes.get(id(one))
        alone = sum(other.name == one.name for other in defined) == 1 and one.name not in others
        if decorator(one) is None or not alone:
            continue
        if holder is None:
            found[one.name] = one
        elif any(_name(part) == "staticmethod" for part in one.decorator_list):
            found |= {f"{owner}.{one.name}": one for owner in ("self", "cls", holder.name)}
    return found


def _mapped(node: ast.Call, bodies: dict[str, _Body]) -> Call | None:
    """`halved(x)` of `.map(halved)`."""
    first = node.args[0] if node.args else next((one.value for one in node.keywords if one.arg == "map_func"), None)
    given = first if isinstance(node.func, ast.Attribute) else None
    body = bodies.get(given.id) if isinstance(given, ast.Name) else None
    maker = decorator(body) if body is not None else None
    if given is None or body is None or maker is None or body.args.vararg or body.args.kwonlyargs or body.args.defaults:
        return None
    names = [one.arg for one in (*body.args.posonlyargs, *body.args.args)]
    inputs = List([_placed(Name(one, ast.Load()), given) for one in names], ast.Load())
    found = Call(copied(maker.func), [copied(given), _placed(inputs, given)], [copied(one) for one in maker.keywords])
    found.written, found.maker, found.body, found.head = given, maker, body, f"lambda {', '.join(names)}: "
    return _placed(found, given)


def undone(node: ast.AST) -> ast.AST:
    """A copy of a node in which the calls are as they are written."""
    node = copied(node.written if isinstance(node, Call) else node)
    for one in list(ast.walk(node)):
        for name, value in ast.iter_fields(one):
            if isinstance(value, list):
                value[:] = [part.written if isinstance(part, Call) else part for part in value]
            elif isinstance(value, Call):
                setattr(one, name, value.written)
    return node


def undecorated(
    calls: list[Call], pieces: Mapping[ast.expr, str], text: Callable[[ast.AST], str], bare: bool = False
) -> Pieces | None:
    """Pieces of text for the places of a file, where some are for parts that only a call of py_function has.

    Args:
      calls: The file's calls of decorated bodies.
      pieces: Expressions and their new texts.
      text: Gives the text of a node.
      bare: Whether the new text of a call is to call the function itself.

    Returns:
      The pieces, and the decorators that go; None where the file calls such a body elsewhere, too, or where a
      parameter is to be replaced that no text has.
    """
    found, gone = dict(pieces), []
    if any(isinstance(part, Name) for part in pieces):
        return None
    for call in calls:
        body, inputs = call.args[0], call.args[1]
        listed = {part: new for part, new in found.items() if isinstance(part, List) and _same(part, inputs)}
        plain = {part: new for part, new in found.items() if not isinstance(part, List)}
        own = listed | {
            part: new for part, new in plain.items()
            if any(_same(part, one) and _kind(part) is _kind(one) for one in (call, body))
        }  # fmt: skip
        whole = next((new for part, new in own.items() if isinstance(part, ast.Call)), None)
        in_python = whole is not None and re.search(rf"_function\(|\b{call.body.name}\b(?!\()", whole) is None
        if not own or (in_python and not bare):
            continue
        if whole is None:
            kept = _given(call, own) or _returned(call, own, text)
            if kept is not None:
                found = {part: new for part, new in found.items() if part not in own} | kept
                continue
        others = [one for one in calls if one.maker is call.maker and one is not call]
        if others or call.body.decorator_list != [call.maker]:
            return None
        if whole is None:
            words = [(call.func, ""), (body, ""), (inputs, ""), *((one.value, one.arg) for one in call.keywords)]
            texts = []
            for part, name in words:
                new = next((new for one, new in found.items() if _same(one, part) and type(one) is type(part)), None)
                texts.append((f"{name}=" if name not in ("", "Tout") else "") + (text(part) if new is None else new))
            found = {
                part: new for part, new in found.items()
                if not any(_same(part, one) and type(one) is type(part) for one, _ in words)
            }  # fmt: skip
            found[call] = f"{texts[0]}({', '.join(texts[1:])})"
        gone.append(call.maker)
    return Pieces(found, gone)


@dataclass(frozen=True)
class Pieces:
    """New texts for expressions, and the decorators whose lines go."""

    texts: dict[ast.expr, str]
    gone: list[ast.Call]


def _given(call: Call, own: Mapping[ast.expr, str]) -> dict[ast.expr, str] | None:
    """Other inputs for the body: `halved(y)` for `[y]`."""
    ((part, new), *more) = own.items()
    listed = expression(new) if isinstance(part, List) and not more and new.startswith("[") else None
    return {call: f"{ast.unparse(call.args[0])}({new[1:-1]})"} if isinstance(listed, ast.List) else None


def _returned(call: Call, own: Mapping[ast.expr, str], text: Callable[[ast.AST], str]) -> dict[ast.expr, str] | None:
    """`lambda *x: str(halved(*x))` for the body as what the body returns: `str(x / 2)`."""
    called = f"{call.body.name}(*x)"
    ((part, new), *more) = own.items()
    values = [one.value for one in ast.walk(call.body) if isinstance(one, ast.Return)]
    if more or isinstance(part, List) or not new.startswith("lambda *x: ") or len(values) != 1:
        return None
    if new.count(call.body.name) != 1 or called not in new:
        return None
    value = values[0]
    if value is None or value.lineno != value.end_lineno:
        return None
    given = text(value) if f"({called})" in new else f"({text(value)})"
    return {value: new.removeprefix("lambda *x: ").replace(called, given)}


def _kind(node: ast.AST) -> type[ast.AST]:
    """Call or another: `.map(halved)` has its call where the name of the body stands."""
    return ast.Call if isinstance(node, ast.Call) else ast.expr


def _same(one: ast.AST, other: ast.AST) -> bool:
    return all(
        getattr(one, name, None) == getattr(other, name, None)
        for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")
    )


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _dotted(node: ast.expr) -> str:
    """`self.halved` or `halved`; empty for what is longer."""
    owner = node.value if isinstance(node, ast.Attribute) else None
    return f"{owner.id}.{_name(node)}" if isinstance(owner, ast.Name) else "" if owner is not None else _name(node)


def _read(node: object, bodies: dict[str, _Body]) -> object:
    body = bodies.get(_dotted(node.func)) if isinstance(node, ast.Call) and not node.keywords else None
    maker = decorator(body) if body is not None else None
    if body is None or maker is None or not isinstance(node, ast.Call):
        return node
    inputs = List(list(node.args), ast.Load())
    _place(inputs, node.args[0] if node.args else node, node.args[-1] if node.args else node)
    if not node.args:
        inputs.lineno = inputs.end_lineno = node.end_lineno or node.lineno
        inputs.col_offset = inputs.end_col_offset = (node.end_col_offset or 1) - 1
    found = Call(copied(maker.func), [node.func, inputs], [copied(one) for one in maker.keywords])
    _place(found, node, node)
    found.written, found.maker, found.body, found.head = node, maker, body, ""
    return found


_Node = TypeVar("_Node", bound=ast.expr)


def _placed(node: _Node, other: ast.expr) -> _Node:
    _place(node, other, other)
    return node


def _place(node: ast.expr, first: ast.expr, last: ast.expr) -> None:
    node.lineno, node.col_offset = first.lineno, first.col_offset
    node.end_lineno, node.end_col_offset = last.end_lineno, last.end_col_offset
