"""What `Dataset.from_generator` was given, as the user's source has it: the function that yields, and what it reads."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from pyfunc_debug.doctor.failures.reading.source import Source, dotted

Yielding = ast.FunctionDef | ast.GeneratorExp
_YIELDS = (ast.Yield, ast.YieldFrom)
_ENDLESS = ("itertools.count", "itertools.cycle", "cycle")


@dataclass(frozen=True)
class Generator:
    """A function, or a generator expression, that yields the elements.

    Attributes:
      function: Its tree.
      given: The expression that each of its parameters stands for, at the call of `from_generator`.
      owner: The object that it is a method of, as an expression there; "" for none.
      name: What the user calls it.
    """

    function: Yielding
    name: str
    given: dict[str, ast.expr] = field(default_factory=dict)
    owner: str = ""


def generator_of(own: Source, call: ast.Call) -> Generator | None:
    """The generator of a call of `from_generator`; None where the source does not show it.

    Args:
      own: The file.
      call: The call.
    """
    named = {one.arg: one.value for one in call.keywords}
    value = call.args[0] if call.args else named.get("generator")
    if value is None or "args" in named or None in named:
        return None
    if isinstance(value, ast.Lambda):
        return _of_result(own, value.body) if not value.args.args else None
    if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] == "partial" and value.args:
        return _of_call(own, value.args[0], value.args[1:], value.keywords)
    return _of_call(own, value, [], [])


def _of_result(own: Source, value: ast.expr) -> Generator | None:
    """Of an expression that gives an iterator."""
    if isinstance(value, ast.Call) and dotted(value.func) == "iter" and len(value.args) == 1:
        value = value.args[0]
    if isinstance(value, ast.GeneratorExp):
        return Generator(value, "element")
    if isinstance(value, ast.Call):
        holder = _class(own, dotted(value.func))
        if holder is not None:
            return _method(own, holder, "__iter__", own.text(value))
        return _of_call(own, value.func, value.args, value.keywords)
    holder = _class_of(own, value)
    return None if holder is None else _method(own, holder, "__iter__", own.text(value))


def _of_call(own: Source, called: ast.expr, args: list[ast.expr], keywords: list[ast.keyword]) -> Generator | None:
    """Of a function that is called with these."""
    if isinstance(called, ast.Call):  # an object that is called
        holder = _class(own, dotted(called.func))
        return None if holder is None or args or keywords else _method(own, holder, "__call__", own.text(called))
    if isinstance(called, ast.Attribute):
        found = [
            one for one in _functions(own) if one.name == called.attr and isinstance(own.parent(one), ast.ClassDef)
        ]
        return _with(found[0], args, keywords, own.text(called.value)) if len(found) == 1 else None
    if not isinstance(called, ast.Name):
        return None
    found = [one for one in _functions(own) if one.name == called.id]
    if len(found) == 1:
        return _with(found[0], args, keywords)
    holder = _class_of(own, called)
    return None if found or holder is None or args or keywords else _method(own, holder, "__call__", called.id)


def _functions(own: Source) -> list[ast.FunctionDef]:
    return [one for one in ast.walk(own.tree) if isinstance(one, ast.FunctionDef)]


def _class(own: Source, name: str) -> ast.ClassDef | None:
    return next((one for one in own.tree.body if isinstance(one, ast.ClassDef) and one.name == name), None)


def _class_of(own: Source, value: ast.expr) -> ast.ClassDef | None:
    """The class of an object that a name stands for, where it is made once in the file."""
    made = [
        one.value for one in ast.walk(own.tree)
        if isinstance(one, ast.Assign) and isinstance(value, ast.Name)
        and [dotted(target) for target in one.targets] == [value.id]
    ]  # fmt: skip
    return _class(own, dotted(made[0].func)) if len(made) == 1 and isinstance(made[0], ast.Call) else None


def _method(own: Source, holder: ast.ClassDef, name: str, owner: str) -> Generator | None:
    found = next((one for one in holder.body if isinstance(one, ast.FunctionDef) and one.name == name), None)
    return None if found is None else _with(found, [], [], owner)


def _with(
    function: ast.FunctionDef, args: list[ast.expr], keywords: list[ast.keyword], owner: str = ""
) -> Generator | None:
    parameters = [one.arg for one in function.args.args]
    static = any(dotted(one) == "staticmethod" for one in function.decorator_list)
    if owner and not static:
        parameters = parameters[1:]
    given = dict(zip(parameters, args))
    given.update({one.arg: one.value for one in keywords if one.arg})
    defaults = function.args.defaults
    for one, value in zip(reversed(parameters), reversed(defaults)):
        given.setdefault(one, value)
    if set(parameters) - set(given) or function.args.vararg or function.args.kwarg or function.args.kwonlyargs:
        return None
    if function.decorator_list and not static:
        return None
    name = function.name if not function.name.startswith("__") else "element"
    return Generator(function, name, given, owner) if _yields(function) else None


def _yields(function: ast.FunctionDef) -> bool:
    return any(isinstance(one, _YIELDS) for one in ast.walk(function))


def is_endless(function: ast.AST | None) -> bool:
    """Whether a generator yields for ever: nothing in its `while True`, or its loop over `cycle(...)`, leaves it."""
    return function is not None and any(
        isinstance(one, (ast.While, ast.For)) and _goes_on(one)
        and any(isinstance(part, _YIELDS) for part in ast.walk(one))
        and not any(isinstance(part, (ast.Return, ast.Raise)) for part in ast.walk(one)) and not _breaks(one.body)
        for one in ast.walk(function)
    )  # fmt: skip


def _goes_on(loop: ast.While | ast.For) -> bool:
    """Whether a loop has no end of its own."""
    if isinstance(loop, ast.While):
        return isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    return isinstance(loop.iter, ast.Call) and dotted(loop.iter.func) in _ENDLESS


def _breaks(body: list[ast.stmt]) -> bool:
    """Whether a `break` in a loop's body is for that loop, and not for one inside."""
    inside = [part for one in body if not isinstance(one, (ast.For, ast.While)) for part in ast.iter_child_nodes(one)]
    blocks = [one for one in inside if isinstance(one, (ast.stmt, ast.ExceptHandler))]
    return any(isinstance(one, ast.Break) for one in body) or any(_breaks([one]) for one in blocks)  # type: ignore[list-item]
