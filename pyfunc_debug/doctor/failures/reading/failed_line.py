"""The user's line that failed, where no trap is known: what its names held, and those of the line that called it."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.code import local_names
from pyfunc_debug.doctor.failures.reading.situation import Locate, Query, Spot, situation
from pyfunc_debug.doctor.failures.reading.source import names, short
from pyfunc_debug.doctor.failures.reading.symbols import described, is_dataset, is_symbolic, sizes_of
from pyfunc_debug.program.error_text import error_text
from pyfunc_debug.values.summary import type_text

_MOST = 6
_WIDTH = 60
_KEYS = 3
_NUMBERS = (bool, int, float)
_DTYPES = frozenset(
    ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
)
"""Of scalars that are said as they are."""
_SIZED = (list, tuple, dict, set, str, bytes)


def held(error: BaseException, locate: Locate, rows: Query, shown: bool = False) -> dict[str, Any] | None:
    """What the recording's notice `failed-line` holds of an exception without a known cause.

    Runs no code of the user's.

    Args:
      error: The exception that reached the user.
      locate: Gives the user's file and line for a line that may be generated.
      rows: Asks the recording.
      shown: Whether texts and numbers are said as they are: a recording may be made without values.
    """
    found = situation(error, locate, rows)
    spot = found.last
    statement = spot.statement if spot is not None else None
    if spot is None or statement is None:
        return None
    header = statement.test if isinstance(statement, (ast.If, ast.While)) else statement
    header = header.iter if isinstance(header, ast.For) else header
    known: dict[str, Any] = {name: value for name, value in spot.module.items() if type(value) in (*_NUMBERS, *_SIZED)}
    known |= spot.variables
    told = [
        (name, what) for name in dict.fromkeys(names(header)) if name in known
        for what in (_what(known[name], shown),) if what
    ]  # fmt: skip
    stored = [one.id for one in ast.walk(header) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    told = [(name, what) for name, what in told if name in stored] + _attributes(header, spot, shown)
    outer = found.outer(spot) if found.body and shown else None
    around = _around(outer) if outer is not None else []
    if not told and not around:
        return None
    above = {"caller": outer.code, "called": outer.line, "around": around[-_MOST:]} if outer is not None else {}
    return {"error": error_text(found.inner)[0], "file": spot.file, "line": spot.line, "held": told[:_MOST], **above}


def _around(spot: Spot) -> list[tuple[str, str]]:
    """The texts and numbers of the function that called the one that raised."""
    if not isinstance(spot.function, ast.FunctionDef):
        return []
    own = local_names(spot.function)  # AutoGraph has others beside them
    plain = [(name, value) for name, value in spot.variables.items() if type(value) in (*_NUMBERS, str, bytes)]
    return [(name, _what(value, True)) for name, value in plain if name in own]


def _attributes(header: ast.AST, spot: Spot, shown: bool) -> list[tuple[str, str]]:
    """What the line reads of objects: `self.size` that is None, or a number."""
    read = [one for one in ast.walk(header) if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name)]
    found = {}
    for one in read:
        owner = spot.variables.get(one.value.id) if isinstance(one.value, ast.Name) else None
        kept = getattr(owner, "__dict__", None)
        value = kept.get(one.attr, kept) if type(kept) is dict else kept
        if (value is None and type(kept) is dict) or type(value) in (*_NUMBERS, str, bytes):
            found[ast.unparse(one)] = _what(value, shown)
    return [(name, what) for name, what in found.items() if what]


def _what(value: Any, shown: bool) -> str:
    """`int64[16, 16]`, `None`, `list of 3`, and `'a.png'` where values are shown; empty for what says nothing."""
    if value is None:
        return "None"
    if is_symbolic(value):
        return described(value)
    kind = type(value)
    if shown and kind in (*_NUMBERS, str, bytes):
        return short(repr(value), _WIDTH)
    if kind in _NUMBERS:
        return kind.__name__
    if shown and (plain := _number(value)) is not None:
        return short(repr(plain), _WIDTH)
    if shown and kind is dict and value and all(type(key) in (str, int) for key in value):
        keys = [short(repr(key), _WIDTH) for key in list(value)[:_KEYS]]
        return f"dict with {', '.join(keys)}{f' and {len(value) - _KEYS} more' if len(value) > _KEYS else ''}"
    if kind in _SIZED:
        return f"{kind.__name__} of {len(value)}"
    if is_dataset(value):
        return f"a dataset of {_parts(value.element_spec)}" if hasattr(value, "element_spec") else "a dataset"
    if kind.__module__.partition(".")[0] in ("numpy", "tensorflow") and hasattr(value, "dtype"):
        dtype = str(getattr(value.dtype, "name", value.dtype))
        try:
            return type_text(dtype, tuple(int(size) for size in value.shape))
        except (TypeError, ValueError):
            return dtype
    if callable(value) or kind.__name__ == "module":
        return ""
    return f"a {kind.__name__}{_sizes_of_model(value)}"


def _number(value: Any) -> bool | int | float | None:
    """The number, or truth value, that a scalar of NumPy's is, an array of one or an eager tensor without axes."""
    kind = type(value)
    if kind.__module__ != "numpy" and kind.__name__ != "EagerTensor":
        return None
    if getattr(value, "shape", None) != () or getattr(value.dtype, "name", "") not in _DTYPES:
        return None
    scalar = value.numpy() if kind.__name__ == "EagerTensor" else value
    number: bool | int | float = scalar.item()
    return float(str(scalar)) if type(number) is float else number  # 0.1 of a float32 is 0.10000000149


def _parts(spec: Any) -> str:
    """`(float32[?, 3], int64[?])`."""
    if isinstance(spec, dict):
        return "{" + ", ".join(f"{name!r}: {_parts(one)}" for name, one in spec.items()) + "}"
    if isinstance(spec, (list, tuple)):
        return "(" + ", ".join(map(_parts, spec)) + ")"
    return described(spec) if hasattr(spec, "dtype") and hasattr(spec, "shape") else f"a {type(spec).__name__}"


def _sizes_of_model(value: Any) -> str:
    """What a model of Keras' takes and gives, where it was built of layers with inputs."""
    if type(value).__name__ not in ("Sequential", "Functional"):
        return ""
    try:
        given, gives = (sizes_of(tuple(part)) for part in (value.input_shape, value.output_shape))
    except (AttributeError, TypeError, ValueError, RuntimeError):  # it is not built, or has several
        return ""
    return f" from {given} to {gives}"
