"""Names and attributes of the user's that hold a whole number of Python's, as far as every line says that gives one."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor import code
from pyfunc_debug.doctor.failures.reading.source import Source

_FARTHEST = 4
"""Names in a row that stand for each other."""
_KEPT = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
"""Operators that give a whole number of two."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def is_whole(own: Source, node: ast.expr, farthest: int = _FARTHEST) -> bool:
    """Whether an expression is a whole number of Python's: `8`, `len(x)`, `x.shape[0]`, `n` where `n = 8` stands.

    Args:
      own: The file.
      node: An expression of its tree.
      farthest: How many names may stand for each other.
    """
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("len", "int") and not node.keywords
    if isinstance(node, ast.Subscript):
        of_shape = isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
        return of_shape and not isinstance(node.slice, (ast.Slice, ast.Tuple))
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, _KEPT) and all(is_whole(own, one, farthest) for one in (node.left, node.right))
    if not farthest:
        return False
    given = _given(own, node)
    return bool(given) and all(one is not None and is_whole(own, one, farthest - 1) for one in given)


def _given(own: Source, node: ast.expr) -> list[ast.expr | None]:
    """What the file gives a name or an attribute of `self`; None for what a loop or a `with` gives."""
    around = list(own.around(node))
    if isinstance(node, ast.Name):
        holder = next((one for one in around if isinstance(one, _FUNCTIONS) and node.id in code.local_names(one)), None)
        stores = [
            one for one in (code.own_nodes(holder) if holder is not None else code.all_nodes(own.tree))
            if isinstance(one, ast.Name) and one.id == node.id and isinstance(one.ctx, ast.Store)
            and (holder is not None or _is_global(own, one))
        ]  # fmt: skip
        passed = _passed(own, holder, node.id) if holder is not None and node.id in code.parameters(holder) else []
        return [*passed, *(_stored(own, one) for one in stores)]
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
        holders = [one for one in around if isinstance(one, ast.ClassDef)][:1]
        return [
            _stored(own, one) for holder in holders for one in ast.walk(holder)
            if isinstance(one, ast.Attribute) and one.attr == node.attr and isinstance(one.ctx, ast.Store)
        ]  # fmt: skip
    return []


def _is_global(own: Source, node: ast.Name) -> bool:
    """Whether a name that is stored is the file's: at its top, or in a function that says `global`."""
    around = next((one for one in own.around(node) if isinstance(one, (*_FUNCTIONS, ast.ClassDef))), None)
    return around is None or (not isinstance(around, ast.ClassDef) and node.id not in code.local_names(around))


def _stored(own: Source, target: ast.expr) -> ast.expr | None:
    parent = own.parent(target)
    if isinstance(parent, ast.Assign):
        return parent.value
    if isinstance(parent, ast.AnnAssign):
        return parent.value
    if isinstance(parent, ast.AugAssign) and isinstance(parent.op, _KEPT):
        return parent.value
    return None


def _passed(own: Source, function: ast.AST, name: str) -> list[ast.expr | None]:
    """What the calls of a function give it for a parameter, and its default."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return [None]
    arguments = function.args
    if name in [one.arg for one in (arguments.vararg, arguments.kwarg) if one is not None]:
        return [None]
    plain = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    defaults = dict(zip(reversed(plain), reversed(arguments.defaults)))
    defaults |= {one.arg: value for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults) if value is not None}
    holder = own.parent(function)
    of_class = isinstance(holder, ast.ClassDef)
    called = holder.name if isinstance(holder, ast.ClassDef) and function.name == "__init__" else function.name
    plain = plain[1:] if of_class else plain
    found: list[ast.expr | None] = [defaults[name]] if name in defaults else []
    for call in own.calls_of(frozenset({called})):
        given = {word.arg: word.value for word in call.keywords}
        starred = None in given or any(isinstance(one, ast.Starred) for one in call.args)
        place = plain.index(name) if name in plain else len(call.args)
        value = given.get(name, call.args[place] if place < len(call.args) else None)
        if starred or (value is None and name not in defaults):
            return [None]
        found += [value] if value is not None else []
    return found
