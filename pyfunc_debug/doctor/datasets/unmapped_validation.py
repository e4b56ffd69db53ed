"""A body scales what a model is trained on, and `validation_data=` is made of the same arrays without that map."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import given, returned
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding, Node

_DRAWS = re.compile(r"rand|shuffle|noise|augment|permut", re.IGNORECASE)
_SMALLER = 5
"""By how much a body makes numbers smaller that it scales."""
_LEAST_CALLS = 4
_PLAIN = {"from_tensor_slices", "batch", "prefetch", "cache", "shuffle", "repeat", "take", "skip"}


def check(facts: Facts, rule: str, file: str) -> Iterator[Finding]:
    """One finding a `fit` whose validation lacks the map that scales."""
    tree, own = facts.tree(file), pastes.source(facts, file)
    for call in pastes.walk(tree, ast.Call):
        named = {one.arg: one.value for one in call.keywords}
        validation, trained = named.get("validation_data"), call.args[0] if call.args else named.get("x")
        if pastes.last_name(call.func) != "fit" or not isinstance(validation, ast.Name):
            continue
        chains = [_chain(tree, one) for one in (trained, validation)]
        maps = [one for one in chains[0] if pastes.last_name(one.func) == "map" and one.args]
        names = {pastes.last_name(one.func) for one in chains[1]}
        if len(maps) != 1 or not isinstance(maps[0].args[0], ast.Name) or not names <= _PLAIN:
            continue
        if "from_tensor_slices" not in names or _arrays(chains[0]) is None or _arrays(chains[0]) != _arrays(chains[1]):
            continue
        if any(_is_changed(tree, one) for one in _arrays(chains[0]) or ()):
            continue
        scaled = _scaling(facts, file, tree, maps[0].args[0].id)
        if scaled is None:
            continue
        batch = next((one for one in chains[1] if pastes.last_name(one.func) == "batch"), None)
        before = batch.func.value if batch is not None and isinstance(batch.func, ast.Attribute) else chains[1][0]
        tail = own.text(maps[0])[len(own.text(maps[0].func)) :]
        node, high, low = scaled
        name = node.body.rpartition(".")[2]
        yield Finding(
            rule, "error", node.id, (),
            f"fit trains on numbers that {'a body' if '<' in name else name} scales, from up to {high:.3g} to up to "
            f"{low:.3g}, and {validation.id} is made of the same arrays without {own.text(maps[0].args[0])}: the model "
            "is validated on numbers of another size than it knows",
            pastes.written(pastes.replaced(facts, file, {before: f"{own.text(before)}.map{tail}"}))
            or f"{validation.id} with .map{tail} in front of its batch",
            file, chains[1][0].lineno, confidence="likely",
        )  # fmt: skip


def _chain(tree: ast.AST | None, value: ast.expr | None) -> list[ast.Call]:
    """The calls of a pipeline that one assignment makes, the last one first; none of another."""
    made = pastes.assigned(tree, value.id) if isinstance(value, ast.Name) else []
    found: list[ast.Call] = []
    node = made[0] if len(made) == 1 else None
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        found.append(node)
        node = node.func.value
    return found


def _arrays(chain: list[ast.Call]) -> frozenset[str] | None:
    """The names of the arrays that a pipeline begins with: `x[:160]` is x."""
    made = [one for one in chain if pastes.last_name(one.func) == "from_tensor_slices"]
    return frozenset(one.id for one in pastes.walk(made[0].args[0], ast.Name)) if made and made[0].args else None


def _is_changed(tree: ast.AST | None, name: str) -> bool:
    """Whether more than one line of a file gives a name, or a part of it, a value."""
    whole = [one for one in pastes.walk(tree, ast.Name) if isinstance(one.ctx, ast.Store) and one.id == name]
    parts = [
        one for one in pastes.walk(tree, ast.Subscript)
        if isinstance(one.ctx, ast.Store) and ast.unparse(one.value) == name
    ]  # fmt: skip
    return len(whole) + len(parts) > 1


def _scaling(facts: Facts, file: str, tree: ast.AST | None, name: str) -> tuple[Node, float, float] | None:
    """The node in a mapped function whose body makes its first numbers smaller, and the largest before and behind."""
    mapped = [one for one in pastes.walk(tree, ast.FunctionDef) if one.name == name]
    if len(mapped) != 1 or _DRAWS.search(ast.unparse(mapped[0])):
        return None
    first, last = mapped[0].lineno, mapped[0].end_lineno or 0
    for group in facts.lines:
        site = pastes.call_of(facts, group[0])
        function = facts.function(group[0])
        if site is None or site[0] != file or not first <= site[1].lineno <= last or function is None:
            continue
        parameters = [one for one in code.parameters(function) if one != "self"]
        if not parameters or _DRAWS.search(ast.unparse(function)):
            return None
        before, behind = given(facts, group, parameters[0]), returned(facts, group)
        if (
            len(before) < _LEAST_CALLS
            or len(before) != len(behind)
            or {one.shape for one in before} != {one.shape for one in behind}
        ):
            return None
        ends = [[max(abs(one.low or 0), abs(one.high or 0)) for one in every] for every in (before, behind)]
        high, low = max(ends[0]), max(ends[1])
        return (group[0], high, low) if low > 0 and high > _SMALLER * low else None
    return None
