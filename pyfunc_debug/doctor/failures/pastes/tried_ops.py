"""TensorFlow's ops in the place of Python and NumPy, tried on made inputs: whether both give the same."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from typing import Any

from pyfunc_debug.doctor.failures.reading.evaluation import eagerly, evaluated, given_names, made_array
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.symbols import symbolic_parts
from pyfunc_debug.program import syntax

_WIDE = (
    "corrcoef", "fft", "cov", "interp", "convolve", "convolve2d", "cdf", "pdf", "polyval", "cdist",
    "Laplacian", "Sobel", "resize",
)  # fmt: skip
"""What NumPy computes in float64 of float32, or did before 2.0; and what has wide numbers made for OpenCV."""
_NEAR = ("INTER_AREA", "fromarray")
"""Ways to resize an image of which TensorFlow's are near: only their shapes are compared."""


def differs(node: ast.expr, new: str, spot: Spot) -> bool:
    """Whether an expression and its text in ops give other values, or another kind of numbers, on made inputs.

    Args:
      node: The user's expression.
      new: The text in ops.
      spot: Where it ran: knows dtypes and shapes of its tensors.

    Returns:
      False too where it cannot be tried.
    """
    numpy, tensorflow = sys.modules.get("numpy"), sys.modules.get("tensorflow")
    if numpy is None or tensorflow is None:
        return False
    parts, ops = symbolic_parts(node, spot), syntax.expression(new)
    theirs, ours = given_names(node, spot, {}), given_names(ops, spot, {})
    if theirs is None or ours is None or not parts or not all(name.isidentifier() for name in parts):
        return False
    try:
        with eagerly():
            if not tensorflow.executing_eagerly():
                return False
            for number in range(2):
                arrays = {name: made_array(one, number) for name, one in parts.items()}
                if any(one is None for one in arrays.values()):
                    return False
                tensors = {name: tensorflow.constant(one) for name, one in arrays.items()}
                old = _first(node, theirs, (arrays, tensors))
                if old is not None and _other(old, _first(ops, ours, (tensors,)), node, numpy):
                    return True
    except Exception:  # what cannot be tried is not refuted
        return False
    return False


def is_near(node: ast.AST) -> bool:
    """Whether what TensorFlow has in the place of a function gives values that are near, and not the same."""
    return any(isinstance(one, ast.Attribute) and one.attr in _NEAR for one in ast.walk(node))


def _first(tree: ast.expr, made: Mapping[str, Any], given: tuple[Mapping[str, Any], ...]) -> Any:
    """What an expression gives for the first of these values that it takes; None for none of them."""
    for values in given:
        try:
            return evaluated(tree, {**made, **values})
        except Exception:  # it takes tensors, perhaps
            continue
    return None


def _other(old: Any, new: Any, node: ast.expr, numpy: Any) -> bool:
    """Whether a result is another than the user's. None is that of ops that failed."""
    if new is None:
        return True
    try:
        before, after = (numpy.asarray(one) for one in (old, new))
    except Exception:
        return False
    if before.dtype.kind not in "biufc" or after.dtype.kind not in "biufc":
        return False
    if before.shape != after.shape:
        return True
    if before.dtype.kind in "fc" and bool(numpy.isnan(before).all()):  # of nothing but NaN nothing is to compare
        return False
    if type(old) not in (bool, int, float, list, tuple):  # a number of Python's takes any dtype
        kinds = ["i" if one.dtype.kind == "u" else one.dtype.kind for one in (before, after)]
        if kinds[0] != kinds[1]:
            return True
        own = any(isinstance(one, ast.Name) and one.id in ("int", "float") for one in ast.walk(node))
        own = own or any(isinstance(one, ast.Attribute) and one.attr in _WIDE for one in ast.walk(node))
        own = own or any(isinstance(one, ast.Compare) for one in ast.walk(node))  # a share of what is true
        if before.dtype.itemsize != after.dtype.itemsize and not own:
            return True
    if is_near(node):
        return False
    return not bool(numpy.allclose(before, after, rtol=1e-3, atol=1e-5, equal_nan=True))
