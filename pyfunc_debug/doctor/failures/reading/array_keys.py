"""A dict that is asked for a tensor of several places: its value would be an array, and an array cannot be a key."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.symbols import is_symbolic, lookup, shape_of


def asked(situation: Situation, spot: Spot, value: ast.expr) -> tuple[ast.expr, ast.expr, ast.Name] | None:
    """`table[x]` or `table.get(x)` with a symbolic `x` of rank 1 or more: that, the table and `x` in it."""
    if "unhashable" not in situation.message:
        return None
    for one in ast.walk(value):
        table: ast.expr | None = None
        if isinstance(one, ast.Subscript):
            table, key = one.value, one.slice
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "get" and one.args:
            table, key = one.func.value, one.args[0]
        if table is None or not isinstance(lookup(table, spot), dict) or not isinstance(key, ast.Name):
            continue
        tensor = spot.value(key.id)
        if is_symbolic(tensor) and shape_of(tensor):
            assert isinstance(one, ast.expr)
            return one, table, key
    return None
