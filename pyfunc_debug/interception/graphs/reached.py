"""The user's functions that a graph was made by, behind functions and objects of TensorFlow's and Keras'.

What Keras traces is its own function. The model that it holds leads to the user's: methods of models and layers,
losses, metrics, activations, schedules. Only those count that some op of the graph was made in. No code of the user's
runs.
"""

from __future__ import annotations

import itertools
import types
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import Any

from pyfunc_debug.interception.bodies import SourceMaps, closure
from pyfunc_debug.program.frames import is_generated, is_installed, is_user

_MOST_OBJECTS = 6000
_MOST_ITEMS = 256
_MOST_OPS = 800
"""Of a larger graph's, evenly: each costs some 0.1 ms."""
_NOT_TRACED = {"__init__", "build", "get_config", "from_config"}
"""Methods of layers and models that run before, if they run while a graph is traced at all."""
_PARTS = {"Const", "Identity", "NoOp", "Placeholder", "ReadVariableOp"}
"""Types of ops that stand beside others of the same lines."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type, types.ModuleType)


def is_own(file: str) -> bool:
    """Whether a file is the user's own, and no installed package's."""
    return is_user(file) and not is_installed(file)


def reached(
    roots: Collection[Any], wanted: Callable[[types.FunctionType, Any], bool], graph: Any, maps: SourceMaps
) -> list[tuple[types.FunctionType, Any]]:
    """The user's functions behind some objects that ops of a graph were made in, each with the object of a method.

    Args:
      roots: The objects.
      wanted: Whether one, with its object, is of interest: where none is, no op is looked at.
      graph: What was traced.
      maps: Of generated code to the user's.
    """
    found = [(one, owner) for one, owner in _held(roots) if one.__name__ not in _NOT_TRACED and wanted(one, owner)]
    if not found:
        return []
    ran = _ran(graph, {one.__code__ for one, _ in found}, maps)
    return [(one, owner) for one, owner in found if one.__code__ in ran]


def _held(roots: Collection[Any]) -> Iterator[tuple[types.FunctionType, Any]]:
    """The user's functions and methods that some objects hold, from the nearest to the farthest."""
    todo: deque[Any] = deque(roots)
    seen: set[int] = set()
    kept = []  # so that no two have one identity
    methods: dict[type, list[types.FunctionType]] = {}
    while todo and len(seen) < _MOST_OBJECTS:
        thing = todo.popleft()
        if isinstance(thing, _PLAIN) or id(thing) in seen:
            continue
        seen.add(id(thing))
        kept.append(thing)
        if isinstance(thing, types.FunctionType):
            if is_own(thing.__code__.co_filename):
                yield thing, None
            todo.extend((*closure(thing).values(), *vars(thing).values()))  # `__wrapped__` is there
        elif isinstance(thing, types.MethodType):
            function = thing.__func__
            if isinstance(function, types.FunctionType) and is_own(function.__code__.co_filename):
                yield function, thing.__self__
            todo.append(thing.__self__)
        elif isinstance(thing, weakref.ref):
            todo.append(thing())
        elif issubclass(type(thing), dict):  # `isinstance` also believes wrappers
            todo.extend(list(dict.values(thing))[:_MOST_ITEMS])
        elif issubclass(type(thing), (list, tuple, set, frozenset)):
            todo.extend(_items(thing))
        else:
            kind = type(thing)
            if kind not in methods:
                methods[kind] = list(_methods(kind))
            yield from ((one, thing) for one in methods[kind])
            attributes = getattr(thing, "__dict__", None)
            todo.extend(list(attributes.values()) if type(attributes) is dict else ())


def _items(thing: Any) -> list[Any]:
    """Items of a list, tuple or set, without code of its own."""
    kind = next(one for one in (list, tuple, set, frozenset) if issubclass(type(thing), one))
    return list(itertools.islice(kind.__iter__(thing), _MOST_ITEMS))


def _methods(kind: type) -> Iterator[types.FunctionType]:
    """Methods that the user's own classes give an object of a type."""
    for base in kind.__mro__:
        for value in list(vars(base).values()):
            function = value.fget if isinstance(value, property) else value
            if isinstance(function, types.FunctionType) and is_own(function.__code__.co_filename):
                yield function


def _ran(graph: Any, codes: Collection[types.CodeType], maps: SourceMaps) -> set[types.CodeType]:
    """Those code objects that some op of a graph was made in."""
    left = {(one.co_filename, one.co_name, one.co_firstlineno, _last(one)): one for one in codes}
    files = {one.co_filename for one in codes}
    others: set[str] = set()
    found: set[types.CodeType] = set()
    ops = [one for one in graph.get_operations() if one.type not in _PARTS and "gradient_tape/" not in one.name]
    for op in ops[:: len(ops) // _MOST_OPS + 1]:
        for entry in op.traceback.get_user_frames() if op.traceback else ():  # a quarter of them, without TensorFlow's
            file = entry.filename
            if file in others:
                continue
            line, name = entry.lineno, entry.name
            generated = is_generated(file)
            if generated:
                file, line = maps.find(file, line) or (file, line)
                name = name.removeprefix("tf__")
            if file not in files:
                if not generated:
                    others.add(file)
                continue
            for key in [key for key in left if key[0] == file and key[2] <= line <= key[3]]:
                if key[1] == name or name == "<lambda>":
                    found.add(left.pop(key))
        if not left:
            break
    return found


def _last(code: types.CodeType) -> int:
    return max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)


__all__ = ["is_own", "reached"]
