"""A layer, model, loss or metric whose `__init__` does not call that of Keras: what Keras keeps in it is not there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, frames
from pyfunc_debug.doctor.failures.reading.source import Source, begins, dotted, indent_of, parameters, read
from pyfunc_debug.doctor.failures.reading.symbols import calls, extends_keras, is_keras_class
from pyfunc_debug.program.frames import is_installed, is_user

RULE = "missing-attribute"
_FORGOT = "super().__init__()"
_PASSED = ("name", "dtype", "trainable")
"""Parameters of a class of the user's that Keras' `__init__` takes, too."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an attribute that Keras makes was not there, or Keras says that the call was forgotten."""
    if not isinstance(situation.inner, AttributeError) and _FORGOT not in situation.message:
        return None
    for owner in _objects(situation):
        found = _without_call(owner)
        if found is not None:
            return _explanation(situation, owner, *found)
    return None


def _objects(situation: Situation) -> Iterator[Any]:
    """What lacked the attribute, and the `self` of the frames that failed, innermost first."""
    owner = getattr(situation.inner, "obj", None)
    asked = frames(situation.inner.__traceback__)[-1:]
    by_keras = bool(asked) and is_installed(asked[0].f_code.co_filename)  # an attribute of the user's own is none of it
    held = [
        frame.f_locals.get("self") for error in (situation.inner, situation.error)
        for frame in reversed(frames(error.__traceback__))
    ]  # fmt: skip
    for one in [owner, *held]:
        if extends_keras(type(one)) and (_FORGOT in situation.message or (by_keras and one is owner)):
            yield one


def _without_call(owner: object) -> tuple[str, Source, ast.FunctionDef] | None:
    """The user's `__init__` at which the chain of calls ends, and its file."""
    for kind in type(owner).__mro__:
        if is_keras_class(kind):
            return None
        made = vars(kind).get("__init__")
        if made is None:
            continue
        if not isinstance(made, FunctionType):
            return None
        file = made.__code__.co_filename
        if not is_user(file) or is_installed(file):
            return None
        file, first = begins(made.__code__)
        source = read(file)
        found = [
            one for one in ast.walk(source.tree)
            if isinstance(one, ast.FunctionDef) and (one.name, _first(one)) == ("__init__", first)
        ]  # fmt: skip
        if len(found) != 1:
            return None
        if not any(_is_call(one) for one in calls(found[0])):
            return file, source, found[0]
        if any(_is_late(one, found[0]) for one in calls(found[0])) and is_keras_class(_next(owner, kind)):
            return file, source, found[0]
    return None


def _first(function: ast.FunctionDef) -> int:
    return min([function.lineno, *(one.lineno for one in function.decorator_list)])


def _next(owner: object, kind: type) -> type:
    """The class whose `__init__` a call of `super().__init__()` of a class runs."""
    kinds = type(owner).__mro__
    return next(one for one in kinds[kinds.index(kind) + 1 :] if "__init__" in vars(one))


def _is_call(call: ast.Call) -> bool:
    """Whether a call runs the `__init__` of a base: `super().__init__()`, `Base.__init__(self)`."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != "__init__":
        return False
    owner = func.value
    if isinstance(owner, ast.Call) and dotted(owner.func) == "super":
        return len(owner.args) != 1  # with the class alone it is not of this object, and does nothing
    return True


def _is_late(call: ast.Call, function: ast.FunctionDef) -> bool:
    """Whether the call stands in a statement of the function itself that is not its first."""
    statement = next((one for one in function.body if isinstance(one, ast.Expr) and one.value is call), None)
    return _is_call(call) and statement is not None and statement is not _body(function)[0]


def _body(function: ast.FunctionDef) -> list[ast.stmt]:
    """The statements behind a docstring."""
    first = function.body[0]
    doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    return function.body[1:] if doc else function.body


def _explanation(
    situation: Situation, owner: object, file: str, source: Source, function: ast.FunctionDef
) -> Explanation | None:
    kind = next(one for one in source.around(function) if isinstance(one, ast.ClassDef)).name
    body = _body(function)
    late = [
        one for one in body if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) and _is_call(one.value)
    ]
    missing = getattr(situation.inner, "name", None)
    such = f", such as `{missing}`," if missing else ""
    what = f"what Keras keeps in it{such} is not there"
    if not body or body[0].lineno == function.lineno:
        return None
    first, blanks = body[0], indent_of(source.lines[body[0].lineno - 1])
    if late:
        cause = f"{kind}.__init__ calls `super().__init__()` in line {late[0].lineno} only: above it {what}."
        last = late[0].end_lineno or late[0].lineno
        before = source.lines[first.lineno - 1 : late[0].lineno - 1]
        lines = (*source.lines[late[0].lineno - 1 : last], *before)
        return Explanation(RULE, file, first.lineno, cause, Edit(file, first.lineno, last, tuple(lines)))
    cause = f"{kind}.__init__ does not call that of its base class, `super().__init__()`: {what}."
    edit = Edit(file, first.lineno, first.lineno - 1, (f"{blanks}super().__init__({_arguments(function)})",))
    wrong = [one for one in body if isinstance(one, ast.Expr) and _is_wrong(one.value)]
    if wrong:
        text = source.text(wrong[0].value)
        cause = f"`{text}` in {kind}.__init__ does not run the __init__ of its base class for this object: {what}."
        line = f"{indent_of(source.lines[wrong[0].lineno - 1])}super().__init__({_arguments(function)})"
        edit = Edit(file, wrong[0].lineno, wrong[0].end_lineno or wrong[0].lineno, (line,))
    return Explanation(RULE, file, edit.first, cause, edit)


def _is_wrong(node: ast.expr) -> bool:
    """`super(Net).__init__()` and `super().__init__`, without parentheses."""
    func = node.func if isinstance(node, ast.Call) else node
    if not isinstance(func, ast.Attribute) or func.attr != "__init__" or not isinstance(func.value, ast.Call):
        return False
    return dotted(func.value.func) == "super"


def _arguments(function: ast.FunctionDef) -> str:
    """What of its own arguments an `__init__` hands on."""
    named = [*parameters(function), *(one.arg for one in function.args.kwonlyargs)]
    given = [f"{name}={name}" for name in _PASSED if name in named]
    if function.args.kwarg is not None:
        given.append(f"**{function.args.kwarg.arg}")
    return ", ".join(given)
