"""Python values that changed after a graph was traced: the graph, which ran again, keeps what they were."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.records import Finding, Function

NAMES = ("stale-closure",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a function and name."""
    traces = {trace.id: trace for trace in facts.traces}
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for _, _, noticed in facts.notices["stale-closure"]:
        trace = traces.get(noticed["trace"])
        if trace is not None:
            groups[trace.function, noticed["name"], noticed["file"], noticed["line"]].append(noticed)
    for (number, name, file, line), found in groups.items():
        yield _finding(facts, facts.functions[number], name, file, line, found)


def _finding(facts: Facts, function: Function, name: str, file: str, line: int, found: list[dict[str, Any]]) -> Finding:
    one = found[0]
    short = function.name.rpartition(".")[2]
    evidence = tuple(f"was {other['then']} at trace, {other['now']} at a run" for other in found[1:4])
    return Finding(
        "stale-closure", "warning", None, (),
        f"`{name}` was {one['then']} when TensorFlow traced {function.name} and is {one['now']} when it runs: the "
        f"graph keeps {one['then']}, because Python reads `{name}` only while it traces",
        _fix(facts, function, short, name, line), file, line, evidence=evidence,
    )  # fmt: skip


def _fix(facts: Facts, function: Function, short: str, name: str, line: int) -> str:
    """The function with one parameter more, and how it is called then."""
    parameter = name.rpartition(".")[2]
    rest = f"give it `{name}` as an argument: each value gets its graph (one for all with a tensor or a tf.Variable)"
    definition = facts.definition(function.file, function.line)
    arguments = definition.args if definition is not None else None
    inside = definition is not None and definition.lineno <= line <= (definition.end_lineno or 0)
    if not inside:
        return f"pass `{name}` to {short} and from there on to line {line} as an argument, best as a tensor"
    if definition is None or arguments is None or arguments.vararg or arguments.kwonlyargs or arguments.kwarg:
        return rest
    old = ast.unparse(arguments)
    new = f"{old}, {parameter}" if old else parameter
    if arguments.defaults or isinstance(definition, ast.Lambda) or parameter in (one.arg for one in arguments.args):
        return rest
    edit = _passed(facts, function, definition, name, parameter)
    if edit:
        return edit
    given = ", ".join([*(one.arg for one in arguments.args if one.arg != "self"), name])
    return (
        f"def {short}({new}):  # and call {short}({given}): each value gets its graph; one for all with a tensor or a "
        "tf.Variable"
    )


def _passed(facts: Facts, function: Function, definition: Definition, name: str, parameter: str) -> str:
    """The lines of the function and of its calls with one argument more; "" where a call does not see the value."""
    last = next(iter(reversed([*definition.args.posonlyargs, *definition.args.args])), None)
    sites = pastes.run_sites(facts, function.id)
    if last is None or function.file is None or not 0 < len(sites) <= pastes.MOST:
        return ""
    pieces: dict[ast.expr, str] = {
        last: f"{pastes.text_of(facts, function.file, last)}, {parameter}",  # type: ignore[dict-item]  # it has a place
    }
    if name != parameter:
        pieces.update({one: parameter for one in pastes.walk(definition, ast.Attribute) if ast.unparse(one) == name})
    scope = _scope(facts, function.file, definition.lineno, definition)
    for file, line in sites:
        call = pastes.call_at(facts, file, line, function.name.rpartition(".")[2])
        if call is None or file != function.file:
            return ""
        value = name
        if name != parameter and isinstance(call.func, ast.Attribute) and name == f"self.{parameter}":
            value = f"{ast.unparse(call.func.value)}.{parameter}"
        elif name != parameter or _scope(facts, file, line, None)[: len(scope)] != scope:
            return ""
        text = pastes.text_of(facts, file, call)
        comma = ", " if call.args or call.keywords else ""
        pieces[call] = f"{text[:-1].rstrip(', ')}{comma}{parameter}={value})"
    return pastes.all_replaced(facts, function.file, pieces)


def _scope(facts: Facts, file: str, line: int, but: Definition | None) -> list[int]:
    """The functions around a line."""
    return [one.lineno for one in pastes.around(facts.tree(file), line, ast.FunctionDef) if one is not but]
