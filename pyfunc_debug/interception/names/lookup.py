"""Finding one private name of TensorFlow, and seeing whether it still takes what we expect."""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import Any


def find(name: str, parameters: tuple[str, ...] | None) -> Any:
    """The object called `module:path`, or None when it is not there or takes other parameters than expected."""
    module, _, path = name.partition(":")
    try:
        found: Any = functools.reduce(getattr, path.split("."), importlib.import_module(module))
    except (ImportError, AttributeError):
        return None
    if parameters is not None:
        try:
            if tuple(inspect.signature(found).parameters) != parameters:
                return None
        except (TypeError, ValueError):
            return None
    return found
