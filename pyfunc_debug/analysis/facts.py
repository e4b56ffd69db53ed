"""The small tables of a recording, read whole: nodes, functions, graph traces, threads, meta.

They grow with the program's code, not with its run time, so each look at a growing recording may read them again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyfunc_debug.analysis.groups import same_line
from pyfunc_debug.analysis.tables import kind_text
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.places import source_line
from pyfunc_debug.records import Function, GraphTrace, Node


@dataclass(slots=True)
class ProgramFacts:
    """What a recording says about the program's code.

    Attributes:
      meta: The meta table, its values decoded.
      nodes, functions, traces, threads: By their numbers; threads are names.
      groups: Ids of the nodes that one line of the user's code made: a retrace makes another node, and nobody wants
        to see it twice. Keyed by the first of them.
      group_of: From a node's id to the key of its group.
    """

    meta: dict[str, Any] = field(default_factory=dict)
    nodes: dict[int, Node] = field(default_factory=dict)
    functions: dict[int, Function] = field(default_factory=dict)
    traces: dict[int, GraphTrace] = field(default_factory=dict)
    threads: dict[int, str] = field(default_factory=dict)
    groups: dict[int, list[int]] = field(default_factory=dict)
    group_of: dict[int, int] = field(default_factory=dict)

    def file_name(self, file: str) -> str:
        """`train.py`, or `cell [4]` for a notebook's cell."""
        return source_line(file, None)

    def source_line(self, file: str | None, line: int | None) -> str:
        """`train.py:41`; empty if not known."""
        return source_line(file, line or None)

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
        return known.body if known else f"node {node}"

    def kind(self, node: int) -> str:
        """`py`, `numpy`, ... as the ledger shows it behind the name."""
        known = self.nodes.get(node)
        return kind_text(known.kind) if known else ""

    def group(self, node: int) -> list[int]:
        """All nodes made by the same line as this one."""
        return self.groups.get(self.group_of.get(node, node), [node])


def read_facts(reader: Reader) -> ProgramFacts:
    """Reads the small tables."""
    nodes, functions = reader.nodes(), reader.functions()
    groups = {group[0].id: [node.id for node in group] for group in same_line(nodes, functions)}
    return ProgramFacts(
        meta=reader.meta,
        nodes={node.id: node for node in nodes},
        functions={function.id: function for function in functions},
        traces={trace.id: trace for trace in reader.traces()},
        threads={thread.id: thread.name for thread in reader.threads()},
        groups=groups,
        group_of={node: key for key, group in groups.items() for node in group},
    )
