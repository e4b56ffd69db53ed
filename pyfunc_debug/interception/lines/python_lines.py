"""How often each of the user's lines ran at trace and at run, by sys.settrace or, since Python 3.12, sys.monitoring.

A thread is in phase "trace" while TensorFlow builds a graph on it and in phase "run" while it executes a body; lines
that run in neither are not counted. Library code is never followed. A line is counted up to a cap, so that a hot loop
stays cheap, and then says "at least".
"""

from __future__ import annotations

import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

from pyfunc_debug.interception.bodies import SourceMaps
from pyfunc_debug.interception.lines.engines import Monitoring, Tracing
from pyfunc_debug.interception.lines.graph_lines import GraphLines
from pyfunc_debug.interception.lines.line_maps import LineTables, SourceLine, loops_left, statements
from pyfunc_debug.interception.lines.prints import Prints
from pyfunc_debug.interception.names import TensorFlowNames, private
from pyfunc_debug.interception.patches import Patch
from pyfunc_debug.program.frames import caller, is_generated
from pyfunc_debug.records import Line, Printed

CAP = 1000
"""A line is counted up to this many times, at trace and at run each."""
TRACE, RUN = 0, 1


class Phase(NamedTuple):
    """What a thread is doing, and for which call."""

    kind: int
    call: int | None
    hits: Counter[SourceLine] | None = None
    """In a graph trace, when the graph's lines are counted too: how often each line ran in this trace."""


class Counted(NamedTuple):
    """An observer's ticket, and the phase that was opened for its call."""

    ticket: Any
    opened: Any


Path = tuple[Callable[..., Any], Callable[..., Any], Callable[..., None]]


class Lines:
    """Counts while on; with `graph` also how often the graph ran each line.

    Attributes:
      graph: What counts the latter.
      here: Of each thread, its phase and where it is in it.
      tables: Which lines of a function are counted.
    """

    def __init__(
        self, names: TensorFlowNames, maps: SourceMaps, trace_id: Callable[[], int | None], graph: bool = False
    ) -> None:
        self._names = names
        self._maps = maps
        self._trace_id = trace_id
        self.here = threading.local()  # .phase, .where, .last
        self.tables = LineTables(maps)
        self._counts: defaultdict[SourceLine, list[int]] = defaultdict(lambda: [0, 0])
        self._capped: set[SourceLine] = set()
        self._graph: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        self._inside: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        self._engine: Monitoring | Tracing = (Monitoring if sys.version_info >= (3, 12) else Tracing)(self)
        self.prints = Prints(self._locate, self._printing)
        self.python_limits = ""
        self.graph = GraphLines(names, maps) if graph else None

    @property
    def limits(self) -> str:
        """Why lines are not counted, or not everywhere; empty when they are."""
        return "; ".join(filter(None, [self.python_limits, self.graph.limits if self.graph is not None else ""]))

    def start(self) -> None:
        """Switches on."""
        statements.cache_clear()
        loops_left.cache_clear()  # files may have been edited since an earlier recording
        self._engine.start()
        if self.graph is not None:
            self.graph.start()

    def stop(self) -> None:
        """Switches off."""
        self._engine.stop()
        if self.graph is not None:
            self.graph.stop()

    def around(self, path: Path, number: Callable[[Any], int | None]) -> Path:
        """An observer's `enter`, `leave` and `fail` that also open and close the phase of each call.

        Args:
          path: The observer's own.
          number: The call's number in the recording, from the observer's ticket.
        """
        enter_call, leave_call, fail_call = path

        def enter(token: str, args: Any) -> Counted:
            ticket = enter_call(token, args)
            return Counted(ticket, self.enter(RUN, number(ticket)))

        def leave(counted: Counted, outputs: Any) -> Any:
            self.leave(counted.opened)
            return leave_call(counted.ticket, outputs)

        def fail(counted: Counted, error: BaseException) -> None:
            self.leave(counted.opened)
            fail_call(counted.ticket, error)

        return enter, leave, fail

    def facts(self) -> tuple[list[Line], list[Printed]]:
        """Everything counted so far."""
        rows = []
        for source_line, (traced, ran) in list(self._counts.items()):
            key = (source_line.file, source_line.line)
            graph, inside = sorted(self._graph.get(key, ())), sorted(self._inside.get(key, ()))
            kind: Literal["line", "lambda"] = "lambda" if source_line.kind == "lambda" else "line"
            capped = source_line in self._capped
            rows.append(
                Line(
                    source_line.file,
                    source_line.line,
                    kind,
                    traced or None,
                    ran or None,
                    capped,
                    tuple(graph),
                    tuple(inside),
                )
            )
        if self.graph is not None:
            for source_line, count in self.graph.counts().items():
                of: Literal["graph", "graph lambda"] = "graph lambda" if source_line.kind == "lambda" else "graph"
                rows.append(Line(source_line.file, source_line.line, of, None, count.times, count.at_least, (), ()))
        return rows, self.prints.texts()

    def _printing(self) -> tuple[Any, int | None, int | None] | None:
        """The phase of this thread, its graph trace and its call; None outside of phases."""
        phase = getattr(self.here, "phase", None)
        if phase is None:
            return None
        return phase, (self._trace_id() if phase.kind == TRACE else None), phase.call

    def _locate(self, file: str, line: int) -> tuple[str, int]:
        return (self._maps.find(file, line) if is_generated(file) else None) or (file, line)

    # -- phases -------------------------------------------------------------------------------------------------------

    def enter(self, kind: int, call: int | None = None) -> Any:
        """Opens a phase on this thread; what it returns goes to `leave`."""
        here = self.here
        before = getattr(here, "phase", None), getattr(here, "where", ())
        here.phase = Phase(kind, call, Counter() if kind == TRACE and self.graph is not None else None)
        if kind == RUN:
            here.where = ()
        return before, self.prints.enter(), self._engine.arm()

    def leave(self, opened: Any) -> None:
        """Closes it."""
        before, stream, armed = opened
        here = self.here
        self._engine.disarm(armed)
        phase = here.phase
        self.prints.leave(stream)
        self.prints.closed(phase)
        here.phase, here.where = before
        if before[0] is None:
            here.last = {}

    def hit(self, source_line: SourceLine, phase: Phase) -> bool:
        """Counts one execution; True when it is one too many: the line need not be looked at any more."""
        counts = self._counts[source_line]
        if counts[phase.kind] >= CAP:
            self._capped.add(source_line)
            return True
        # No function is called within this statement, so no other thread can take the GIL in the middle of it.
        counts[phase.kind] += 1
        if phase.kind == TRACE:
            if phase.hits is not None:
                phase.hits[source_line] += 1
            where = getattr(self.here, "where", ())
            if where:
                self._inside[source_line.file, source_line.line].add(where[-1])
        return False

    def cap(self, source_lines: Iterable[SourceLine]) -> None:
        """From now on these were executed "at least" as often as they were counted."""
        self._capped.update(source_lines)

    # -- patches ------------------------------------------------------------------------------------------------------

    def patches(self) -> list[Patch]:
        """The replacements that open the trace phase and report what became part of the graph."""
        found = self._names
        patches = [Patch(found.tracing_compilation, private.CREATE_CONCRETE_FUNCTION, self._create)]
        labels: list[tuple[Any, str, Callable[[Any], Any]]] = [
            (found.control_flow, private.IF_STATEMENT, self._branches),
            (found.control_flow, private.WHILE_LOOP, self._loop),
            (found.control_flow, private.PYTHON_LOOP, self._python_loop),
            (found.control_flow, private.ITERATOR_LOOP, self._marks("for")),
            (found.control_flow, private.DISTRIBUTED_LOOP, self._marks("for")),
            (found.conditional_expressions, private.IF_EXPRESSION, self._marks("if")),
            (found.logical, private.LAZY_AND, self._marks("and")),
            (found.logical, private.LAZY_OR, self._marks("or")),
        ]
        patches += [Patch(owner, name, make) for owner, name, make in labels if name in vars(owner or object)]
        return patches + (self.graph.patches() if self.graph is not None else [])

    def _create(self, original: Any) -> Any:
        def _create_concrete_function(
            function_type: Any, type_context: Any, func_graph: Any, tracing_options: Any
        ) -> Any:
            opened = self.enter(TRACE)
            graph, concrete = self.graph, None
            if graph is not None:
                graph.begin()
            try:
                concrete = original(function_type, type_context, func_graph, tracing_options)
                return concrete
            finally:
                hits = self.here.phase.hits
                self.leave(opened)
                if graph is not None:
                    for source_line in self._capped:
                        hits.pop(source_line, None)
                    graph.end(func_graph, concrete, hits)

        _create_concrete_function.__module__ = original.__module__  # others who replace it look it up by this
        return _create_concrete_function

    def _header(self) -> tuple[str, int] | None:
        """The user's line whose statement AutoGraph is executing."""
        found = caller()
        return None if found is None else self._statement(*self._locate(found[0], found[1]))

    def _statement(self, file: str, line: int) -> tuple[str, int]:
        return file, statements(file)[0].get(line, line)

    def _branches(self, original: Any) -> Any:
        def _tf_if_stmt(cond: Any, body: Any, orelse: Any, *rest: Any, **named: Any) -> Any:
            header = self._mark("if")
            return original(
                cond, self._within(body, header, "if", "then"), self._within(orelse, header, "if", "else"),
                *rest, **named,
            )  # fmt: skip

        return _tf_if_stmt

    def _loop(self, original: Any) -> Any:
        def _tf_while_stmt(test: Any, body: Any, *rest: Any, **named: Any) -> Any:
            header = self._mark("loop")
            return original(test, self._within(body, header, "loop", ""), *rest, **named)

        return _tf_while_stmt

    def _python_loop(self, original: Any) -> Any:
        """A loop that AutoGraph left by break asks its iterator once less than its header line was counted."""

        def _py_for_stmt(iter_: Any, extra_test: Any, body: Any, *rest: Any, **named: Any) -> Any:
            phase = getattr(self.here, "phase", None)
            header = self._header() if extra_test is not None else None
            if header is None or phase is None:
                return original(iter_, extra_test, body, *rest, **named)
            source_line = SourceLine(*header, "line")

            def test(*args: Any) -> Any:
                goes_on = extra_test(*args)
                if goes_on is False and source_line in self._counts:
                    self._counts[source_line][phase.kind] -= 1
                return goes_on

            return original(iter_, test, body, *rest, **named)

        return _py_for_stmt

    def _marks(self, kind: str) -> Callable[[Any], Any]:
        def replace(original: Any) -> Any:
            def marked(*args: Any, **named: Any) -> Any:
                self._mark(kind)
                return original(*args, **named)

            return marked

        return replace

    def _mark(self, kind: str) -> tuple[str, int] | None:
        header = self._header()
        if header is not None and getattr(self.here, "phase", None) is not None:
            self._graph[header].add(kind)
        return header

    def _within(self, part: Any, header: tuple[str, int] | None, kind: str, name: str) -> Any:
        """A branch or loop body that remembers where it is while it is being built."""
        if header is None or not callable(part):
            return part
        label = f"{kind}@{header[1]} {name}".strip()
        here = self.here

        def built(*args: Any) -> Any:
            before = getattr(here, "where", ())
            here.where = (*before, label)
            try:
                return part(*args)
            finally:
                here.where = before

        return built


__all__ = ["CAP", "Counted", "Lines"]
