"""What a call calls, of TensorFlow, Keras or the user, and the arguments that it takes; nothing is run for it."""

from __future__ import annotations

import ast
import inspect
import sys
import types
from contextlib import suppress
from typing import Any

from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import is_dataset, is_keras, lookup, of_package
from pyfunc_debug.program.frames import is_installed, is_user

_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)
"""Other callables may run code of the user's as they are asked for their arguments."""
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
        kind = type(owner) if owner is not None else _dataset_class() if _begins_at_dataset(call, spot) else None
        if kind is not None and not is_keras(owner):
            with suppress(AttributeError):
                found = inspect.getattr_static(kind, call.func.attr)
    return found if callable(found) else None


def code_of(call: ast.Call, spot: Spot) -> types.CodeType | None:
    """The code of the user's own function that a call calls; None of all others."""
    found: Any = lookup(call.func, spot)
    found = found if found is not None else callable_of(call, spot)
    code = getattr(getattr(found, "__func__", found), "__code__", None)
    if not isinstance(code, types.CodeType) or not is_user(code.co_filename) or is_installed(code.co_filename):
        return None
    return code


def _begins_at_dataset(call: ast.Call, spot: Spot) -> bool:
    """Whether a chain of methods begins at a dataset, or at `tf.data.Dataset`."""
    node: ast.AST = call.func
    while isinstance(node, (ast.Call, ast.Attribute)):
        if isinstance(node, ast.Attribute) and dotted(node).endswith("data.Dataset"):
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and (is_dataset(spot.value(node.id)) or spot.value(node.id) is _dataset_class())


def _dataset_class() -> Any:
    found: Any = sys.modules.get("tensorflow")
    for part in ("data", "Dataset"):
        found = getattr(found, part, None)
    return found


def taken(call: ast.Call, spot: Spot) -> list[str]:
    """The names of the arguments that a call may give, in their order; none where they are not known."""
    found = callable_of(call, spot)
    if found is None or not isinstance(found, (type, *_FUNCTIONS)):
        return []
    try:
        by = inspect.getattr_static(found, "__init__") if isinstance(found, type) else found
        named = [one for one in inspect.signature(by).parameters.values() if one.kind in _NAMED]
    except (TypeError, ValueError):
        return []
    of_owner = isinstance(call.func, ast.Attribute) and of_package(call.func, spot) is None
    if isinstance(found, type):
        of_owner = bool(named) and named[0].name == "self"
    return [one.name for one in named[of_owner:]]


def given_to(call: ast.Call, name: str, spot: Spot) -> ast.expr | None:
    """What a call gives for an argument, by its name or place."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = taken(call, spot)
    place = names.index(name) if name in names else len(call.args)
    plain = not any(isinstance(one, ast.Starred) for one in call.args)
    return call.args[place] if plain and place < len(call.args) else None
