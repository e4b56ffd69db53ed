"""Draws by TensorFlow's ops in a mapped function, and in the functions of its file that it calls."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.datasets.cached_chains import mapped_function
from pyfunc_debug.doctor.facts import Definition
from pyfunc_debug.doctor.failures.reading.source import Source

_OPS = re.compile(
    r"^tf\.(?:compat\.v1\.)?(?:image\.random_\w+|random\.(?:normal|uniform|truncated_normal|shuffle|gamma))$"
)
"""TensorFlow's ops that draw without a seed that they are given."""
_DEEPEST = 4
_Bound = dict[str, bool | None]
"""Which parameters are true; None of what is not known. A tensor's is not here."""


def drawn(own: Source, given: ast.expr) -> ast.Call | None:
    """The first call that draws, in a function that a map is given or in one that it calls; None where it may not run.

    Args:
      own: The file.
      given: What the map is given.
    """
    function = mapped_function(own, given)
    return None if function is None else _in(own, function, {}, 0)


def _in(own: Source, function: Definition, bound: _Bound, deep: int) -> ast.Call | None:
    """The first draw in a function, whose flags are known as far as the calls before say them."""
    calls = sorted(pastes.walk(function, ast.Call), key=lambda one: (one.lineno, one.col_offset))
    for call in calls:
        draws = _OPS.search(ast.unparse(call.func)) is not None
        called = None if draws or deep >= _DEEPEST else _called(own, call)
        if (not draws and called is None) or not _runs(own, function, call, bound):
            continue
        if draws:
            return call
        if called is not None and called is not function:
            flags = {name: _truth(own, function, value, bound) for name, value in _given(called, call).items()}
            found = _in(own, called, flags, deep + 1)
            if found is not None:
                return found
    return None


def _called(own: Source, call: ast.Call) -> ast.FunctionDef | None:
    """The function of the file that is called: by its name, or as a method of `self`."""
    func = call.func
    method = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"
    name = func.id if isinstance(func, ast.Name) else func.attr if method and isinstance(func, ast.Attribute) else ""
    named = [one for one in pastes.walk(own.tree, ast.FunctionDef) if one.name == name]
    return named[0] if len(named) == 1 else None


def _given(function: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr | None]:
    """What a call gives each parameter, or its default; None of what cannot be told."""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    own = names[1:] if isinstance(call.func, ast.Attribute) and names[:1] == ["self"] else names
    defaults = function.args.defaults
    known: dict[str, ast.expr | None] = dict.fromkeys(code.parameters(function))
    known.update(zip(names[len(names) - len(defaults) :], defaults))
    known.update(
        {one.arg: one_default for one, one_default in zip(function.args.kwonlyargs, function.args.kw_defaults)}
    )
    if any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords):
        return dict.fromkeys(known)
    known.update(zip(own, call.args))
    known.update({one.arg: one.value for one in call.keywords if one.arg is not None})
    return known


def _runs(own: Source, function: Definition, call: ast.Call, bound: _Bound) -> bool:
    """Whether nothing around a call, or above it, keeps it from running, as far as flags are known."""
    inner: ast.AST | None = call
    while inner is not None and inner is not function:
        outer = own.parent(inner)
        if isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test:
            body = outer.body if isinstance(outer.body, list) else [outer.body]
            if not _may(own, function, outer.test, bound, inner in body):
                return False
        inner = outer
    for one in [] if isinstance(function, ast.Lambda) else function.body:
        if one.lineno >= call.lineno:
            break
        leaves = isinstance(one, ast.If) and isinstance(one.body[-1], ast.Return) and not one.orelse
        if isinstance(one, ast.If) and leaves and not _may(own, function, one.test, bound, wanted=False):
            return False
    return True


def _may(own: Source, function: Definition, test: ast.expr, bound: _Bound, wanted: bool) -> bool:
    """Whether a test goes the wanted way: a flag for certain; what else there is, as a tensor, for some elements."""
    bare = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    if not isinstance(bare, (ast.Name, ast.Constant, ast.Attribute)):
        return True
    if isinstance(bare, ast.Name) and bare.id in code.local_names(function) and bare.id not in bound:
        return True
    return _truth(own, function, test, bound) is wanted


def _truth(own: Source, function: ast.AST, value: ast.expr | None, bound: _Bound, deep: int = 0) -> bool | None:
    """Whether an expression is true where a function reads it: a constant, a flag that was given; None if unknown."""
    if isinstance(value, ast.Constant):
        return bool(value.value)
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
        inner = _truth(own, function, value.operand, bound, deep)
        return None if inner is None else not inner
    if not isinstance(value, ast.Name) or deep >= _DEEPEST:
        return None
    if value.id in bound:
        return bound[value.id]
    for outer in own.around(function):
        if not isinstance(outer, ast.FunctionDef):
            continue
        if value.id in code.parameters(outer):
            return _as_called(own, outer, value.id, deep)
        if value.id in code.local_names(outer):
            return None
    assigned = pastes.assigned(own.tree, value.id)
    return _truth(own, own.tree, assigned[0], {}, deep + 1) if len(assigned) == 1 else None


def _as_called(own: Source, function: ast.FunctionDef, name: str, deep: int) -> bool | None:
    """Whether any call of a function in its file gives a parameter what is true."""
    calls = [one for one in pastes.walk(own.tree, ast.Call) if pastes.last_name(one.func) == function.name]
    seen = [_truth(own, one, _given(function, one).get(name), {}, deep + 1) for one in calls]
    return True if True in seen else None if None in seen or not seen else False
