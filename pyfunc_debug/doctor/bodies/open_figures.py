"""Bodies that make a figure by pyplot in each call and never close it: pyplot keeps each of them."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.current_figures import pyplot_name, reached
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of
from pyfunc_debug.records import Node

_MAKERS = ("figure", "subplots")
_CLEARS = ("clf", "cla", "clear", "destroy", "destroy_all")
_KEEPERS = ("append", "add", "put", "setdefault", "insert")


@dataclass(frozen=True)
class OpenFigure:
    """A figure that stays.

    Attributes:
      line: Where it is made.
      maker: How: `plt.figure`.
      fix: What closes it, as a paste or in words.
    """

    line: int
    maker: str
    fix: str


def open_figure(facts: Facts, node: Node) -> OpenFigure | None:
    """Where a body makes a figure of its own that nothing in its files closes."""
    function, file = facts.function(node), node.file
    if file is None or not isinstance(function, ast.FunctionDef):
        return None
    source = pastes.source(facts, file)
    known = imports(source)
    own = list(code.own_nodes(function))
    if any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in own):
        return None
    every = [one for one in own if isinstance(one, ast.Call)]
    made = [one for one in every if pyplot_name(one, known) in _MAKERS]
    if len(made) != 1 or _is_numbered(made[0], known) or _is_closed(facts, file, function):
        return None
    statement = source.statement(made[0].lineno)
    if statement is None or statement not in function.body:
        return None  # under `if fig is None:`, or in a loop
    fig = _name(statement, made[0], pyplot_name(made[0], known))
    if fig is None or _is_kept(function, fig):
        return None
    plt = dotted(made[0].func).rpartition(".")[0]
    closes = f"{plt}.close({fig})" if plt else ""
    fix = _paste(facts, file, source, function, fig, closes) if closes else ""
    maker = pastes.text_of(facts, file, made[0].func)
    return OpenFigure(made[0].lineno, maker, fix or f"{closes or 'plt.close()'} at the end of {function.name}")


def _is_numbered(call: ast.Call, known: dict[str, str]) -> bool:
    """Whether a figure is asked for by its number or name: it is the same one in each call."""
    return any(one.arg in ("num", None) for one in call.keywords) or (
        bool(call.args) and pyplot_name(call, known) == "figure"
    )


def _is_closed(facts: Facts, file: str, function: ast.FunctionDef) -> bool:
    """Whether a body, or what it calls, closes or clears a figure; or any other line all of them."""
    for where, part in reached(facts, file, function):
        known = imports(pastes.source(facts, where))
        for one in pastes.walk(part, ast.Call):
            cleared = isinstance(one.func, ast.Attribute) and one.func.attr in _CLEARS
            if cleared or pyplot_name(one, known) == "close":
                return True
    for where in (*facts.files, *facts.imported):
        known = imports(pastes.source(facts, where))
        for one in pastes.walk(facts.tree(where), ast.Call):
            every = not one.args or (isinstance(one.args[0], ast.Constant) and one.args[0].value == "all")
            if every and pyplot_name(one, known) == "close":
                return True
    return False


def _name(statement: ast.stmt, made: ast.Call, maker: str) -> str | None:
    """The name of the figure; "" of one without a name, which is the current one; None where it goes elsewhere."""
    if isinstance(statement, ast.Expr) and statement.value is made:
        return ""
    if not isinstance(statement, ast.Assign) or statement.value is not made or len(statement.targets) != 1:
        return None
    target: ast.expr = statement.targets[0]
    if maker == "subplots":
        if not isinstance(target, ast.Tuple) or not target.elts:
            return None
        target = target.elts[0]
    return target.id if isinstance(target, ast.Name) else None


def _is_kept(function: ast.FunctionDef, fig: str) -> bool:
    """Whether the figure goes out of the body: it is returned, declared as the file's, or kept by another thing."""
    for one in code.own_nodes(function):
        if isinstance(one, (ast.Global, ast.Nonlocal)) and fig in one.names:
            return True
        value = one.value if isinstance(one, (ast.Return, ast.Assign)) else None
        if isinstance(value, ast.Name) and value.id == fig:
            return True
        if isinstance(one, ast.Call) and pastes.last_name(one.func) in _KEEPERS and fig in map(dotted, one.args):
            return True
    return False


def _paste(facts: Facts, file: str, source: Source, function: ast.FunctionDef, fig: str, closes: str) -> str:
    """The lines that close the figure above the body's one `return`, which comes last."""
    returns = [one for one in code.own_nodes(function) if isinstance(one, ast.Return)]
    last = function.body[-1]
    if not returns:
        return pastes.written(pastes.behind(file, last, closes))
    if returns != [last] or not isinstance(last, ast.Return) or last.value is None:
        return ""
    if isinstance(last.value, (ast.Name, ast.Constant)):
        return pastes.written(pastes.above(facts, file, last.lineno, closes))
    drawn, (first, end) = source.unused_name("image"), source.span(last)
    lines = source.lines[first - 1 : end]
    begun = lines[0].replace("return ", f"{drawn} = ", 1)
    blanks = indent_of(lines[0])
    return pastes.written(Edit(file, first, end, (begun, *lines[1:], f"{blanks}{closes}", f"{blanks}return {drawn}")))
