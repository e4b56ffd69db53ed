"""Python values that changed after a graph was traced: the graph, which ran again, keeps what they were."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.facts import Facts
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
        _fix(facts, function, short, name), file, line, evidence=evidence,
    )  # fmt: skip


def _fix(facts: Facts, function: Function, short: str, name: str) -> str:
    """The function with one parameter more, and how it is called then."""
    parameter = name.rpartition(".")[2]
    rest = f"give it `{name}` as an argument: each value gets its graph (one for all with a tensor or a tf.Variable)"
    definition = facts.definition(function.file, function.line)
    arguments = definition.args if definition is not None else None
    if definition is None or arguments is None or arguments.vararg or arguments.kwonlyargs or arguments.kwarg:
        return rest
    old = ast.unparse(arguments)
    new = f"{old}, {parameter}" if old else parameter
    if arguments.defaults or isinstance(definition, ast.Lambda) or parameter in (one.arg for one in arguments.args):
        return rest
    given = ", ".join([*(one.arg for one in arguments.args if one.arg != "self"), name])
    return (
        f"def {short}({new}):  # and call {short}({given}): each value gets its graph; one for all with a tensor or a "
        "tf.Variable"
    )
