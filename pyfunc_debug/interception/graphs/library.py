"""TensorFlow's live function library: which nodes a function's graph holds, and where an older node lives."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from pyfunc_debug.interception.names import TensorFlowNames, private
from pyfunc_debug.interception.tokens import token_in, token_of

_REST_S = 0.001
"""The walk over a program's graphs rests when it has worked for as long: the program wants the GIL meanwhile. It may
also wait for the walk, and have any number of graphs: a rest after each would be 30 s for 30,000."""
_AT_ONCE_S = 0.02
"""So long a first call waits for that walk: it may be the program's last, and the walk must be made anyway."""
_REMEMBERED = 100_000
PYFUNC_OPS = ("EagerPyFunc", "PyFunc", "PyFuncStateless")
_COLLECTIVES = frozenset(
    ("CollectiveAllToAllV2", "CollectiveGather", "CollectiveGatherV2", "CollectiveReduce", "CollectiveReduceScatterV2",
     "CollectiveReduceV2")
)  # fmt: skip
"""None of these ends in one process before it has begun in all of its group. A broadcast's sender does not wait."""
_ALWAYS = ("PartitionedCall", "StatefulPartitionedCall")
"""What these call runs whenever they run; a branch, or the body of a loop, may not."""


class Library:
    """Reads function definitions once each; their names are unique in a process."""

    def __init__(self, names: TensorFlowNames) -> None:
        self._names = names
        # Tuples of text, which the garbage collector lets go: else each trace would leave objects behind.
        self._calls: dict[str, tuple[str, ...]] = {}
        self._nodes: dict[str, tuple[str, ...]] = {}
        self._joined: set[str] = set()  # functions with a collective op
        self._older: dict[str, tuple[weakref.ref[Any], str]] = {}  # token -> graph and op's name
        self._ran: set[str] = set()  # functions that were traced before we were there
        self._ran_graphs: list[weakref.ref[Any]] = []  # theirs, not yet looked at
        self._searched = self._glanced = False

    def tokens(self, name: str) -> frozenset[str] | None:
        """Tokens of all nodes in a function and in every function nested in it; None if it cannot be read."""
        found: set[str] = set()
        seen: set[str] = set()
        todo = [name]
        while todo:
            function = todo.pop()
            if function in seen:
                continue
            seen.add(function)
            if not self._read(function):
                return None
            found.update(self._nodes.get(function, ()))
            todo.extend(self._calls.get(function, ()))
        return frozenset(found)

    def _read(self, name: str) -> bool:
        """Learns the nodes of a function and which functions it calls.

        Returns:
          Whether they are known.
        """
        if name in self._calls:
            return True
        try:
            definition = self._names.context_module.context().get_function_def(name)
        except Exception:  # TensorFlow raises NotFoundError once the function is gone
            return False
        if len(self._calls) >= _REMEMBERED:  # most are gone by then; those that are not can be read again
            self._calls.clear()
            self._nodes.clear()
            self._joined.clear()
        tokens, calls, joined = _scan(definition.node_def)
        if joined:
            self._joined.add(name)
        if tokens:
            self._nodes[name] = tokens
        self._calls[name] = calls
        return True

    def group(self, name: str) -> int | None:
        """How many devices take part in what a function always waits for: its largest collective; None without one."""
        if not self._joined:
            return None
        context = self._names.context_module.context()
        sizes: list[int] = []
        seen: set[str] = set()
        todo = [name]
        while todo:
            function = todo.pop()
            if function not in seen:
                seen.add(function)
                nodes = list(context.get_function_def(function).node_def)
                sizes += _group_sizes(nodes)
                todo += [node.attr["f"].func.name for node in nodes if node.op in _ALWAYS]
        return max(sizes, default=None)

    def ran(self, name: str, graph: Any) -> None:
        """A function that was traced before we were there runs: its older nodes need no search."""
        if name not in self._ran:
            self._ran.add(name)
            self._ran_graphs.append(weakref.ref(graph))

    def locate(self, token: str) -> Any:
        """The op of a node that was made before we were there; None if it is gone.

        Where no function that Python ran leads to it, the first question walks the garbage collector's list, some 50 ms
        in a large program, and all live graphs. All nodes that can be asked for were made before it.
        """
        op = self._ran_with(token)
        if op is None and not self._searched:
            rested = time.thread_time()
            for graph in live_graphs(self._names):
                self._index(_own_nodes(graph))
                if time.thread_time() - rested > _REST_S:
                    time.sleep(_REST_S)
                    rested = time.thread_time()
            self._searched = True
            op = self._known(token)
        return op

    def locate_at_once(self, token: str) -> Any:
        """The same in a first call: through functions that Python ran, else by a walk that may not come to its end."""
        op = self._ran_with(token)
        if op is None and not (self._searched or self._glanced):
            self._glanced = True
            began = time.thread_time()
            for graph in live_graphs(self._names):
                self._index(_own_nodes(graph))
                if time.thread_time() - began > _AT_ONCE_S:
                    break
            else:
                self._searched = True
            op = self._known(token)
        return op

    def _ran_with(self, token: str) -> Any:
        while token not in self._older:
            try:
                graph = self._ran_graphs.pop()()
            except IndexError:  # the writer and threads of bodies ask
                break
            self._index(python_ops(graph))
        return self._known(token)

    def _known(self, token: str) -> Any:
        graph_reference, name = self._older.get(token, (None, ""))
        graph = graph_reference() if graph_reference is not None else None
        return graph.get_operation_by_name(name) if graph is not None else None

    def _index(self, nodes: Iterator[tuple[Any, Any]]) -> None:
        try:
            for graph, op in nodes:
                if op.traceback is not None:  # a SavedModel's may have another's token
                    self._older[token_of(op)] = weakref.ref(graph), op.name
        except Exception:  # a graph that is being dismantled
            pass


def python_ops(*graphs: Any) -> Iterator[tuple[Any, Any]]:
    """(graph, op) of the nodes in these graphs and in those of the functions that they call, each graph once."""
    seen: set[int] = set()
    todo = list(reversed(graphs))
    while todo:
        graph = todo.pop()
        if graph is None or id(graph) in seen:
            continue
        seen.add(id(graph))
        yield from _own_nodes(graph)
        todo.extend(private.nested_graphs(graph))


def _own_nodes(graph: Any) -> Iterator[tuple[Any, Any]]:
    for op in graph.get_operations():
        if op.type in PYFUNC_OPS:
            yield graph, op


def imported_nodes(graph: Any) -> list[tuple[str, str, str]]:
    """(token, op's name, graph's name) of nodes that came from a file: a SavedModel's, or an imported GraphDef's.

    Python made the other nodes and TensorFlow keeps its stack with them; these have none. Nested functions included.
    """
    return [(token_of(op), op.name, here.name) for here, op in python_ops(graph) if op.traceback is None]


def live_graphs(names: TensorFlowNames) -> list[Any]:
    """All whole graphs of the process, found through the garbage collector.

    The collector also hands out a graph that another thread is making and one whose parts another thread has just let
    go, but which the rest of its cycle still holds. TensorFlow's C++ code crashes on the second kind; neither has its
    Python attributes. One that is whole when it is found stays so for as long as the caller holds it.
    """
    kinds = {names.ops.Graph}
    todo = [names.ops.Graph]
    while todo:
        new = [kind for kind in todo.pop().__subclasses__() if kind not in kinds]
        kinds.update(new)
        todo.extend(new)
    # An instance refers to its class. gc.get_objects() would also hand out tuples that other threads are just making,
    # and CPython's tuple() fails with SystemError when anybody else holds what it makes.
    return [one for one in _referrers(*kinds) if type(one) in kinds and hasattr(one, "finalized")]


def _referrers(*objects: Any) -> list[Any]:
    """`gc.get_referrers`, during which the garbage collector does not run.

    Objects of pybind11 make their dict when they are walked (CPython 3.11: `_PyObject_GetDictPtr`), and a new object
    may start a collection. It moves the objects of the list that is walked to another one, and the walk goes on into
    other memory: a segmentation fault. `map` calls the functions in C, so that the GIL is ours from the
    first to the last and no other thread sees the collector switched off.
    """
    if not gc.isenabled():
        return gc.get_referrers(*objects)
    walk: partial[Any] = partial(gc.get_referrers, *objects)
    steps: list[partial[Any]] = [partial(gc.isenabled), partial(gc.disable), walk, partial(gc.enable)]
    results: list[Any] = [*map(partial.__call__, steps)]
    if not results[0]:  # another thread switched it off just now
        gc.disable()
    return list(results[2])


def _scan(node_defs: Any) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Tokens of nodes among these ops, names of the functions they call, and whether there is a collective op."""
    nodes = list(node_defs)
    tokens = {token_in(node) for node in nodes if node.op in PYFUNC_OPS}
    types, functions = scan_ops(nodes)
    return tuple(tokens), functions, not types.isdisjoint(_COLLECTIVES)


def _group_sizes(nodes: Sequence[Any]) -> Iterator[int]:
    """Sizes of the groups of collective ops, where the graph says them."""
    by_name = {node.name: node for node in nodes}
    for node in nodes:
        if node.op in _COLLECTIVES and "group_size" in node.attr:
            yield int(node.attr["group_size"].i)
        elif node.op in _COLLECTIVES:
            size = by_name.get(node.input[1].partition(":")[0])
            if size is not None and size.op == "Const" and len(size.attr["value"].tensor.int_val) == 1:
                yield int(size.attr["value"].tensor.int_val[0])


def scan_ops(node_defs: Any) -> tuple[frozenset[str], tuple[str, ...]]:
    """Types of these ops, and names of the functions they call."""
    types: set[str] = set()
    functions: list[str] = []
    for node in node_defs:
        types.add(node.op)
        if node.op in PYFUNC_OPS:
            continue
        for value in node.attr.values():
            kind = value.WhichOneof("value")
            if kind == "func":
                functions.append(value.func.name)
            elif kind == "list" and value.list.func:
                functions.extend(function.name for function in value.list.func)
    return frozenset(types), tuple(name for name in functions if name)
