"""What an expression of NumPy's gives for made inputs of the dtypes and shapes that are known: for Tout.

Its result says the dtype, and whether it is a list; its values mean nothing.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pyfunc_debug.doctor.failures.evaluation import eagerly, evaluated, given_names, made_array
from pyfunc_debug.doctor.failures.situation import Spot
from pyfunc_debug.doctor.failures.source import names
from pyfunc_debug.doctor.failures.symbols import is_symbolic

DTYPES = frozenset(
    ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
     "complex64", "complex128")
)  # fmt: skip
"""Dtypes that NumPy and TensorFlow call the same."""


def made_value(node: ast.expr, spot: Spot, arrays: bool = False) -> Any:
    """What an expression gives, where it can be evaluated without an effect; None where it cannot, or fails.

    Args:
      node: The expression; parts of it are the symbolic tensors of the frame.
      spot: The frame, which knows their dtypes and shapes.
      arrays: Whether arrays are in the place of the tensors: eager ones else, as a py_function gives them.
    """
    return _evaluated(node, spot, {}, arrays)


def made_return(function: ast.AST, spot: Spot) -> Any:
    """What a function of assignments and one return gives for eager tensors; None where it cannot be evaluated.

    Args:
      function: The function.
      spot: Its frame, which knows dtypes and shapes of its arguments.
    """
    if isinstance(function, ast.Lambda):
        return made_value(function.body, spot)
    return made_lines(getattr(function, "body", []), spot)


def made_lines(lines: Sequence[ast.stmt], spot: Spot, wanted: ast.expr | None = None) -> Any:
    """What some assignments in a row, evaluated one after the other, make of eager tensors.

    Args:
      lines: Assignments, and perhaps a return at their end.
      spot: The frame, which knows the tensors.
      wanted: What is asked for behind them; what is returned where it is None.
    """
    made: dict[str, Any] = {}
    for line in lines:
        value = getattr(line, "value", None)
        if isinstance(line, ast.Return):
            return None if value is None else _evaluated(value, spot, made)
        if isinstance(line, ast.Expr) and isinstance(value, ast.Constant):
            continue  # a docstring
        target = line.targets[0] if isinstance(line, ast.Assign) and len(line.targets) == 1 else None
        found = _evaluated(value, spot, made) if isinstance(target, ast.Name) and value is not None else None
        if found is None or not isinstance(target, ast.Name):
            return None
        made[target.id] = found
    return None if wanted is None else _evaluated(wanted, spot, made)


def made_dtype(made: Any) -> str | None:
    """The dtype that a py_function declares for what was made: `int64`; None where it is none of TensorFlow's."""
    import numpy as np

    if made is None or isinstance(made, (dict, set)):
        return None
    if isinstance(made, str):
        return "string"
    try:
        kind = np.asarray(made).dtype.name
    except (ValueError, TypeError):  # rows of different lengths
        return None
    of_python = type(made) is float or (isinstance(made, (list, tuple)) and all(type(one) is float for one in made))
    kind = "float32" if of_python and kind == "float64" else kind
    return kind if kind in DTYPES else None


def _evaluated(node: ast.expr, spot: Spot, made: Mapping[str, Any], arrays: bool = False) -> Any:
    tensorflow, given = sys.modules.get("tensorflow"), given_names(node, spot, made)
    if tensorflow is None or given is None:
        return None
    try:
        with eagerly():
            for name in names(node):
                tensor = None if name in given else spot.value(name)
                if is_symbolic(tensor):
                    array = made_array(tensor)
                    if array is None:
                        return None
                    given[name] = array if arrays else tensorflow.constant(array)
            return evaluated(node, given)
    except Exception:  # what fails on made inputs says nothing
        return None
