"""Tables of pandas in a failing frame: their columns and values, read without running the user's code."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.symbols import lookup

_OF_LIBRARIES = ("numpy", "pandas", "tensorflow", "keras", "scipy")


def is_array(value: Any) -> bool:
    """Whether a value is an array, a tensor or a table of a library's: its shape is not the user's code."""
    return type(value).__module__.partition(".")[0] in _OF_LIBRARIES


def is_table(value: Any) -> bool:
    """Whether it is a table or a column of pandas."""
    kind = type(value)
    return kind.__name__ in ("Series", "DataFrame") and kind.__module__.partition(".")[0] == "pandas"


def is_frame(value: Any) -> bool:
    """Whether it is a table with columns."""
    return is_table(value) and type(value).__name__ == "DataFrame"


def valued(node: ast.expr, spot: Spot) -> Any:
    """What a name stands for, a column of a table (`df["y"]`), some (`df[["a", "b"]]`), or their values."""
    value = lookup(node, spot)
    if value is not None:
        return value
    if isinstance(node, ast.Subscript):
        key = node.slice
        owner: Any = valued(node.value, spot)
        if not is_frame(owner):
            return None
        if isinstance(key, ast.Constant):
            return owner[key.value] if key.value in owner.columns else None
        wanted = [one.value for one in key.elts if isinstance(one, ast.Constant)] if isinstance(key, ast.List) else []
        return owner[wanted] if wanted and set(wanted) <= set(owner.columns) else None
    inside = of_values(node)
    table: Any = valued(inside, spot) if inside is not None else None
    return table.to_numpy() if is_table(table) else None


def of_values(node: ast.expr) -> ast.expr | None:
    """`df` of `df.values` and `df.to_numpy()`."""
    if isinstance(node, ast.Attribute) and node.attr == "values":
        return node.value
    called = node.func if isinstance(node, ast.Call) and not node.args else None
    return called.value if isinstance(called, ast.Attribute) and called.attr == "to_numpy" else None
