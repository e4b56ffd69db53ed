"""Whether AutoGraph can make a graph of a function's loops."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.source import dotted

_PYTHON = {"enumerate", "zip", "sorted", "reversed", "filter", "map", "list", "tuple", "iter"}
"""What Python loops over, and AutoGraph does not where a tensor is in it."""
_COLLECTS = {"append", "extend", "add", "insert", "update", "setdefault"}


def converts(function: ast.AST) -> bool:
    """Whether `@tf.function` is enough for a function's loops over tensors, by what is written.

    It is not where a loop goes through `enumerate` or `zip`, or collects in a list, a set or a dict: a graph's loop
    has tensors for variables, and nothing else.
    """
    for loop in own_nodes(function):
        if not isinstance(loop, (ast.For, ast.While)):
            continue
        if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and dotted(loop.iter.func) in _PYTHON:
            return False
        for one in own_nodes(loop):
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in _COLLECTS:
                return False
            if isinstance(one, ast.Assign) and any(isinstance(target, ast.Subscript) for target in one.targets):
                return False
    return True
