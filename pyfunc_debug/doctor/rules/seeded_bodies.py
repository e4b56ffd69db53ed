"""Bodies, and generators, that seed their random numbers each time with one number: all calls draw the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.records import Finding

NAMES = ("same-draws",)
_SEEDS = {"np.random.seed", "numpy.random.seed", "random.seed"}
_MADE = {"default_rng", "RandomState", "Random"}


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line."""
    for group in facts.lines:
        node, calls = group[0], facts.calls_of(group)
        function = facts.function(node)
        found = _seeding(function, facts.tree(node.file)) if function is not None and calls.count > 1 else None
        if found is None or function is None:
            continue
        statement, seed = found
        yield Finding(
            NAMES[0], "warning", node.id, (),
            f"line {statement.lineno} of {node.body} seeds its random numbers with {seed} in each call: all "
            f"{calls.count:,} calls drew the same numbers",
            _once(facts, node.file, function, statement) or "seed once, outside of the body", node.file,
            statement.lineno, several(one.id for one in group),
            (f"line {statement.lineno}: {facts.line(node.file, statement.lineno)}",),
        )  # fmt: skip
    yield from _of_batches(facts)


def _of_batches(facts: Facts) -> Iterator[Finding]:
    """One finding a generator, or `__getitem__`, that makes batches."""
    told: set[tuple[str | None, int]] = set()
    for node, _ in facts.generators.values():
        function, count = facts.function(node), facts.calls(node.id).count
        loop = _turns(function) if isinstance(function, ast.FunctionDef) else None
        found = _seeding(function, facts.tree(node.file), loop) if loop and function is not None and count > 2 else None
        if found is None or function is None or (node.file, found[0].lineno) in told:
            continue
        statement, seed = found
        told.add((node.file, statement.lineno))
        when = "in each call" if function.body is loop else "in each turn of its loop"
        yield Finding(
            NAMES[0], "warning", node.id, (),
            f"line {statement.lineno} of {node.body} seeds its random numbers with {seed} {when}: all that it gave was "
            "made with the same draws",
            _once(facts, node.file, function, statement) or f"seed once, outside of {facts.name(node)}", node.file,
            statement.lineno, evidence=(f"line {statement.lineno}: {facts.line(node.file, statement.lineno)}",),
        )  # fmt: skip


def _turns(function: ast.FunctionDef) -> list[ast.stmt] | None:
    """The statements that run for each batch: those of a `__getitem__`, or of the loop around the only yield."""
    if function.name == "__getitem__":
        return function.body
    yields = [one for one in code.own_nodes(function) if isinstance(one, ast.Yield)]
    loops = [
        one for one in code.own_nodes(function)
        if isinstance(one, (ast.For, ast.While)) and any(part in yields for part in ast.walk(one))
    ]  # fmt: skip
    return loops[-1].body if len(yields) == 1 and loops else None


def _seeding(
    function: Definition, tree: ast.Module | None, block: list[ast.stmt] | None = None
) -> tuple[ast.stmt, str] | None:
    """The statement at a body's top level that seeds with a number, where the body draws after it; and the number."""
    if isinstance(function, ast.Lambda):
        return None
    body = function.body if block is None else block
    for place, statement in enumerate(body):
        call = getattr(statement, "value", None)
        if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
            continue
        seed, name = call.args[0], ast.unparse(call.func)
        if not (isinstance(seed, ast.Constant) and type(seed.value) is int) and not _stays(function, tree, seed):
            continue
        rest = [part for later in body[place + 1 :] for part in ast.walk(later)]
        if isinstance(statement, ast.Expr) and name in _SEEDS:
            heads = {name.rpartition(".")[0]}
        elif isinstance(statement, ast.Assign) and name.rpartition(".")[2] in _MADE:
            heads = {one.id for one in statement.targets if isinstance(one, ast.Name)}
        else:
            continue
        if any(isinstance(one, ast.Attribute) and ast.unparse(one.value) in heads for one in rest):
            return statement, ast.unparse(seed)
    return None


def _stays(function: Definition, tree: ast.Module | None, seed: ast.expr) -> bool:
    """Whether a seed has a name that is assigned once, outside of the body: `SEED`, `self.seed`."""
    text = ast.unparse(seed)
    of_self = isinstance(seed, ast.Attribute) and ast.unparse(seed.value) == "self"
    if not of_self and (not isinstance(seed, ast.Name) or seed.id in code.local_names(function)):
        return False
    stores = [
        one for one in pastes.walk(tree, ast.expr)
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Store) and ast.unparse(one) == text
    ]  # fmt: skip
    inside = {id(one) for one in ast.walk(function)}
    return len(stores) == 1 and id(stores[0]) not in inside and len(pastes.assigned(tree, text)) == 1


def _once(facts: Facts, file: str | None, function: Definition, statement: ast.stmt) -> str:
    """The statement above the body, where it runs once."""
    found = pastes.lines_of(facts, file, statement.lineno)
    own: ast.AST = function
    if found is None or file is None or len(found[1]) != 1:
        return ""
    text = found[1][0].strip()
    if code.parameters(function)[:1] == ["self"]:
        holders = pastes.around(facts.tree(file), function.lineno, ast.ClassDef)
        if "self." in text or not holders or holders[0].col_offset:
            return ""
        own = holders[0]
    else:
        given, read = code.parameters(function), {one.id for one in pastes.walk(ast.parse(text), ast.Name)}
        yields = any(isinstance(one, ast.Yield) for one in code.own_nodes(function))
        if not (given or yields) or not read.isdisjoint(given):
            return ""
    return pastes.written(
        Edit(file, statement.lineno, statement.lineno, (f"{found[0]}# {text}: once, above",)),
        pastes.above(facts, file, pastes.first_line(own), text),
    )
