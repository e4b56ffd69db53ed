"""Where a value of the failing line came from: the line that made it, and what that was computed of.

A name may have changed since: told is only what gives the same value when it is computed once more.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.evaluation import evaluated, given_names, library, quietly
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import bytes_of, is_ndarray, lookup
from pyfunc_debug.program.syntax import copied

_WIDTH = 40
_MOST = 4
_LONGEST = 300_000
_PLAIN = (bool, int, float, str, bytes)
_DICTS = (dict,)
_LISTS = (list, tuple)


@dataclass(frozen=True)
class Origin:
    """What a name was assigned.

    Attributes:
      line: The line of the assignment.
      made: The expression that gave the value.
    """

    line: int
    made: ast.expr


def valued(node: ast.expr, spot: Spot) -> Any:
    """What an expression of plain values, arrays and objects that keep them gives; None where that is not known.

    Nothing of the user's runs. Of an eager tensor it is the array.
    """
    found = kept(node, spot)
    if found is not None or isinstance(node, (ast.Name, ast.Attribute)):
        return found
    tree = copied(node)
    known: dict[str, Any] = {}
    if isinstance(tree, ast.expr):
        tree = _Kept(spot, known).visit(tree)
    given = given_names(tree, spot, known)
    with suppress(Exception), quietly():
        return None if given is None else evaluated(tree, given)
    return None


class _Kept(ast.NodeTransformer):
    """Puts a name in the place of what is kept: `self.size`, `table[split]`, an eager tensor."""

    def __init__(self, spot: Spot, known: dict[str, Any]) -> None:
        self._spot, self._known = spot, known

    def visit(self, node: ast.AST) -> Any:
        """Replaces the largest parts that are known."""
        method = node.func if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        owner = lookup(method.value, self._spot) if method is not None and method.attr == "numpy" else None
        if method is not None and type(owner).__name__ == "EagerTensor":
            return self.visit(method.value)
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load):
            value = kept(node, self._spot)
            if value is not None and _computes_with(value):
                name = f"kept_{len(self._known)}"
                self._known[name] = value
                return ast.copy_location(ast.Name(name, ast.Load()), node)
            if isinstance(node, ast.Attribute) and library(self._spot.value(dotted(node).partition(".")[0]), ""):
                return node
        return self.generic_visit(node)


def is_plain(value: Any) -> bool:
    """Whether it is a number, a text or bytes of Python's: to compare it runs nothing of the user's."""
    return type(value) in _PLAIN


def _computes_with(value: Any) -> bool:
    """Whether a value is plain: nothing of it runs a user's code."""
    if is_ndarray(value):
        return bool(value.dtype.kind in "biufcUS" and value.size <= _LONGEST)
    if type(value) in _LISTS:
        return len(value) <= _LONGEST and all(type(one) in _PLAIN for one in value)
    return type(value) in _PLAIN or (type(value).__module__ == "numpy" and getattr(value, "shape", None) == ())


def kept(node: ast.AST, spot: Spot) -> Any:
    """What a name, an attribute, or an item of a list, a dict or an array stands for; None where it is not known."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -node.operand.value if type(node.operand.value) in (int, float) else None  # type: ignore[operator]
    if isinstance(node, ast.Attribute) and node.attr in ("shape", "size", "ndim"):
        owner: Any = kept(node.value, spot)
        if is_ndarray(owner):
            return getattr(owner, node.attr)
    if not isinstance(node, ast.Subscript):
        return plain(lookup(node, spot))
    owner = kept(node.value, spot)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    places = [valued(one, spot) for one in parts]
    if not places or any(one is None for one in places):
        return None
    with suppress(Exception):  # a key that is absent, a place behind the last
        if type(owner) in _DICTS and len(places) == 1 and type(places[0]) in _PLAIN:
            return plain(dict.get(owner, places[0]))
        if type(owner) in _LISTS and len(places) == 1 and _whole(places[0]) is not None:
            return plain(owner[int(places[0])])
        if is_ndarray(owner) and all(_whole(one) is not None for one in places):
            return plain(owner[tuple(map(int, places))])
    return None


def _whole(value: Any) -> int | None:
    value = plain(value)
    value = value.item() if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () else value
    return value if type(value) is int else None


def plain(value: Any) -> Any:
    """A value, of an eager tensor its array or bytes."""
    if type(value).__name__ != "EagerTensor":
        return value
    return value.numpy() if getattr(value.dtype, "name", "") not in ("variant", "resource") else None


def number(value: Any) -> int | float | None:
    """A number, also one of NumPy's."""
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () and value.dtype.kind in "iuf":
        value = value.item()
    return value if type(value) in (int, float) else None


def origin(node: ast.expr, spot: Spot) -> Origin | None:
    """The assignment that gave a name its value, if it would give the same now; None of anything else."""
    if not isinstance(node, ast.Name) or spot.function is None or isinstance(spot.function, ast.Lambda):
        return None
    above = [one for one in own_nodes(spot.function) if isinstance(one, ast.Assign) and one.lineno < spot.line]
    made = [
        (one.lineno, value) for one in above for target in one.targets
        for name, value in _assigned(target, one.value) if name == node.id
    ]  # fmt: skip
    if not made or node.id not in spot.variables:
        return None
    line, value = max(made, key=lambda one: one[0])
    return Origin(line, value) if _same(valued(value, spot), plain(spot.variables[node.id])) else None


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The names that an assignment binds, and what each gets."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
        whole = not any(isinstance(one, ast.Starred) for one in (*target.elts, *value.elts))
        for one, part in zip(target.elts, value.elts) if whole and len(target.elts) == len(value.elts) else ():
            yield from _assigned(one, part)


def _same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return False
    if is_ndarray(one) and is_ndarray(other):
        return bool(one.shape == other.shape and (one == other).all())
    comparable = all(_computes_with(value) and not is_ndarray(value) for value in (one, other))
    return comparable and bool(one == other)  # == of another object would be the user's


def parts(node: ast.expr, spot: Spot) -> list[tuple[str, str]]:
    """What an expression is computed of: the text of each name or item, and its value; at most four of them."""
    found: dict[str, str] = {}
    for one in _leaves(node):
        said = shown(kept(one, spot))
        if said:
            found[short(spot.source.text(one), _WIDTH)] = said
    return list(found.items())[:_MOST]


def _leaves(node: ast.AST) -> Iterator[ast.expr]:
    """The largest names, attributes and items of an expression that are read, in the order of the text."""
    if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
        if isinstance(node.func, ast.Attribute):
            yield from _leaves(node.func.value)
        for one in (*node.args, *(each.value for each in node.keywords)):
            yield from _leaves(one)
    elif isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        yield node
    else:
        for child in ast.iter_child_nodes(node):
            yield from _leaves(child)


def shown(value: Any) -> str:
    """`1.006`, `'a.png'`, `a list of 0`, `float32[3, 2]`; "" of what is not said."""
    text = bytes_of(value)
    value = value if text is None else text
    known = number(value)
    if known is not None:
        return f"{known:.6g}" if type(known) is float else str(known)
    if value is None or type(value) is bool:
        return "" if value is None else str(value)
    if isinstance(value, (str, bytes)):
        return short(repr(str(value) if isinstance(value, str) else bytes(value)), _WIDTH)
    if type(value) in (list, tuple, dict, set):
        return f"a {type(value).__name__} of {len(value)}"
    if is_ndarray(value):
        return f"{value.dtype.name}[{', '.join(map(str, value.shape))}]"
    return ""


def listed(known: list[tuple[str, str]]) -> str:
    """`a is 1, and b is 2`."""
    said = [f"{name} is {value}" for name, value in known]
    return " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)
