"""Numbers that parallel calls give out by the size of what they share: `vocab[word] = len(vocab)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.analysis.inputs import settings
from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.datasets import pipelines
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.rules.shared_state import LOCKS, locked, overlap
from pyfunc_debug.records import Finding, Node

NAMES = ("shared-state",)


@dataclass(frozen=True)
class _Numbered:
    """A container whose size numbers what comes into it: its text, the line that does so, and whose default it is."""

    name: str
    line: int
    text: str
    default_of: str = ""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body."""
    bodies: dict[tuple[str, str | None, int | None], list[Node]] = {}
    for group in facts.lines:
        for node in group:
            bodies.setdefault((node.body, node.file, node.line), []).append(node)
    for nodes in bodies.values():
        node, function = nodes[0], facts.function(nodes[0])
        found = _found(facts, node.file, function) if function is not None else None
        if found is None or locked(facts, node):
            continue
        pair = overlap(facts, [one.id for one in nodes])
        known = settings(facts.meta, nodes) if pair is None else {}
        if pair is None and not (
            any(one.parallel != 1 for one in known.values()) and facts.calls_of(nodes).count > 1
        ):  # fmt: skip
            continue
        how = f"calls #{pair[0]} and #{pair[1]} ran at once" if pair else "in a map with parallel calls"
        made = f", as the default of {found.default_of} is made once" if found.default_of else ""
        built = f"fill {found.name} from all data before the map, in an order of your own"
        in_turn = pastes.written(pipelines.with_calls(facts, node, 1))
        yield Finding(
            NAMES[0], "warning", node.id, pair or (),
            f"{node.body} numbers what is new by the size of {found.name}, which its calls share{made} ({how}): two at "
            "a time can give one number twice, and which number something gets depends on which call comes first, "
            "which may change from run to run",
            in_turn or built, node.file, found.line,
            evidence=(f"line {found.line}: {found.text}", *((f"in parallel: {built}",) if in_turn else ())),
            confidence="likely",
        )  # fmt: skip


def _found(facts: Facts, file: str | None, function: Definition) -> _Numbered | None:
    """Such a container of a body's, or of a function of its file that it calls."""
    local = code.local_names(function) - code.made_once(function)
    own = code.parameters(function)[:1] if isinstance(function, ast.FunctionDef) else []
    held = [one for one in own if one == "self"]
    found = _numbers(facts, file, function, {one for one in local if one not in held})
    if found is not None:
        return found
    every = list(pastes.walk(facts.tree(file), ast.FunctionDef))
    for one in own_nodes(function):
        owner = code.root(one.func) if isinstance(one, ast.Call) else None
        if not isinstance(one, ast.Call) or owner is None or (owner in local and owner not in held):
            continue
        method = isinstance(one.func, ast.Attribute)
        callees = [each for each in every if each.name == dotted(one.func).rpartition(".")[2] and each is not function]
        if len(callees) != 1 or method != (code.parameters(callees[0])[:1] == ["self"]):
            continue
        names = code.local_names(callees[0]) - ({"self"} if method else set()) - _left_out(one, callees[0])
        found = _numbers(facts, file, callees[0], names)
        if found is not None:
            return found
    return None


def _left_out(call: ast.Call, called: ast.FunctionDef) -> set[str]:
    """Containers that a call leaves to the defaults of what it calls."""
    if any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords):
        return set()
    own = code.parameters(called)
    place = own[:1] == ["self"] and isinstance(call.func, ast.Attribute)
    given = {*own[: len(call.args) + place], *(one.arg for one in call.keywords)}
    return code.made_once(called) - given


def _numbers(facts: Facts, file: str | None, function: Definition, local: set[str]) -> _Numbered | None:
    """What a function numbers by its size, and gives the number of; containers that are its own are left out."""
    inside = own_nodes(function)
    if any(isinstance(one, ast.With) and LOCKS.search(ast.unparse(one.items[0].context_expr)) for one in inside):
        return None
    for one in inside:
        container, number, key = _numbering(one)
        if container is None or number is None or code.root(container) in local:
            continue
        name = ast.unparse(container)
        sized = [
            part for part in ast.walk(number)
            if isinstance(part, ast.Call) and dotted(part.func) == "len" and len(part.args) == 1
            and ast.unparse(part.args[0]) == name
        ]  # fmt: skip
        if sized and (key is None or ast.unparse(key) != ast.unparse(number)) and _gives(inside, one, name):
            default_of = getattr(function, "name", "the lambda") if name in code.made_once(function) else ""
            return _Numbered(name, one.lineno, facts.line(file, one.lineno), default_of)  # type: ignore[attr-defined]
    return None


def _numbering(node: ast.AST) -> tuple[ast.expr | None, ast.expr | None, ast.expr | None]:
    """`vocab[word] = len(vocab)` or `vocab.setdefault(word, len(vocab))`: the container, the number and the key."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
        return node.targets[0].value, node.value, node.targets[0].slice
    call = node if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    if call is not None and call.func.attr == "setdefault" and len(call.args) == 2:  # type: ignore[attr-defined]
        return call.func.value, call.args[1], call.args[0]  # type: ignore[attr-defined]
    return None, None, None


def _gives(inside: list[ast.AST], write: ast.AST, name: str) -> bool:
    """Whether a function reads numbers of the container, too: `vocab[word]`, `vocab.get(word)`, `.setdefault(...)`."""
    for one in inside:
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Load) and ast.unparse(one.value) == name:
            return True
        if isinstance(one, ast.Call) and dotted(one.func) == f"{name}.get":
            return True
        if one is write and isinstance(one, ast.Call):
            return not any(isinstance(each, ast.Expr) and each.value is one for each in inside)
    return False
