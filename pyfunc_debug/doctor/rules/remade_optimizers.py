"""An optimizer that each step makes again: what it keeps of the steps before is lost, and Adam moves by signs only."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, parameters, tapes
from pyfunc_debug.records import Finding

NAMES = ("remade-optimizer",)
_KEEPS = frozenset({
    "Adam", "AdamW", "Adamax", "Nadam", "RMSprop", "Adagrad", "Adadelta", "Ftrl", "Lion", "Adafactor", "Lamb",
})  # fmt: skip
"""Optimizers that keep something of each step for the next; SGD does with a momentum only."""
_APPLIES = ("apply_gradients", "apply", "minimize")
_LOOPS = (ast.For, ast.While)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that makes an optimizer in a step of its own."""
    asked = {str(noticed["file"]) for _, _, noticed in facts.notices["asked-tape"]}
    for file in (one for one in facts.files if one in asked):
        own = pastes.source(facts, file)
        for block in tapes(own):
            statements = own.block(block) or []
            for made in statements[: statements.index(block)] if block in statements else ():
                name = _optimizer(made)
                if not name or not _applied(statements[statements.index(block) :], name):
                    continue
                holder = own.parent(block)
                if isinstance(holder, _LOOPS) and block in holder.body and not _makes_model(holder.body, block):
                    yield _in_loop(facts, file, made, holder, name)
                elif isinstance(holder, ast.FunctionDef) and not _makes_model(holder.body, block):
                    called = _called_in_loop(own.tree, holder)
                    if called:
                        yield _in_function(facts, file, made, holder, name, called)


def _optimizer(statement: ast.stmt) -> str:
    """The name that a statement gives to a new optimizer with a memory; "" where it is none."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return ""
    call, kind = statement.value, pastes.last_name(statement.value.func)
    momentum = pastes.argument(call, 1, "momentum") if kind == "SGD" else None
    keeps = kind in _KEEPS or (momentum is not None and ast.unparse(momentum) not in ("0", "0.0"))
    return dotted(statement.targets[0]) if keeps and len(statement.targets) == 1 else ""


def _applied(statements: list[ast.stmt], name: str) -> bool:
    """Whether the optimizer moves variables behind the tape."""
    asked = {f"{name}.{one}" for one in _APPLIES}
    return any(dotted(call.func) in asked for one in statements for call in pastes.walk(one, ast.Call))


def _makes_model(statements: list[ast.stmt], block: ast.With) -> bool:
    """Whether what is trained is made again, too: a name with variables that something above the tape is given."""
    read = {one.id for one in ast.walk(block) if isinstance(one, ast.Name)}
    return any(
        isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and one.lineno < block.lineno
        and not _optimizer(one) and any(isinstance(each, ast.Name) and each.id in read for each in one.targets)
        for one in statements
    )  # fmt: skip


def _called_in_loop(tree: ast.AST, function: ast.FunctionDef) -> int:
    """The line of a loop's call of a function; 0 where no loop of the file calls it."""
    for loop in (one for one in ast.walk(tree) if isinstance(one, _LOOPS)):
        for one in ast.walk(loop):
            if isinstance(one, ast.Call) and pastes.last_name(one.func) == function.name:
                return one.lineno
    return 0


def _message(facts: Facts, file: str, made: ast.Assign, how: str) -> str:
    kind = pastes.last_name(made.value.func)  # type: ignore[attr-defined]  # of a call
    what = "the speed that it had" if kind == "SGD" else "the means of gradients that it keeps"
    signs = kind in ("Adam", "Adamax")
    first = " Each step then moves every weight with a gradient by the learning rate." if signs else ""
    text = pastes.text_of(facts, file, made.targets[0])
    return f"line {made.lineno} makes {text} again {how}: {kind} loses {what}, and begins again.{first}"


def _finding(facts: Facts, file: str, made: ast.Assign, how: str, fix: str) -> Finding:
    return Finding(
        NAMES[0], "warning", None, (), _message(facts, file, made, how), fix, file, made.lineno,
        evidence=(f"line {made.lineno}: {facts.line(file, made.lineno)}",), confidence="likely",
    )  # fmt: skip


def _in_loop(facts: Facts, file: str, made: ast.stmt, loop: ast.For | ast.While, name: str) -> Finding:
    assert isinstance(made, ast.Assign)
    how = f"in each pass of the loop at line {loop.lineno}"
    given = {one.id for one in ast.walk(made.value) if isinstance(one, ast.Name)}
    changed = {one.id for one in ast.walk(loop) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    if given & changed:
        return _finding(facts, file, made, how, f"make {name} once, above line {loop.lineno}")
    own = pastes.source(facts, file)
    text = own.text(made)
    edits = (pastes.above(facts, file, loop.lineno, text), _without(file, made, own.lines))
    return _finding(facts, file, made, how, pastes.written(*edits))


def _in_function(facts: Facts, file: str, made: ast.stmt, function: ast.FunctionDef, name: str, called: int) -> Finding:
    assert isinstance(made, ast.Assign)
    own = pastes.source(facts, file)
    how = f"in each call of {function.name}, as in line {called}"
    given = {one.id for one in ast.walk(made.value) if isinstance(one, ast.Name)}
    local = {*parameters(function), *(
        one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    )}  # fmt: skip
    holder = own.parent(function)
    if given & local or "self" in given or not name.isidentifier() or isinstance(holder, ast.ClassDef):
        return _finding(facts, file, made, how, f"make {name} once, where the model is made")
    edits = (pastes.above(facts, file, pastes.first_line(function), own.text(made)), _without(file, made, own.lines))
    return _finding(facts, file, made, how, pastes.written(*edits))


def _without(file: str, made: ast.stmt, lines: list[str]) -> Edit:
    """The line below alone, in the place of a statement and itself: blank lines between are left out, too."""
    end = made.end_lineno or made.lineno
    below = next(number for number, line in enumerate(lines[end:], end + 1) if line.strip())
    assert indent_of(lines[below - 1]) == indent_of(lines[made.lineno - 1]) or lines[below - 1].lstrip().startswith("#")
    return Edit(file, made.lineno, below, (lines[below - 1],))
