"""What a generator takes its items from, and uses up: a queue, an iterator, a file that is open, made outside of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.records import Node

_GETS, _POPS = ("get", "get_nowait"), ("popleft", "pop", "popitem")
_RESTARTED = frozenset(("seek", "put", "put_nowait", "append", "appendleft", "extend", "rewind", "reset", "clear"))
"""What begins it again, or fills it."""
_FILES = frozenset(("open", "reader", "DictReader", "GzipFile", "BZ2File"))
_ITERATORS = frozenset(("iter", "map", "filter", "zip", "enumerate", "reversed", "chain", "islice", "from_iterable"))
_ENDLESS = frozenset(("cycle", "count", "repeat"))
"""Of what these make nothing is missed."""


@dataclass(frozen=True)
class Source:
    """What a generator takes items from.

    Attributes:
      name: As it is written: "q", "self.rows".
      line: Where an item is taken.
      side_by_side: Whether several threads may take from it at once; a generator of Python's may not be asked so.
    """

    name: str
    line: int
    side_by_side: bool


def source_of(facts: Facts, node: Node) -> Source | None:
    """What all runs of a generator take from; None where each has its own, begins it again, or fills it."""
    function, tree = facts.function(node), facts.tree(node.file)
    if function is None or tree is None:
        return None
    local = code.local_names(function) - {"self"}
    for found in _taken(function, tree):
        made = {pastes.last_name(one.func) for one in pastes.assigned(tree, found.name) if isinstance(one, ast.Call)}
        if found.name.partition(".")[0] not in local and not _begun(function, found.name) and not made & _ENDLESS:
            return found
    return None


def passes(facts: Facts, node: Node) -> list[tuple[int, int, int]]:
    """First call, last call and number of items of each run, in order; nothing where not all calls are known."""
    if facts.counted_only([node.id]):
        return []
    rows = facts.reader.rows(
        "SELECT min(c.id), max(c.id), "
        "sum(EXISTS (SELECT 1 FROM value o WHERE o.call = c.id AND o.role = 'output')) "
        "FROM call c JOIN value v ON v.call = c.id AND v.role = 'input' AND v.position = 0 "
        "WHERE c.node = ? AND c.kind = 'forward' GROUP BY v.min ORDER BY 1",
        (node.id,),
    )
    return [(first, last, items) for first, last, items in rows]


def _taken(function: Definition, tree: ast.Module) -> Iterator[Source]:
    """Where a generator takes an item from something that it has by a name."""
    for one in code.own_nodes(function):
        if isinstance(one, ast.Call):
            name = dotted(one.func)
            holder, _, last = name.rpartition(".")
            if holder and _takes(one, holder, last, tree):
                yield Source(holder, one.lineno, True)
            elif name == "next" and one.args and dotted(one.args[0]):
                yield Source(dotted(one.args[0]), one.lineno, _is_safe(tree, dotted(one.args[0])))
            elif name == "iter" and len(one.args) == 2 and dotted(one.args[0]).endswith(_GETS):  # `iter(q.get, None)`
                yield Source(dotted(one.args[0]).rpartition(".")[0], one.lineno, True)
        looped = one.iter if isinstance(one, ast.For) else one.value if isinstance(one, ast.YieldFrom) else None
        if isinstance(function, ast.Lambda) and one is function.body:  # `lambda: rows`
            looped = function.body
        text = dotted(looped)
        if looped is not None and text and (is_iterator(tree, text) or _is_file(tree, text)):
            yield Source(text, looped.lineno, _is_safe(tree, text))


def _takes(call: ast.Call, holder: str, last: str, tree: ast.Module) -> bool:
    """Whether a method takes an item out: a dict's `get` has a key, and leaves what it finds."""
    if last in _GETS:
        given = pastes.assigned(tree, holder)
        made = [pastes.last_name(one.func) for one in given if isinstance(one, ast.Call)]
        return all(isinstance(one, ast.Constant) for one in call.args) and any(one.endswith("Queue") for one in made)
    if last not in _POPS or call.args[1:]:
        return False
    given = pastes.assigned(tree, holder)
    return any(isinstance(one, (ast.List, ast.ListComp, ast.Call)) for one in given)


def is_iterator(tree: ast.Module, name: str) -> bool:
    """Whether a name is given an iterator, which one pass uses up, wherever it is given something."""
    given = pastes.assigned(tree, name)
    generators = {
        one.name for one in pastes.walk(tree, ast.FunctionDef)
        if any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in code.own_nodes(one))
    }  # fmt: skip
    return bool(given) and all(
        isinstance(one, ast.GeneratorExp)
        or (isinstance(one, ast.Call) and pastes.last_name(one.func) in _ITERATORS | generators)
        for one in given
    )


def _is_safe(tree: ast.Module, name: str) -> bool:
    """Whether threads may ask for its next item at once: not a generator's, or what calls one."""
    made = [pastes.last_name(one.func) for one in pastes.assigned(tree, name) if isinstance(one, ast.Call)]
    return _is_file(tree, name) or (bool(made) and set(made) == {"iter"})


def _is_file(tree: ast.Module, name: str) -> bool:
    given = pastes.assigned(tree, name)
    given += [
        item.context_expr for one in pastes.walk(tree, ast.With) for item in one.items
        if item.optional_vars is not None and dotted(item.optional_vars) == name
    ]  # fmt: skip
    return bool(given) and all(isinstance(one, ast.Call) and pastes.last_name(one.func) in _FILES for one in given)


def _begun(function: Definition, name: str) -> bool:
    """Whether a generator gives the name something new, begins it again, or fills it."""
    for one in code.own_nodes(function):
        if isinstance(one, ast.Call):
            holder, _, last = dotted(one.func).rpartition(".")
            if last == "start" or (holder == name and last in _RESTARTED):
                return True
        elif isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Store) and dotted(one) == name:
            return True
    return False
