"""Gradients that are added up: `total += grads` of two lists, and variables that are never set back to 0."""

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
_LOOPS = (ast.For, ast.While)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a statement."""
    for file in facts.files:
        own = pastes.source(facts, file)
        yield from _kept(facts, file, own)
        for name, variables in dict.fromkeys(one for block in tapes(own) for one in _lists(own, block)):
            for one in pastes.walk(own.tree, ast.stmt):
                total = _sum(one, name)
                if total and _is_list(own, total, name) and _is_applied(own, total, variables):
                    yield _finding(facts, file, own, one, total, name)


def _kept(facts: Facts, file: str, own: Source) -> Iterator[Finding]:
    """Variables that gradients are added to in a loop, and that go to the optimizer with those of all steps before."""
    for loop in pastes.walk(own.tree, ast.For) if [*tapes(own)] else ():
        total = _added_to(loop)
        made = pastes.assigned(own.tree, total) if total else []
        if len(made) != 1 or not any(_is_zeros(one) for one in pastes.walk(made[0], ast.Call)):
            continue
        if not _is_outside(own, made[0], loop):
            continue
        applied = [
            one for one in pastes.walk(own.tree, ast.Call)
            if pastes.last_name(one.func) in _APPLIES and one.args and isinstance(one.args[0], ast.Call)
            and ast.unparse(one.args[0].func) == "zip" and ast.unparse(one.args[0].args[0]) == total
        ]  # fmt: skip
        line = applied[0].end_lineno or applied[0].lineno if applied else 0
        statement, text = own.statement(line), "\n".join(own.code)
        if len(applied) != 1 or statement is None or hasattr(statement, "body"):
            continue
        if any(one in text for one in (".assign(", "assign_sub", f"{total}[")):
            continue  # what is set there may be they
        tf = pastes.module(facts, file, "tensorflow") or "tf"
        new = (f"for one in {total}:", f"    one.assign({tf}.zeros_like(one))")
        alone = own.lines[statement.lineno - 1].strip() == own.text(statement).split("\n")[0].strip()
        yield Finding(
            NAMES[0], "error", None, (),
            f"line {loop.lineno} adds gradients to {total}, and line {line} applies them; nothing sets {total} back to "
            "0, so that each step also takes the gradients of all steps before",
            pastes.written(pastes.behind(file, statement, *new)) if alone else " ".join(new).replace("    ", ""),
            file, line, evidence=(f"line {loop.lineno}: {facts.line(file, loop.lineno)}",),
        )  # fmt: skip


def _is_outside(own: Source, made: ast.expr, loop: ast.For) -> bool:
    """Whether something is made once, above the loop of the steps."""
    above = [one for one in own.around(made) if isinstance(one, (*_LOOPS, ast.FunctionDef))]
    if not above:
        return True
    inner = [*own.around(loop)]
    steps = inner[: inner.index(above[0])] if above[0] in inner else []
    return isinstance(above[0], ast.FunctionDef) and any(isinstance(one, _LOOPS) for one in steps)


def _added_to(loop: ast.For) -> str:
    """`total` of `for one, grad in zip(total, grads): one.assign_add(grad)`."""
    if not isinstance(loop.iter, ast.Call) or ast.unparse(loop.iter.func) != "zip" or not loop.iter.args:
        return ""
    names = loop.target.elts if isinstance(loop.target, ast.Tuple) else []
    adds = [ast.unparse(one.func) for one in pastes.walk(loop, ast.Call)]
    total = loop.iter.args[0]
    added = bool(names) and f"{ast.unparse(names[0])}.assign_add" in adds
    return total.id if added and isinstance(total, ast.Name) else ""


def _is_zeros(call: ast.Call) -> bool:
    return pastes.last_name(call.func) in ("zeros_like", "zeros")


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
