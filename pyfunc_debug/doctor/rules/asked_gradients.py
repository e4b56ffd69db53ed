"""`tf.gradients(loss, x)` of a graph of TensorFlow 1 that gives None in silence: a py_func is the only way to x."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.rules.needless_python import as_graph_code
from pyfunc_debug.records import Finding, Node

NAMES = ("cut-gradient",)
_ASKS = "gradients"
_OPS = ("tensorflow", "numpy")


class _UnknownError(Exception):
    """A name that is set twice, or a function of the user's."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that asks."""
    if facts.notices["failure"]:
        return  # it may never have come to that line
    noticed = [one for _, _, one in facts.notices["cut-gradient"] if "line" in one]  # has a finding by what was seen
    told = {(str(one["file"]), int(one["line"])) for one in noticed}
    for node in facts.nodes.values():
        graph = facts.functions.get(node.function or 0)
        if node.origin != "user" or node.kind == "py_function" or graph is None or graph.kind != "graph":
            continue
        made = pastes.call_of(facts, node)
        for asked, names in _asked(facts, *made) if made is not None else ():
            if made is not None and (made[0], asked.lineno) not in told:
                told.add((made[0], asked.lineno))
                yield _finding(facts, node, made[0], asked, names)


def _finding(facts: Facts, node: Node, file: str, asked: ast.Call, names: list[str]) -> Finding:
    name, loss, several = facts.name(node), pastes.text_of(facts, file, asked.args[0]), len(names) > 1
    return Finding(
        "cut-gradient", "warning", node.id, (),
        f"`{pastes.text_of(facts, file, asked)}` gives None for {' and '.join(names)}: the only way from "
        f"{'them' if several else 'it'} to {loss} goes through {name}, and a {node.kind.removesuffix('_stateless')} "
        "has no gradient",
        as_graph_code(facts, node)
        or f"write {name} with TensorFlow's ops, or register a gradient for it: tf.RegisterGradient, and "
        'gradient_override_map({"PyFunc": ...}) around its line',
        file, asked.lineno, confidence="likely",
    )  # fmt: skip


def _asked(facts: Facts, file: str, call: ast.Call) -> Iterator[tuple[ast.Call, list[str]]]:
    """Questions for gradients in the block of a node's call, behind it, and what they ask for that it cuts."""
    own = pastes.source(facts, file)
    statement = own.statement(call.lineno)
    block = own.block(statement) if statement is not None else None
    if "gradient_override_map" in "\n".join(own.code):
        return  # the op may have a gradient
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if block is None or statement is None or not isinstance(target, ast.Name):
        return
    known = {name for name, module in imports(own).items() if module.startswith(_OPS)}
    values: dict[str, list[ast.expr]] = {}
    scope = next((one for one in own.around(statement) if isinstance(one, ast.FunctionDef)), None)
    for one in own_nodes(scope or own.tree):
        if isinstance(one, ast.Assign):
            for each in one.targets:
                for part in ast.walk(each):
                    if isinstance(part, ast.Name):
                        values.setdefault(part.id, []).append(one.value)
        elif isinstance(one, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.For)):
            for part in ast.walk(one.target):
                if isinstance(part, ast.Name):  # set in another way: as if it were set twice
                    values.setdefault(part.id, []).extend([ast.Constant(None), ast.Constant(None)])
    for later in block[block.index(statement) + 1 :]:
        for asked in [] if hasattr(later, "body") else pastes.walk(later, ast.Call):
            if pastes.last_name(asked.func) != _ASKS or dotted(asked.func).partition(".")[0] not in known:
                continue
            if len(asked.args) < 2:
                continue
            wanted = asked.args[1].elts if isinstance(asked.args[1], (ast.List, ast.Tuple)) else [asked.args[1]]
            try:
                around = _reached(asked.args[0], values, known, call)
                before = set[str]().union(*(_reached(one, values, known, None) for one in call.args[1:2]))
            except _UnknownError:
                continue
            cut = [one.id for one in wanted if isinstance(one, ast.Name) and one.id in before - around]
            if target.id in around and cut and len(cut) == len(wanted):
                yield asked, cut


def _reached(
    node: ast.expr, values: Mapping[str, list[ast.expr]], known: set[str], without: ast.Call | None
) -> set[str]:
    """The names that an expression is made of, without what a call is made of."""
    found: set[str] = set()
    parts: list[ast.AST] = [node]
    while parts:
        part = parts.pop()
        if without is not None and getattr(part, "lineno", 0) == without.lineno and ast.dump(part) == ast.dump(without):
            continue
        if isinstance(part, ast.Call):
            owner = dotted(part.func).partition(".")[0]
            if isinstance(part.func, ast.Name) or (owner and owner not in known and owner not in values):
                raise _UnknownError
        if isinstance(part, ast.Name) and part.id not in found and part.id not in known:
            found.add(part.id)
            given = values.get(part.id, [])
            if len(given) > 1:
                raise _UnknownError
            parts += given
        parts += ast.iter_child_nodes(part)
    return found
