"""Python objects that a function can reach and change: fingerprints before and after show what a run changed.

A function's closure, the globals it names, its object and the functions it calls are looked at, a few levels deep.
Nothing of the user's is called: only built-in containers, numbers, strings, arrays and plain attributes are read.
"""

from __future__ import annotations

import inspect
import random
import types
from collections import deque
from typing import Any

import numpy as np

from pyfunc_debug.program.frames import is_user

_FRAMEWORKS = ("tensorflow", "keras", "tf_keras")
_DEEPEST = 3
_MOST = 2000
_LOOKED_INTO = 50
"""How many items of a list or dictionary are looked into; of more it is only seen whether they are others."""
_LARGEST_BYTES = 1 << 20


def reachable(function: Any) -> dict[str, Any]:
    """Each thing that `function` can reach, by the name it has in the code."""
    found: dict[str, Any] = {}
    _function(function, "", found, set())
    return found


def fingerprints(function: Any) -> dict[str, object]:
    """A fingerprint of each thing that `function` can reach and change, by the name it has in the code."""
    found = {name: _fingerprint(thing) for name, thing in reachable(function).items()}
    return {name: print_ for name, print_ in found.items() if print_ is not None}


def changes(before: dict[str, object], after: dict[str, object]) -> list[str]:
    """Names of things that changed or appeared."""
    return [name for name, print_ in after.items() if before.get(name) != print_]


def _function(function: Any, prefix: str, found: dict[str, object], seen: set[int]) -> None:
    if id(function) in seen or len(seen) > _MOST:
        return
    try:
        plain = inspect.unwrap(function)
    except ValueError:
        return
    if isinstance(plain, types.MethodType):
        owner: Any = plain.__self__
        if type(owner).__name__ == "TfMethodTarget":  # a decorated method: tf.function holds its object weakly
            owner = owner.target
        _thing(f"{prefix}self", owner, found, seen, 0)
        plain = inspect.unwrap(plain.__func__)
    code = getattr(plain, "__code__", None)
    if code is None and not isinstance(plain, type):
        _thing(f"{prefix}{type(plain).__name__}", plain, found, seen, 0)  # a callable object
    seen.add(id(function))
    if not isinstance(code, types.CodeType) or not is_user(code.co_filename):
        return
    for name, cell in zip(code.co_freevars, plain.__closure__ or ()):
        try:
            _thing(prefix + name, cell.cell_contents, found, seen, 0)
        except ValueError:  # an empty cell
            continue
    for name in _names(code):
        if name in plain.__globals__:
            _thing(prefix + name, plain.__globals__[name], found, seen, 0)


def _names(code: types.CodeType) -> list[str]:
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += _names(constant)
    return names


def _thing(name: str, thing: Any, found: dict[str, object], seen: set[int], depth: int) -> None:
    plain = getattr(thing, "python_function", thing) if type(thing).__module__.startswith("tensorflow.") else thing
    if isinstance(plain, (types.FunctionType, types.MethodType)):
        _function(plain, "", found, seen)
        return
    if isinstance(thing, (types.ModuleType, type, types.BuiltinFunctionType)):
        return
    if _fingerprint(thing) is not None or type(thing).__module__.partition(".")[0] in _FRAMEWORKS:
        found[name] = thing
        if isinstance(thing, (list, tuple, dict)) and depth < _DEEPEST and id(thing) not in seen:
            seen.add(id(thing))
            for key, item in list(thing.items() if isinstance(thing, dict) else enumerate(thing))[:_LOOKED_INTO]:
                if is_user_object(item) or isinstance(item, (types.FunctionType, types.MethodType)):
                    _thing(f"{name}[{key!r}]", item, found, seen, depth + 1)
    elif depth < _DEEPEST and id(thing) not in seen and is_user_object(thing):
        seen.add(id(thing))
        found[name] = thing
        for attribute, value in list(vars(thing).items()):
            _thing(f"{name}.{attribute}", value, found, seen, depth + 1)


def _fingerprint(thing: Any) -> object:
    """What shows whether a thing changed; None for what is not looked at."""
    if isinstance(thing, (bool, int, float, complex, str, bytes, type(None))):
        return type(thing), thing
    if isinstance(thing, (list, tuple, set, frozenset, deque, bytearray)):
        return len(thing), tuple(map(_identity, list(thing)[:_MOST]))
    if isinstance(thing, dict):
        return len(thing), tuple((_identity(k), _identity(v)) for k, v in list(thing.items())[:_MOST])
    if isinstance(thing, np.ndarray):
        return thing.shape, thing.tobytes() if thing.nbytes <= _LARGEST_BYTES else id(thing)
    if is_random(thing):
        if isinstance(thing, np.random.Generator):
            return "random", repr(thing.bit_generator.state)
        return "random", repr(thing.get_state() if isinstance(thing, np.random.RandomState) else hash(thing.getstate()))
    return None


def is_random(thing: Any) -> bool:
    """Whether a thing is a generator of random numbers of NumPy's or Python's own."""
    return isinstance(thing, (np.random.Generator, np.random.RandomState, random.Random))


def is_user_object(thing: Any) -> bool:
    """Whether an object's class is the user's, and its attributes can be read without running code."""
    kind = type(thing)
    module = kind.__module__.partition(".")[0]
    return module not in (*_FRAMEWORKS, "numpy", "builtins") and hasattr(thing, "__dict__")


def _identity(thing: Any) -> object:
    return thing if isinstance(thing, (bool, int, float, str, bytes)) else id(thing)
