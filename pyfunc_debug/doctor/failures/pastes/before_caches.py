"""Where a dataset lost its shapes, above its cache: reading one element there leaves what the cache keeps alone."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.reading.datasets import leaves, with_inputs
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, read
from pyfunc_debug.doctor.failures.reading.symbols import method_calls, shape_of
from pyfunc_debug.interception.names.private import (
    cache_name,
    dataset_functions,
    dataset_inputs,
    mapped_function,
    snapshot_path,
)
from pyfunc_debug.program.frames import is_installed, is_user

_MAPS = ("map", "map_with_legacy_function")


@dataclass(frozen=True)
class Opener:
    """The call that gives elements of unknown shape.

    Attributes:
      file: The user's file that has it.
      source: That file's source.
      statement: The simple statement that it is in.
      call: The call.
      dataset: The dataset that it made.
      tensorflow: TensorFlow's name in that file.
    """

    file: str
    source: Source
    statement: ast.stmt
    call: ast.Call
    dataset: Any
    tensorflow: str


def is_cached(dataset: Any) -> bool:
    """Whether a dataset, or one that it is made of, keeps the elements that are read from it."""
    return any(cache_name(one) is not None or snapshot_path(one) is not None for one in with_inputs([dataset]))


def opener(dataset: Any, file: str) -> Opener | None:
    """The one call that made the elements of a dataset such as they are, where no cache is above it.

    Args:
      dataset: What is cached.
      file: The file of the line that failed.
    """
    stages = [one for one in with_inputs([dataset]) if is_open(one) and not any(map(is_open, dataset_inputs(one)))]
    if len(stages) != 1 or is_cached(stages[0]):
        return None
    stage = stages[0]
    function = _function(stage)
    files = dict.fromkeys([file, *([function.__code__.co_filename] if function is not None else [])])
    found = [(one, source, call) for one in files if is_user(one) and not is_installed(one)
             for source in [read(one)] for call in _calls(stage, function, one, source)]  # fmt: skip
    if len(found) != 1:
        return None
    where, source, call = found[0]
    statement, tensorflow = source.statement(call.lineno), _tensorflow(source)
    if statement is None or hasattr(statement, "body") or not tensorflow or _in_lambda(source, call):
        return None
    return Opener(where, source, statement, call, stage, tensorflow)


def is_open(dataset: Any) -> bool:
    """Whether a part of the elements has no rank."""
    return any(shape_of(one) is None for one in leaves(dataset.element_spec))


def _function(stage: Any) -> Any:
    """The user's function that a map calls, without decorators."""
    given = [mapped_function(one) for one in dataset_functions(stage)]
    function = given[0] if len(given) == 1 else None
    function = getattr(function, "python_function", function)
    plain = inspect.unwrap(function) if inspect.isfunction(function) or inspect.ismethod(function) else None
    return plain if hasattr(plain, "__code__") else None


def _calls(stage: Any, function: Any, file: str, source: Source) -> Iterator[ast.Call]:
    """The calls of a file that may have made it."""
    if "FlatMap" in type(stage).__name__:  # what from_generator makes
        yield from method_calls(source.tree, "from_generator")
        return
    if function is None or "Map" not in type(stage).__name__:
        return
    code = function.__code__
    for call in (one for name in _MAPS for one in method_calls(source.tree, name)):
        given = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "map_func"), None)
        if isinstance(given, ast.Lambda):
            if code.co_name == "<lambda>" and (file, given.lineno) == (code.co_filename, code.co_firstlineno):
                yield call
        elif given is not None and dotted(given).rpartition(".")[2] == code.co_name:
            yield call


def _in_lambda(source: Source, call: ast.Call) -> bool:
    return any(isinstance(one, ast.Lambda) for one in source.around(call))


def _tensorflow(source: Source) -> str:
    """`tf` of `import tensorflow as tf`; "" where the file has no such line."""
    names = [one for part in ast.walk(source.tree) if isinstance(part, ast.Import) for one in part.names]
    return next((one.asname or one.name for one in names if one.name == "tensorflow"), "")
