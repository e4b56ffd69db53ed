"""What is kept of a graph for counting its lines: which op each line made, and what is called from where."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pyfunc_debug.interception.bodies import SourceMaps
from pyfunc_debug.interception.lines.line_maps import SourceLine, statements
from pyfunc_debug.program.frames import is_user

IDLE = frozenset(
    ("Const", "Identity", "IdentityN", "NoOp", "Placeholder", "PlaceholderWithDefault", "_Arg", "_Retval", "Switch",
     "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "ControlTrigger", "StopGradient", "PreventGradient")
)  # fmt: skip
"""Ops that say nothing about a line: TensorFlow adds, moves and drops them as it likes."""
_DATASET_LOOPS = ("ScanDataset", "ReduceDataset")
"""What AutoGraph makes of `for element in dataset` (data/ops/dataset_autograph.py)."""
_CALLEES = {
    "While": ("cond", "body"), "StatelessWhile": ("cond", "body"),
    "If": ("then_branch", "else_branch"), "StatelessIf": ("then_branch", "else_branch"),
    "Case": ("branches",), "StatelessCase": ("branches",),
    "PartitionedCall": ("f",), "StatefulPartitionedCall": ("f",),
}  # fmt: skip
_AUTOGRAPH = os.path.join("autograph", "operators", "control_flow.py")


class Op(NamedTuple):
    """An op that somebody's line made. `header`: by AutoGraph's loop statement itself; `source`: its one input.

    `loop` is the function that a loop over a Dataset runs for each element.
    """

    type: str
    source_line: SourceLine
    header: bool
    source: str = ""
    loop: str = ""


@dataclass
class Graph:
    """What is kept of a FuncGraph.

    Attributes:
      name: Its name as a function, as far as known.
      ops: By name.
      callees: By name of an op and attribute: the functions that it calls.
    """

    name: str
    ops: dict[str, Op] = field(default_factory=dict)
    callees: dict[str, dict[str, list[str]]] = field(default_factory=dict)


@dataclass
class Root:
    """The graph of one traced function with its branches and loops.

    Attributes:
      graph: The outermost.
      names: What TensorFlow calls the function.
      inner: Its branches and loop bodies, by name. Also those that were built and thrown away.
      hits: How often Python ran each line while it was traced; None when nobody counted.
    """

    graph: Graph
    names: set[str]
    inner: dict[str, Graph]
    hits: Counter[SourceLine] | None

    def reached(self) -> Iterator[tuple[int, Graph]]:
        """The graphs that are part of the function, with how deep they are in branches and loops."""
        todo, seen = [(0, self.graph)], set()
        while todo:
            depth, graph = todo.pop()
            if id(graph) in seen:
                continue
            seen.add(id(graph))
            yield depth, graph
            for callees in graph.callees.values():
                todo += [(depth + 1, self.inner[one]) for names in callees.values() for one in names
                         if one in self.inner]  # fmt: skip


def kept_graph(graph: Any, maps: SourceMaps) -> Graph:
    """What is kept of a FuncGraph."""
    found = Graph(graph.name)
    for op in graph.get_operations():
        attributes = _CALLEES.get(op.type)
        if attributes is not None:
            found.callees[op.name] = {name: _function_names(op, name) for name in attributes}
        if op.type not in IDLE:
            where = _made(op, maps)
            if where is not None:
                found.ops[op.name] = where
    return found


def _function_names(op: Any, attribute: str) -> list[str]:
    value = op.get_attr(attribute)
    return [one.name for one in (value if isinstance(value, (list, tuple)) else [value])]


def _made(op: Any, maps: SourceMaps) -> Op | None:
    """The user's line that made an op."""
    header, found = False, None
    for entry in reversed(list(op.traceback or ())):
        if is_user(entry.filename):
            found = entry
            break
        header = header or entry.filename.endswith(_AUTOGRAPH)
    if found is None:
        return None
    kind = "lambda" if found.name == "<lambda>" else "line"
    file, line = maps.right(found.filename, found.name, found.lineno)
    line = line if kind == "lambda" else statements(file)[0].get(line, line)
    inputs = op.inputs
    source = inputs[0].op.name if len(inputs) == 1 else ""
    loop = op.get_attr("f").name if op.type in _DATASET_LOOPS else ""
    return Op(op.type, SourceLine(file, line, kind), header, source, loop)
