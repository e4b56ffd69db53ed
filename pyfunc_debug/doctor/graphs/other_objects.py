"""A tf.function that gets another object with each call, and needs a graph for each: the line that makes them."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, indent_of
from pyfunc_debug.doctor.graphs.hoist import hoisted
from pyfunc_debug.records import Function, GraphTrace

_ANOTHER = re.compile(r"`(\w+)[^`]*`: another (\w+)")


def made_once(facts: Facts, function: Function, traces: list[GraphTrace]) -> str:
    """The lines that make one object above the loop; words with the line that makes them, or "" if it is not known.

    A random generator is set to the seed that the next one would have had. What other objects hold may have to be new.
    """
    found = {match[1] for trace in traces for one in trace.reason if (match := _ANOTHER.match(one)) is not None}
    kinds = {match[2] for trace in traces for one in trace.reason if (match := _ANOTHER.match(one)) is not None}
    same = all(_ANOTHER.match(one) for trace in traces for one in trace.reason)
    own, sites = facts.definition(function.file, function.line), pastes.run_sites(facts, function.id)
    if len(found) != 1 or not same or own is None or len(sites) != 1:
        return ""
    name, (file, line) = found.pop(), sites[0]
    source, call = pastes.source(facts, file), pastes.call_at(facts, file, line, function.name.rpartition(".")[2])
    places = [one.arg for one in (*own.args.posonlyargs, *own.args.args) if one.arg != "self"]
    value = pastes.argument(call, places.index(name), name) if call is not None and name in places else None
    loop = None if call is None else _loop(source, call)
    statement = _made(source, loop, value) if loop is not None else None
    if loop is None or statement is None or not isinstance(statement.value, ast.Call):
        return ""
    maker = ast.unparse(statement.value.func)
    if maker.endswith("Generator.from_seed"):
        return _seeded(facts, file, loop, statement, statement.value)
    once = hoisted(facts, file, statement.value, name) if maker.endswith("from_non_deterministic_state") else ""
    kind = next(iter(kinds - {"object"}), "object")
    return once or (
        f"{facts.source_line(file, statement.lineno)} makes another {kind} in each round: make one above the loop in "
        f"line {loop.lineno}, and pass it as `{name}` each time"
    )


def _loop(source: Source, call: ast.Call) -> ast.For | ast.While | None:
    """The outermost loop around a call in its function."""
    found = None
    for one in source.around(call):
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            break
        found = one if isinstance(one, (ast.For, ast.While)) else found
    return found


def _made(source: Source, loop: ast.For | ast.While, value: ast.expr | None) -> ast.Assign | None:
    """The one statement of a loop that makes what is passed under a name."""
    if not isinstance(value, ast.Name):
        return None
    stored = [
        one for one in ast.walk(loop)
        if isinstance(one, ast.Name) and one.id == value.id and isinstance(one.ctx, ast.Store)
    ]  # fmt: skip
    statement = source.parent(stored[0]) if len(stored) == 1 else None
    return statement if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None


def _seeded(facts: Facts, file: str, loop: ast.stmt, statement: ast.Assign, made: ast.Call) -> str:
    seed = pastes.argument(made, 0, "seed")
    others = [*made.args[1:], *(one for one in made.keywords if one.arg != "seed")]
    rest = [ast.unparse(one) for one in others]
    lines = pastes.lines_of(facts, file, statement.lineno)
    bound = {one.id for one in ast.walk(loop) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    read = {part.id for one in others for part in ast.walk(one) if isinstance(part, ast.Name)}
    if seed is None or lines is None or bound & read or _is_kept(loop, ast.unparse(statement.targets[0])):
        return ""
    name, text = ast.unparse(statement.targets[0]), pastes.source(facts, file).text
    head = text(made.func)
    above = pastes.above(facts, file, loop.lineno, f"{name} = {head}({', '.join(['0', *rest])})")
    last = statement.end_lineno or statement.lineno
    indent = indent_of(lines[1][0])
    again = Edit(file, statement.lineno, last, (f"{indent}{name}.reset_from_seed({text(seed)})",))
    return pastes.written(above, again)


def _is_kept(loop: ast.stmt, name: str) -> bool:
    """Whether a loop keeps what is under a name for later rounds, when it will be another one's."""
    kept: list[ast.AST] = []
    for one in ast.walk(loop):
        if isinstance(one, ast.Assign):
            kept.append(one.value)
        elif isinstance(one, ast.Call) and ast.unparse(one.func).endswith((".append", ".add", ".extend")):
            kept += one.args
        elif isinstance(one, (ast.Yield, ast.Return)) and one.value is not None:
            kept.append(one.value)
    parts = [part for one in kept for part in ([one, *one.elts] if isinstance(one, (ast.Tuple, ast.List)) else [one])]
    return any(isinstance(part, ast.Name) and part.id == name for part in parts)


__all__ = ["made_once"]
