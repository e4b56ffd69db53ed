"""Bounds for ops whose value at 0 is finite and whose gradient there is not: roots, norms, deviations, choices.

The gradient of a root at 0 is infinite, and times the 0 that is behind it NaN. The values stay the same.
"""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.signs import Signs
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls
from pyfunc_debug.program import syntax
from pyfunc_debug.program.syntax import copied

_LEAST = "1e-12"
_NEAR_ONE = 0.9999999
_LONGEST = 60
"""A longer expression is not written twice."""
_ROOT = "1e-12: at 0 the gradient of a root is NaN"
_CHOICE = "1.0: tf.where has the gradient of what it leaves out, too, and that is NaN at 0"
_ANGLE = "not 1: there the gradient is infinite"
_ORIGIN = "1.0: at the origin the gradient is NaN"
_POSITIONS = {"norm": ("ord", "axis", "keepdims"), "reduce_std": ("axis", "keepdims"), "std": ("axis",)}
_OPS = {
    "norm", "reduce_std", "std", "pow", "power", "atan2", "arctan2", "log", "sqrt", "acos", "asin", "arccos", "arcsin",
}  # fmt: skip


def bounded_tree(tree: ast.expr, tf: str) -> ast.expr:
    """An expression of `_0`, `_1` and so on, which all have a gradient, with bounds."""
    found: ast.expr = Bounds(Signs(tf)).visit(copied(tree))
    return ast.fix_missing_locations(found)


class Bounds(ast.NodeTransformer):
    """Puts bounds into expressions.

    Args:
      signs: What is known of the expressions of a function.
      scope: The function: a name of what `tf.where` chooses from is followed to where it is made.
    """

    def __init__(self, signs: Signs, scope: ast.AST | None = None) -> None:
        self._signs, self._tf = signs, signs.tf
        self._left_out = 0
        """How many choices an expression is in."""
        self._chosen = _chosen(scope, signs.tf, set(signs.assigned)) if scope is not None else set()
        self.said: list[str] = []

    def changes(self, node: ast.expr) -> bool:
        """Whether an expression itself gets a bound, not only a part of it."""
        if not isinstance(node, (ast.Call, ast.BinOp)):
            return False
        if isinstance(node, ast.Call) and not self._signs.of_tensorflow(node.func):
            return False
        if not (self._is_where(node) or self._signs.op(node) in _OPS or isinstance(node, ast.BinOp)):
            return False
        return ast.dump(self._bounded(copied(node), node)) != ast.dump(node)

    def _bounded(self, own: ast.expr, node: ast.expr) -> ast.expr:
        """An expression with its own bound; for a choice and for what one chooses from, those inside it too."""
        if isinstance(own, ast.Call) and self._is_where(node):
            return self.visit_Call(own)
        return self._itself(own, self._is_chosen_from(node))

    def text(self, node: ast.expr) -> tuple[str, str]:
        """An expression with all bounds, and what is to say of the first one."""
        self.said = []
        self._left_out = int(self._is_chosen_from(node))
        new = self.visit(copied(node))
        self._left_out = 0
        text = ast.unparse(ast.fix_missing_locations(new))
        return (f"({text})" if isinstance(new, ast.BinOp) and not isinstance(node, ast.BinOp) else text), self.said[0]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if self._is_where(node):
            node.args[0] = self.visit(node.args[0])
            self._left_out += 1
            node.args[1:] = [self.visit(one) for one in node.args[1:]]
            self._left_out -= 1
            return node
        self.generic_visit(node)
        return self._itself(node, bool(self._left_out))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return self._itself(node, bool(self._left_out))

    def _itself(self, node: ast.expr, left_out: bool) -> ast.expr:
        """An expression with its own bound."""
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Pow):
                return self._power(node, node.left, node.right)
            if isinstance(node.op, ast.Div) and left_out:
                node.right = self._not_zero(node.right)
            return node
        if not isinstance(node, ast.Call) or not self._signs.of_tensorflow(node.func) or not node.args:
            return node
        op = self._signs.op(node)
        if op in ("norm", "reduce_std", "std"):
            return self._of_a_sum(node, op)
        if op in ("pow", "power") and len(node.args) == 2 and not node.keywords:
            return self._power(node, *node.args)
        if op in ("atan2", "arctan2") and len(node.args) == 2:
            return self._turned(node)
        if op == "log" and left_out:
            node.args[0] = self._not_zero(node.args[0], ">")
        elif op == "sqrt":
            node.args[0] = self._above(node.args[0])
        elif op in ("acos", "asin", "arccos", "arcsin"):
            node.args[0] = self._below_one(node.args[0])
        return node

    def _of_a_sum(self, node: ast.Call, op: str) -> ast.expr:
        """A norm, or a deviation: the root of a sum of squares."""
        x, given = node.args[0], dict(zip(_POSITIONS[op], node.args[1:]))
        given |= {str(one.arg): one.value for one in node.keywords}
        order = given.pop("ord", None)
        euclidean = order is None or getattr(order, "value", None) in (2, 2.0, "euclidean", "fro")
        if (
            not self._signs.has_slope(x)
            or not euclidean
            or set(given) - {"axis", "keepdims"}
            or "fft" in ast.unparse(x)
        ):
            return node
        inner = f"{self._tf}.square({ast.unparse(x)})" if op == "norm" else ast.unparse(x)
        rest = "".join(f", {name}={ast.unparse(given[name])}" for name in ("axis", "keepdims") if name in given)
        total = {"norm": "reduce_sum", "reduce_std": "math.reduce_variance", "std": "experimental.numpy.var"}[op]
        self.said.append(_ROOT)
        return syntax.expression(f"{self._tf}.sqrt({self._tf}.maximum({self._tf}.{total}({inner}{rest}), {_LEAST}))")

    def _power(self, node: ast.expr, base: ast.expr, exponent: ast.expr) -> ast.expr:
        found = self._signs.number(exponent)
        if found is None or not 0.5 <= found < 1 or not self._signs.has_slope(base):
            return node
        above = self._above(base)
        if isinstance(node, ast.BinOp):
            node.left = above
        elif isinstance(node, ast.Call):
            node.args[0] = above
        return node

    def _above(self, x: ast.expr) -> ast.expr:
        """What a root is taken of, not below a small number where it may be 0."""
        if not self._signs.has_slope(x) or self._signs.is_positive(x):
            return x
        self.said.append(_ROOT)
        if isinstance(x, ast.Call) and self._signs.op(x) == "maximum" and len(x.args) == 2:
            zero = [place for place, one in enumerate(x.args) if getattr(one, "value", None) in (0, 0.0)]
            if zero:
                x.args[zero[0]] = syntax.expression(_LEAST)
                return x
        text = ast.unparse(x)
        if self._signs.is_not_negative(x) or len(text) > _LONGEST:
            return syntax.expression(f"{self._tf}.maximum({text}, {_LEAST})")
        return syntax.expression(f"{self._tf}.where(({text}) != 0, {text}, {_LEAST})")  # below 0 it stays NaN

    def _not_zero(self, x: ast.expr, than: str = "!=") -> ast.expr:
        """What is divided by, or a logarithm is taken of, 1 where it is 0: `tf.where` leaves the result out."""
        text = ast.unparse(x)
        if not self._signs.has_slope(x) or self._signs.is_positive(x) or len(text) > _LONGEST:
            return x
        self.said.append(_CHOICE)
        return syntax.expression(f"{self._tf}.where(({text}) {than} 0, {text}, 1.0)")

    def _below_one(self, x: ast.expr) -> ast.expr:
        if not self._signs.has_slope(x):
            return x
        clipped = isinstance(x, ast.Call) and self._signs.op(x) in ("clip_by_value", "clip")
        if isinstance(x, ast.Call) and clipped:
            limits = [self._signs.number(one) for one in (*x.args[1:], *(part.value for part in x.keywords))]
            if limits not in ([-1, 1], [-1.0, 1.0]) or x.keywords:
                return x
            x = x.args[0]
        self.said.append(_ANGLE)
        return syntax.expression(f"{self._tf}.clip_by_value({ast.unparse(x)}, -{_NEAR_ONE}, {_NEAR_ONE})")

    def _turned(self, node: ast.Call) -> ast.expr:
        y, x = (ast.unparse(one) for one in node.args)
        if not any(map(self._signs.has_slope, node.args)) or any(map(self._signs.is_positive, node.args)):
            return node
        if len(y) + len(x) > _LONGEST:
            return node
        self.said.append(_ORIGIN)
        node.args[1] = syntax.expression(f"{self._tf}.where((({y}) != 0) | (({x}) != 0), {x}, 1.0)")
        return node

    def _is_chosen_from(self, node: ast.expr) -> bool:
        """Whether an expression is, or is a part of, what such a name stands for."""
        return any(one is node for name in self._chosen for one in ast.walk(self._signs.assigned[name]))

    def _is_where(self, node: ast.expr) -> bool:
        """Whether an expression chooses between two others."""
        return (
            isinstance(node, ast.Call)
            and self._signs.of_tensorflow(node.func)
            and self._signs.op(node) == "where"
            and len(node.args) == 3
        )


def _chosen(scope: ast.AST, tf: str, assigned: set[str]) -> set[str]:
    """Names of what `tf.where` chooses from, that are used nowhere else."""
    loaded = [one.id for one in ast.walk(scope) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    return {
        one.id for call in calls(scope)
        if dotted(call.func).partition(".")[0] == tf and dotted(call.func).endswith(".where")
        for one in call.args[1:3] if isinstance(one, ast.Name) and one.id in assigned and loaded.count(one.id) == 1
    }  # fmt: skip
