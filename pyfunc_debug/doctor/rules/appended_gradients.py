"""`total += grads` of two lists: it appends, and `zip(total, variables)` takes what stands first."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, tapes
from pyfunc_debug.doctor.models.own_steps import TRAINABLE
from pyfunc_debug.records import Finding

NAMES = ("appended-gradients",)
_APPLIES = ("apply_gradients", "apply")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a statement."""
    for file in facts.files:
        own = pastes.source(facts, file)
        for name, variables in dict.fromkeys(one for block in tapes(own) for one in _lists(own, block)):
            for one in pastes.walk(own.tree, ast.stmt):
                total = _sum(one, name)
                if total and _is_list(own, total, name) and _is_applied(own, total, variables):
                    yield _finding(facts, file, own, one, total, name)


def _lists(own: Source, block: ast.With) -> Iterator[tuple[str, str]]:
    """The names of lists of gradients that a tape gives, and what they are gradients for."""
    tape = block.items[0].optional_vars
    for one in pastes.walk(own.tree, ast.Assign):
        call = one.value
        if len(one.targets) != 1 or not isinstance(call, ast.Call) or len(call.args) < 2 or tape is None:
            continue
        if ast.unparse(call.func) == f"{ast.unparse(tape)}.gradient" and _is_many(own, call.args[1]):
            yield ast.unparse(one.targets[0]), _variables(own, call.args[1])


def _is_many(own: Source, sources: ast.expr) -> bool:
    """Whether a tape is asked for a list of variables."""
    if isinstance(sources, ast.Name):
        made = pastes.assigned(own.tree, sources.id)
        return bool(made) and all(not isinstance(one, ast.Name) and _is_many(own, one) for one in made)
    if isinstance(sources, ast.Attribute):
        return sources.attr in TRAINABLE
    return isinstance(sources, ast.List)


def _variables(own: Source, node: ast.expr) -> str:
    """Variables as they are written, also where a name stands for them."""
    made = pastes.assigned(own.tree, node.id) if isinstance(node, ast.Name) else []
    return ast.unparse(made[0] if len(made) == 1 else node)


def _sum(statement: ast.stmt, name: str) -> str:
    """What a list is added to: `total += grads`, `total = total + grads`."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        return ast.unparse(statement.target) if ast.unparse(statement.value) == name else ""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ""
    total, value = ast.unparse(statement.targets[0]), statement.value
    return total if any(ast.unparse(one) == f"{total} + {name}" for one in _ways(value)) else ""


def _ways(value: ast.expr) -> list[ast.expr]:
    """Both values of `a if c else b`."""
    return [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]


def _is_list(own: Source, total: str, name: str) -> bool:
    """Whether what is added to is a list itself, in all that the file gives to its name."""
    made = [one.value for one in pastes.walk(own.tree, ast.Assign) if total in map(ast.unparse, one.targets)]
    every = [one for value in made for one in _ways(value) if ast.unparse(one) not in ("None", f"{total} + {name}")]
    lists = (ast.List, ast.ListComp)
    return bool(every) and all(isinstance(one, lists) or ast.unparse(one) in (name, "list()") for one in every)


def _is_applied(own: Source, total: str, variables: str) -> bool:
    """Whether an optimizer is given these pairs: `apply_gradients(zip(total, variables))`."""
    for call in pastes.walk(own.tree, ast.Call):
        if pastes.last_name(call.func) in _APPLIES and call.args and isinstance(call.args[0], ast.Call):
            pairs = call.args[0]
            if ast.unparse(pairs.func) == "zip" and len(pairs.args) == 2 and ast.unparse(pairs.args[0]) == total:
                return _variables(own, pairs.args[1]) == variables  # not the variables of two models, side by side
    return False


def _finding(facts: Facts, file: str, own: Source, statement: ast.stmt, total: str, name: str) -> Finding:
    made = pastes.assigned(own.tree, total)
    zeros = [one for one in made if isinstance(one, ast.ListComp)]
    empty = any((isinstance(one, ast.List) and not one.elts) or ast.unparse(one) == "list()" for one in made)
    new = f"[a + b for a, b in zip({total}, {name})]{f' if {total} else {name}' if empty else ''}"
    first = f"those that line {zeros[0].lineno} makes" if zeros else "those of the first step"
    assert isinstance(statement, (ast.Assign, ast.AugAssign))
    sums = [one for one in _ways(statement.value) if isinstance(one, ast.BinOp)]
    edit = pastes.lines_of(facts, file, statement.lineno)
    if any("Embedding" in line for line in own.code) or edit is None or len(edit[1]) > 1:
        fix = f"{total} = {new}"  # the gradient of an Embedding is none that `+` takes
    elif isinstance(statement, ast.AugAssign):
        fix = pastes.written(Edit(file, statement.lineno, statement.lineno, (f"{edit[0]}{total} = {new}",)))
    else:
        fix = pastes.all_replaced(facts, file, {sums[0]: new})
    return Finding(
        NAMES[0], "error", None, (),
        f"{own.text(statement)} appends, as both are lists with a gradient for each variable: {total} grows by one "
        f"list with each step, and zip pairs the variables with what stands first in it, {first}",
        fix,
        file, statement.lineno, evidence=(f"line {statement.lineno}: {facts.line(file, statement.lineno)}",),
        confidence="likely",
    )  # fmt: skip
