"""Generators that read one iterator from outside: the first pass uses it up, and later ones have nothing."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, names
from pyfunc_debug.doctor.generators.shared_sources import is_iterator, passes, source_of
from pyfunc_debug.records import Finding, Node


@dataclass(frozen=True)
class Used:
    """A generator whose source is used up.

    Attributes:
      nodes: Those of its datasets, in the order in which they gave something.
      finding: What is said of it.
    """

    nodes: tuple[Node, ...]
    finding: Finding


def used(facts: Facts) -> Iterator[Used]:
    """One finding a generator of whose passes later ones got nothing, after the last that got something."""
    groups: dict[tuple[str | None, int | None], list[Node]] = {}
    for node, _ in facts.generators.values():
        groups.setdefault((node.file, node.line), []).append(node)
    for nodes in groups.values():
        runs = sorted((first, last, items, node.id) for node in nodes for first, last, items in passes(facts, node))
        empty = [one for one in runs if not one[2]]
        full = [one for one in runs if one[2]]
        if not empty or not full or min(empty)[0] < max(last for _, last, _, _ in full) or _failed(facts, nodes):
            continue
        order = {number: at for at, (*_, number) in reversed([*enumerate(runs)])}
        ordered = tuple(sorted((one for one in nodes if one.id in order), key=lambda one: order[one.id]))
        finding = _finding(facts, ordered, {one.id: _first(full, one.id) for one in ordered}, len(empty), len(runs))
        if finding is not None:
            yield Used(ordered, finding)


def _first(full: list[tuple[int, int, int, int]], node: int) -> int:
    """How many items the first pass of a node gave that gave some."""
    return next((items for _, _, items, number in full if number == node), 0)


def _failed(facts: Facts, nodes: list[Node]) -> bool:
    marks = ", ".join("?" * len(nodes))
    return bool(
        facts.reader.rows(
            f"SELECT 1 FROM call WHERE node IN ({marks}) AND (status != 'ok' OR end_ns IS NULL) LIMIT 1",
            [one.id for one in nodes],
        )
    )


def _finding(facts: Facts, nodes: tuple[Node, ...], first: dict[int, int], empty: int, passed: int) -> Finding | None:
    function, node = facts.function(nodes[0]), nodes[0]
    source = source_of(facts, node)
    tree = facts.tree(node.file)
    if source is None or tree is None or not isinstance(function, ast.FunctionDef) or node.file is None:
        return None
    if not is_iterator(tree, source.name):
        return None
    made = pastes.assigned(tree, source.name)
    own = pastes.source(facts, node.file)
    edits = _renewed(facts, node.file, own, function, source.name, made[0]) if len(made) == 1 else None
    gave = [f"{first[one.id]:,}" for one in nodes if first[one.id]]
    rest = _rest(facts, nodes, first) if edits is not None else None
    many = "" if len(nodes) < 2 or rest is not None else (
        f". Each of its {len(nodes)} datasets begins with the first item then: `.skip` leaves out what another has"
    )  # fmt: skip
    skipped = ". Each pass begins with the first item then, and skip leaves out what take has" if rest else ""
    later = "a later pass" if empty == 1 else f"{empty:,} later passes"
    return Finding(
        "empty-epochs", "error", node.id, (),
        f"{function.name} takes its items from {source.name} (line {source.line}), which is made once, in line "
        f"{made[0].lineno}: passes took {' and '.join(gave[:3])} of them until it was used up, and {later} got none. "
        f"from_generator calls {function.name} for each pass, and that has to begin again{skipped}{many}",
        pastes.written(*edits, *([rest] if rest is not None else [])) if edits is not None
        else f"make {source.name} in {function.name}, so that each pass has its own",
        node.file, source.line,
        evidence=(f"{empty} of {passed} passes got no item",
                  f"line {made[0].lineno}: {facts.line(node.file, made[0].lineno)}"),
    )  # fmt: skip


def _renewed(
    facts: Facts, file: str, own: Source, function: ast.FunctionDef, name: str, made: ast.expr
) -> list[Edit | None] | None:
    """What lets a generator begin again: its loop over what the iterator is made of, or the iterator made in it."""
    if not _is_made_again(own, function, made):
        return None
    uses = [
        one for one in code.own_nodes(function)
        if isinstance(one, (ast.Name, ast.Attribute)) and dotted(one) == name and isinstance(one.ctx, ast.Load)
    ]  # fmt: skip
    plain = isinstance(made, ast.Call) and dotted(made.func) == "iter" and len(made.args) == 1
    text = own.text(made.args[0]) if plain and isinstance(made, ast.Call) else own.text(made)
    parent = own.parent(uses[0]) if len(uses) == 1 else None
    if isinstance(parent, (ast.For, ast.YieldFrom)) and not any(
        isinstance(one, (ast.For, ast.While)) for one in own.around(parent) if one in ast.walk(function)
    ):
        return [pastes.replaced(facts, file, {uses[0]: text})]
    line = pastes.beginning(function)
    return None if line is None else [pastes.above(facts, file, line, f"{name} = {own.text(made)}")]


def _is_made_again(own: Source, function: ast.FunctionDef, made: ast.expr) -> bool:
    """Whether a generator may make its iterator itself: of names that it knows, which give their items again."""
    scopes = [one for one in own.around(function) if isinstance(one, (ast.FunctionDef, ast.Lambda))]
    where = next((one for one in own.around(made) if isinstance(one, (ast.FunctionDef, ast.Lambda))), None)
    local = code.local_names(function)
    for name in names(made):
        inner = where is not None and where not in scopes and name in code.local_names(where)
        if inner or (name != "self" and name in local):
            return False
        given = pastes.assigned(own.tree, name)
        if is_iterator(own.tree, name) or any(_is_once(one) for one in given):
            return False
        known = given or hasattr(builtins, name) or _is_defined(own, name)
        if not known:
            return False
    return not any(_is_once(one) for one in pastes.walk(made, ast.expr))


def _is_once(given: ast.expr) -> bool:
    """What gives its items once: an open file, a reader of one, a generator."""
    named = pastes.last_name(given.func) if isinstance(given, ast.Call) else ""
    return named in ("open", "reader", "DictReader", "next", "as_numpy_iterator", "scandir", "iglob", "Queue")


def _is_defined(own: Source, name: str) -> bool:
    """Whether the file imports or defines a name."""
    for one in code.all_nodes(own.tree):
        if isinstance(one, (ast.Import, ast.ImportFrom)):
            if any((part.asname or part.name.partition(".")[0]) == name for part in one.names):
                return True
        elif isinstance(one, (ast.FunctionDef, ast.ClassDef)) and one.name == name:
            return True
    return name == "self"


def _rest(facts: Facts, nodes: tuple[Node, ...], first: dict[int, int]) -> Edit | None:
    """The second dataset without what the first one takes: `.skip(30)` beside `.take(30)`."""
    found = [pastes.dataset_call(facts, one) for one in nodes]
    if len(nodes) != 2 or found[0] is None or found[1] is None or not all(first.values()):
        return None
    file, call = found[0]
    own = pastes.source(facts, file)
    holder = own.parent(call)
    taken = own.parent(holder) if isinstance(holder, ast.Attribute) and holder.attr == "take" else None
    if not isinstance(taken, ast.Call) or len(taken.args) != 1 or found[1][0] != file or found[1][1] is call:
        return None
    second = found[1][1]
    return pastes.replaced(facts, file, {second: f"{own.text(second)}.skip({own.text(taken.args[0])})"})
