"""What a call calls, of TensorFlow, Keras or the user, and the arguments that it takes; nothing is run for it."""

from __future__ import annotations

import ast
import inspect
import sys
from contextlib import suppress
from typing import Any

from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.symbols import is_keras, lookup, of_package

_METHODS = (("tensorflow", "data.Dataset"), ("keras", "Model"))
"""Classes whose methods are known by their name, where it is not known what they are called on."""
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def called(call: ast.Call) -> str:
    """The name of what is called: "Dense" of `tf.keras.layers.Dense(4)`, "batch" of `ds.map(f).batch(4)`."""
    func = call.func
    return func.attr if isinstance(func, ast.Attribute) else ast.unparse(func)


def callable_of(call: ast.Call, spot: Spot) -> Any:
    """The function or class that is called; None where it is not known."""
    found = of_package(call.func, spot)
    if found is None and isinstance(call.func, ast.Attribute):
        owner = lookup(call.func.value, spot)
        kinds = [type(owner)] if owner is not None and not is_keras(owner) else [] if owner is not None else _known()
        for kind in kinds:
            with suppress(AttributeError):
                found = inspect.getattr_static(kind, call.func.attr)
                break
    return found if callable(found) else None


def _known() -> list[Any]:
    found: list[Any] = []
    for package, path in _METHODS:
        value = sys.modules.get(package)
        for part in path.split("."):
            value = getattr(value, part, None)
        found += [value] if isinstance(value, type) else []
    return found


def taken(call: ast.Call, spot: Spot) -> list[str]:
    """The names of the arguments that a call may give, in their order; none where they are not known."""
    found = callable_of(call, spot)
    if found is None:
        return []
    try:
        by = inspect.getattr_static(found, "__init__") if isinstance(found, type) else found
        named = [one for one in inspect.signature(by).parameters.values() if one.kind in _NAMED]
    except (TypeError, ValueError):
        return []
    of_owner = isinstance(found, type) or (isinstance(call.func, ast.Attribute) and of_package(call.func, spot) is None)
    return [one.name for one in named[1 if of_owner and named and named[0].name == "self" else 0 :]]


def given_to(call: ast.Call, name: str, spot: Spot) -> ast.expr | None:
    """What a call gives for an argument, by its name or place."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = taken(call, spot)
    place = names.index(name) if name in names else len(call.args)
    plain = not any(isinstance(one, ast.Starred) for one in call.args)
    return call.args[place] if plain and place < len(call.args) else None
