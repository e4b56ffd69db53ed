"""Python values that a function takes from outside while it is traced: its graph keeps what Python did with them then.

A closure's variable, a module's global, an attribute of `self`. When one changes, TensorFlow does not trace again: the
graph goes on with the old value. What a function reads is found in its code and in that of the functions it calls; a
value is compared with what it was whenever Python runs the graph. Values of plain types are looked at, no others.
"""

from __future__ import annotations

import functools
import inspect
import types
import weakref
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from pyfunc_debug.events import Body
from pyfunc_debug.interception.bodies import closure
from pyfunc_debug.interception.names import private
from pyfunc_debug.program.frames import is_installed, is_user

_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_MOST_ITEMS = 16
_MOST_NAMES = 32
_MOST_FUNCTIONS = 32
_MOST_TEXT = 60
_GONE = object()


class Reading(NamedTuple):
    """A name that code reads: how it finds it (`global`, `closure` or `attribute`), and the line."""

    how: str
    name: str
    line: int


class Code(NamedTuple):
    """What a code object reads from outside, and the names that it writes there itself."""

    reads: tuple[Reading, ...]
    writes: frozenset[tuple[str, str]]


class Taken(NamedTuple):
    """A value that a function took from outside.

    Attributes:
      name: As the code says it: `k`, `self.rate`.
      file: Where it is read.
      line: Its line.
      then: The value at trace, or a copy.
      now: Asks for the present one; `_GONE` when there is none.
    """

    name: str
    file: str
    line: int
    then: Any
    now: Callable[[], Any]


class Changed(NamedTuple):
    """A value that has changed: texts of both."""

    name: str
    file: str
    line: int
    then: str
    now: str


class Outside:
    """What one graph took from outside.

    Args:
      function: The Python function that was traced.
      bodies: Those of the graph's nodes: what they read, they read at each call.
      function_type: That of tf.functions: those that it calls are part of its graph.
    """

    def __init__(self, function: Any, bodies: Collection[Body], function_type: Any) -> None:
        self._taken = list(_taken(function, bodies, function_type))

    def __bool__(self) -> bool:
        return bool(self._taken)

    def changed(self) -> list[Changed]:
        """What changed since the graph was traced; each is reported once. Some 0.1 us a value."""
        found = []
        for one in tuple(self._taken):
            now = one.now()
            if now is not one.then and now is not _GONE and not _same(one.then, now):
                try:
                    self._taken.remove(one)
                except ValueError:  # another thread runs the graph too, and reported it
                    continue
                found.append(Changed(one.name, one.file, one.line, text(one.then), text(now)))
        return found


def text(value: Any) -> str:
    """A value as Python writes it, shortened."""
    shown = repr(value)
    return shown if len(shown) <= _MOST_TEXT else f"{shown[: _MOST_TEXT - 3]}..."


def _same(then: Any, now: Any) -> bool:
    """Whether two values are equal. Of plain types only: no code of the user's runs."""
    kept = _kept(now)
    return type(then) is type(kept) and repr(then) == repr(kept)


def _kept(value: Any) -> Any:
    """A plain value as it is, a small container of plain values copied; `_GONE` for others."""
    kind = type(value)
    if kind in _SCALARS:
        return value if kind not in (str, bytes) or len(value) <= 1000 else _GONE
    if kind in (list, tuple, dict) and len(value) <= _MOST_ITEMS:
        try:
            items = [*value, *value.values()] if kind is dict else list(value)
            if all(type(one) in _SCALARS for one in items):
                return kind(value)
        except RuntimeError:  # another thread changes it just now
            pass
    return _GONE


# -- what a function reads --------------------------------------------------------------------------------------------


def _taken(function: Any, bodies: Collection[Body], function_type: Any) -> Iterator[Taken]:
    functions = list(_functions(function, bodies, function_type))
    written = {key for one, _ in functions for key in _code(one.__code__).writes}
    seen: set[tuple[Any, ...]] = set()
    for one, owner in functions:
        cells = dict(zip(one.__code__.co_freevars, one.__closure__ or ()))
        for code in _codes(one.__code__, bodies):
            for how, name, line in _code(code).reads:
                if (how, name) in written or (how != "attribute" and name == "self"):
                    continue
                now = _asks(how, name, one, cells, owner)
                holder = {"global": one.__globals__, "closure": cells.get(name), "attribute": owner}[how]
                key = how, name, id(holder)
                if now is None or key in seen:
                    continue
                seen.add(key)
                then = _kept(now())
                if then is not _GONE and len(seen) <= _MOST_NAMES:
                    shown = f"self.{name}" if how == "attribute" else name
                    yield Taken(shown, code.co_filename, line, then, now)


def _asks(how: str, name: str, function: Any, cells: dict[str, Any], owner: Any) -> Callable[[], Any] | None:
    """What gives the present value of a name."""
    if how == "global":
        return functools.partial(function.__globals__.get, name, _GONE) if name in function.__globals__ else None
    if how == "closure":
        cell = cells.get(name)
        return None if cell is None else functools.partial(_of_cell, cell)
    try:
        return None if owner is None else functools.partial(_of_object, weakref.ref(owner), name)
    except TypeError:  # an object that cannot be held weakly
        return None


def _of_cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _GONE


def _of_object(reference: Any, name: str) -> Any:
    return getattr(reference(), "__dict__", {}).get(name, _GONE)


def _functions(function: Any, bodies: Collection[Body], function_type: Any) -> Iterator[tuple[types.FunctionType, Any]]:
    """The user's functions that run while one is traced, as far as their names tell, with the object of a method."""
    todo: list[Any] = [function]
    seen: set[int] = set()
    while todo and len(seen) < _MOST_FUNCTIONS:
        plain, owner = _plain(todo.pop(0), function_type)
        if plain is None or id(plain.__code__) in seen or _is_body(plain.__code__, bodies):
            continue
        seen.add(id(plain.__code__))
        file = plain.__code__.co_filename
        if not is_user(file) or is_installed(file):
            continue
        yield plain, owner
        cells = closure(plain)
        for code in _codes(plain.__code__, bodies):
            for how, name, _ in _code(code).reads:
                held = plain.__globals__.get(name) if how == "global" else cells.get(name)
                if how == "attribute" and owner is not None:
                    held = inspect.getattr_static(owner, name, None)
                    held = types.MethodType(held, owner) if isinstance(held, types.FunctionType) else None
                if isinstance(held, (types.FunctionType, types.MethodType)) or _is(held, function_type):
                    todo.append(held)


def _is(thing: Any, kind: Any) -> bool:
    return kind is not None and isinstance(thing, kind)


def _plain(thing: Any, function_type: Any) -> tuple[types.FunctionType | None, Any]:
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


@functools.lru_cache(maxsize=512)
def _code(code: types.CodeType) -> Code:
    """What a code object itself reads; of functions in it only what they write."""
    import dis

    own = code.co_varnames[0] if code.co_argcount else ""
    reads: dict[tuple[str, str], Reading] = {}
    writes: set[tuple[str, str]] = set()
    starts = {offset: number for offset, _, number in code.co_lines() if number}
    line, before = code.co_firstlineno, ""
    for one in dis.get_instructions(code):
        line = starts.get(one.offset, line)
        name = one.opname
        key = ("", "")
        if name.endswith("_GLOBAL"):
            key = "global", str(one.argval)
        elif name.endswith("_DEREF") and one.argval in code.co_freevars:
            key = "closure", str(one.argval)
        elif name.endswith("_ATTR") and before == own == "self":
            key = "attribute", str(one.argval)
        if key[0] and name.startswith("LOAD"):
            reads.setdefault(key, Reading(*key, line))
        elif key[0]:
            writes.add(key)
        before = str(one.argval) if name.startswith("LOAD_FAST") else before if name == "CACHE" else ""
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            writes |= _code(inner).writes
    return Code(tuple(reads.values()), frozenset(writes))


__all__ = ["Changed", "Outside"]
