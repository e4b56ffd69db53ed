"""A body that numbers the words of its own text: in another call a word has another number."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.text_inputs import texts_given
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.records import Node


def numbered_words(facts: Facts, group: Sequence[Node], functions: Sequence[Definition]) -> tuple[str, ast.expr] | None:
    """The dict of words and their numbers that each call makes of its text, and the expression that numbers.

    Args:
      facts: The recording.
      group: The nodes of a body.
      functions: The body, and the functions of its file that it calls.
    """
    if not texts_given(facts, [one.id for one in group]) or not any("int" in one for one in group[0].tout):
        return None
    for function in functions:
        if isinstance(function, ast.Lambda):
            continue
        for statement in code.own_nodes(function):
            if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
                continue
            name = statement.targets[0].id
            if name in code.local_names(function) and _is_read(function, name):
                made = _counted(function, statement.value) or _grown(function, name, statement.value)
                if made is not None:
                    return name, made
    return None


def _counted(function: Definition, value: ast.expr) -> ast.expr | None:
    """`{w: i for i, w in enumerate(sorted(set(words)))}` of words that the call got."""
    if not isinstance(value, ast.DictComp) or len(value.generators) != 1:
        return None
    counts = value.generators[0].iter
    if not isinstance(counts, ast.Call) or ast.unparse(counts.func) != "enumerate" or not counts.args:
        return None
    return value if is_of_input(function, counts.args[0]) else None


def _grown(function: Definition, name: str, value: ast.expr) -> ast.expr | None:
    """`vocab[word] = len(vocab)`, or a `setdefault`, of a dict that is empty as the call begins."""
    if ast.unparse(value) not in ("{}", "dict()"):
        return None
    for one in code.own_nodes(function):
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Subscript):
            target, number = one.targets[0], one.value
            key: ast.expr | None = target.slice if ast.unparse(target.value) == name else None
        elif isinstance(one, ast.Call) and ast.unparse(one.func) == f"{name}.setdefault" and len(one.args) == 2:
            key, number = one.args
        else:
            continue
        if key is not None and f"len({name})" in ast.unparse(number) and is_of_input(function, key):
            return number
    return None


def is_of_input(function: Definition, node: ast.expr, deep: int = 4) -> bool:
    """Whether an expression is made of nothing but what a function was given, as far as its names say."""
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    inner = {one for part in ast.walk(node) if isinstance(part, ast.comprehension) for one in code.stored_names(part)}
    local = (names & code.local_names(function)) - inner
    if not local or deep == 0:
        return False
    return all(
        name in code.parameters(function) or (
            bool(values := [*pastes.assigned(function, name), *_looped(function, name)])
            and all(is_of_input(function, one, deep - 1) for one in values)
        )
        for name in local
    )  # fmt: skip


def _looped(function: Definition, name: str) -> list[ast.expr]:
    """What the loops of a function take a name from."""
    return [one.iter for one in pastes.walk(function, ast.For) if name in code.stored_names(one.target)]


def _is_read(function: Definition, name: str) -> bool:
    """Whether numbers are asked of a dict by its words."""
    return any(
        ast.unparse(one.value) == name and isinstance(one.ctx, ast.Load) for one in pastes.walk(function, ast.Subscript)
    ) or any(
        ast.unparse(one.func) in (f"{name}.get", f"{name}.setdefault") for one in pastes.walk(function, ast.Call)
    )  # fmt: skip
