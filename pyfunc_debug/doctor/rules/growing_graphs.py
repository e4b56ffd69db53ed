"""`session.run(iterator.get_next())` in a loop: each turn makes new ops, and the graph, which is kept, grows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short
from pyfunc_debug.doctor.graphs import growing
from pyfunc_debug.doctor.graphs.hoist import hoisted
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Finding

NAMES = ("growing-graph",)
_MODULES = ("tensorflow", "keras", "tf_keras")
_OF_TENSORS = {"get_next", "get_shape", "read_value"}
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_RUNS = ("run", "eval")
_MANY = 100
_ROOM = 40


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that runs a graph which has grown."""
    last: dict[tuple[str, int], dict[str, Any]] = {}
    for _, _, noticed in facts.notices.get(Notice.GROWN_GRAPH, []):
        last[noticed["file"], noticed["line"]] = noticed
    told: set[tuple[str, int]] = set()
    for (file, line), noticed in last.items():
        made = [(one[0], one[1]) for one in noticed["made"]] or [(file, line)]
        here = any(map(_is_run, pastes.around(facts.tree(file), line, ast.Call)))  # no run of Keras' own
        if here and made[0] not in told:
            told.add(made[0])
            yield _finding(facts, file, line, noticed, made)


def _finding(facts: Facts, file: str, line: int, noticed: dict[str, Any], made: list[tuple[str, int]]) -> Finding:
    own, times, ops = pastes.source(facts, file), noticed["times"], noticed["ops"]
    what = _maker(facts, own, file, line, made)
    each = max(1, round(noticed["together"] / times))
    many = f"{each:,} op{'s' * (each > 1)}"
    text = f"`{short(own.text(what), _ROOM)}`" if what is not None else f"what line {made[0][1]} calls"
    loop = next((one for one in own.around(what) if isinstance(one, _LOOPS)), None) if what is not None else None
    where = f"in each turn of the loop in line {loop.lineno}" if loop is not None else "each time before it is run"
    message = (
        f"{text} adds {many} to the graph {where}. Ops stay in the graph: it had {ops:,} after {times:,} such runs, "
        "and each that finds it changed is slower than the one before"
    )
    fix = _once(facts, own, file, what) if what is not None and loop is not None else ""
    if not fix:
        lines = sorted(one[1] for one in made if one[0] == made[0][0])
        named = f"line{'s' * (len(lines) > 1)} {' and '.join(map(str, lines[:3]))}"
        fix = (
            f"make the ops of {named} once, above the loop, and let session.run only fetch them: what changes from "
            "turn to turn goes in by a placeholder and feed_dict"
        )
    place = made[0] if what is None or made[0][0] != file else (file, what.lineno)
    evidence = [f"line {line} runs it: {facts.line(file, line)}"] if place != (file, line) else []
    return Finding(
        NAMES[0], "warning" if times >= _MANY else "note", None, (), message, fix, *place,
        evidence=(*evidence, *growing.memory(facts)),
    )  # fmt: skip


def _maker(facts: Facts, own: Source, file: str, line: int, made: list[tuple[str, int]]) -> ast.expr | None:
    """The expression that makes the new ops, where one statement does."""
    statements = {id(one): one for at in made if at[0] == file and (one := own.statement(at[1])) is not None}
    if len(statements) != 1 or any(one[0] != file for one in made):
        return None
    statement = next(iter(statements.values()))
    for call in pastes.around(facts.tree(file), line, ast.Call):
        fetched = _fetched(call)
        if fetched is not None and own.statement(call.lineno) is statement:
            return fetched
    return statement.value if isinstance(statement, ast.Assign) and not _runs(statement) else None


def _runs(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Call) and _is_run(one) for one in ast.walk(node))


def _is_run(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _RUNS


def _fetched(call: ast.Call) -> ast.expr | None:
    """What a call of `session.run`, or `.eval()`, asks for that is made in the call itself."""
    if not isinstance(call.func, ast.Attribute) or not _is_run(call):
        return None
    given = call.func.value if call.func.attr == "eval" else pastes.argument(call, 0, "fetches")
    if isinstance(given, (ast.List, ast.Tuple)):
        calls = [one for one in given.elts if isinstance(one, (ast.Call, ast.BinOp))]
        return calls[0] if len(calls) == 1 else given if calls else None
    return given if isinstance(given, (ast.Call, ast.BinOp)) else None


def _once(facts: Facts, own: Source, file: str, what: ast.expr) -> str:
    """The lines that make it once, above the loop; "" where it may be another in each turn."""
    loops: list[ast.AST] = []
    for one in own.around(what):
        if isinstance(one, (ast.With, ast.AsyncWith, ast.FunctionDef)):
            break  # ops are made in the graph, on the device or behind the ops that it names
        if isinstance(one, _LOOPS):
            loops.append(one)
    known = imports(own)
    if not loops or not _makes_ops(facts, own, file, what, known):
        return ""
    read = {one.id for one in ast.walk(what) if isinstance(one, ast.Name)} - set(known)
    if any(read & _changed(loop, what) for loop in loops):
        return ""
    name = "next_element" if pastes.last_name(getattr(what, "func", what)) == "get_next" else "fetches"
    return hoisted(facts, file, what, name)


def _makes_ops(facts: Facts, own: Source, file: str, what: ast.expr, known: dict[str, str]) -> bool:
    """Whether an expression does nothing but make ops, of what has the same value in each turn."""
    tree = facts.tree(file)
    for one in ast.walk(what):
        if isinstance(one, (ast.Lambda, ast.NamedExpr, ast.Await, ast.Yield, ast.ListComp, ast.GeneratorExp)):
            return False
        if not isinstance(one, ast.Call):
            continue
        last, head = pastes.last_name(one.func), dotted(one.func).partition(".")[0]
        if last.startswith("make_") or last.endswith("Variable") or last in _RUNS:
            return False  # another iterator or variable in each turn
        if known.get(head, "").partition(".")[0] in _MODULES or last in _OF_TENSORS:
            continue
        made = own.given_to(dotted(one.func))
        heads = [dotted(each.func).partition(".")[0] if isinstance(each, ast.Call) else "" for each in made]
        if made and all(known.get(each, "").partition(".")[0] in _MODULES for each in heads):
            continue  # a layer
        helper = [part for part in pastes.walk(tree, ast.FunctionDef) if part.name == dotted(one.func)]
        if len(helper) != 1 or tree is None or code.outside(helper[0], tree) or code.is_random(helper[0], tree):
            return False
    return True


def _changed(loop: ast.AST, but: ast.AST) -> set[str]:
    """Names of what a loop changes in place, besides what is moved: it is another value in each turn."""
    inside = {id(one) for one in ast.walk(but)}
    found: set[str] = set()
    for one in ast.walk(loop):
        if id(one) in inside:
            continue
        root: str | None = None
        if isinstance(one, (ast.Subscript, ast.Attribute)) and isinstance(one.ctx, ast.Store):
            root = code.root(one)
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute):
            root = code.root(one.func.value)
        elif isinstance(one, ast.AugAssign):
            root = code.root(one.target)
        if root is not None:
            found.add(root)
    return found
