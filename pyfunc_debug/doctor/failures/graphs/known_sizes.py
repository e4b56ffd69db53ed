"""Sizes that Python asks the graph for (`n = tf.shape(x)[1]`), though the tensor's own shape says them already."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names
from pyfunc_debug.doctor.failures.reading.symbols import is_symbolic, lookup, root_is, shape_of, symbolic_parts

_FARTHEST = 4
"""Names in a row that stand for each other."""


def in_place(spot: Spot, value: ast.expr) -> Edit | None:
    """The line with `x.shape[1]` for each size, where nothing else of it is a tensor; None where there is no such."""
    pieces = sizes_in(spot, value)
    kept = {name for one in pieces for name in names(one)}
    if not pieces or set(symbolic_parts(value, spot)) - kept:
        return None
    found = spot.source.replaced(pieces)
    return edit_of(spot.file, found)


def sizes_in(spot: Spot, value: ast.expr) -> dict[ast.expr, str]:
    """The sizes in an expression that a tensor's shape says, and `x.shape[1]` for each."""
    pieces: dict[ast.expr, str] = {}
    _collect(spot, value, pieces)
    return pieces


def as_python_range(spot: Spot, given: ast.expr) -> str | None:
    """`range(x.shape[1])` of `tf.range(n)`, or of `range(n)`, where all that it is given is known."""
    if not isinstance(given, ast.Call) or given.keywords or dotted(given.func).rpartition(".")[2] != "range":
        return None
    if "." in dotted(given.func) and not root_is(given.func, spot, "tensorflow"):
        return None
    texts = []
    for one in given.args:
        text = size(spot, one) or (spot.source.text(one) if _is_known(spot, one) else None)
        plain = all(not is_symbolic(lookup(part, spot)) for part in ast.walk(one) if isinstance(part, ast.Name))
        known = isinstance(one, ast.Constant) or type(lookup(one, spot)) is int
        if text is None and not (plain and known):
            return None
        texts.append(text or spot.source.text(one))
    return f"range({', '.join(texts)})"


def _is_known(spot: Spot, node: ast.expr) -> bool:
    """Whether it is `x.shape[1]` of a tensor whose shape says that size: a number of Python's."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute) or node.value.attr != "shape":
        return False
    sizes, at = shape_of(lookup(node.value.value, spot)), getattr(node.slice, "value", None)
    return sizes is not None and type(at) is int and at < len(sizes) and sizes[at] is not None


def as_python_ranges(spot: Spot, node: ast.ListComp | ast.GeneratorExp) -> Edit | None:
    """A comprehension whose loops over sizes are Python's; None where one of them goes over a tensor."""
    ranges = {one.iter: as_python_range(spot, one.iter) for one in node.generators}
    known = {given: text for given, text in ranges.items() if text is not None}
    if not known or any(given not in known and symbolic_parts(given, spot) for given in ranges):
        return None
    found = spot.source.replaced(known)
    return edit_of(spot.file, found)


def size(spot: Spot, node: ast.expr) -> str | None:
    """`x.shape[1]` for a size of a tensor whose shape says it; None for everything else."""
    found = _resolved(spot, node, _FARTHEST)
    if not isinstance(found, ast.Subscript):
        return None
    shape, index = _resolved(spot, found.value, _FARTHEST), found.slice
    if not isinstance(shape, ast.Call) or not root_is(shape.func, spot, "tensorflow") or len(shape.args) != 1:
        return None
    if dotted(shape.func).rpartition(".")[2] != "shape" or shape.keywords:
        return None
    owner, sizes = shape.args[0], shape_of(lookup(shape.args[0], spot))
    if sizes is None or not _is_made_once(spot, owner):
        return None
    try:
        at = ast.literal_eval(index)
    except ValueError:
        return None
    if type(at) is not int or not -len(sizes) <= at < len(sizes) or sizes[at] is None:
        return None
    return f"{spot.source.text(owner)}.shape[{at}]"


def _collect(spot: Spot, node: ast.AST, pieces: dict[ast.expr, str]) -> None:
    if isinstance(node, (ast.Name, ast.Subscript)):
        text = size(spot, node)
        if text is not None:
            pieces[node] = text
            return
    for one in ast.iter_child_nodes(node):
        _collect(spot, one, pieces)


def _resolved(spot: Spot, node: ast.expr, farthest: int) -> ast.expr:
    """What a name stands for, where the function says it once."""
    if not isinstance(node, ast.Name) or not farthest:
        return node
    made = _assigned(spot, node.id)
    if len(made) != 1:
        return node
    targets, value = made[0]
    if isinstance(targets, ast.Name):
        return _resolved(spot, value, farthest - 1)
    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(targets.elts):
        return value.elts[[dotted(one) for one in targets.elts].index(node.id)]
    return node


def _assigned(spot: Spot, name: str) -> list[tuple[Any, ast.expr]]:
    """The statements of the function that give a name its value, but the one that failed."""
    found: list[tuple[Any, ast.expr]] = []
    for one in own_nodes(spot.function) if spot.function is not None else ():
        if isinstance(one, ast.Assign) and one.lineno != spot.line:
            for target in one.targets:
                inner = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
                if name in [dotted(part) for part in inner]:
                    found.append((target, one.value))
        elif isinstance(one, (ast.AugAssign, ast.For)) and name in names(one.target):
            found += [(ast.Name(name, ast.Store()), ast.Constant(None))] * 2  # not the same in each round
    return found


def _is_made_once(spot: Spot, owner: ast.expr) -> bool:
    """Whether a tensor's name still stands for the tensor that was asked."""
    if isinstance(owner, ast.Attribute):
        return True
    given = [one.arg for one in getattr(getattr(spot.function, "args", None), "args", ())]
    return isinstance(owner, ast.Name) and len(_assigned(spot, owner.id)) <= (owner.id not in given)
