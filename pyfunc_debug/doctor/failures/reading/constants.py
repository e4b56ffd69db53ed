"""Numbers and texts that have names, read as they are: `Dense(UNITS)`, `Dense(config["units"])`, `Dense(args.units)`.

Causes change the number that a call gives. The name stands in its place in the text, and what is pasted goes there.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import Any

from pyfunc_debug.doctor.failures.reading.given_to_calls import binders, given_anew
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.doctor.failures.reading.symbols import kept_by, only_keeps

_PLAIN = (bool, int, float, str)
_NOTHING = object()


def constants(source: Source, situation: Situation) -> Situation:
    """Puts its value in the place of each name that is given one once, of what a dict or options keep under a key."""
    spot = situation.last
    if spot is not None:
        _Known(source.tree, spot).visit(source.tree)
    return situation


class _Known(ast.NodeTransformer):
    """What calls are given, by its value; a name of two assignments, of a loop or of an argument may change it."""

    def __init__(self, tree: ast.Module, spot: Spot) -> None:
        self._spot = spot
        counts = Counter(name for name, _ in binders(tree))
        self._once = {name for name, count in counts.items() if count == 1}
        self._written = {
            ast.unparse(one) for one in ast.walk(tree)
            if isinstance(one, (ast.Attribute, ast.Subscript)) and not isinstance(one.ctx, ast.Load)
        }  # fmt: skip
        changing = [
            one.target for one in ast.walk(tree)
            if isinstance(one, (ast.For, ast.AsyncFor, ast.comprehension, ast.AugAssign))
        ] + [one for one in ast.walk(tree) if isinstance(one, ast.arg)]  # fmt: skip
        self._once -= {
            each.arg if isinstance(each, ast.arg) else each.id for one in changing for each in ast.walk(one)
            if isinstance(each, (ast.arg, ast.Name))
        }  # fmt: skip

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return given_anew(node, self._as_value)

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        return self._listed(node)

    def visit_List(self, node: ast.List) -> ast.AST:
        return self._listed(node)

    def _listed(self, node: ast.Tuple | ast.List) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.elts = [self._as_value(one) for one in node.elts]
        return node

    def _as_value(self, node: ast.expr) -> ast.expr:
        value = self._value(node)
        return ast.copy_location(ast.Constant(value), node) if type(value) in _PLAIN else node

    def _value(self, node: ast.expr) -> Any:
        """What a name, an item of a dict or an attribute of options stands for, if nothing else was ever there."""
        if isinstance(node, ast.Name):
            return self._spot.value(node.id) if node.id in self._once else _NOTHING
        if not isinstance(node, (ast.Attribute, ast.Subscript)) or ast.unparse(node) in self._written:
            return _NOTHING
        owner = self._value(node.value)
        if isinstance(node, ast.Attribute):
            return kept_by(owner, node.attr) if owner is not _NOTHING and only_keeps(owner) else _NOTHING
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return owner.get(key, _NOTHING) if type(owner) is dict and isinstance(key, str) else _NOTHING
