"""Calls that draw one number: `np.random.rand()`, and not `np.random.rand(4)`."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from pyfunc_debug.doctor.pastes import last_name

_SIZED = ("size", "shape")


def draws_one(node: ast.expr, functions: Mapping[str, int]) -> bool:
    """Whether an expression draws one number.

    Args:
      node: The expression.
      functions: Names of the functions that are asked for, by how many arguments each has without a size.
    """
    if not isinstance(node, ast.Call) or any(one.arg in _SIZED for one in node.keywords):
        return False
    most = functions.get(last_name(node.func))
    return most is not None and len(node.args) <= most and "rand" in ast.unparse(node.func)
