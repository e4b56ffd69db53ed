"""What Python reads by the step, `self.table[int(step)]`, as ops, where the step is a variable: learning rates."""

from __future__ import annotations

import ast
from collections.abc import Callable

from pyfunc_debug.doctor.failures.ops.rewrites import rest_as_ops, whole_as_ops
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.pastes.traced_text import explained
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names
from pyfunc_debug.doctor.failures.reading.symbols import dtype_of, lookup, shape_of

_FARTHEST = 10
"""Lines from the first to the last that the paste changes."""
_BOUNDS = {"min", "max", "minimum", "maximum", "clip"}
_WHOLE = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)


def explain(situation: Situation, spot: Spot, statement: ast.stmt) -> Explanation | None:
    """The explanation, if a line asked a variable that counts for its value, and all of its function can be ops."""
    function = spot.function
    steps = {name: spot.value(name) for name in names(statement) if _is_step(spot.value(name))}
    if not isinstance(function, ast.FunctionDef) or not steps or not wrapping.entry(situation)[1]:
        return None
    also = tuple(steps)
    if not whole_as_ops(function, spot, also) or _mixes(function, spot, also):
        return None
    pieces = rest_as_ops(function, spot, function.lineno, also)
    value = wrapping.value_here(spot, statement)
    if value not in pieces:
        return None
    first, last = min(one.lineno for one in pieces), max(one.end_lineno or one.lineno for one in pieces)
    if last - first >= _FARTHEST:
        return None
    edit = Edit(spot.file, first, last, spot.source.spliced(pieces, first, last))
    return explained(situation, spot, statement, dict(steps), edit, sure=False)


def _is_step(value: object) -> bool:
    """Whether a value is a variable, of Keras' or TensorFlow's, that holds one whole number."""
    kinds = [one.__name__ for one in type(value).__mro__ if one.__module__.startswith(("keras.", "tensorflow."))]
    if not {"Variable", "ResourceVariable"} & set(kinds):
        return False
    return "int" in dtype_of(value) and shape_of(value) == ()


def _mixes(function: ast.FunctionDef, spot: Spot, steps: tuple[str, ...]) -> bool:
    """Whether a function chooses by a step, or computes with int(step) and floats: TensorFlow does not mix them."""
    tensors, whole = set(steps), set[str]()

    def reads(node: ast.AST) -> bool:
        return bool(tensors & set(names(node)))

    def is_whole(node: ast.AST) -> bool:
        if isinstance(node, ast.Call) and reads(node):
            called = dotted(node.func).rpartition(".")[2]
            return called == "int" or (called in _BOUNDS and any(map(is_whole, node.args)))
        if isinstance(node, ast.BinOp) and isinstance(node.op, _WHOLE):
            return is_whole(node.left) or is_whole(node.right)
        return isinstance(node, ast.Name) and node.id in whole

    for one in own_nodes(function):
        if isinstance(one, ast.Assign) and reads(one.value):
            made = {name for target in one.targets for name in names(target)}
            tensors |= made
            whole |= made if is_whole(one.value) else set()
    return any(_breaks(one, spot, reads, is_whole) for one in own_nodes(function))


def _breaks(node: ast.AST, spot: Spot, reads: Callable[[ast.AST], bool], is_whole: Callable[[ast.AST], bool]) -> bool:
    if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        return reads(node.test)
    if isinstance(node, (ast.For, ast.comprehension)):
        return reads(node.iter)
    if isinstance(node, (ast.BoolOp, ast.JoinedStr)):
        return reads(node)
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else []
    if isinstance(node, ast.Call):
        called = dotted(node.func).rpartition(".")[2]
        if called not in _BOUNDS:
            return called not in ("int", "float") and any(map(is_whole, node.args))
        sides = node.args
    return any(map(is_whole, sides)) and not all(is_whole(one) or _integer(one, spot) for one in sides)


def _integer(node: ast.AST, spot: Spot) -> bool:
    """Whether an expression is a whole number of Python's."""
    if isinstance(node, ast.Call):
        return dotted(node.func) == "len"
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, _WHOLE) and _integer(node.left, spot) and _integer(node.right, spot)
    value = node.value if isinstance(node, ast.Constant) else lookup(node, spot)
    return isinstance(value, int) and not isinstance(value, bool)
