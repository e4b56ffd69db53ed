"""Numbers and rows of nodes, functions, threads, stacks and source files: each is written once."""

from __future__ import annotations

import json
import linecache
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from pyfunc_debug.events import FunctionFacts, NodeFacts
from pyfunc_debug.program.frames import is_installed, is_user, line_text
from pyfunc_debug.program.imported_files import imported_files
from pyfunc_debug.program.threads import current_name
from pyfunc_debug.recorder.batch import Batch

_SOURCE_LARGEST = 2 << 20
_IMPORTED_LARGEST = 200_000


class NodeRows:
    """What calls, runs and graph traces refer to.

    Attributes:
      numbers: By token: the node's number, and "forward" or "gradient".
      bodies: By node number: the name of its body.
      paths: By node number: the names of its inputs and of its outputs.
      exact: By number of the nodes whose kernel takes no other dtypes from the body: those of Tout.
      counts: By number of other nodes: how many values Tout has; of eager numpy_functions nobody compares it.
      forward_of: By token of a gradient node: the forward node's.
      lasting: Tokens of nodes in graphs, as opposed to eager calls.
      pending, pending_since: Older nodes whose graph was not looked up yet, and since when the first one waits.
      thread_names: Names of the threads by native id.
      runs_before: How many runs of the process are not this recording's.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, tuple[int, str]] = {}
        self.bodies: dict[int, str] = {}
        self.paths: dict[int, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self.exact: dict[int, tuple[str, ...]] = {}
        self.counts: dict[int, int] = {}
        self.forward_of: dict[str, str] = {}
        self.lasting: set[str] = set()
        self.pending: list[tuple[int, NodeFacts]] = []
        self.pending_since = 0.0
        self.thread_names: dict[int, str] = {}
        self.runs_before = 0
        self._locate_node: Callable[[NodeFacts], NodeFacts] = lambda node: node
        self._user_line: Callable[[str, int], tuple[str, int]] = lambda file, line: (file, line)
        self._count = 0
        self._functions: dict[Any, int] = {}
        self._threads: dict[int, int] = {}
        self._stacks: dict[str, int] = {}
        self._sites: dict[tuple[str, int, str], int | None] = {}
        self._sources: set[str] = set()
        self._shared: dict[Any, Any] = {}
        self._waiting_traces: dict[str, list[int]] = {}  # by token: traces whose node is not known yet

    def connect(
        self, locate_node: Callable[[NodeFacts], NodeFacts], user_line: Callable[[str, int], tuple[str, int]]
    ) -> None:
        """Tells how to find an older node's graph, and the user's line for one of generated code."""
        self._locate_node, self._user_line = locate_node, user_line

    def run(self, number: int) -> int:
        """The number of a run in this recording, from its number in the process."""
        return number - self.runs_before

    def user_line(self, file: str, line: int) -> tuple[str, int]:
        """The user's line for a line that may be generated."""
        return self._user_line(file, line)

    def body_of(self, token: str) -> str:
        """Name of the body behind a token; the token itself if it is not known."""
        known = self.numbers.get(token)
        return token if known is None else self.bodies.get(known[0], token)

    def register_thread(self, native_id: int) -> None:
        """Notes the name of the current thread: it may be gone before the writer comes to it."""
        self.thread_names[native_id] = current_name()

    def node(self, batch: Batch, facts: NodeFacts, older: bool = False) -> int:
        """The number of a node, writing its row when it is new."""
        known = self.numbers.get(facts.token)
        forward = self.numbers.get(facts.gradient_of) if facts.gradient_of is not None else None
        if known is not None and forward is None:
            return known[0]
        if facts.gradient_of is not None:  # one that is known may have been called before its forward node was
            number = forward[0] if forward is not None else self._new_node(batch, facts)
            self.numbers[facts.token] = (number, "gradient")
            self.forward_of[facts.token] = facts.gradient_of
            if facts.site is None:
                self.lasting.add(facts.token)
            return number
        number = self._new_node(batch, facts)
        if older:
            if not self.pending:
                self.pending_since = time.monotonic()
            self.pending.append((number, facts))
        if facts.site is None:
            self.lasting.add(facts.token)
        self.numbers[facts.token] = (number, "forward")
        for trace in self._waiting_traces.pop(facts.token, ()):
            batch.add("trace_node", trace, number)
        return number

    def resolve_pending(self, batch: Batch) -> None:
        """Finds where older nodes stand: the first time that walks all live objects (interception/library.py)."""
        while self.pending:
            number, facts = self.pending.pop(0)
            self._node_row(batch, number, self._locate_node(facts))

    def _new_node(self, batch: Batch, facts: NodeFacts) -> int:
        self._count += 1
        self._node_row(batch, self._count, facts)
        return self._count

    def _node_row(self, batch: Batch, number: int, facts: NodeFacts) -> None:
        stack = [(frame.file, frame.line, frame.function, frame.text) for frame in facts.stack]
        stack_id = self.stack(batch, stack) if facts.site is None else self.site(batch, facts.site)
        origin = "tensorflow" if facts.internal else "user"
        batch.add(
            "node", number, None if facts.token.startswith("eager_") else facts.token, facts.kind, facts.body.name,
            facts.body.file, facts.body.line, facts.name, facts.graph, self.function(batch, facts.function),
            stack_id, json.dumps(facts.tout), json.dumps(facts.paths), json.dumps(facts.out_paths), origin,
        )  # fmt: skip
        paths = facts.paths, facts.out_paths
        self.paths[number] = self._shared.setdefault(paths, paths)
        if facts.gradient_of is None and facts.kind == "py_function":
            self.counts[number] = len(facts.out_paths) if facts.tout else 0
        elif facts.gradient_of is None and facts.site is None:
            self.exact[number] = facts.tout
        self.bodies[number] = facts.body.name
        for name in {facts.body.file, *(entry[0] for entry in stack)}:
            self.source(batch, name)

    def function(self, batch: Batch, facts: FunctionFacts | None) -> int | None:
        """The number of a traced function, writing its row when it is new."""
        if facts is None:
            return None
        key = (facts.name, facts.kind, facts.file, facts.line)
        number = self._functions.get(key)
        if number is None:
            number = self._functions[key] = len(self._functions) + 1
            origin = "tensorflow" if facts.internal else "user"
            batch.add("function", number, facts.name, facts.kind, facts.file, facts.line, origin)
            self.source(batch, facts.file)
        return number

    def held_by(self, batch: Batch, token: str, trace: int) -> None:
        """A graph trace's graph holds this node; its row may have to wait for the node's."""
        node = self.numbers.get(token)
        if node is not None:
            batch.add("trace_node", trace, node[0])
        else:
            self._waiting_traces.setdefault(token, []).append(trace)

    def static_shapes(
        self, batch: Batch, token: str, shapes: Iterable[tuple[str, int, str, tuple[int | None, ...] | None]]
    ) -> None:
        """What TensorFlow knows of the shapes of a node's inputs and outputs; not of the hidden output."""
        number, kind = self.numbers.get(token, (0, ""))
        if kind != "forward":
            return
        outputs = len(self.paths.get(number, ((), ()))[1])
        for role, position, dtype, shape in shapes:
            if role == "input" or position < outputs:
                text = None if shape is None else json.dumps(shape)
                batch.add("static_shape", number, role, position, dtype, text)

    def stack(self, batch: Batch, frames: Iterable[tuple[Any, ...]]) -> int | None:
        """The number of a stack, writing its row when it is new; None for an empty one."""
        text = json.dumps(list(frames))
        if text == "[]":
            return None
        number = self._stacks.get(text)
        if number is None:
            number = self._stacks[text] = len(self._stacks) + 1
            batch.add("stack", number, text)
        return number

    def source(self, batch: Batch, file: str | None, most: int | None = None) -> None:
        """Stores a user file's text once, if it has at most `most` characters.

        Notebook cells have theirs in linecache only.
        """
        if file is None or file in self._sources or not is_user(file):
            return
        self._sources.add(file)
        lines = linecache.getlines(file)
        if lines and sum(map(len, lines)) <= (_SOURCE_LARGEST if most is None else most):
            batch.add("source", file, "".join(lines))

    def program(self, batch: Batch) -> None:
        """Stores the text of a program in which nothing was traced: its lines are all there is to read."""
        main = sys.modules.get("__main__")
        if not self._sources and getattr(main, "__name__", "") == "__main__":  # a spawned process has not run all of it
            self.source(batch, getattr(main, "__file__", None))

    def imported(self, batch: Batch) -> None:
        """Stores the program's text and those of the user's own modules that these files import, and says which."""
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        main = main if isinstance(main, str) and is_user(main) and not is_installed(main) else None
        stored = [*self._sources, *([main] if main is not None else [])]
        if not self._sources:
            return
        files = [file for file in (*stored, *imported_files(stored)) if file not in self._sources]
        if files:
            batch.add("meta", "imported", json.dumps(files))
            batch.add("meta", "program", json.dumps(main))
        for file in files:
            self.source(batch, file, _IMPORTED_LARGEST)

    def thread(self, batch: Batch, native_id: int) -> int:
        """The number of a thread, writing its row when it is new."""
        number = self._threads.get(native_id)
        if number is None:
            number = self._threads[native_id] = len(self._threads) + 1
            batch.add("thread", number, self.thread_names.get(native_id, f"thread {native_id}"), native_id)
        return number

    def site(self, batch: Batch, site: tuple[str, int, str] | None) -> int | None:
        """The number of the stack that is this line alone, at the user's line if the code was generated."""
        if site is None:
            return None
        number = self._sites.get(site)
        if number is None:
            frame = self.site_frame(site)
            number = self._sites[site] = self.stack(batch, [frame])
            self.source(batch, frame[0])
        return number

    def site_frame(self, site: tuple[str, int, str], text: bool = True) -> tuple[str, int, str, str]:
        """The frame of a site: file, line, function and, where it is asked for, the line's text."""
        file, line = self._user_line(site[0], site[1])
        return file, line, site[2].removeprefix("tf__"), line_text(file, line) if text else ""
