"""An attribute of the user's object that no line had made: its line is in a method that did not run, or in an `if`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, lookup, of_keras, root_is

RULE = "missing-attribute"
_LIBRARIES = ("tensorflow", "keras", "tf_keras")
_DRAWS = ("normal", "uniform", "truncated_normal")
_BRANCHES = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.Match)


@dataclass(frozen=True)
class _Made:
    """A line that makes the attribute, and the method that it is in."""

    file: str
    source: Source
    method: ast.FunctionDef
    line: int
    under: ast.AST | None
    """The innermost `if` or loop around the line; None where the method always comes to it."""
    positive: bool
    """Whether the line is in the `if` itself, not in its `else`."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an attribute was read whose only line had not run for this object."""
    error, spot = situation.inner, situation.last
    if spot is None or not isinstance(error, AttributeError):
        return None
    owner, name = getattr(error, "obj", None), getattr(error, "name", None)
    if owner is None or not name or isinstance(owner, type) or type(owner).__module__.partition(".")[0] in _LIBRARIES:
        return None
    library = any(one.__module__.partition(".")[0] in _LIBRARIES for one in type(owner).__mro__)
    if not (library or situation.body or wrapping.entry(situation)[1]):
        return None
    found = list(_makers(situation, owner, name))
    methods = {id(one.method): one.method for one in found}
    if len(methods) != 1 or any(one.file != found[0].file for one in found):
        return None
    made = found[0]
    running = [one for one in situation.spots if one.function is made.method]
    if made.under is None and not running and made.method.name != "__init__":
        return _not_run(situation, owner, name, made)
    if len(found) > 1 or not isinstance(made.under, ast.If) or not _alone(made):
        return None
    behind = all(one.line > (made.under.end_lineno or 0) for one in running)
    if behind and (running or made.method.name == "__init__"):
        return _not_held(situation, name, made)
    return None


def _alone(made: _Made) -> bool:
    """Whether the `if` stands in its method itself: nothing else decides whether it is asked."""
    assert made.under is not None
    return made.source.parent(made.under) is made.method


def _makers(situation: Situation, owner: object, name: str) -> Iterator[_Made]:
    """The lines `self.name = ...` of the classes of an object that are the user's."""
    classes = {one.__name__ for one in type(owner).__mro__ if one.__module__.partition(".")[0] not in _LIBRARIES}
    for file, source in situation.sources():
        for holder in ast.walk(source.tree):
            if not isinstance(holder, ast.ClassDef) or holder.name not in classes:
                continue
            for method in holder.body:
                if isinstance(method, ast.FunctionDef) and method.args.args:
                    yield from _in_method(file, source, method, f"{method.args.args[0].arg}.{name}")


def _in_method(file: str, source: Source, method: ast.FunctionDef, written: str) -> Iterator[_Made]:
    for one in own_nodes(method):
        if not isinstance(one, ast.Attribute) or not isinstance(one.ctx, ast.Store) or dotted(one) != written:
            continue
        if isinstance(source.parent(one), ast.AugAssign):
            continue  # it reads it first
        under = next((part for part in source.around(one) if isinstance(part, _BRANCHES) or part is method), None)
        left = any(isinstance(part, ast.Return) and part.lineno < one.lineno for part in own_nodes(method))
        positive = isinstance(under, ast.If) and any(one in ast.walk(part) for part in under.body)
        if not left:
            yield _Made(file, source, method, one.lineno, None if under is method else under, positive)
        else:
            yield _Made(file, source, method, one.lineno, method, positive)


def _not_run(situation: Situation, owner: object, name: str, made: _Made) -> Explanation | None:
    """The method that makes it had not run for the object."""
    spot = situation.spots[-1]
    method, kind = made.method.name, type(owner).__name__
    cause = f"{kind} has no `{name}` yet: {method} makes it (line {made.line}), and that line has not run. "
    if method == "build" and hasattr(owner, "built"):
        edit = _as_layer(situation, owner)
        if edit is None:
            return None
        cause += "Keras runs build when the layer itself is called, not its method `call`."
        return Explanation(RULE, spot.file, spot.line, cause.strip(), edit)
    if method == "on_epoch_end" and of_keras(type(owner), "PyDataset"):
        cause += "Keras runs it at the end of an epoch, and asks for the first batch before."
        edit = _in_init(made)
        advice = "" if edit else "Call it in __init__, too."
        return Explanation(RULE, spot.file, spot.line, cause, edit, advice)
    outer, called = _name_of(situation, owner)
    if outer is None:
        return None
    needed = len(parameters(made.method)) - len(made.method.args.defaults)
    needed += sum(one is None for one in made.method.args.kw_defaults)
    if needed > 0:
        listed = ", ".join(parameters(made.method)[:needed])
        advice = f"Call {called}.{method}({listed}) before line {outer.line}."
        return Explanation(RULE, spot.file, spot.line, cause.strip(), None, advice)
    statement = outer.statement
    first = _block_line(outer, statement)
    if first is None:
        return None
    line = f"{indent_of(outer.source.lines[first - 1])}{called}.{method}()"
    return Explanation(RULE, spot.file, spot.line, cause.strip(), Edit(outer.file, first, first - 1, (line,)))


def _in_init(made: _Made) -> Edit | None:
    """The call of a method at the end of `__init__`."""
    holder = made.source.parent(made.method)
    for one in holder.body if isinstance(holder, ast.ClassDef) else ():
        if isinstance(one, ast.FunctionDef) and one.name == "__init__" and len(parameters(made.method)) == 0:
            last = one.body[-1]
            line, blanks = (last.end_lineno or last.lineno) + 1, indent_of(made.source.lines[last.lineno - 1])
            return Edit(made.file, line, line - 1, (f"{blanks}{one.args.args[0].arg}.{made.method.name}()",))
    return None


def _block_line(spot: Spot, statement: ast.stmt | None) -> int | None:
    """The line above which something goes that is to run once before a statement: above the loops around it."""
    if statement is None:
        return None
    outermost = statement
    for one in spot.source.around(statement):
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            break
        if isinstance(one, (ast.For, ast.While, ast.With)):
            outermost = one
    return outermost.lineno


def _as_layer(situation: Situation, owner: object) -> Edit | None:
    """`layer.call(x)` as `layer(x)`."""
    for outer in reversed(situation.spots[:-1]):
        statement = outer.statement
        for one in calls(statement) if statement is not None else ():
            if (
                isinstance(one.func, ast.Attribute)
                and one.func.attr == "call"
                and lookup(one.func.value, outer) is owner
            ):
                return wrapping.replace_expression(outer, one.func, outer.source.text(one.func.value))
    return None


def _name_of(situation: Situation, owner: object) -> tuple[Spot | None, str]:
    """The outermost frame of Python that ran eagerly and has a name for the object, and that name."""
    index = wrapping.entry(situation)[0] if wrapping.entry(situation)[1] else len(situation.spots)
    for outer in situation.spots[: max(index, 1)]:
        if outer.generated or outer.by:
            break
        for names in (outer.variables, outer.module):
            for name, value in names.items():
                if value is owner and name != "self" and name.isidentifier() and not name.startswith("_"):
                    return outer, name
    return None, ""


def _not_held(situation: Situation, name: str, made: _Made) -> Explanation | None:
    """Its line is in an `if` that did not hold."""
    spot = situation.spots[-1]
    assert isinstance(made.under, ast.If)
    test = short(made.source.text(made.under.test), 40)
    held = "did not hold" if made.positive else "held"
    place = f"`if {test}`" if made.positive else f"the `else` of `if {test}`"
    cause = (
        f"self.{name} was never made: its only line ({made.line}) is in {made.method.name}, in {place}, which {held}."
    )
    edit = _with_true(situation, made) if made.method.name == "__init__" else None
    edit = edit or _same_if(spot, made) or _zeros(spot, made)
    advice = "" if edit is not None else (
        f"Give it a value above that `if` as well (line {made.under.lineno}), or read it only where the `if` holds."
    )  # fmt: skip
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _with_true(situation: Situation, made: _Made) -> Edit | None:
    """`Trainer(model)` as `Trainer(model, use_ema=True)`, where the one call that makes objects leaves it out."""
    assert isinstance(made.under, ast.If)
    test, arguments = made.under.test, made.method.args
    holder = made.source.parent(made.method)
    if not isinstance(test, ast.Name) or not made.positive or not isinstance(holder, ast.ClassDef):
        return None
    defaults = dict(zip([one.arg for one in arguments.args][::-1], arguments.defaults[::-1]))
    defaults |= {one.arg: value for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults) if value is not None}
    default = defaults.get(test.id)
    if not isinstance(default, ast.Constant) or default.value is not False:
        return None
    for spot in situation.spots:
        made_here = [one for one in calls(spot.source.tree) if dotted(one.func).rpartition(".")[2] == holder.name]
        if len(made_here) != 1:
            continue
        call = made_here[0]
        if any(word.arg in (None, test.id) for word in call.keywords) or any(
            isinstance(one, ast.Starred) for one in call.args
        ):
            return None
        if test.id in parameters(made.method)[: len(call.args)]:
            return None
        new = spot.source.with_argument(call, f"{test.id}=True")
        return wrapping.replace_expression(spot, call, new)
    return None


def _same_if(spot: Spot, made: _Made) -> Edit | None:
    """A line that only does something, read under the same `if`, where what that asks is known there, too."""
    statement, function = spot.statement, spot.function
    if not isinstance(statement, ast.Expr) or not isinstance(function, ast.FunctionDef) or made.file != spot.file:
        return None
    assert isinstance(made.under, ast.If)
    known = {*parameters(function), "self"} if function is not made.method else set()
    asked = {one.id for one in ast.walk(made.under.test) if isinstance(one, ast.Name)}
    if function is not made.method and not asked <= known:
        return None
    if not made.positive or any(spot.variables.get(one) is None and one not in spot.variables for one in asked):
        return None
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    blanks = indent_of(spot.source.lines[first - 1])
    lines = tuple(f"    {line}" if line.strip() else line for line in spot.source.lines[first - 1 : last])
    return Edit(spot.file, first, last, (f"{blanks}if {made.source.text(made.under.test)}:", *lines))


def _zeros(spot: Spot, made: _Made) -> Edit | None:
    """What is drawn under an `if` of the same function, as zeros above it."""
    statement = made.source.statement(made.line)
    drawn = statement.value if isinstance(statement, ast.Assign) else None
    if spot.function is not made.method or not isinstance(drawn, ast.Call) or not isinstance(made.under, ast.If):
        return None
    module, _, name = dotted(drawn.func).rpartition(".")
    if not module.endswith(".random") or not root_is(drawn.func, spot, "tensorflow") or name not in _DRAWS:
        return None
    given = [*drawn.args[:1], *(one.value for one in drawn.keywords if one.arg == "shape")]
    if len(given) != 1 or not isinstance(statement, ast.Assign):
        return None
    blanks = indent_of(made.source.lines[made.under.lineno - 1])
    target = made.source.text(statement.targets[0])
    line = f"{blanks}{target} = {alias(spot, 'tensorflow')}.zeros({made.source.text(given[0])})"
    return Edit(made.file, made.under.lineno, made.under.lineno - 1, (line,))
