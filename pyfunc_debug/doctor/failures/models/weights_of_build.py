"""What `build` makes of variables that a layer's `call` made: weights, of the sizes of the shape that it is given."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import keras_name, root_is
from pyfunc_debug.program.syntax import copied

_FILLED = {"zeros": '"zeros"', "ones": '"ones"'}
_DRAWN = ("normal", "uniform", "truncated_normal")
SHAPE = "input_shape"
"""What `build` is given, as it is pasted."""


def as_weight(spot: Spot, call: ast.expr) -> str | None:
    """`self.add_weight(...)` for a `tf.Variable(...)`: Keras trains no other. None where its first value is another.

    Args:
      spot: The frame.
      call: The call that makes the variable.
    """
    value = argument(call, 0, "initial_value") if isinstance(call, ast.Call) else None
    words = call.keywords if isinstance(call, ast.Call) else []
    rest = [one.arg for one in words if one.arg not in ("initial_value", "name")]
    if isinstance(value, ast.Lambda) and not value.args.args:
        value = value.body
    if value is None or rest not in ([], ["trainable"]):
        return None
    trained = "".join(f", trainable={ast.unparse(one.value)}" for one in words if one.arg == "trainable")
    if isinstance(value, ast.Constant) and isinstance(value.value, float):
        return (
            f"self.add_weight(shape=(), initializer={keras_name(spot)}.initializers.Constant({value.value}){trained})"
        )
    if not isinstance(value, ast.Call) or not root_is(value.func, spot, "tensorflow"):
        return None
    last, shape = dotted(value.func).rpartition(".")[2], argument(value, 0, "shape")
    if shape is None or len(value.args) + len(value.keywords) > 1:
        return None
    if last in _FILLED:
        return f"self.add_weight(shape={ast.unparse(shape)}, initializer={_FILLED[last]}{trained})"
    if last in _DRAWN:
        drawn = f"lambda shape, dtype=None: {ast.unparse(value.func)}(shape)"
        return f"self.add_weight(shape={ast.unparse(shape)}, initializer={drawn}{trained})"
    return None


class Shaped(ast.NodeTransformer):
    """The sizes of the first input, asked of the shape that `build` is given.

    Args:
      function: The layer's `call`.
    """

    def __init__(self, function: ast.FunctionDef) -> None:
        self._given = function.args.args[1].arg if len(function.args.args) > 1 else ""
        self._sizes: dict[str, ast.expr] = {}
        stores = [one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
        self._kept = self._given not in stores
        for one in function.body:
            if not isinstance(one, ast.Assign) or len(one.targets) != 1:
                continue
            target = one.targets[0]
            if isinstance(target, ast.Tuple) and self._is_shape(one.value):
                for place, part in enumerate(target.elts):
                    if isinstance(part, ast.Name) and stores.count(part.id) == 1:
                        shape = ast.Name(SHAPE, ast.Load())
                        self._sizes[part.id] = ast.Subscript(shape, ast.Constant(place), ast.Load())
            elif isinstance(target, ast.Name) and stores.count(target.id) == 1 and self._sized(one.value):
                self._sizes[target.id] = self.visit(copied(one.value))

    def _is_shape(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Attribute) and node.attr == "shape" and dotted(node.value) == self._given

    def _sized(self, value: ast.expr) -> bool:
        """Whether an expression asks the input for its shape, and for nothing else."""
        shapes = [one for one in ast.walk(value) if self._is_shape(one)]
        inside = {id(part) for one in shapes for part in ast.walk(one)}
        given = [one for one in ast.walk(value) if isinstance(one, ast.Name) and one.id == self._given]
        return bool(shapes) and all(id(one) in inside for one in given)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if self._kept and node.attr == "shape":
            if self._is_shape(node):
                return ast.copy_location(ast.Name(SHAPE, ast.Load()), node)
            part = node.value
            of_list = isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant)
            if isinstance(part, ast.Subscript) and of_list and dotted(part.value) == self._given:
                return ast.Subscript(ast.Name(SHAPE, ast.Load()), part.slice, ast.Load())
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return copied(self._sizes[node.id]) if self._kept and node.id in self._sizes else node
