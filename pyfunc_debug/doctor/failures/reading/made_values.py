"""What an expression of NumPy's gives for made inputs of the dtypes and shapes that are known: for Tout.

Its result says the dtype, and whether it is a list; its values mean nothing.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyfunc_debug.doctor.failures.reading.evaluation import ONES, SIZE, eagerly, evaluated, given_names, made_array
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names
from pyfunc_debug.doctor.failures.reading.symbols import is_symbolic

Inputs = Callable[[Any], Any]
"""Makes an array for a symbolic tensor, or None."""
DTYPES = frozenset(
    ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
     "complex64", "complex128")
)  # fmt: skip
"""Dtypes that NumPy and TensorFlow call the same."""


def made_value(node: ast.expr, spot: Spot, arrays: bool = False, inputs: Inputs = made_array) -> Any:
    """What an expression gives, where it can be evaluated without an effect; None where it cannot, or fails.

    Args:
      node: The expression; parts of it are the symbolic tensors of the frame.
      spot: The frame, which knows their dtypes and shapes.
      arrays: Whether arrays are in the place of the tensors: eager ones else, as a py_function gives them.
      inputs: Makes an array for each tensor.
    """
    return _evaluated(node, spot, {}, arrays, inputs)


def made_return(function: ast.AST, spot: Spot, inputs: Inputs = made_array, arrays: bool = False) -> Any:
    """What a function of assignments and one return gives for eager tensors; None where it cannot be evaluated.

    Args:
      function: The function.
      spot: Its frame, which knows dtypes and shapes of its arguments.
      inputs: Makes an array for each.
      arrays: Whether it is given arrays, as a numpy_function's body is.
    """
    if isinstance(function, ast.Lambda):
        return made_value(function.body, spot, arrays, inputs)
    return made_lines(getattr(function, "body", []), spot, inputs=inputs, arrays=arrays)


def made_shape(make: Callable[[Inputs], Any]) -> tuple[int | None, ...] | None:
    """The shape of one tensor, tried on inputs of several sizes and values.

    Args:
      make: Makes it of inputs: `lambda inputs: made_return(function, spot, inputs)`.

    Returns:
      The shape, None for each size that was not the same in all tries; None where they had not one rank.
    """
    import numpy as np

    found: list[tuple[int, ...]] = []
    for number, size in ((0, SIZE), (1, SIZE + 2), (ONES, SIZE + 1)):
        made = make(functools.partial(made_array, number=number, size=size))
        if made is None or isinstance(made, (tuple, dict, set)):
            return None
        try:
            found.append(np.shape(made))
        except ValueError:  # rows of different lengths
            return None
    same = len({len(shape) for shape in found}) == 1
    return tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*found)) if same else None


def made_lines(
    lines: Sequence[ast.stmt], spot: Spot, wanted: ast.expr | None = None, inputs: Inputs = made_array,
    arrays: bool = False,
) -> Any:  # fmt: skip
    """What some assignments in a row, evaluated one after the other, make of eager tensors.

    Args:
      lines: Assignments, also to parts of what they made, and perhaps a return at their end.
      spot: The frame, which knows the tensors.
      wanted: What is asked for behind them; what is returned where it is None.
      inputs: Makes an array for each tensor.
      arrays: Whether arrays are in the place of the tensors.
    """
    made: dict[str, Any] = {}
    for line in lines:
        value = getattr(line, "value", None)
        if isinstance(line, ast.Return):
            return None if value is None else _evaluated(value, spot, made, arrays, inputs)
        if isinstance(line, ast.Expr) and isinstance(value, ast.Constant):
            continue  # a docstring
        target = line.targets[0] if isinstance(line, ast.Assign) and len(line.targets) == 1 else None
        found = _evaluated(value, spot, made, arrays, inputs) if target is not None and value is not None else None
        if found is None:
            return None
        if isinstance(target, ast.Name):
            made[target.id] = found
        elif isinstance(target, ast.Tuple) and isinstance(found, tuple) and len(found) == len(target.elts):
            if not all(isinstance(one, ast.Name) for one in target.elts):
                return None
            made.update(zip(map(dotted, target.elts), found))
        elif not isinstance(target, ast.Subscript) or not _stored(target, found, spot, made, arrays):
            return None
    return None if wanted is None else _evaluated(wanted, spot, made, arrays, inputs)


def _stored(target: ast.Subscript, value: Any, spot: Spot, made: dict[str, Any], arrays: bool) -> bool:
    """`y[:, 0] = value` of an array that the lines made: whether that could be done."""
    import numpy as np

    owner = made.get(target.value.id) if isinstance(target.value, ast.Name) else None
    if not isinstance(owner, np.ndarray):
        return False
    asked = ast.Subscript(ast.copy_location(ast.Name("made_index", ast.Load()), target), target.slice, ast.Load())
    index = _evaluated(asked, spot, {**made, "made_index": np.s_}, arrays)
    try:
        made[dotted(target.value)] = owner = owner.copy()  # a tensor's memory is not written into
        owner[index] = value
    except Exception:  # what fails on made inputs says nothing
        return False
    return index is not None


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


def _evaluated(
    node: ast.expr, spot: Spot, made: Mapping[str, Any], arrays: bool = False, inputs: Inputs = made_array
) -> Any:
    tensorflow, given = sys.modules.get("tensorflow"), given_names(node, spot, made)
    if tensorflow is None or given is None:
        return None
    try:
        with eagerly():
            for name in names(node):
                tensor = None if name in given else spot.value(name)
                if is_symbolic(tensor):
                    array = inputs(tensor)
                    if array is None:
                        return None
                    given[name] = array if arrays else tensorflow.constant(array)
            return evaluated(node, given)
    except Exception:  # what fails on made inputs says nothing
        return None
