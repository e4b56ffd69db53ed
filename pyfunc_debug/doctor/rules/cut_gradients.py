"""Variables without a gradient, because a numpy_function, whole numbers or steps stand between them and the loss."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.gradients import of_datasets
from pyfunc_debug.doctor.failures.kept import failures
from pyfunc_debug.doctor.failures.ops import stand_ins
from pyfunc_debug.doctor.failures.ops.smooth import in_steps, of_type, ranks, smoothed
from pyfunc_debug.doctor.failures.ops.stand_ins import TOLD, Way, first_step, way
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.doctor.models import built_calls
from pyfunc_debug.doctor.rules.left_tapes import on_the_way
from pyfunc_debug.records import Finding, Node

NAMES = ("cut-gradient",)
_SHOWN = 3
_STEPS = {"ArgMax", "ArgMin", "Ceil", "Equal", "Floor", "Greater", "GreaterEqual", "Less", "LessEqual", "NotEqual",
          "Rint", "Round", "Sign", "Where"}  # fmt: skip
"""Ops without a gradient, or with one of 0."""
_ASKS = ("minimize", "compute_gradients", "gradients")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body; a retrace makes its node again."""
    bodies: dict[tuple[str, str | None, int | None], list[tuple[int, dict[str, Any]]]] = {}
    traced = (
        (number, noticed) for number, _, noticed in facts.notices["cut-gradient"]
        if number is not None and facts.nodes[number].origin == "user"
    )  # fmt: skip
    for number, noticed in (*traced, *_eagerly(facts)):
        known = facts.nodes[number]
        bodies.setdefault((known.body, known.file, known.line), []).append((number, noticed))
    yield from _flat(facts)
    yield from built_calls.check(facts, NAMES[0])
    said = {(one.file, one.line) for one in failures(facts, ("cut-gradient", "none-gradient"))}
    for (body, _, _), found in bodies.items():
        number, noticed = found[0]
        node = facts.nodes[number]
        if any((frame.file, frame.line) in said for frame in node.stack):
            continue  # that the program failed by it
        variables = [str(one) for one in noticed["variables"]]
        path = [str(one) for one in noticed["path"]]
        count = _named(variables, noticed["count"])
        numpy = node.kind != "py_function"
        called = "the lambda" if body.endswith("<lambda>") else body
        what = f"tape.gradient gave None for {count}: they are not trained by it. "
        if "line" in noticed:
            what = _left_out(facts, noticed, count)
        elif noticed["count"] == 1:
            what = f"tape.gradient gave None for {variables[0]}: it is not trained by it. "
        if noticed.get("term"):
            what = f"what {body} adds to the loss trains nothing: {count} have a gradient of the other terms only. "
            why = f"A tf.{node.kind} has no gradient"
        elif not path:
            why = f"The loss uses what {called} returns, and a tf.{node.kind} hides what it computes from TensorFlow"
        elif numpy:
            alone = 1 in (noticed["count"], len(variables) if "line" in noticed else 0)
            why = f"{_capital(called)} stands between {'it' if alone else 'them'} and the loss, and "
            why += f"a tf.{node.kind} has no gradient"
            why += (
                "" if "line" not in noticed else ". If it is meant to end here: tf.stop_gradient(...) around the call"
            )
        else:
            why = f"{_capital(called)} gets whole numbers that are computed from them, and these have no gradient"
        step = next((one for one in path[1:-1] if one in _STEPS), "")
        if step and numpy:
            why = f"The way to the loss ends at its {step} already, in front of {called}: what a {step} gives moves in "
            why += "steps, and no body behind it gets a gradient back"
        site = facts.site(number)
        name = facts.name(node)
        made, function = pastes.call_of(facts, node), facts.function(node)
        given = pastes.argument(made[1], 1, "inp") if made is not None else None
        inputs = pastes.text_of(facts, made[0], given) if made is not None and given is not None else "[...]"
        flat: ast.expr | None = in_steps(function) if function is not None else None
        moves = way(function)
        if function is not None and moves in (Way.FOLLOWS, Way.STEPS):
            flat = flat or first_step(function)
        through = straight_through(facts, node) if numpy and not step else ""
        if through:
            why += f". The lines below keep its values, which move in steps; {TOLD}"
        yield Finding(
            "cut-gradient", "warning", number, (),
            what + why,
            f"a loss on what goes into the {step} trains them; behind it, only @tf.custom_gradient around both"
            if step and numpy
            else f"give the variables to {name} in inp=[...] of a tf.py_function, with tf.* ops in it, no NumPy"
            if not path and not noticed.get("term")
            else _smooth(facts, node)
            or through
            or ("" if moves in (Way.FOLLOWS, Way.STEPS) else in_ops(facts, node))
            or pastes.by_differences(facts, node)
            or (
                f"use {name} for a metric, and something smooth for the loss: {ast.unparse(flat)} (line {flat.lineno}) "
                "moves in steps, whose gradient is zero or none in any framework"
                if flat is not None
                else f"tf.py_function({name}, {inputs}, ...)  # with tf.* ops in {name}, no NumPy; or "
                "@tf.custom_gradient around it, with a gradient of your own"
            ) if numpy
            else _uncast(facts, node) or f"pass {name} the floating-point numbers, without a cast before it",
            site.file if site else node.file, site.line if site else node.line, several(one for one, _ in found),
            (f"the way: {variables[0]} -> {' -> '.join(path[1:])} ({body})",) if len(path) > 1 else (),
            "measured" if len(path) > 1 or noticed.get("term") else "likely",
        )  # fmt: skip


def _eagerly(facts: Facts) -> Iterator[tuple[int, dict[str, Any]]]:
    """Nodes of eager code between a loss and the variables that got None, as the source has it: there is no graph."""
    eager = [
        one for one in facts.nodes.values()
        if one.origin == "user" and one.kind != "py_function" and one.function is not None
        and facts.functions[one.function].kind == "eager"
    ]  # fmt: skip
    for _, _, noticed in (*facts.notices["some-none"], *facts.notices["all-none"]) if eager else ():
        file, line = str(noticed["file"]), int(noticed["line"])
        for node in eager:
            made = pastes.call_of(facts, node)
            if made is not None and made[0] == file and on_the_way(facts, file, line, _reaches(facts, *made)):
                variables = _written(facts, file, line) or noticed.get("missing") or ["what was asked for"]
                yield node.id, {"variables": variables, "count": noticed.get("asked", 1), "path": [node.body]}


def _written(facts: Facts, file: str, line: int) -> list[str]:
    """The one variable that a tape was asked for, as it is written: its own name is often "Variable"."""
    statement = pastes.source(facts, file).statement(line)
    asked = [
        one.args[1] for one in ast.walk(statement)
        if isinstance(one, ast.Call) and pastes.last_name(one.func) == "gradient" and len(one.args) > 1
    ] if statement is not None else []  # fmt: skip
    return [asked[0].id] if len(asked) == 1 and isinstance(asked[0], ast.Name) else []


def _capital(name: str) -> str:
    """The lambda's name at the beginning of a sentence."""
    return f"T{name[1:]}" if name == "the lambda" else name


def _reaches(facts: Facts, file: str, made: ast.Call) -> Callable[[ast.Call], bool]:
    """Tells a node's own call, and calls of the function that has it."""
    own = pastes.source(facts, file)
    place, holder = (made.lineno, made.col_offset), own.function(made.lineno)
    name = getattr(holder, "name", None)
    return lambda call: (
        (call.lineno, call.col_offset) == place or (name is not None and pastes.last_name(call.func) == name)
    )


def _flat(facts: Facts) -> Iterator[Finding]:
    """Ops that move in steps, between some variables and the loss of a program that went on."""
    if any(True for _ in failures(facts, ("cut-gradient", "none-gradient"))):
        return
    for _, _, noticed in facts.notices["flat-op"]:
        file, line, variables = str(noticed["file"]), int(noticed["line"]), [str(one) for one in noticed["variables"]]
        source = pastes.source(facts, file)
        if of_datasets.is_of_dataset(noticed["op"]):
            yield from _of_dataset(facts, noticed, source)
            continue
        found = of_type(noticed["op"], source, line)
        if found is None:
            continue
        tf = pastes.module(facts, file, "tensorflow")
        spot = Spot(file, line, {}, {tf: types.ModuleType("tensorflow")} if tf is not None else {}, "")
        new = smoothed(found, source.parent(found), spot) if tf is not None else None
        text = pastes.text_of(facts, file, found)
        yield Finding(
            "cut-gradient", "warning", None, (),
            f"tape.gradient gave None for {_named(variables, noticed['count'])}: they are not trained by it. `{text}` "
            "stands between them and the loss, and moves in steps, which have no gradient"
            + (f". The lines below keep its values; {TOLD}" if new is not None and new.straight else ""),
            (pastes.written(new.edit(file, source)) if new is not None else "")
            or f"compute without `{text}`, with what it is made of; or keep it for a metric",
            file, line,
        )  # fmt: skip


def _of_dataset(facts: Facts, noticed: dict[str, Any], source: Source) -> Iterator[Finding]:
    """A dataset, or a loop over one, between some variables and the loss."""
    file, variables = str(noticed["file"]), [str(one) for one in noticed["variables"]]
    told = of_datasets.of_op(noticed["op"], file, source, int(noticed["line"]), bool(noticed.get("floats")))
    if told is not None:
        yield Finding(
            "cut-gradient", "warning", None, (),
            f"tape.gradient gave None for {_named(variables, noticed['count'])}: they are not trained by it. "
            f"{told.cause}",
            pastes.written(told.edit) if told.edit is not None else told.advice, file, told.line,
        )  # fmt: skip


def _left_out(facts: Facts, noticed: dict[str, Any], count: str) -> str:
    """The optimizer of TensorFlow 1 that made a step without some variables, with its line."""
    file, line = str(noticed["file"]), int(noticed["line"])
    found = [
        pastes.last_name(one.func) for one in ast.walk(pastes.source(facts, file).statement(line) or ast.Module([], []))
        if isinstance(one, ast.Call) and pastes.last_name(one.func) in _ASKS
    ]  # fmt: skip
    return (
        f"{found[0] if found else 'the optimizer'} ({facts.source_line(file, line)}) leaves out {count} in silence: "
        f"without a gradient, nothing trains {'it' if len(noticed['variables']) == 1 else 'them'}. "
    )


def _named(variables: list[str], count: int) -> str:
    names = ", ".join(variables[:_SHOWN]) + (", ..." if len(variables) > _SHOWN else "")
    return f"{len(variables)} of {count} variables ({names})"


def straight_through(facts: Facts, node: Node) -> str:
    """The call with the gradient of what it is given, where its body follows that in steps; "" for any other."""
    made = pastes.call_of(facts, node)
    first = facts.calls_of([node]).first
    sizes = facts.reader.rows(
        "SELECT role, dtype, shape FROM value WHERE call = ? AND role IN ('input', 'output') ORDER BY role", (first,)
    )
    if made is None or len(sizes) != 2 or sizes[0][1:] != sizes[1][1:] or way(facts.function(node)) is not Way.FOLLOWS:
        return ""
    text = stand_ins.straight_through(made[1], pastes.source(facts, made[0]))
    return pastes.all_replaced(facts, made[0], {made[1]: text}) if text is not None else ""


def _smooth(facts: Facts, node: Node) -> str:
    """Smooth ranks in the place of a call whose body ranks what it is given."""
    made, function = pastes.call_of(facts, node), facts.function(node)
    if made is None or function is None:
        return ""
    found = ranks(function, made[1], pastes.source(facts, made[0]))
    return "" if found is None else pastes.all_replaced(facts, made[0], {made[1]: found})


def in_ops(facts: Facts, node: Node) -> str:
    """The call as a py_function, and the body in TensorFlow's ops; "" where not all of it is one."""
    made, pieces = pastes.call_of(facts, node), pastes.in_ops(facts, node, "float32")
    if made is None or pieces is None or made[0] != node.file:
        return ""
    func = made[1].func
    head = ast.unparse(func).rpartition(".")[0]
    pieces |= {func: f"{head}.py_function" if head else "tf.py_function"}
    return pastes.differentiated(facts, made[0], pieces)


def _uncast(facts: Facts, node: Node) -> str:
    """The call with its inputs as they are before a cast to whole numbers."""
    made = pastes.call_of(facts, node)
    inputs = pastes.argument(made[1], 1, "inp") if made is not None else None
    casts: dict[ast.expr, str] = {
        one: pastes.text_of(facts, made[0], one.args[0])
        for one in (inputs.elts if isinstance(inputs, ast.List) else ())
        if made is not None and isinstance(one, ast.Call) and ast.unparse(one.func).endswith(".cast") and one.args
    }
    return pastes.all_replaced(facts, made[0], casts) if made is not None and casts else ""
