"""A pass of Keras over a generator that has given a lot and has not ended, and whose source does not say that it will.

A library's reader may repeat its rows for ever where nothing says how often to read them. Whether this one does nobody
knows: what is said is what it gave until somebody interrupted the pass.
"""

from __future__ import annotations

import ast
import time
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.reading.datasets import with_inputs
from pyfunc_debug.doctor.failures.reading.situation import Query
from pyfunc_debug.doctor.failures.reading.source import read, short
from pyfunc_debug.doctor.failures.reading.symbols import is_dataset
from pyfunc_debug.interception.names.private import GENERATOR_STARTS, counted, repeats
from pyfunc_debug.places import source_line
from pyfunc_debug.records import FROM_GENERATOR

LEAST = {"predict": (500, 10.0), "evaluate": (500, 10.0), "fit": (5_000, 30.0)}
"""Elements, and seconds: `fit` is interrupted for many reasons."""
_PEEKED = 0.1
"""What passes of before may have taken: more may have been to their end."""
_CALLS = (
    "SELECT n.body, n.file, n.line, count(*), max(c.start_ns) FROM node n JOIN function f ON f.id = n.function "
    "JOIN call c ON c.node = n.id WHERE f.name = ? AND c.start_ns >= ? AND c.status = 'ok'"
)
_WIDTH = 40


@dataclass(frozen=True)
class Unended:
    """A generator that has not ended.

    Attributes:
      who: Its name, or what gives its elements, with its place.
      elements: How many it has given.
      seconds: Since the first of them.
    """

    who: str
    elements: int
    seconds: float


def of_pass(dataset: Any, method: str, rows: Query) -> Unended | None:
    """The one generator of a program, that a first pass over a dataset goes through.

    Args:
      dataset: What Keras was given.
      method: Of Keras: `predict`.
      rows: Asks the recording.
    """
    if not is_dataset(dataset) or any(counted(one) is not None or repeats(one) is not None
                                      for one in with_inputs([dataset])):  # fmt: skip
        return None
    found = rows(f"{_CALLS} GROUP BY n.body, n.file, n.line", (FROM_GENERATOR, 0))
    begun = rows(f"{_CALLS} GROUP BY f.name", (GENERATOR_STARTS, 0))
    if len(found) != 1 or not begun or not any("FlatMap" in type(one).__name__ for one in with_inputs([dataset])):
        return None
    body, file, line, every, _ = found[0]
    start_ns = begun[0][4]
    now = rows(f"{_CALLS} GROUP BY n.body, n.file, n.line", (FROM_GENERATOR, start_ns))
    elements = int(now[0][3]) if now else 0
    seconds = (time.monotonic_ns() - start_ns) / 1e9
    least, least_s = LEAST[method]
    who = _who(str(body), file, line)
    if not who or elements < least or seconds < least_s or every - elements > _PEEKED * elements:
        return None
    return Unended(f"{who} ({source_line(file, line)})", elements, seconds)


def _who(body: str, file: str | None, line: int | None) -> str:
    """What gives the elements; "" for a function of loops that end by themselves."""
    if file is None or line is None:
        return ""
    source = read(file)
    functions = [
        one for one in ast.walk(source.tree)
        if isinstance(one, (ast.Lambda, ast.FunctionDef)) and line in (one.lineno, _above(one))
    ]  # fmt: skip
    if len(functions) != 1:
        return ""
    function = functions[0]
    if isinstance(function, ast.Lambda):
        return short(source.text(function.body), _WIDTH)
    parts = list(ast.walk(function))
    yields = any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in parts)
    return "" if yields and not any(isinstance(one, ast.While) for one in parts) else short(body, _WIDTH)


def _above(function: ast.Lambda | ast.FunctionDef) -> int:
    return min([function.lineno, *(int(one.lineno) for one in getattr(function, "decorator_list", ()))])
