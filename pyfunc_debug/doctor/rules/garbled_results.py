"""A result of a body that TensorFlow's `reshape` cuts into other rows: its shape is known only from the calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.body_inputs import returned
from pyfunc_debug.doctor.bodies.turned_sizes import turned
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import sizes_of
from pyfunc_debug.doctor.rules.garbled_images import of_axes, sizes_in, whole
from pyfunc_debug.interception.graphs.reshapes import is_permuted
from pyfunc_debug.records import Finding, Node

NAMES = ("garbled-image",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line of a call."""
    for group in facts.lines:
        found = pastes.call_of(facts, group[0])
        tf = pastes.module(facts, found[0], "tensorflow") if found is not None else None
        if found is None or tf is None or not facts.calls_of(group).count:
            continue
        file, made = found
        for call in pastes.walk(facts.tree(file), ast.Call):
            if dotted(call.func) != f"{tf}.reshape" or len(call.args) != 2 or call.keywords:
                continue
            position = _position(facts, file, made, call, tf)
            told = _told(facts, group, file, call, position) if position is not None else None
            if told is not None:
                yield told
                break


def _told(facts: Facts, group: Sequence[Node], file: str, call: ast.Call, position: int) -> Finding | None:
    node, sizes = group[0], sizes_in(facts, file, call.args[1:])
    seen = returned(facts, group, position) if sizes is not None else []
    if sizes is None or not seen or len({one.shape for one in seen}) > 1:
        return None
    before, after = seen[0].shape, whole(sizes, seen[0].shape)
    exchanged = turned(facts, node, after, [before]) if before != after else None
    if exchanged is None:
        return of_axes(facts, file, call, call.args[0], before, after, group) if is_permuted(before, after) else None
    why, fix = exchanged
    return Finding(
        NAMES[0], "error", node.id, (seen[0].call,),
        f"reshape makes {sizes_of(after)} of what {node.body} returned, which is {sizes_of(before)}: it keeps the "
        f"numbers in their order and cuts them into other rows, so that they land in other places{why}",
        fix, file, call.lineno, evidence=(f"line {call.lineno}: {facts.line(file, call.lineno)}",),
    )  # fmt: skip


def _position(facts: Facts, file: str, made: ast.Call, call: ast.Call, tf: str) -> int | None:
    """Which result of a py_function a call takes; None where it takes something else."""
    own, given = pastes.source(facts, file), call.args[0]
    while isinstance(given, ast.Call) and dotted(given.func) == f"{tf}.cast" and given.args:
        given = given.args[0]
    if isinstance(given, ast.Call):
        return 0 if ast.unparse(given) == ast.unparse(made) and given.lineno == made.lineno else None
    statement = own.statement(made.lineno)
    if not isinstance(given, ast.Name) or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    names = [dotted(one) for one in parts]
    whole_call = ast.unparse(statement.value) == ast.unparse(made)
    inside, around = (
        next((one for one in own.around(each) if isinstance(one, ast.FunctionDef)), own.tree) for each in (made, call)
    )
    if not whole_call or given.id not in names or inside is not around:
        return None
    others = [
        one for one in pastes.walk(inside, ast.Name)
        if one.id == given.id and isinstance(one.ctx, ast.Store)
        and (statement.end_lineno or 0) < one.lineno < call.lineno
    ]  # fmt: skip
    return names.index(given.id) if not others and call.lineno >= statement.lineno else None
