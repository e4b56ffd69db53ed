"""A metric that an own loop reads once an epoch and never resets: it shows the mean of all epochs so far."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.text import listed
from pyfunc_debug.records import Finding

NAMES = ("unreset-metric",)
_RESETS = ("reset_state", "reset_states", "reset")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a loop over epochs."""
    for file in facts.files:
        own = pastes.source(facts, file)
        made = _made(own.tree)
        used = {ast.unparse(one.func) for one in pastes.walk(own.tree, ast.Call)}
        kept = [name for name in made if f"{name}.update_state" in used or name in used]
        kept = [name for name in kept if not any(f"{name}.{reset}" in used for reset in _RESETS)]
        if not kept or any(one.rpartition(".")[2] in _RESETS for one in used):
            continue  # others are reset: perhaps in a loop over all of them
        for loop in pastes.walk(own.tree, ast.For):
            inner = [one for one in loop.body if isinstance(one, (ast.For, ast.While))]
            read = [
                name for name in kept
                if any(ast.unparse(one.func) == f"{name}.result" for part in loop.body if part not in inner
                       for one in pastes.walk(part, ast.Call))
            ]  # fmt: skip
            if inner and read and not any(isinstance(one, (ast.For, ast.While)) for one in own.around(loop)):
                yield _finding(facts, file, loop, read, made)


def _made(tree: ast.AST | None) -> dict[str, int]:
    """The names that a file gives to metrics of Keras', and where. Not those that it makes in a loop."""
    inside = {id(part) for loop in pastes.walk(tree, ast.For) for part in ast.walk(loop)}
    return {
        ast.unparse(one.targets[0]): one.lineno for one in pastes.walk(tree, ast.Assign)
        if isinstance(one.value, ast.Call) and ".metrics." in f".{ast.unparse(one.value.func)}"
        and id(one) not in inside and isinstance(one.targets[0], (ast.Name, ast.Attribute))
    }  # fmt: skip


def _finding(facts: Facts, file: str, loop: ast.For, read: list[str], made: dict[str, int]) -> Finding:
    several = len(read) > 1
    first = loop.body[0]
    return Finding(
        NAMES[0], "warning", None, (),
        f"{listed(read)} {'are' if several else 'is'} read in each pass of the loop at "
        f"{facts.source_line(file, loop.lineno)}, and nothing resets {'them' if several else 'it'}: from the second on "
        f"{'they show' if several else 'it shows'} the mean of all passes so far",
        pastes.written(pastes.above(facts, file, first.lineno, *(f"{name}.reset_state()" for name in read))),
        file, loop.lineno,
        evidence=tuple(f"line {made[name]}: {facts.line(file, made[name])}" for name in read[:3]), confidence="likely",
    )  # fmt: skip
