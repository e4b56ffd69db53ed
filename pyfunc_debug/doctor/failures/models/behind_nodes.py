"""What of a model follows a py_function: in the converter's own words, or in the source."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from pyfunc_debug.doctor.failures.reading.nodes import Node
from pyfunc_debug.doctor.failures.reading.source import Source, dotted

_RESULT = re.compile(r"^\s*(%\w+)(?::\d+)? = \"?([\w.]+)\"?(.*)$")
_RETURNED = re.compile(r"^\s*\"?(?:func\.)?return\b")
_VALUE = re.compile(r"%\w+")
_SHAPES_ONLY = frozenset({"cast", "ensureshape", "expand_dims", "expanddims", "identity", "reshape", "squeeze"})
"""Ops of TensorFlow and TensorFlow Lite behind which there are the same numbers."""
_SAME = frozenset({
    "cast", "ensure_shape", "expand_dims", "identity", "reshape", "set_shape", "squeeze", "get_shape",
    "Identity", "Reshape",
})  # fmt: skip
_NO_PART = frozenset({"Model", "append", "eval", "print", "run"})
"""Calls by which a result is no more than given out."""
_MOST_HOLDERS = 3


@dataclass
class Behind:
    """What follows.

    Attributes:
      follows: Whether something does; None where that is not known.
      lines: The user's lines of it, those that are known.
    """

    follows: bool | None = None
    lines: set[int] = field(default_factory=set)


def behind(node: Node, text: str) -> Behind:
    """What follows a node in a model that TensorFlow Lite's converter, or its interpreter, said this of."""
    found = Behind()
    call = node.call()
    if call is not None:
        _read(node.source, call, found, _MOST_HOLDERS)
        found.follows = True if found.lines else found.follows
    told = _told(node.token, text)
    found.follows = found.follows if told is None else told
    return found


def _told(token: str, text: str) -> bool | None:
    """Whether ops follow a node in the module that the converter prints when it fails."""
    of_node: set[str] = set()
    named = re.compile(rf'PyFunc.* token = "{token}\+?"')  # with a mark while it is recorded
    outer = ""
    for line in text[max(0, text.rfind('"func.func"')) :].splitlines():
        made = _RESULT.match(line)
        if made is not None and made[2].endswith("custom_tf"):
            outer = made[1]
        if not of_node and named.search(line):
            of_node = {outer or (made[1] if made is not None else "")}
        elif of_node and _RETURNED.match(line):
            return False if of_node & set(_VALUE.findall(line)) else None
        elif of_node and made is not None and of_node & set(_VALUE.findall(made[3])):
            if made[2].rpartition(".")[2].lower() not in _SHAPES_ONLY:
                return True
            of_node.add(made[1])
        if line.lstrip().startswith("})"):
            outer = ""
    return None


def _read(source: Source, value: ast.expr, found: Behind, depth: int) -> None:
    """Follows a value through the statements behind it, and through what calls the function that returns it."""
    holder = next((one for one in source.around(value) if isinstance(one, (ast.FunctionDef, ast.Lambda))), None)
    names, returned = set[str](), False
    if isinstance(holder, ast.Lambda):
        returned = _works(source, value, holder, found) is False
    else:
        scope: ast.AST = holder if holder is not None else source.tree
        statements = [
            one for one in ast.walk(scope) if isinstance(one, (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return))
        ]
        for one in sorted(statements, key=lambda each: each.lineno):
            if one.lineno < value.lineno and not one.lineno <= value.lineno <= (one.end_lineno or one.lineno):
                continue
            uses = [
                each for each in ast.walk(one)
                if each is value or (isinstance(each, ast.Name) and each.id in names and isinstance(each.ctx, ast.Load))
            ]  # fmt: skip
            works = [_works(source, each, one, found) for each in uses if isinstance(each, ast.expr)]
            if all(each is None for each in works):
                continue
            if isinstance(one, (ast.Assign, ast.AnnAssign)):
                for target in one.targets if isinstance(one, ast.Assign) else [one.target]:
                    names |= {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}
            returned = returned or (isinstance(one, ast.Return) and False in works)
        if holder is None and not found.lines:
            found.follows = False
    callers = (
        _callers(source, holder) if returned and depth and isinstance(holder, (ast.FunctionDef, ast.Lambda)) else []
    )
    for caller in callers:
        _read(source, caller, found, depth - 1)


def _works(source: Source, value: ast.expr, until: ast.AST, found: Behind) -> bool | None:
    """Notes the line if something is computed from a value, in the statement or lambda that it is a part of.

    None if its numbers go nowhere from there: its shape is asked for, or a model made of it.
    """
    inner: ast.AST = value
    for one in source.around(value):
        if one is until:
            return False
        if isinstance(one, ast.Attribute) and one.attr == "shape":
            return None
        if isinstance(one, ast.Call):
            name = one.func.attr if isinstance(one.func, ast.Attribute) else dotted(one.func)
            if name in _NO_PART:
                return None
            if name not in _SAME and one.func is not inner:
                found.lines.add(one.lineno)
                return True
        elif isinstance(one, (ast.BinOp, ast.Compare)):
            found.lines.add(one.lineno)
            return True
        inner = one
    return False


def _callers(source: Source, holder: ast.FunctionDef | ast.Lambda) -> list[ast.Call]:
    """Calls of a function, of a layer's object, and of a Lambda layer."""
    calls = [one for one in ast.walk(source.tree) if isinstance(one, ast.Call)]
    if isinstance(holder, ast.Lambda):
        made = source.parent(holder)
        return [one for one in calls if one.func is made]
    owner = next((one for one in source.around(holder) if isinstance(one, ast.ClassDef)), None)
    name = owner.name if owner is not None else holder.name
    if owner is not None and holder.name not in ("call", "__call__"):
        return [one for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr == holder.name]
    objects = {
        dotted(target) for one in ast.walk(source.tree) if isinstance(one, ast.Assign) and _makes(one.value, name)
        for target in one.targets
    }  # fmt: skip
    return [
        one for one in calls
        if _makes(one.func, name)
        or (isinstance(one.func, (ast.Name, ast.Attribute)) and dotted(one.func) in objects)
        or (owner is None and isinstance(one.func, ast.Name) and one.func.id == name)
    ]  # fmt: skip


def _makes(value: ast.AST, name: str) -> bool:
    """Whether an expression makes a layer of a class, or a Lambda of a function."""
    return isinstance(value, ast.Call) and (
        (isinstance(value.func, ast.Name) and value.func.id == name)
        or any(isinstance(one, ast.Name) and one.id == name for one in value.args[:1])
    )
