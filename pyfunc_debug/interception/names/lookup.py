"""Finding one private name of TensorFlow, and seeing whether it still takes what we expect."""

from __future__ import annotations

import functools
import importlib
import inspect
import types
import weakref
from typing import Any

_known: weakref.WeakKeyDictionary[Any, tuple[types.CodeType, tuple[str, ...]]] = weakref.WeakKeyDictionary()
"""Of each function its parameters, and the code that they are of. To read them takes 0.1 ms, each time that recording
begins 2 ms for all."""


def find(name: str, parameters: tuple[str, ...] | None) -> Any:
    """The object called `module:path`, or None when it is not there or takes other parameters than expected."""
    module, _, path = name.partition(":")
    try:
        found: Any = functools.reduce(getattr, path.split("."), importlib.import_module(module))
    except (ImportError, AttributeError):
        return None
    if parameters is not None:
        try:
            if _parameters(found) != parameters:
                return None
        except (TypeError, ValueError):
            return None
    return found


def _parameters(found: Any) -> tuple[str, ...]:
    if type(found) is not types.FunctionType or vars(found):  # __wrapped__, __signature__
        return tuple(inspect.signature(found).parameters)
    code, parameters = _known.get(found, (None, ()))
    if code is not found.__code__:
        parameters = tuple(inspect.signature(found).parameters)
        _known[found] = found.__code__, parameters
    return parameters
