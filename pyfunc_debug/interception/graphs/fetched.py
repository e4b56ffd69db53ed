"""What a run of a session needs: nodes in its graph, the queues and Datasets that it reads, and whether it trains."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyfunc_debug.interception.gradients.minimized import CHANGES, TRAINABLE, VARIABLES, ops_before
from pyfunc_debug.interception.graphs.library import PYFUNC_OPS, scan_ops
from pyfunc_debug.interception.names import private
from pyfunc_debug.interception.tokens import token_in, token_of

_FARTHEST = 20_000
"""How many ops are looked at, once for what is fetched."""
_GLOBAL = "variables"
_MAKES = ("MakeIterator", "InitializeIterator")
_BRANCHES = frozenset({"Case", "If", "StatelessCase", "StatelessIf", "StatelessWhile", "While"})
"""What their functions hold may not run."""
_SWITCHES = frozenset({"RefSwitch", "Switch"})
_DEEPEST = 3
"""Queues behind queues: names of files, images, batches."""


@dataclass
class Fetched:
    """What is run for some fetches.

    Attributes:
      trains: Whether an op moves a trainable variable.
      changes: Whether an op moves a variable that is saved, one that counts steps included.
      variables: Whether a trainable variable is read.
      elements: Whether a fetched number has an axis: something for each element.
      nodes: Tokens of nodes in the graph of the step, each with whether a variable comes in.
      sources: Of each queue or Dataset that is read: tokens of each way into it, and the types of its ops.
    """

    trains: bool = False
    changes: bool = False
    variables: bool = False
    elements: bool = False
    nodes: dict[str, bool] = field(default_factory=dict)
    sources: list[tuple[list[list[str]], list[str]]] = field(default_factory=list)


def fetched(graph: Any, names: Iterable[str], fed: Collection[str]) -> Fetched:
    """Looks at what a run needs.

    Args:
      graph: The session's.
      names: Of the tensors and ops that are fetched.
      fed: Names of the tensors that are fed: what would make these does not run.
    """
    found = Fetched()
    things = [graph.as_graph_element(name, allow_tensor=True, allow_operation=True) for name in names]
    found.elements = any(_is_of_elements(one) for one in things)
    trained, kept = (
        {getattr(one, "op", one).name for one in graph.get_collection(name)} for name in (TRAINABLE, _GLOBAL)
    )
    for op in _needed([getattr(one, "op", one) for one in things if getattr(one, "name", "") not in fed], fed):
        changes = any(one in op.type for one in CHANGES)
        moved = {op.inputs[0].op.name} if changes and len(op.inputs) else set[str]()
        nested = _functions(graph, op)
        if nested and any(one in kind for kind in _types(graph, nested) for one in CHANGES):
            found.trains = found.changes = True  # which variables they change is not looked for
        found.trains = found.trains or bool(moved & trained)
        found.changes = found.changes or bool(moved & kept)
        found.variables = found.variables or op.name in trained
        if op.type in PYFUNC_OPS:
            before = {one.type for one in _needed([op], fed)}
            if before.isdisjoint(_SWITCHES):
                found.nodes[token_of(op)] = not before.isdisjoint(VARIABLES)
        elif op.type in ("PartitionedCall", "StatefulPartitionedCall"):
            for token in _tokens(graph, nested):
                found.nodes[token] = True
        elif _reads(op) and _is_sure(op, fed):
            parts, kinds = _source(graph, op, fed, 0)
            if any(parts):
                found.sources.append(([sorted(one) for one in parts], sorted(kinds)))
    return found


def _is_of_elements(thing: Any) -> bool:
    """Whether this is a tensor of numbers with one axis or more."""
    dtype = getattr(thing, "dtype", None)
    numbers = dtype is not None and (dtype.is_floating or dtype.is_integer or dtype.is_bool)
    return bool(numbers) and thing.shape.rank is not None and thing.shape.rank > 0


def _needed(ends: Iterable[Any], fed: Collection[str]) -> Iterator[Any]:
    """Ops and those that run before them, the nearest first; not what is fed."""
    return ops_before(ends, _FARTHEST, fed)


def _is_sure(op: Any, fed: Collection[str]) -> bool:
    """Whether an op is in no branch of a `tf.cond`."""
    return _SWITCHES.isdisjoint(one.type for one in _needed([op], fed))


def _reads(op: Any) -> bool:
    kind: str = op.type
    return kind.startswith("QueueDequeue") or kind == "IteratorGetNext"


def _source(graph: Any, op: Any, fed: Collection[str], depth: int) -> tuple[list[set[str]], set[str]]:
    """Tokens of each way into the queue or the iterator that an op reads, and the types of its Dataset's ops."""
    handle = op.inputs[0].op
    if handle.type == "OneShotIterator":
        nested = [handle.get_attr("dataset_factory").name]
        return [_tokens(graph, nested)], {one for one in _types(graph, nested) if "Dataset" in one}
    ways = [
        one for each in handle.outputs for one in each.consumers()
        if one.type.startswith("QueueEnqueue") or one.type in _MAKES
    ]  # fmt: skip
    parts, kinds = [], {"Queue"} if "Queue" in handle.type else set[str]()
    for way in ways:
        tokens: set[str] = set()
        for one in _needed([way], fed):
            if one.type in PYFUNC_OPS:
                if _is_sure(one, fed):
                    tokens.add(token_of(one))
            elif "Dataset" in one.type:
                nested = _functions(graph, one)
                tokens |= _tokens(graph, nested)
                kinds |= {one.type, *(each for each in _types(graph, nested) if "Dataset" in each)}
            elif _reads(one) and depth < _DEEPEST:
                inner, more = _source(graph, one, fed, depth + 1)
                tokens |= set.intersection(*inner) if inner else set()
                kinds |= more
        parts.append(tokens)
    return parts, kinds


def _functions(graph: Any, op: Any) -> list[str]:
    """Names of the functions that an op runs."""
    return [] if op.type in PYFUNC_OPS else private.functions_of(op)


def _definitions(graph: Any, names: Iterable[str], branches: bool) -> Iterator[Any]:
    """The ops of functions and of those that they call, as in a GraphDef."""
    todo, seen = list(names), set[str]()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for node in private.function_nodes(graph, name):
            yield node
            if branches or node.op not in _BRANCHES:
                todo += scan_ops([node])[1]


def _tokens(graph: Any, names: Iterable[str]) -> set[str]:
    """Tokens of the nodes that run whenever these functions do."""
    return {token_in(node) for node in _definitions(graph, names, False) if node.op in PYFUNC_OPS}


def _types(graph: Any, names: Iterable[str]) -> set[str]:
    """Types of all ops of these functions."""
    return {node.op for node in _definitions(graph, names, True)}
