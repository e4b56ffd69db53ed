"""Python values that a function takes from outside while it is traced: its graph keeps what Python did with them then.

A closure's variable, a module's global, an attribute of `self` or of another object, an entry of a dict. When one
changes, TensorFlow does not trace again: the graph goes on with the old value. What a function reads is found in its
code and in that of the functions it calls, also where Keras stands between; a value is compared with what it was
whenever Python runs the graph. Values of plain types and eager tensors are looked at, and whether a model, an
optimizer, a metric or a variable is still the same object; no others.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from pyfunc_debug.events import Body
from pyfunc_debug.interception.bodies import SourceMaps
from pyfunc_debug.interception.graphs.reached import is_own, reached
from pyfunc_debug.interception.graphs.readings import Reading, Step, code_of, shown, written_by
from pyfunc_debug.interception.names import private

_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_MOST_ITEMS = 16
_MOST_NAMES = 64
_MOST_FUNCTIONS = 64
_MOST_TEXT = 60
_MOST_NUMBERS = 4096
_SHOWN = 6
"""Of a tensor or an array with more numbers, the first and the last of each axis are shown."""
_NOT_ITS_VALUES = {"device", "dtype", "get_shape", "ndim", "shape"}
"""What is asked of a tensor without its values."""
_GROWS = {"append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault"}
"""Methods that change a list or dict: what code calls them on it does not read."""
GONE = object()
_STATEFUL = {
    ("Layer", "keras"), ("BaseOptimizer", "keras"), ("Metric", "keras"), ("Module", "tensorflow"),
    ("ResourceVariable", "tensorflow"), ("Variable", "keras"),
}  # fmt: skip
"""Classes, and their packages, whose objects a graph holds on to: another object under the name is not used."""


class _Held(NamedTuple):
    """An object of such a class, held weakly."""

    reference: weakref.ref[Any]
    kind: str


class _Tensor(NamedTuple):
    """An eager tensor or an array, held weakly, with up to `_MOST_NUMBERS` of its numbers, evenly spaced."""

    reference: weakref.ref[Any]
    shape: tuple[int, ...]
    numbers: Any
    text: str


class Taken(NamedTuple):
    """A value that a function took from outside.

    Attributes:
      name: As the code says it: `k`, `self.rate`, `cfg.kl['weight']`.
      function: Which function reads it.
      file: Where it is read.
      line: Its line.
      then: The value at trace, or a copy; a `_Held` for an object, a `_Tensor` for a tensor.
      now: Asks for the present one; `GONE` when there is none.
    """

    name: str
    function: str
    file: str
    line: int
    then: Any
    now: Callable[[], Any]


class Changed(NamedTuple):
    """A value that has changed: texts of both; names of the classes where another object is there now."""

    name: str
    function: str
    file: str
    line: int
    then: str
    now: str
    other_object: bool


class Outside:
    """What one graph took from outside.

    Args:
      function: The Python function that was traced: the user's, or one of TensorFlow's or Keras' that leads to theirs.
      bodies: Those of the graph's nodes: what they read, they read at each call.
      function_type: That of tf.functions: those that it calls are part of its graph.
      graph: What was traced.
      maps: Of generated code to the user's.
      parts: Of graphs that were traced for this one, where its function is not the user's.
    """

    def __init__(
        self, function: Any, bodies: Collection[Body], function_type: Any, graph: Any, maps: SourceMaps,
        parts: Collection[Outside] = (),
    ) -> None:  # fmt: skip
        found = [one for part in parts for one in part.taken]
        found += _taken(function, bodies, function_type, graph, maps)
        self.taken: list[Taken] = list({(one.name, one.file, one.line, repr(one.then)): one for one in found}.values())

        self._at_pass: dict[tuple[str, str, int], Any] | None = None

    def __bool__(self) -> bool:
        return bool(self.taken)

    def passed(self) -> list[Changed]:
        """What changed since the pass before, now that a dataset is passed over again whose function took it.

        What changed before the first pass may be meant as it was at trace, as the names of a loop that makes several
        datasets. Values of plain types only; each is reported once.
        """
        before, now_held, found = self._at_pass, {}, []
        for one in tuple(self.taken):
            now = one.now()
            if isinstance(one.then, (_Held, _Tensor)) or type(now) not in _SCALARS:
                continue
            place = one.name, one.file, one.line
            now_held[place] = now
            if before is not None and place in before and not _same(before[place], now) and not _same(one.then, now):
                try:
                    self.taken.remove(one)
                except ValueError:  # another thread reported it
                    continue
                found.append(Changed(one.name, one.function, one.file, one.line, _said(one.then), _said(now), False))
        self._at_pass = now_held
        return found

    def changed(self) -> list[Changed]:
        """What changed since the graph was traced; each is reported once. Some 0.1 us a value."""
        found = []
        for one in tuple(self.taken):
            now = one.now()
            held = isinstance(one.then, _Held)
            if now is not one.then and now is not GONE and not _is_still(one.then, now):
                try:
                    self.taken.remove(one)
                except ValueError:  # another thread runs the graph too, and reported it
                    continue
                then, other = (one.then.kind, type(now).__name__) if held else (_said(one.then), _said(now))
                other += " with other numbers between" * (then == other and not held)
                found.append(Changed(one.name, one.function, one.file, one.line, then, other, held))
        return found


def _is_still(then: Any, now: Any) -> bool:
    """Whether what was kept of a value at trace stands for the present one, too."""
    if isinstance(then, _Held):
        return _is_held(then, now)
    return _is_tensor(then, now) if isinstance(then, _Tensor) else _same(then, now)


def _is_tensor(then: _Tensor, now: Any) -> bool:
    """Whether a tensor has the numbers of the one at trace; anything else than a tensor is left alone."""
    if type(now) is np.ndarray:  # it changes in place
        return then.shape == now.shape and np.array_equal(then.numbers, _sample(now), equal_nan=True)
    if then.reference() is now:
        return True
    other = _tensor(now)
    return other is None or (then.shape == other.shape and bool((then.numbers == other.numbers).all()))


def _tensor(value: Any) -> _Tensor | None:
    """What is kept of an eager tensor of numbers, or of an array in one piece; None for anything else."""
    if type(value) is np.ndarray:
        plain = value.dtype.kind in "biuf" and value.flags.c_contiguous
        return _numbers_of(value, value, "an array") if plain else None
    if not private.is_of_eager_type(value) or not hasattr(value, "numpy"):
        return None
    kind = value.dtype
    if not (kind.is_floating or kind.is_integer or kind.is_bool):
        return None
    return _numbers_of(value, np.asarray(value.numpy()), "a tensor")


def _numbers_of(value: Any, found: Any, kind: str) -> _Tensor:
    shown = " ".join(np.array2string(found, threshold=_SHOWN, edgeitems=1, separator=", ").split())
    return _Tensor(weakref.ref(value), found.shape, _sample(found).copy(), f"{kind} of {shown}")


def _sample(found: Any) -> Any:
    """Up to `_MOST_NUMBERS` of an array's numbers, evenly spaced; no copy of what lies in one piece."""
    return found.ravel()[:: max(found.size // _MOST_NUMBERS, 1)]


def _said(value: Any) -> str:
    """A value as the notice says it."""
    found = value if isinstance(value, _Tensor) else _tensor(value)
    return text(value) if found is None else found.text


def _is_held(held: _Held, now: Any) -> bool:
    """Whether the object is still there, or nothing that a graph could hold on to."""
    return held.reference() is now or not _is_stateful(now)


def _is_stateful(value: Any) -> bool:
    return any((one.__name__, one.__module__.partition(".")[0]) in _STATEFUL for one in type(value).__mro__)


def text(value: Any) -> str:
    """A value as Python writes it, shortened."""
    shown = repr(value)
    return shown if len(shown) <= _MOST_TEXT else f"{shown[: _MOST_TEXT - 3]}..."


def _same(then: Any, now: Any) -> bool:
    """Whether two values are equal. Of plain types only: no code of the user's runs."""
    kept = _kept(now)
    return type(then) is type(kept) and repr(then) == repr(kept)


def _kept(value: Any) -> Any:
    """A plain value as it is, a small container of plain values copied; `GONE` for others."""
    kind = type(value)
    if kind in _SCALARS:
        return value if kind not in (str, bytes) or len(value) <= 1000 else GONE
    if kind in (list, tuple, dict) and len(value) <= _MOST_ITEMS:
        try:
            items = [*value, *value.values()] if kind is dict else list(value)
            if all(type(one) in _SCALARS for one in items):
                return kind(value)
        except RuntimeError:  # another thread changes it just now
            pass
    return GONE


# -- what a function reads --------------------------------------------------------------------------------------------


class _Function(NamedTuple):
    """A function of the user's that runs while one is traced, with the object of a method."""

    plain: Any  # a types.FunctionType, which mypy would take for a method of this class
    owner: Any
    cells: dict[str, Any]


def _taken(
    function: Any, bodies: Collection[Body], function_type: Any, graph: Any, maps: SourceMaps
) -> Iterator[Taken]:
    functions = list(_functions(function, bodies, function_type, graph, maps))
    written = {key for one in functions for key in code_of(one.plain.__code__).writes}
    seen: set[tuple[Any, ...]] = set()
    for one in functions:
        for code in _codes(one.plain.__code__, bodies):
            for reading in code_of(code).reads:
                if written_by(reading, written):
                    continue
                holder = {"global": one.plain.__globals__, "attribute": one.owner}.get(
                    reading.how, one.cells.get(reading.name)
                )
                taken = _plain_value(reading, one) or _numbers(reading, one) or _object(reading, one)
                if taken is None or (key := (reading.how, reading.name, taken[1], id(holder))) in seen:
                    continue
                seen.add(key)
                if len(seen) <= _MOST_NAMES:
                    then, path, now = taken
                    name = shown(reading.how, reading.name, path)
                    yield Taken(name, one.plain.__qualname__, code.co_filename, reading.line, then, now)


def _plain_value(reading: Reading, one: _Function) -> tuple[Any, tuple[Step, ...], Callable[[], Any]] | None:
    """The first plain value that a reading comes by, its path, and what asks for the present one."""
    root = _root(reading.how, reading.name, one)
    if root is None:
        return None
    path = reading.path
    for length in range(len(path) + 1):
        step = path[length] if length < len(path) else None
        value = followed(root, path[:length])
        then = _kept(value)
        container = type(value) in (list, tuple, dict)
        if then is GONE or (container and step is not None and step[0] == "["):
            if value is GONE or (isinstance(value, types.ModuleType) and not _is_own_module(value)):
                return None
            continue
        if container and step is not None and step[1] in _GROWS:
            return None
        return then, path[:length], root if not length else functools.partial(followed, root, path[:length])
    return None


def _numbers(reading: Reading, one: _Function) -> tuple[Any, tuple[Step, ...], Callable[[], Any]] | None:
    """The first eager tensor that a reading comes by, where its values are asked for."""
    root = _root(reading.how, reading.name, one)
    if root is None:
        return None
    for length in range(len(reading.path) + 1):
        path, step = reading.path[:length], next(iter(reading.path[length:]), None)
        found = _tensor(followed(root, path))
        if found is not None:
            if step is not None and step[1] in _NOT_ITS_VALUES:
                return None
            return found, path, root if not length else functools.partial(followed, root, path)
    return None


def _object(reading: Reading, one: _Function) -> tuple[Any, tuple[Step, ...], Callable[[], Any]] | None:
    """The first object with variables that a reading comes by, in the same way; a layer's own layers are left out."""
    if reading.how == "attribute" and any(kind.__name__ == "Layer" for kind in type(one.owner).__mro__):
        return None
    root = _root(reading.how, reading.name, one)
    if root is None:
        return None
    for length in range(len(reading.path) + 1):
        path = reading.path[:length]
        value = followed(root, path)
        if _is_stateful(value):
            held = _Held(weakref.ref(value), type(value).__name__)
            return held, path, root if not length else functools.partial(followed, root, path)
    return None


def _is_own_module(module: types.ModuleType) -> bool:
    return is_own(str(module.__dict__.get("__file__") or "<built-in>"))


def _root(how: str, name: str, one: _Function) -> Callable[[], Any] | None:
    """What gives the present value of a name."""
    if how == "global":
        found = one.plain.__globals__
        return functools.partial(found.get, name, GONE) if name in found else None
    if how == "closure":
        cell = one.cells.get(name)
        return None if cell is None else functools.partial(_of_cell, cell)
    owner = one.owner if one.owner is not None else _of_cell(one.cells.get("self"))
    try:
        return None if owner is GONE else functools.partial(_of_object, weakref.ref(owner), name)
    except TypeError:  # an object that cannot be held weakly
        return None


def followed(root: Callable[[], Any], path: tuple[Step, ...]) -> Any:
    """What a name and the steps after it lead to now, without code of the user's; `GONE` where to nothing."""
    value = root()
    for kind, key in path:
        if value is GONE:
            return GONE
        if kind == ".":
            value = _attribute(value, key)
        elif issubclass(type(value), dict):
            value = dict.get(value, key, GONE)
        elif type(value) in (list, tuple) and isinstance(key, int) and -len(value) <= key < len(value):
            value = value[key]
        elif type(value) is np.ndarray and value.ndim == 1 and isinstance(key, int) and -len(value) <= key < len(value):
            value = value[key].item()  # a number of an array that may change in place
        else:
            return GONE
    return value


def _of_cell(cell: Any) -> Any:
    try:
        return GONE if cell is None else cell.cell_contents
    except ValueError:
        return GONE


def _of_object(reference: Any, name: str) -> Any:
    holder = reference()
    return GONE if holder is None else _attribute(holder, name)


def _attribute(holder: Any, name: str) -> Any:
    """An attribute of an object, else of its class; functions and properties of the class as they are."""
    value = getattr(holder, "__dict__", {}).get(name, GONE)
    if value is not GONE or isinstance(holder, types.ModuleType):
        return value
    for base in holder.__mro__ if isinstance(holder, type) else type(holder).__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return GONE


def _functions(
    function: Any, bodies: Collection[Body], function_type: Any, graph: Any, maps: SourceMaps
) -> Iterator[_Function]:
    """The user's functions that run while one is traced, as far as their names and the graph's ops tell."""
    todo: list[Any] = [function]
    roots: list[Any] = []  # objects whose methods may have run
    seen: set[tuple[int, int]] = set()
    plain, _ = function_of(function, function_type)
    if plain is None or not is_own(plain.__code__.co_filename):
        todo, roots = [], [function]
    asked = False
    while (todo or not asked) and len(seen) < _MOST_FUNCTIONS:
        if not todo:
            asked = True
            found = reached(roots, functools.partial(_takes, function_type), graph, maps)
            todo += [one if owner is None else types.MethodType(one, owner) for one, owner in found]
            continue
        plain, owner = function_of(todo.pop(0), function_type)
        if plain is None or (id(plain.__code__), id(owner)) in seen or _is_body(plain.__code__, bodies):
            continue
        seen.add((id(plain.__code__), id(owner)))
        if not is_own(plain.__code__.co_filename):
            continue
        one = _function(plain, owner)
        yield one
        for code in _codes(plain.__code__, bodies):
            for reading in code_of(code).reads:
                called, held = _met(reading, one, function_type)
                todo += called
                roots += held


def _function(plain: types.FunctionType, owner: Any) -> _Function:
    return _Function(plain, owner, dict(zip(plain.__code__.co_freevars, plain.__closure__ or ())))


def _takes(function_type: Any, plain: types.FunctionType, owner: Any) -> bool:
    """Whether a function reads a plain value or a tensor from outside, or calls one of the user's that may."""
    one = _function(plain, owner)
    reads = [reading for code in _codes(plain.__code__, ()) for reading in code_of(code).reads]
    return any(
        _plain_value(reading, one) is not None or _numbers(reading, one) is not None
        or _met(reading, one, function_type)[0] for reading in reads
    )  # fmt: skip


def _met(reading: Reading, one: _Function, function_type: Any) -> tuple[list[Any], list[Any]]:
    """The functions that a reading comes by, which are called for sure or may be, and objects that may be called."""
    root = _root(reading.how, reading.name, one)
    called: list[Any] = []
    held: list[Any] = []
    if root is None:
        return called, held
    holder: Any = one.owner if reading.how == "attribute" else None
    for length in range(len(reading.path) + 1):
        value = followed(root, reading.path[:length])
        if isinstance(value, property):
            value = value.fget
        if isinstance(value, types.FunctionType):
            of_class = holder is not None and not isinstance(holder, (type, types.ModuleType))
            called.append(types.MethodType(value, holder) if of_class and not _is_attribute(holder, value) else value)
        elif isinstance(value, types.MethodType) or _is(value, function_type):
            called.append(value)
        elif not isinstance(value, (*_SCALARS, type, types.ModuleType)) and value is not GONE:
            held.append(value)
        holder = value
    return called, held


def _is_attribute(holder: Any, value: Any) -> bool:
    """Whether an object itself holds a function: then it is not a method."""
    return any(one is value for one in getattr(holder, "__dict__", {}).values())


def _is(thing: Any, kind: Any) -> bool:
    return kind is not None and isinstance(thing, kind)


def function_of(thing: Any, function_type: Any) -> tuple[types.FunctionType | None, Any]:
    """The user's function without wrappers, and the object of a method."""
    owner: Any = None
    for _ in range(16):
        if _is(thing, function_type):
            thing = thing.python_function
        elif isinstance(thing, types.MethodType):
            owner = thing.__self__
            if type(owner).__name__ == "TfMethodTarget":  # a decorated method: tf.function holds its object weakly
                owner = owner.target
            thing = thing.__func__
        else:
            decorator = private.decorator(thing)
            inner = getattr(decorator, "decorated_target", None) or getattr(thing, "__wrapped__", None)
            if inner is None or inner is thing:
                break
            thing = inner
    return (thing, owner) if isinstance(thing, types.FunctionType) else (None, None)


def _codes(code: types.CodeType, bodies: Collection[Body]) -> Iterator[types.CodeType]:
    """A function's code and that of functions defined in it, but for the bodies of nodes."""
    yield code
    for one in code.co_consts:
        if isinstance(one, types.CodeType) and not _is_body(one, bodies):
            yield from _codes(one, bodies)


def _is_body(code: types.CodeType, bodies: Collection[Body]) -> bool:
    last = max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
    return any(
        body.file == code.co_filename and body.line is not None and code.co_firstlineno <= body.line <= last
        and body.name.rpartition(".")[2] == code.co_name
        for body in bodies
    )  # fmt: skip


__all__ = ["GONE", "Changed", "Outside", "followed", "function_of"]
