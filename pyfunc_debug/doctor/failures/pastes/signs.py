"""What the source says of an expression of ops: whether it has a gradient, and whether it may be 0 or negative."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from typing import Any

from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import lookup

_STATIC = {"shape", "dtype", "ndim", "size", "rank", "len", "epsilon", "range", "zeros", "ones", "eye"}
"""Attributes and functions whose results have no gradient."""
_NOT_NEGATIVE = {"square", "abs", "exp", "norm", "reduce_variance", "reduce_std", "sqrt", "relu", "softplus", "sigmoid"}
_KEEP_SIGN = {
    "reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reshape", "transpose", "cast", "squeeze", "expand_dims",
    "gather", "cumsum", "stack", "identity", "sum", "mean", "max", "min",
}  # fmt: skip
"""Ops of numbers that are not negative that give such."""


class Signs:
    """Answers of one function.

    Args:
      tf: How the user's module calls TensorFlow.
      spot: A frame of it, which knows numbers; None where all names have a gradient.
      scope: The function: what it assigns once is looked into.
      constants: Names that have no gradient.
    """

    def __init__(
        self, tf: str, spot: Spot | None = None, scope: ast.AST | None = None, constants: frozenset[str] = frozenset()
    ) -> None:
        self.tf, self.spot, self._constants = tf, spot, constants
        self.assigned = dict(_once(scope)) if scope is not None else {}
        nodes = list(ast.walk(scope)) if scope is not None else []
        self._given = {one.arg for one in nodes if isinstance(one, ast.arg)}
        self._made = self._given | {
            one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        }
        self._looked: set[str] = set()

    def of_tensorflow(self, func: ast.expr) -> bool:
        """Whether a function is TensorFlow's."""
        return dotted(func).partition(".")[0] == self.tf

    def op(self, node: ast.expr) -> str:
        """The last name of the function that is called; "" for anything else."""
        return dotted(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""

    def number(self, node: ast.expr) -> float | None:
        """The number that an expression is, where that is known."""
        if isinstance(node, ast.Constant):
            return float(node.value) if isinstance(node.value, (int, float)) else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.number(node.operand)
            return None if inner is None else -inner
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            above, below = self.number(node.left), self.number(node.right)
            return above / below if above is not None and below else None
        if isinstance(node, ast.Call) and self.op(node) == "epsilon":
            return 1e-7
        if isinstance(node, ast.Name) and node.id in self.assigned and node.id not in self._looked:
            found: float | None = self._inside(node.id, self.number, None)
            return found
        value = lookup(node, self.spot) if self.spot is not None else None
        return float(value) if isinstance(value, (int, float)) else None

    def _inside(self, name: str, ask: Callable[[ast.expr], Any], otherwise: Any) -> Any:
        """What is known of the one value that a name has."""
        if name not in self.assigned or name in self._looked:
            return otherwise
        self._looked.add(name)
        try:
            return ask(self.assigned[name])
        finally:
            self._looked.discard(name)

    def has_slope(self, node: ast.AST) -> bool:
        """Whether an expression may depend on what is differentiated."""
        if isinstance(node, ast.Constant):
            return False
        if isinstance(node, ast.Call):
            if self.op(node) in _STATIC or dotted(node.func) == "len":
                return False
            if not self._is_module(node.func) and not _of_python(node.func):
                owner = node.func.value if isinstance(node.func, ast.Attribute) else None
                if owner is None or dotted(owner).partition(".")[0] in ("", "self") or self._is_callable(owner):
                    return True  # of the user's own, or a layer
                if self.has_slope(owner):
                    return True
            parts: list[ast.AST] = [*node.args, *(one.value for one in node.keywords)]
            return self.op(node) == "Variable" or any(map(self.has_slope, parts))
        if isinstance(node, ast.Attribute):
            if node.attr in _STATIC or self._is_module(node):
                return False
            value = lookup(node, self.spot) if self.spot is not None else None
            return not _is_constant(value) if value is not None else self.has_slope(node.value)
        if isinstance(node, ast.Name):
            if node.id in self._constants:
                return False
            if node.id in self.assigned:
                return bool(self._inside(node.id, self.has_slope, False))
            value = self.spot.value(node.id) if self.spot is not None else None
            if node.id in self._made:  # an array there may be a tensor as soon as it is pasted
                return type(value) not in (int, float, bool, str) or node.id not in self._given
            return not _is_constant(value)
        return any(map(self.has_slope, ast.iter_child_nodes(node)))

    def _is_callable(self, node: ast.expr) -> bool:
        value = lookup(node, self.spot) if self.spot is not None else None
        return callable(value)

    def _is_module(self, node: ast.expr) -> bool:
        root = dotted(node).partition(".")[0]
        value = self.spot.value(root) if self.spot is not None and root else None
        return root == self.tf or type(value).__name__ == "module" or type(value).__name__.endswith("Loader")

    def is_not_negative(self, node: ast.expr) -> bool:
        """Whether an expression is 0 or above, by what is written."""
        number = self.number(node)
        if number is not None:
            return number >= 0
        if isinstance(node, ast.BinOp):
            sides = self.is_not_negative(node.left), self.is_not_negative(node.right)
            if isinstance(node.op, ast.Pow):
                power = self.number(node.right)
                return power is not None and (power % 2 == 0 or sides[0])
            if isinstance(node.op, ast.Mult) and ast.dump(node.left) == ast.dump(node.right):
                return True
            return all(sides) and isinstance(node.op, (ast.Add, ast.Mult, ast.Div))
        if isinstance(node, ast.Call) and self.of_tensorflow(node.func) and node.args:
            op = self.op(node)
            if op == "maximum":
                return any(map(self.is_not_negative, node.args))
            return op in _NOT_NEGATIVE or (op in _KEEP_SIGN and self.is_not_negative(node.args[0]))
        if isinstance(node, ast.Subscript):
            return self.is_not_negative(node.value)
        return isinstance(node, ast.Name) and bool(self._inside(node.id, self.is_not_negative, False))

    def is_positive(self, node: ast.expr) -> bool:
        """Whether an expression is above 0, by what is written: what the user adds to it is a bound of theirs."""
        number = self.number(node)
        if number is not None:
            return number > 0
        if isinstance(node, ast.BinOp):
            sides = (node.left, node.right)
            if isinstance(node.op, ast.Add):
                added = [self.number(one) for one in sides]
                small = any(one is not None and 0 < one < 1e-2 for one in added)
                return small or (any(map(self.is_positive, sides)) and all(map(self.is_not_negative, sides)))
            return isinstance(node.op, (ast.Mult, ast.Div)) and all(map(self.is_positive, sides))
        if isinstance(node, ast.Call) and self.of_tensorflow(node.func) and node.args:
            op = self.op(node)
            if op == "maximum":
                return any(map(self.is_positive, node.args))
            if op == "where" and len(node.args) == 3:  # a bound already
                return self.is_positive(node.args[2])
            if op in ("clip_by_value", "clip") and len(node.args) > 1:
                return self.is_positive(node.args[1])
            return op in ("exp", "cosh") or (op in _KEEP_SIGN | {"sqrt"} and self.is_positive(node.args[0]))
        if isinstance(node, ast.Subscript):
            return self.is_positive(node.value)
        return isinstance(node, ast.Name) and bool(self._inside(node.id, self.is_positive, False))


def _is_constant(value: Any) -> bool:
    """Whether a value cannot be or hold a tensor or a variable."""
    if value is None or isinstance(value, (list, tuple, dict)):
        return False
    return type(value).__module__ in ("builtins", "numpy") or callable(value)


def _of_python(func: ast.expr) -> bool:
    return hasattr(builtins, dotted(func))


def _once(scope: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names that a function assigns in one place, and what."""
    stored = [one.id for one in ast.walk(scope) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
    given = {one.arg for one in ast.walk(scope) if isinstance(one, ast.arg)}
    for one in ast.walk(scope):
        target = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
        if not isinstance(one, ast.Assign) or not isinstance(target, ast.Name) or target.id in given:
            continue
        if stored.count(target.id) == 1:
            yield target.id, one.value
