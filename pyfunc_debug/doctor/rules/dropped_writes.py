"""A TensorArray whose `write` gives a new one that nobody takes: in a graph the value is then not written."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Finding

NAMES = ("dropped-write",)
_METHODS = ("write", "unstack", "scatter", "split")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line, of tf.functions that were traced and of functions that tf.data traced."""
    traced = {trace.function for trace in facts.traces}
    seen: set[tuple[str | None, int]] = set()
    for number, function in facts.functions.items():
        if number not in traced or function.origin != "user":
            continue
        definition = facts.definition(function.file, function.line)
        if definition is None:
            continue
        arrays = {
            target.id for one in pastes.walk(definition, ast.Assign) for target in one.targets
            if isinstance(target, ast.Name) and isinstance(one.value, ast.Call)
            and pastes.last_name(one.value.func) == "TensorArray"
        }  # fmt: skip
        for one in pastes.walk(definition, ast.Expr) if arrays else ():
            called = one.value.func if isinstance(one.value, ast.Call) else None
            owner = called.value if isinstance(called, ast.Attribute) and called.attr in _METHODS else None
            if not isinstance(owner, ast.Name) or owner.id not in arrays or (function.file, one.lineno) in seen:
                continue
            seen.add((function.file, one.lineno))
            text = pastes.text_of(facts, function.file, one.value)
            yield Finding(
                "dropped-write", "warning", None, (),
                f"`{text}` gives a new TensorArray, and {function.name.rpartition('.')[2]} does not take it: in a "
                f"graph {owner.id} stays as it was, without the value",
                pastes.written(pastes.replaced(facts, function.file, {one.value: f"{owner.id} = {text}"})),
                function.file, one.lineno,
            )  # fmt: skip
    for _, _, noticed in facts.notices.get(Notice.UNREAD_WRITE, []):
        place = noticed["file"], noticed["line"]
        if place not in seen and facts.source(noticed["file"]):
            seen.add(place)
            yield from _unread(facts, *place)


def _unread(facts: Facts, file: str, line: int) -> Iterator[Finding]:
    """A write whose result the graph does not read, by the line that made its op."""
    own, statement = pastes.source(facts, file), pastes.source(facts, file).statement(line)
    value = getattr(statement, "value", None)
    if statement is None or not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return
    if value.func.attr != "write":
        return
    function, holds = own.function(line), _is_target(value.func.value)
    holder, owner, text = function or own.tree, own.text(value.func.value), own.text(value)
    fix = ""
    if isinstance(statement, ast.Assign):
        targets = [ast.unparse(one) for one in statement.targets]
        read = {one.id for one in pastes.walk(holder, ast.Name) if isinstance(one.ctx, ast.Load)}
        if len(targets) != 1 or targets[0] == owner or targets[0] in read or not targets[0].isidentifier():
            return
        fix = pastes.written(pastes.replaced(facts, file, {statement.targets[0]: owner})) if holds else ""
    elif isinstance(statement, ast.Expr):
        inside = [*function.args.posonlyargs, *function.args.args] if function is not None else []
        later = [one for one in pastes.walk(holder, ast.Name) if one.id == owner and one.lineno > statement.lineno]
        if holds and (later or owner not in [one.arg for one in inside]):
            fix = pastes.written(pastes.replaced(facts, file, {value: f"{owner} = {text}"}))
    elif not isinstance(statement, ast.Return) or not _is_dropped(facts, file, getattr(function, "name", "")):
        return
    told = getattr(function, "name", "the lambda")
    kept = "what it returns is not taken" if isinstance(statement, ast.Return) else f"{told} does not keep it"
    words = f"let {told} return what write gives, and take it where {told} is called"
    words = words if holds else f"keep what write gives (`array = {text}`), and read that from then on"
    words = f"take what {told} returns where it is called" if isinstance(statement, ast.Return) else words
    yield Finding(
        "dropped-write", "warning", None, (),
        f"`{text}` gives a new TensorArray, and {kept}: in a graph {owner} stays as it was, without the value",
        fix or words,
        file, line,
    )  # fmt: skip


def _is_target(owner: ast.expr) -> bool:
    """Whether a value can be assigned to that: `array`, `self.array`, `arrays[0]`, and no call."""
    plain = isinstance(owner, (ast.Name, ast.Attribute, ast.Subscript))
    return plain and not any(isinstance(one, ast.Call) for one in ast.walk(owner))


def _is_dropped(facts: Facts, file: str, name: str) -> bool:
    """Whether what a function of the file returns is dropped: a call of it is a statement."""
    calls = [one.value for one in pastes.walk(facts.tree(file), ast.Expr) if isinstance(one.value, ast.Call)]
    return bool(name) and any(pastes.last_name(one.func) == name for one in calls)
