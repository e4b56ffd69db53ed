"""The small tables of a recording, read whole: nodes, functions, graph traces, threads, meta.

They grow with the program's code, not with its run time, so each look at a growing recording may read them again.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyfunc_debug.records import Frame, Function, GraphTrace, Node

_LAUNCHER = "ipykernel_launcher.py"
_KIND_TEXT = {"py_function": "py", "numpy_function": "numpy", "py_func": "py_func", "py_func_stateless": "stateless"}


@dataclass(slots=True)
class Facts:
    """What a recording says about the program's code.

    Attributes:
      meta: The meta table, its values decoded.
      objects: Of a graph trace, which tf.function object of the function it belongs to.
      groups: Ids of the nodes that one line of the user's code made: a retrace makes a node anew, and nobody wants
        to see it twice. Keyed by the first of them.
      group_of: From a node's id to the key of its group.
    """

    meta: dict[str, Any] = field(default_factory=dict)
    nodes: dict[int, Node] = field(default_factory=dict)
    functions: dict[int, Function] = field(default_factory=dict)
    traces: dict[int, GraphTrace] = field(default_factory=dict)
    objects: dict[int, int | None] = field(default_factory=dict)
    threads: dict[int, str] = field(default_factory=dict)
    groups: dict[int, list[int]] = field(default_factory=dict)
    group_of: dict[int, int] = field(default_factory=dict)
    labels: Callable[[str], str | None] | None = None

    def file_name(self, file: str) -> str:
        """`train.py`, or `In[4]` for a notebook's cell."""
        return (self.labels(file) if self.labels else None) or os.path.basename(file)

    def source_line(self, file: str | None, line: int | None) -> str:
        """`train.py:41`, the way source lines are shortened in the panel; empty if not known."""
        if not file:
            return ""
        return f"{self.file_name(file)}:{line}" if line else self.file_name(file)

    @property
    def recording(self) -> bool:
        """Whether the recording says that it still grows."""
        return str(self.meta.get("state", "")) == "recording"

    @property
    def origin_ns(self) -> int:
        """The monotonic time that the panel calls 0; 0 if the recording does not say."""
        return int(self._clock("monotonic_ns") or 0)

    @property
    def wall_ns(self) -> int | None:
        """Wall clock at `origin_ns`, if known."""
        return self._clock("wall_ns")

    def _clock(self, name: str) -> int | None:
        clock = self.meta.get("clock")
        value = clock.get(name) if isinstance(clock, dict) else None
        return value if isinstance(value, int) else None

    def label(self, node: int) -> str:
        """The name that people know a node by."""
        known = self.nodes.get(node)
        return short_name(known.body) if known else f"node {node}"

    def kind(self, node: int) -> str:
        """`py`, `numpy`, ... as the ledger shows it behind the name."""
        known = self.nodes.get(node)
        return _KIND_TEXT[known.kind] if known else ""

    def group(self, node: int) -> list[int]:
        """All nodes made by the same line as this one."""
        return self.groups.get(self.group_of.get(node, node), [node])


def short_name(qualified: str) -> str:
    """`make.<locals>.augment` -> `augment`; a lambda keeps the function that holds it."""
    parts = qualified.split(".")
    if parts[-1] == "<lambda>":
        outer = [part for part in parts[:-1] if part != "<locals>"]
        return f"{outer[-1]}.<lambda>" if outer else "<lambda>"
    return parts[-1]


def read(connection: sqlite3.Connection, labels: Callable[[str], str | None] | None = None) -> Facts:
    """Reads the small tables; `labels` may name files otherwise."""
    facts = Facts(labels=labels)
    for key, value in connection.execute("SELECT key, value FROM meta"):
        try:
            facts.meta[key] = json.loads(value)
        except ValueError:
            facts.meta[key] = value
    facts.threads = dict(connection.execute("SELECT id, name FROM thread"))
    stacks = {i: frames(text) for i, text in connection.execute("SELECT id, frames FROM stack")}
    for row in connection.execute("SELECT id, name, kind, file, line, origin FROM function"):
        facts.functions[row[0]] = Function(*row)
    held: dict[int, list[int]] = {}
    for trace, node in connection.execute("SELECT trace, node FROM trace_node ORDER BY trace, node"):
        held.setdefault(trace, []).append(node)
    for row in connection.execute(
        "SELECT id, function, ordinal, name, signature, reason, thread, start_ns, duration_ns, error, parent, closest,"
        " avoid, object FROM trace"
    ):
        i, function, ordinal, name, signature, reason, thread, start, duration, error, parent, closest, avoid, made = (
            row
        )
        facts.objects[i] = made
        facts.traces[i] = GraphTrace(
            i, function, ordinal, name, signature, tuple(_texts(reason)), thread, start, duration,
            tuple(held.get(i, ())), error, parent, closest, avoid,
        )  # fmt: skip
    keys: dict[tuple[Any, ...], int] = {}
    for row in connection.execute(
        "SELECT id, token, kind, body, file, line, name, graph, function, stack, tout, paths, out_paths, origin"
        " FROM node ORDER BY id"
    ):
        i, token, kind, body, file, line, name, graph, function, stack, tout, paths, out_paths, origin = row
        facts.nodes[i] = Node(
            i, token, kind, body, file, line, name, graph, function, stacks.get(stack, ()),
            tuple(_texts(tout)), tuple(_texts(paths)), tuple(_texts(out_paths)), origin,
        )  # fmt: skip
        # The innermost line that the user wrote is the call site; without one, nodes stay apart by their op's name.
        site = stack if stack is not None else f"op {name}"
        key = keys.setdefault((function, kind, body, file, line, site), i)
        facts.groups.setdefault(key, []).append(i)
        facts.group_of[i] = key
    return facts


def frames(text: str | None) -> tuple[Frame, ...]:
    """Frames from their JSON text, outermost first."""
    if not text:
        return ()
    found = (Frame(*frame) for frame in json.loads(text))
    return tuple(frame for frame in found if os.path.basename(frame.file) != _LAUNCHER)


def _texts(text: str | None) -> list[str]:
    return [str(item) for item in json.loads(text)] if text else []
