"""Python values that changed after a graph was traced: the graph, which ran again, keeps what they were."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.needs_python import needs_python
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.graphs import replaced_objects
from pyfunc_debug.doctor.graphs.kept_values import KeptValue
from pyfunc_debug.doctor.graphs.rebound_variables import rebound
from pyfunc_debug.doctor.models.frozen_layers import (
    frozen_before_training,
    set_between_calls,
    set_between_fits,
    set_too_late,
)
from pyfunc_debug.doctor.rules.ran_out import STEPS
from pyfunc_debug.doctor.text import listed
from pyfunc_debug.records import Finding, Function

NAMES = ("stale-closure",)
_MOST = 3
"""Lines that change a value, of which each is shown."""
_PYTHONS = re.compile(r"\b(?:math|np|numpy)\.\w+\(")
"""Calls of Python's and NumPy's functions."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a function and name."""
    traces = {trace.id: trace for trace in facts.traces}
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    objects: dict[tuple[int, str], list[dict[str, Any]]] = defaultdict(list)
    for _, _, noticed in facts.notices["stale-closure"]:
        trace = traces.get(noticed["trace"])
        if trace is not None and noticed.get("other_object"):
            objects[trace.function, noticed["file"]].append(noticed)
        elif trace is not None:
            groups[trace.function, noticed["name"], noticed["file"], noticed["line"]].append(noticed)
    for (number, name, file, line), found in groups.items():
        value = KeptValue(facts, name, file, line)
        if not value.only_told() and not all(value.only_counted(one["then"], one["now"]) for one in found):
            yield _finding(facts, facts.functions[number], value, name, file, line, found)
    for (number, file), found in objects.items():
        yield _of_objects(facts, facts.functions[number], file, found)
    for function in facts.functions.values():
        if function.origin == "user" and function.kind == "tf.function":
            yield from set_between_calls(facts, function)
    steps = [one.id for one in facts.functions.values() if one.name.rpartition(".")[2] in STEPS]
    for file in dict.fromkeys(file for number in steps for file, _ in pastes.run_sites(facts, number)):
        yield from rebound(facts, file)
        yield from set_too_late(facts, file)
        yield from set_between_fits(facts, file)
        yield from frozen_before_training(facts, file)


def _finding(
    facts: Facts, function: Function, value: KeptValue, name: str, file: str, line: int, found: list[dict[str, Any]]
) -> Finding:
    one = found[0]
    own = function.origin == "user"
    reader = function.name if own else str(one["reader"]).replace("<locals>.", "")
    changes = [f"line {write.lineno}: {facts.line(file, write.lineno)}" for _, write in value.writes[:_MOST]]
    runs = _runs_after(facts, found)
    return Finding(
        "stale-closure", "warning", None, (),
        f"`{name}` was {one['then']} when {_tracer(own)} traced {reader} and is {one['now']} when "
        f"it runs: the graph keeps {_short(one['then'])}, because Python reads `{name}` only while it traces",
        _of_dataset(facts, value, name, line, one) if function.kind == "tf.data"
        else _fix(facts, function, value, name, line, one) if own
        else _of_keras(facts, function, value, name, line, one),
        file, line,
        evidence=(
            *changes, *((f"the graph ran {runs:,} times with {one['then']} after that",) if runs > 1 else ()),
            *(f"was {other['then']} at trace, {other['now']} at a run" for other in found[1:4]),
        ),
    )  # fmt: skip


def _short(then: object) -> str:
    return "the first" if str(then).startswith(("a tensor of ", "an array of ")) else str(then)


def _of_objects(facts: Facts, function: Function, file: str, found: list[dict[str, Any]]) -> Finding:
    """Models, optimizers, metrics and variables that were made again: the graph goes on with the first ones."""
    named = {one["name"]: one for one in found}
    own = function.origin == "user"
    reader = function.name if own else str(found[0]["reader"]).replace("<locals>.", "")
    values = [KeptValue(facts, name, file, one["line"]) for name, one in named.items()]
    several, first = len(named) > 1, str(found[0]["name"])
    names, them = listed([f"`{name}`" for name in named]), "these names" if several else f"`{first}`"
    runs = _runs_after(facts, found)
    return Finding(
        "stale-closure", "error", None, (),
        f"{names} {'are other objects' if several else 'is another object'} than when {_tracer(own)} traced {reader}: "
        f"the graph goes on with the first {'ones' if several else named[first]['then']} and does not use the new "
        f"{'ones' if several else 'one'}, because Python reads {them} only while it traces",
        replaced_objects.fix(facts, function if own else None, values, list(named), file),
        file, found[0]["line"],
        evidence=(
            *(f"line {write.lineno}: {facts.line(file, write.lineno)}" for value in values
              for _, write in value.writes[:_MOST]),
            *((f"the graph ran {runs:,} times with the first after that",) if runs > 1 else ()),
        ),
    )  # fmt: skip


def _tracer(own: bool) -> str:
    return "TensorFlow" if own else "Keras"


def _runs_after(facts: Facts, found: list[dict[str, Any]]) -> int:
    """How often the graphs ran since the value was another; those of which a run is not known do not count."""
    known = [(one["trace"], one["run"]) for one in found if "run" in one]
    return sum(
        facts.reader.rows("SELECT count(*) FROM run WHERE trace = ? AND id >= ? AND kind = 'forward'", pair)[0][0]
        for pair in dict.fromkeys(known)
    )


def _of_keras(facts: Facts, function: Function, value: KeptValue, name: str, line: int, one: dict[str, Any]) -> str:
    """What makes a step of Keras' follow the value."""
    tf = pastes.module(facts, one["file"], "tensorflow") or "tf"
    again = "model.make_train_function(force=True) after a change: Keras traces its step again"
    made = f"`{name}` as a {tf}.Variable that is made once, with `.assign(...)` where it changes"
    if _PYTHONS.search(facts.line(one["file"], line)):  # takes no variable of a graph
        return f"{again}. Or {made}, and ops of {tf} in line {line} for those of Python and NumPy"
    return (
        value.as_variable(one["then"], one["now"])
        or value.traced_again(pastes.run_sites(facts, function.id))
        or f"{made}: line {line} then reads it in each step. Or {again}"
    )


def _of_dataset(facts: Facts, value: KeptValue, name: str, line: int, one: dict[str, Any]) -> str:
    """What makes a dataset's function follow the value."""
    tf = pastes.module(facts, one["file"], "tensorflow") or "tf"
    return value.as_variable(one["then"], one["now"]) or (
        f"`{name}` as a {tf}.Variable that is made once, with `.assign(...)` where it changes: line {line} then "
        "reads it for each element. Or make the dataset again after a change"
    )


def _fix(facts: Facts, function: Function, value: KeptValue, name: str, line: int, one: dict[str, Any]) -> str:
    """The function with one parameter more, and how it is called then; else a variable in the value's place."""
    short, parameter = function.name.rpartition(".")[2], name.rpartition(".")[2]
    rest = f"give it `{name}` as an argument: each value gets its graph (one for all with a tensor or a tf.Variable)"
    definition = facts.definition(function.file, function.line)
    arguments = definition.args if definition is not None else None
    inside = definition is not None and definition.lineno <= line <= (definition.end_lineno or 0)
    if not inside or not parameter.isidentifier():
        edit = value.as_variable(one["then"], one["now"])
        return edit or f"pass `{name}` to {short} and from there on to line {line} as an argument, best as a tensor"
    if definition is None or arguments is None or arguments.vararg or arguments.kwonlyargs or arguments.kwarg:
        return rest
    old = ast.unparse(arguments)
    new = f"{old}, {parameter}" if old else parameter
    if arguments.defaults or isinstance(definition, ast.Lambda) or parameter in (one.arg for one in arguments.args):
        return rest
    edit = _passed(facts, function, definition, name, parameter, str(one["now"]))
    if edit:
        return edit
    given = ", ".join([*(one.arg for one in arguments.args if one.arg != "self"), name])
    return (
        f"def {short}({new}):  # and call {short}({given}): each value gets its graph; one for all with a tensor or a "
        "tf.Variable"
    )


def _passed(facts: Facts, function: Function, definition: Definition, name: str, parameter: str, now: str) -> str:
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
    tf = pastes.module(facts, function.file, "tensorflow") or "tf"
    signature = next((one.signature for one in reversed(facts.traces) if one.function == function.id), "")
    fraction = re.fullmatch(r"-?\d*\.\d+(e-?\d+)?", now) is not None and not re.search(r"float(16|64)", signature)
    fraction = fraction and not needs_python(definition, name, signature)
    tensor = f"{tf}.constant({{}}, {tf}.float32)" if fraction else "{}"  # one graph for all of its values
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
        pieces[call] = pastes.source(facts, file).with_argument(call, f"{parameter}={tensor.format(value)}")
    return pastes.all_replaced(facts, function.file, pieces)


def _scope(facts: Facts, file: str, line: int, but: Definition | None) -> list[int]:
    """The functions around a line."""
    return [one.lineno for one in pastes.around(facts.tree(file), line, ast.FunctionDef) if one is not but]
