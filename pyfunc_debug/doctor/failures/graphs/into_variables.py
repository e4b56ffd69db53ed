"""A result that a line assigns to a variable: the variable's shape and dtype are what it has to have.

A Keras variable asks what it is assigned for its rank at trace, where a py_function knows none.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.shapes import Shape, written
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, dtype_of, lookup, shape_of

_ASSIGN = ("assign", "assign_add", "assign_sub")


@dataclass(frozen=True)
class Into:
    """A variable that a value goes to.

    Attributes:
      name: As the program writes it: `self.total`.
      shape: Its shape, of known sizes.
      dtype: Its dtype: `float32`.
      keras: Whether it is Keras', which takes other dtypes, and no unknown shape.
    """

    name: str
    shape: Shape
    dtype: str
    keras: bool

    def taking(self, text: str, declared: str | None, spot: Spot) -> str:
        """What to write for a node's result so that the variable takes it.

        Args:
          text: The call of py_function or numpy_function.
          declared: The dtype that it declares, if that is another than the variable's may be.
          spot: The user's frame.
        """
        tf = alias(spot, "tensorflow")
        if self.keras:
            return f"{tf}.ensure_shape({text}, {written(self.shape)})"
        dtype = f"{tf}.{self.dtype}"
        return text if declared in (None, dtype) else f"{tf}.cast({text}, {dtype})"


def of(node: ast.expr, spot: Spot) -> Into | None:
    """The variable that an expression's value goes to: in its own line, or by a name that is assigned later."""
    parent = spot.source.parent(node)
    if isinstance(parent, ast.Call):
        return _assigned(parent, spot) if parent.args[:1] == [node] else None
    target = parent.targets[0] if isinstance(parent, ast.Assign) and parent.value is node else None
    if not isinstance(target, ast.Name) or spot.function is None:
        return None
    return of_name(target.id, node.end_lineno or node.lineno, spot)


def of_name(name: str, line: int, spot: Spot) -> Into | None:
    """The variable to which a function assigns what a name holds after a line, where nothing gives it another value."""
    if spot.function is None:
        return None
    later = [one for one in own_nodes(spot.function) if getattr(one, "lineno", 0) > line]
    if any(isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store) for one in later):
        return None
    for one in later:
        if isinstance(one, ast.Call) and one.args and isinstance(one.args[0], ast.Name) and one.args[0].id == name:
            found = _assigned(one, spot)
            if found is not None:
                return found
    return None


def in_line(statement: ast.stmt, spot: Spot) -> tuple[ast.expr, Into] | None:
    """What the only assignment to a variable in a statement assigns, and the variable."""
    found = [(one.args[0], into) for one in calls(statement) if (into := _assigned(one, spot)) is not None]
    return found[0] if len(found) == 1 else None


def _assigned(call: ast.Call, spot: Spot) -> Into | None:
    """The variable of a call such as `self.total.assign_add(x)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _ASSIGN or not call.args:
        return None
    owner = lookup(call.func.value, spot)
    shape = shape_of(owner) if _is_variable(owner) else None
    if shape is None or None in shape:
        return None
    return Into(dotted(call.func.value), shape, dtype_of(owner), type(owner).__module__.startswith("keras."))


def _is_variable(value: Any) -> bool:
    named = [one for one in type(value).__mro__ if one.__name__ == "Variable"]
    return any(one.__module__.startswith(("tensorflow.", "keras.")) for one in named)


def as_numpy_function(part: ast.expr, inputs: list[str], dtype: str | None, spot: Spot) -> str | None:
    """`f(x.numpy(), y.numpy())` as `tf.numpy_function(f, [x, y], ...)`, which gives f the same values.

    Args:
      part: The expression.
      inputs: The symbolic tensors in it.
      dtype: What it returns; a numpy_function takes no other.
      spot: The user's frame.

    Returns:
      The call; None where it is another expression, or its dtype is not known.
    """
    if dtype is None or not isinstance(part, ast.Call) or part.keywords or not dotted(part.func):
        return None
    given = []
    for one in part.args:
        asked = one.func if isinstance(one, ast.Call) and not one.args and not one.keywords else None
        if not isinstance(asked, ast.Attribute) or asked.attr != "numpy":
            return None
        given.append(dotted(asked.value))
    if set(given) != set(inputs) or dotted(part.func).partition(".")[0] in inputs:
        return None
    tf = alias(spot, "tensorflow")
    return f"{tf}.numpy_function({dotted(part.func)}, [{', '.join(given)}], {dtype})"
