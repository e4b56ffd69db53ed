"""Tables of text that bodies look into which TensorFlow gives its strings: as bytes, which no such table has."""

from __future__ import annotations

import collections
import functools
import types
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np

from pyfunc_debug.interception.bodies import scope, unwrap
from pyfunc_debug.interception.graphs.outside import GONE, followed
from pyfunc_debug.interception.graphs.readings import code_of, shown
from pyfunc_debug.interception.names import TensorFlowNames
from pyfunc_debug.interception.tokens import token_of

_DEFAULTS = (collections.defaultdict, collections.Counter)
_DICTS = (dict, collections.OrderedDict, *_DEFAULTS)
_LISTS = (list, tuple, set, frozenset)
_MOST = 100_000
_DEEPEST = 3


def text_tables(ops: Iterable[Any], names: TensorFlowNames) -> Iterator[tuple[str, dict[str, str]]]:
    """Tokens of such nodes, with the tables that the bodies and functions of their files read.

    Of each table the name as the code says it, and its kind: `dict`, `default` (a dict that makes what it has not),
    `list` (or a tuple, a set, an index of pandas), `array`, or `column` of pandas. All keys or elements are text now.
    """
    for op in ops:
        if any(one.dtype.name == "string" for one in op.inputs):
            function = unwrap(names.registry.get(token_of(op)), names)
            found = dict(_read_by(function)) if function is not None else {}
            if found:
                yield token_of(op), found


def _read_by(function: Any, depth: int = _DEEPEST) -> Iterator[tuple[str, str]]:
    own, module = scope(function)
    plain = getattr(function, "__func__", function)
    while isinstance(plain, functools.partial):
        plain = getattr(plain.func, "__func__", plain.func)
    if not isinstance(plain, types.FunctionType):
        return
    for code in _codes(plain.__code__):
        for how, name, path, _ in code_of(code).reads:
            holder = own.get("self", GONE) if how == "attribute" else own if how == "closure" else module
            steps: Any = ((".", name), *path) if how == "attribute" else (("[", name), *path)
            for end in range(1, len(steps) + 1):
                value = followed(functools.partial(_same, holder), steps[:end])
                found = list(_tables(value, shown(how, name, path[: end - 1])))
                if found or value is GONE:
                    break
            yield from found
            if depth and isinstance(value, types.FunctionType) and value.__code__.co_filename == code.co_filename:
                yield from _read_by(value, depth - 1)


def _same(value: Any) -> Any:
    return value


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and those of the comprehensions and functions in it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _codes(one)


def _tables(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Name and kind of a value that is a table of text, or of the columns of one of pandas."""
    kind = type(value)
    if kind in _DICTS + _LISTS:
        if _is_text(value):
            yield name, "list" if kind in _LISTS else "default" if _makes(value) else "dict"
    elif kind is np.ndarray:
        if value.dtype.kind == "U" or (value.dtype.kind == "O" and value.ndim == 1 and _is_text(value)):
            yield name, "array"
    elif kind.__module__.partition(".")[0] == "pandas":
        yield from ((text, which) for text, which, part in _parts(value, name) if _is_column(part))


def _parts(value: Any, name: str) -> Iterator[tuple[str, str, Any]]:
    """Columns and index of a table of pandas, each with its name and kind."""
    kind = type(value).__name__
    if kind == "DataFrame":
        yield from ((f"{name}[{one!r}]", "column", value[one]) for one in value.columns if isinstance(one, str))
    elif kind == "Series":
        yield name, "column", value
    elif kind == "Index":
        yield name, "list", value
    if kind in ("DataFrame", "Series"):
        yield f"{name}.index", "list", value.index


def _is_column(part: Any) -> bool:
    return getattr(part, "dtype", None) == np.dtype(object) and _is_text(part)  # Arrow's text equals bytes


def _makes(value: Any) -> bool:
    return isinstance(value, collections.Counter) or getattr(value, "default_factory", None) is not None


def _is_text(values: Collection[Any]) -> bool:
    """Whether there are keys or elements, and all are text."""
    try:
        return 0 < len(values) <= _MOST and all(type(one) is str for one in values)
    except RuntimeError:  # another thread changes it just now
        return False
