"""Calls in a body of things outside of it, which may do anything: a logger, a queue, an object of the user's.

Names are looked up in the live function, so that an array's methods and a Keras layer do not count. A function or
method of the user's counts for what its own source does.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.bodies.replacement import definition_of, obstacles
from pyfunc_debug.doctor.code import local_names, own_nodes
from pyfunc_debug.doctor.failures.reading.source import Function, dotted
from pyfunc_debug.interception.bodies import scope
from pyfunc_debug.program.frames import is_user

_DEEPEST = 4
_MODULES = ("numpy", "math", "functools", "itertools", "operator", "collections")
_KNOWN = ("tensorflow", "keras", "tf_keras", "numpy", "math", "functools", "itertools", "operator")
_PLAIN = (str, bytes, int, float, complex, bool, tuple, frozenset, type(None))
_READS: dict[Any, set[str]] = {
    dict: {"get", "keys", "values", "items", "copy"}, list: {"index", "count", "copy"},
    set: {"union", "intersection", "difference", "copy"},
}  # fmt: skip
"""Methods of containers that change nothing."""


def foreign_calls(function: Any, definition: Function, depth: int = 0) -> Iterator[tuple[int, str]]:
    """Line and text of each call of something outside that is neither NumPy's nor TensorFlow's, nor known to be plain.

    Args:
      function: The live function.
      definition: Its syntax tree.
      depth: How many calls of the user's functions led here.
    """
    own, module = scope(function)
    given = set(inspect.signature(function).parameters) if callable(function) else set()
    local = local_names(definition) - {name for name in own if name not in given}
    for one in own_nodes(definition):
        if not isinstance(one, ast.Call):
            continue
        head, *path = dotted(one.func).split(".")
        if not head or head in local:
            continue
        found = own.get(head, module.get(head))
        owner: Any = None
        for name in path:
            owner, found = found, _attribute(found, name)
        known = head in own or head in module
        if known and (found is None or not _is_plain(found, owner, path[-1:], depth)):
            yield one.lineno, dotted(one.func)


def _attribute(thing: Any, name: str) -> Any:
    """An attribute, without running a property of the user's."""
    if isinstance(thing, types.ModuleType) or type(thing).__module__.partition(".")[0] in (*_KNOWN, "builtins"):
        return getattr(thing, name, None)
    try:
        return inspect.getattr_static(thing, name)
    except AttributeError:
        return None


def _is_plain(found: Any, owner: Any, name: list[str], depth: int) -> bool:
    if name and type(owner) in _READS:
        return name[0] in _READS[type(owner)]
    if name and isinstance(owner, _PLAIN):
        return True
    for thing in (found, owner) if owner is not None and not isinstance(owner, types.ModuleType) else (found,):
        if _belongs(thing):
            return True
    if isinstance(found, (staticmethod, classmethod)):
        found = found.__func__
    if not isinstance(found, types.FunctionType) or not is_user(found.__code__.co_filename) or depth >= _DEEPEST:
        return False
    tree = definition_of(found.__code__, found.__code__.co_filename, found.__code__.co_firstlineno)
    if tree is None or obstacles(found.__code__.co_filename, tree, _MODULES):
        return False
    method = owner is not None and not isinstance(owner, (types.ModuleType, type))
    live: Any = types.MethodType(found, owner) if method else found
    return not list(foreign_calls(live, tree, depth + 1))


def _belongs(thing: Any) -> bool:
    """Whether something is NumPy's, TensorFlow's or Keras', or an instance of what is; or a built-in function."""
    if isinstance(thing, types.BuiltinFunctionType) and thing.__module__ == "builtins":
        return True
    if isinstance(thing, type):
        return thing.__module__.partition(".")[0] in (*_KNOWN, "builtins")
    names = [str(getattr(thing, "__module__", "") or "")]
    names += [kind.__module__ for kind in type(thing).__mro__ if kind.__module__ not in ("builtins", "abc", "typing")]
    return any(name.partition(".")[0] in _KNOWN for name in names)
