"""What the rules ask of a recording, read once for all of them. What is computed is asked of `analysis`."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyfunc_debug.analysis.contention import Contention, make_contention
from pyfunc_debug.analysis.groups import same_line
from pyfunc_debug.analysis.stages import StageAnswer, make_stages
from pyfunc_debug.analysis.tables import source_line
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.records import Frame, Front, Function, GraphTrace, Node


@dataclass(frozen=True)
class Calls:
    """The stored calls of a node, of one kind. `first` and `last` are numbers of calls."""

    count: int = 0
    errors: int = 0
    running: int = 0
    total_ns: int = 0
    first: int | None = None
    last: int | None = None


_NO_CALLS = Calls()


class Facts:
    """A recording for rules. Everything is read when it is first asked for, and kept.

    Args:
      reader: The recording.
      front: Where the findings are read.
    """

    def __init__(self, reader: Reader, front: Front = "python") -> None:
        self.reader = reader
        self.front = front

    # -- tables -------------------------------------------------------------------------------------------------------

    @cached_property
    def meta(self) -> dict[str, Any]:
        """The recording's `meta` table."""
        return self.reader.meta

    @cached_property
    def nodes(self) -> dict[int, Node]:
        """All nodes by number."""
        return {node.id: node for node in self.reader.nodes()}

    @cached_property
    def lines(self) -> list[list[Node]]:
        """The user's nodes; those that one line made in one function together: a retrace makes them anew."""
        return same_line(node for node in self.nodes.values() if node.origin == "user")

    @cached_property
    def functions(self) -> dict[int, Function]:
        """Traced functions by number."""
        return {function.id: function for function in self.reader.functions()}

    @cached_property
    def traces(self) -> list[GraphTrace]:
        """Graph traces, oldest first."""
        return self.reader.traces()

    @cached_property
    def contention(self) -> Contention:
        """What the GIL did to each node."""
        return make_contention(self.reader)

    @cached_property
    def stages(self) -> list[StageAnswer]:
        """Stages of tf.data that call Python."""
        return make_stages(self.reader)

    @cached_property
    def _calls(self) -> dict[tuple[int, str], Calls]:
        rows = self.reader.rows(
            "SELECT node, kind, count(*), sum(status = 'error'), sum(status = 'running'), total(end_ns - start_ns), "
            "min(id), max(id) FROM call GROUP BY node, kind"
        )
        return {
            (node, kind): Calls(count, errors, running, int(total), first, last)
            for node, kind, count, errors, running, total, first, last in rows
        }

    def calls(self, node: int, kind: str = "forward") -> Calls:
        """The stored calls of a node; counts are 0 where it has none."""
        return self._calls.get((node, kind), _NO_CALLS)

    def calls_of(self, nodes: Iterable[Node], kind: str = "forward") -> Calls:
        """The stored calls of several nodes together."""
        parts = [self.calls(node.id, kind) for node in nodes]
        ends = [number for one in parts for number in (one.first, one.last) if number is not None]
        return Calls(
            sum(one.count for one in parts), sum(one.errors for one in parts), sum(one.running for one in parts),
            sum(one.total_ns for one in parts), min(ends, default=None), max(ends, default=None),
        )  # fmt: skip

    @cached_property
    def notices(self) -> dict[str, list[tuple[int | None, int | None, dict[str, Any]]]]:
        """What was noticed while recording: node, call and facts, by the notice's rule, in order."""
        found: dict[str, list[tuple[int | None, int | None, dict[str, Any]]]] = defaultdict(list)
        for rule, node, call, text in self.reader.rows("SELECT rule, node, call, facts FROM notice ORDER BY id"):
            found[rule].append((node, call, json.loads(text)))
        return found

    # -- the user's program -------------------------------------------------------------------------------------------

    def site(self, node: int | None) -> Frame | None:
        """The user's innermost line that made a node; None if it is not known."""
        known = self.nodes.get(node) if node is not None else None
        return known.stack[-1] if known is not None and known.stack else None

    def source(self, file: str | None) -> list[str]:
        """Lines of a file of the user's as they were when recorded; empty if they are not in the recording."""
        if file is None:
            return []
        if file not in self._sources:
            rows = self.reader.rows("SELECT text FROM source WHERE file = ?", (file,))
            self._sources[file] = rows[0][0].splitlines() if rows else []
        return self._sources[file]

    @cached_property
    def _sources(self) -> dict[str, list[str]]:
        return {}

    @staticmethod
    def source_line(file: str | None, line: int | None) -> str:
        """`train.py:12`."""
        return source_line(file, line)

    @staticmethod
    def name(node: Node) -> str:
        """What the user calls a body: `augment`, or `the lambda at train.py:12`."""
        last = node.body.rpartition(".")[2]
        return f"the lambda at {source_line(node.file, node.line)}" if last == "<lambda>" else last

    # -- words --------------------------------------------------------------------------------------------------------

    def say(self, shell: str, notebook: str, python: str) -> str:
        """Of three forms of a fix, that of the front end in use."""
        return {"shell": shell, "notebook": notebook, "python": python}[self.front]

    @property
    def file(self) -> str:
        """The recording's file as one would type it here."""
        try:
            near = os.path.relpath(self.reader.path)
        except ValueError:  # another drive
            return self.reader.path
        return self.reader.path if near.startswith("..") else near

    def show_call(self, call: int) -> str:
        """How to see a call."""
        return self.say(
            f"pyfunc-debug show {self.file} --call {call}", f"%pyfunc_show {call}", f"recording.call({call})"
        )
