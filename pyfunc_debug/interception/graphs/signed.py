"""What a process runs of a saved graph: the ops on the way from its signatures' inputs to their outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.interception.graphs.library import scan_ops

_AT_LOAD = ("saved_model_main_op", "legacy_init_op")
"""Collections of ops that are run as a graph is loaded."""
_OWN = "__saved_model_"
"""How signatures begin that are TensorFlow's own."""


@dataclass(frozen=True)
class Signed:
    """What the signatures of a MetaGraph reach.

    Attributes:
      nodes: Names of ops of the graph itself.
      functions: Names of functions of its library.
      takes: By the name of an op, the signature's inputs that it is given, where it is given nothing else.
      shared: The signature's inputs that several ops are given.
    """

    nodes: frozenset[str]
    functions: frozenset[str]
    takes: dict[str, tuple[str, ...]]
    shared: frozenset[str]

    def has(self, function: str, op: str) -> bool:
        """Whether an op of a function, or with "" of the graph itself, is run."""
        return function in self.functions if function else op in self.nodes


def signed(meta_graph: Any) -> Signed | None:
    """What is run of a MetaGraph that a session saved.

    None where all of it counts: it has no signature, or it holds the functions of objects, which can be called one by
    one.
    """
    if meta_graph.HasField("object_graph_def"):
        return None
    signatures = dict(meta_graph.signature_def)
    own = {key: one for key, one in signatures.items() if not key.startswith(_OWN)}
    if not any(one.outputs for one in own.values()):
        return None
    by_name = {node.name: node for node in meta_graph.graph_def.node}
    nodes: set[str] = set()
    for signature in signatures.values():
        nodes |= _reached(by_name, _tensors(signature.outputs), {name for _, name in _named(signature.inputs)})
    for collection in _AT_LOAD:
        if collection in meta_graph.collection_def:
            nodes |= _reached(by_name, meta_graph.collection_def[collection].node_list.value, set())
    takes: dict[str, tuple[str, ...]] = {}
    shared: set[str] = set()
    if len(own) == 1:
        keys = {name: key for key, name in _named(next(iter(own.values())).inputs)}
        readers: dict[str, int] = {}
        for name in nodes:
            given = [keys.get(_full(one), "") for one in by_name[name].input]
            if given and all(given):
                takes[name] = tuple(given)
            for key in set(given) - {""}:
                readers[key] = readers.get(key, 0) + 1
        shared = {key for key, count in readers.items() if count > 1}
    library = {one.signature.name: one.node_def for one in meta_graph.graph_def.library.function}
    return Signed(frozenset(nodes), _functions([by_name[one] for one in nodes], library), takes, frozenset(shared))


def _reached(by_name: dict[str, Any], outputs: Iterable[str], fed: set[str]) -> set[str]:
    """Names of the ops that tensors, or ops, need which are not fed."""
    found: set[str] = set()
    todo = [one for one in map(_full, outputs) if one not in fed]
    while todo:
        name = todo.pop().lstrip("^").partition(":")[0]
        node = by_name.get(name)
        if node is not None and name not in found:
            found.add(name)
            todo += [one for one in map(_full, node.input) if one not in fed]
    return found


def _functions(nodes: list[Any], library: dict[str, Any]) -> frozenset[str]:
    """The functions that ops call, also through others."""
    found: set[str] = set()
    todo = [nodes]
    while todo:
        types, called = scan_ops(todo.pop())
        for name in (*called, *types):
            if name in library and name not in found:
                found.add(name)
                todo.append(list(library[name]))
    return frozenset(found)


def _full(name: str) -> str:
    """A tensor's name as signatures have it: `x` of a graph is `x:0`. A control input is an op's."""
    return name if ":" in name or name.startswith("^") else f"{name}:0"


def _named(tensors: Any) -> Iterator[tuple[str, str]]:
    """Keys of a signature, each with the names of its tensors."""
    for key, one in tensors.items():
        yield from ((key, name) for name in _tensors({key: one}))


def _tensors(tensors: Any) -> Iterator[str]:
    for one in tensors.values():
        kind = one.WhichOneof("encoding")
        if kind == "coo_sparse":
            sparse = one.coo_sparse
            yield from (sparse.values_tensor_name, sparse.indices_tensor_name, sparse.dense_shape_tensor_name)
        elif kind == "composite_tensor":
            yield from _tensors(dict(enumerate(one.composite_tensor.components)))
        elif one.name:
            yield _full(one.name)
