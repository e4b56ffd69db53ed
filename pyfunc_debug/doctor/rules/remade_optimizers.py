"""An optimizer that each step, or each turn of a loop, makes again: what it keeps of the steps before is lost."""

from __future__ import annotations

import ast
import re
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
_MEANT = re.compile(r"trainable|set_weights|load|fold|split|trial", re.I)
"""In a loop that compiles again on purpose: for other layers, other weights, other data."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that makes an optimizer in a step of its own, or compiles in a loop of `fit`."""
    for file, line in dict.fromkeys(pastes.keras_sites(facts)):
        yield from _compiled_in_loop(facts, file, line)
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


def _compiled_in_loop(facts: Facts, file: str, line: int) -> Iterator[Finding]:
    """`compile` and `fit` of one model in one loop, in which nothing else of it changes."""
    own, fit = pastes.source(facts, file), pastes.call_at(facts, file, line, "fit")
    loop = next((one for one in own.around(fit) if isinstance(one, (*_LOOPS, ast.FunctionDef))), None) if fit else None
    if fit is None or not isinstance(loop, _LOOPS):
        return
    model = ast.unparse(fit.func).rpartition(".")[0]
    compiles = [
        one for one in loop.body if isinstance(one, ast.Expr) and one.lineno < fit.lineno
        and isinstance(one.value, ast.Call) and ast.unparse(one.value.func) == f"{model}.compile"
    ]  # fmt: skip
    text = "\n".join([ast.unparse(getattr(loop, "iter", loop)), *map(ast.unparse, loop.body)])
    bound = {one.id for one in ast.walk(loop) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    call = compiles[0].value if len(compiles) == 1 else None
    if not isinstance(call, ast.Call) or _MEANT.search(text):
        return
    optimizer = pastes.argument(call, 0, "optimizer")
    fresh = isinstance(optimizer, (ast.Constant, ast.Call)) and ast.unparse(optimizer) not in ("'sgd'", "'SGD'")
    read = {one.id for one in pastes.walk(call, ast.Name)}  # the model, and what it is compiled with
    if not fresh or bound & read:
        return
    first, last = compiles[0].lineno, compiles[0].end_lineno or compiles[0].lineno
    outer, inner = " " * loop.col_offset, " " * compiles[0].col_offset
    lines = [f"{outer}{one[len(inner) :]}" for one in own.lines[first - 1 : last]]
    yield Finding(
        NAMES[0], "warning", None, (),
        f"compile in line {first} begins again in each turn of the loop in line {loop.lineno}, with a new optimizer: "
        f"what it keeps of the steps before is lost, and fit (line {fit.lineno}) goes on with the weights alone",
        pastes.written(
            Edit(file, loop.lineno, loop.lineno - 1, tuple(lines)),
            Edit(file, first, last, (f"{inner}# {model}.compile(...): once, above the loop",)),
        ),
        file, first, evidence=(f"line {first}: {facts.line(file, first)}",), confidence="likely",
    )  # fmt: skip


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
