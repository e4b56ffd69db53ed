"""The line of a body that raised, where no trap is known: what its names held then, as types, shapes and lengths."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.pastes.wrapping import entry
from pyfunc_debug.doctor.failures.reading.situation import Locate, Query, situation
from pyfunc_debug.doctor.failures.reading.source import names
from pyfunc_debug.doctor.failures.reading.symbols import described, is_symbolic
from pyfunc_debug.program.error_text import error_text
from pyfunc_debug.values.summary import type_text

_MOST = 6
_SIZED = (list, tuple, dict, set, str, bytes)


def held(error: BaseException, locate: Locate, rows: Query) -> dict[str, Any] | None:
    """What the recording's notice `failed-line` holds of an exception that a body raised, or that left a trace.

    Holds no values: a recording may be made without them. Runs no code of the user's.
    """
    found = situation(error, locate, rows)
    spot = found.last
    traced = not found.body and spot is not None and bool(entry(found)[1])
    statement = spot.source.statement(spot.line) if (found.body or traced) and spot is not None else None
    if spot is None or statement is None:
        return None
    header = statement.test if isinstance(statement, (ast.If, ast.While)) else statement
    header = header.iter if isinstance(header, ast.For) else header
    told = [
        (name, what) for name in dict.fromkeys(names(header)) if name in spot.variables
        for what in (_what(spot.variables[name]),) if what
    ]  # fmt: skip
    stored = [one.id for one in ast.walk(header) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    told = [(name, what) for name, what in told if name in stored]
    if not told:
        return None
    return {"error": error_text(found.inner)[0], "file": spot.file, "line": spot.line, "held": told[:_MOST]}


def _what(value: Any) -> str:
    """`int64[16, 16]`, `None`, `list of 3`; empty for what says nothing."""
    if value is None:
        return "None"
    if is_symbolic(value):
        return described(value)
    kind = type(value)
    if kind in (bool, int, float):
        return kind.__name__
    if kind in _SIZED:
        return f"{kind.__name__} of {len(value)}"
    if kind.__module__.partition(".")[0] in ("numpy", "tensorflow") and hasattr(value, "dtype"):
        dtype = str(getattr(value.dtype, "name", value.dtype))
        try:
            return type_text(dtype, tuple(int(size) for size in value.shape))
        except (TypeError, ValueError):
            return dtype
    if callable(value) or kind.__name__ == "module":
        return ""
    return f"a {kind.__name__}"
