"""Which thread holds a lock, and where it took it. A `threading.Lock` does not say: it is read from the stacks."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from pyfunc_debug.program import syntax
from pyfunc_debug.program.file_lines import current_lines
from pyfunc_debug.program.frames import is_tensorflow, is_user
from pyfunc_debug.program.garbage import no_search, other_frames

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BLOCKS = ("body", "orelse", "finalbody", "handlers")


@dataclass(frozen=True)
class Holder:
    """A thread that holds a lock.

    Attributes:
      ident: Its `threading.get_ident()`.
      thread: Its name.
      file: The user's file that took the lock.
      taken: Line of its `with lock:` or `lock.acquire()`.
      line: The line of that function which the thread is at now.
      tensorflow: Whether the thread is in TensorFlow now.
      itself: Whether it is the thread that waits for the lock.
    """

    ident: int
    thread: str
    file: str
    taken: int
    line: int
    tensorflow: bool
    itself: bool


@no_search()
def holder(lock: Any, waiter: FrameType) -> Holder | None:
    """The thread whose stack shows that it holds a lock; None where none does, or more than one seems to.

    Args:
      lock: A lock that is taken.
      waiter: The frame that waits for it.
    """
    found = []
    own = sys._getframe(1)  # documented; not this frame, which would be a cycle
    for ident, top in {**other_frames(), threading.get_ident(): own}.items():
        one: FrameType | None = top
        inside = users = itself = False
        while one is not None:
            file = one.f_code.co_filename
            itself = itself or one is waiter
            inside = inside or (not users and is_tensorflow(file))
            users = users or is_user(file)
            taken = _taken(one, lock) if is_user(file) else None
            if taken is not None:
                found.append(Holder(ident, thread_name(ident), file, taken, one.f_lineno, inside, itself))
                break
            one = one.f_back
    return found[0] if len(found) == 1 else None


def thread_name(ident: int) -> str:
    """What a thread is called."""
    return next((one.name for one in threading.enumerate() if one.ident == ident), f"thread {ident}")


def value(frame: FrameType, names: Sequence[str]) -> Any:
    """The object that a dotted name of the running line means; attributes are read without running properties.

    Variables of a function are read only for a name of one: until Python 3.13, what was read once stays alive with the
    frame, also what the program deletes.

    Raises:
      KeyError, TypeError: there is none.
    """
    first, *rest = names
    code = frame.f_code
    variables = (*code.co_varnames, *code.co_cellvars, *code.co_freevars)
    own = {} if code.co_flags & inspect.CO_OPTIMIZED and first not in variables else frame.f_locals
    names_of = next((one for one in (own, frame.f_globals) if first in one), frame.f_builtins)
    found: Any = names_of[first]
    for attribute in rest:
        found = vars(found)[attribute]
    return found


def _taken(frame: FrameType, lock: Any) -> int | None:
    """The line at which a frame took a lock that it still holds."""
    statements = _around(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
    for place, one in enumerate(statements):
        if isinstance(one, ast.With) and one.body[0].lineno > one.lineno:
            held = [item.context_expr for item in one.items]
            inside = any(first.lineno <= frame.f_lineno <= (first.end_lineno or 0) for first in one.body)
            for expression in held if inside else ():
                if _is(frame, expression, lock) and not _released(one, expression, one.lineno, frame.f_lineno):
                    return one.lineno
        parent = statements[place + 1] if place + 1 < len(statements) else None
        for before in _before(parent, one):
            call = before.value if isinstance(before, ast.Expr) else None
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            owner = call.func.value
            if call.func.attr != "acquire" or not _is(frame, owner, lock):
                continue
            if not _released(parent, owner, before.lineno, frame.f_lineno):
                return before.lineno
    return None


def _before(parent: ast.AST | None, statement: ast.AST) -> Iterator[ast.stmt]:
    """The statements before another in its block."""
    for block in _BLOCKS:
        inside = getattr(parent, block, None)
        if isinstance(inside, list) and statement in inside:
            yield from inside[: inside.index(statement)]


def _released(around: ast.AST | None, lock: ast.expr, first: int, last: int) -> bool:
    """Whether a lock may be released between two lines."""
    text = f"{ast.unparse(lock)}.release"
    return around is not None and any(
        isinstance(one, ast.Attribute) and first <= one.lineno < last and ast.unparse(one) == text
        for one in ast.walk(around)
    )


def _is(frame: FrameType, expression: ast.expr, lock: Any) -> bool:
    """Whether an expression is the lock: a name, or attributes of one."""
    names = []
    while isinstance(expression, ast.Attribute):
        names.append(expression.attr)
        expression = expression.value
    if not isinstance(expression, ast.Name):
        return False
    try:
        return value(frame, [expression.id, *reversed(names)]) is lock
    except (KeyError, AttributeError, TypeError):
        return False


@functools.lru_cache(maxsize=64)
def _around(file: str, line: int, function: str) -> tuple[ast.AST, ...]:
    """What is around a line in a function's own code, innermost first, and the function or module at last."""
    try:
        tree = syntax.parse("".join(current_lines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return ()  # a cell with magics, too
    path: list[ast.AST] = [tree]
    todo: list[ast.AST] = [tree]
    while todo:
        one = todo.pop()
        for child in ast.iter_child_nodes(one):
            part = isinstance(child, (ast.ExceptHandler, ast.stmt))
            if part and getattr(child, "lineno", 0) <= line <= (getattr(child, "end_lineno", None) or 0):
                path.append(child)
                todo.append(child)
    own = next((place for place in range(len(path) - 1, 0, -1) if isinstance(path[place], _FUNCTIONS)), 0)
    known = getattr(path[own], "name", "") == function if own else function.startswith(("<module>", "<cell line"))
    return tuple(reversed(path[own:])) if known else ()
