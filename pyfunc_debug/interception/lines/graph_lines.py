"""How often the graph ran each of the user's lines: TensorFlow's profiler, joined with where each op was made.

The graphs stay as they are. An event of the profiler is named after its op, with the calls, branches and loops that
TensorFlow inlined before it (`while/body/_1/while/mul`); the step that it belongs to says which function was run. What
is not certain gets no number.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from typing import Any

from pyfunc_debug.interception.bodies import SourceMaps
from pyfunc_debug.interception.graphs.library import live_graphs
from pyfunc_debug.interception.lines.iterations import Iterations
from pyfunc_debug.interception.lines.joins import Count, Join
from pyfunc_debug.interception.lines.kept_graphs import Root, kept_graph
from pyfunc_debug.interception.lines.line_maps import SourceLine
from pyfunc_debug.interception.names import TensorFlowNames, private
from pyfunc_debug.interception.patches import Patch
from pyfunc_debug.profiler.session import InUseError, Profiler
from pyfunc_debug.program.memory import resident_bytes
from pyfunc_debug.program.threads import daemon_thread

LONGEST_S = 60.0
"""The graph's lines are counted for at most this long: the profiler keeps every op in memory."""
MOST_BYTES = 256 << 20
"""Or until the process has grown by this much."""
_LOOK_S = 0.1
_LEAVE_S = 0.05
"""A thread that has run a graph's last op needs a moment to leave the executor; its events are written only then."""


class GraphLines:
    """Counts from `start` to `stop`.

    Attributes:
      limits: Why the graph's lines are not counted, or not to the end; empty when they are.
    """

    def __init__(self, names: TensorFlowNames, maps: SourceMaps) -> None:
        self._names = names
        self._maps = maps
        self._here = threading.local()  # .graphs: FuncGraphs made in the graph traces of this thread
        self._roots: list[Root] = []
        self._profiler = Profiler(2, self._end)
        self._iterations = Iterations(self._mark)
        self._files: list[bytes] = []
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._counts: dict[SourceLine, Count] | None = None
        self.limits = ""

    # -- switching ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Opens the profiler's session."""
        older: defaultdict[int, list[Any]] = defaultdict(list)
        for graph in live_graphs(self._names):
            older[id(_outermost(graph))].append(graph)
        for graphs in older.values():
            root = _outermost(graphs[0])
            if type(root).__name__ == "FuncGraph":
                self._keep(root, None, [one for one in graphs if one is not root], None)
        try:
            self._profiler.load()
        except InUseError as error:
            self.limits = f"the graph's lines are not counted: {error}"
            return
        if not self._profiler.open():
            self.limits = f"the graph's lines are not counted: {self._profiler.yielded}"
            return
        self._profiler.watch()
        self._thread = daemon_thread(self._look, "pyfunc_debug graph lines")
        self._thread.start()

    def stop(self) -> None:
        """Closes the session and joins what it has seen."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._end()
        if self._counts is None:
            self._counts = Join(self._roots, self._iterations).counts(self._files)
            self._files, self._roots = [], []

    def counts(self) -> dict[SourceLine, Count]:
        """How often the graph ran each line; empty before `stop`."""
        whole = not self.limits
        return {
            source_line: Count(one.times, one.at_least or not whole)
            for source_line, one in (self._counts or {}).items()
        }

    def _end(self) -> None:
        """Takes what there is. Also when the program wants the profiler, and when counting has become too large."""
        with self._profiler.lock:
            yielded = self._profiler.yielded
            if self._profiler.is_open:
                time.sleep(_LEAVE_S)
            self._files += self._profiler.close()
            self._profiler.unwatch()
            if yielded or self._profiler.yielded:
                self._limit(yielded or self._profiler.yielded)

    def _limit(self, why: str) -> None:
        if not self.limits:
            self.limits = f"the graph's lines were not counted to the end: {why}"

    def _look(self) -> None:
        end, before = time.monotonic() + LONGEST_S, resident_bytes()
        while not self._stopped.wait(_LOOK_S) and self._profiler.is_open:
            large = resident_bytes() - before > MOST_BYTES
            if large or time.monotonic() > end:
                with self._profiler.lock:
                    self._limit(f"after {MOST_BYTES >> 20} MB more memory" if large else f"after {LONGEST_S:.0f} s")
                    self._end()
                return

    # -- graphs -------------------------------------------------------------------------------------------------------

    def patches(self) -> list[Patch]:
        """The replacements that report every graph, and iterators over datasets."""
        kind, iterator = self._names.func_graph_type, self._names.iterator_type
        patches = [] if kind is None else [Patch(kind, "__init__", self._init)]
        if iterator is not None:
            patches.append(Patch(iterator, private.CREATE_ITERATOR, self._iterations.create_iterator))
        return patches

    def _mark(self, name: str) -> None:
        """Makes an event in the profile, if there is one."""
        if self._profiler.is_open:
            trace = self._profiler.trace(name)
            trace.__enter__()
            trace.__exit__(None, None, None)

    def _init(self, original: Any) -> Any:
        here = self._here

        def init(graph: Any, *args: Any, **named: Any) -> None:
            original(graph, *args, **named)
            if getattr(here, "tracing", 0):
                here.graphs.append(graph)

        return init

    def begin(self) -> None:
        """A graph trace begins on this thread; its own graph was made just before."""
        here = self._here
        here.tracing = getattr(here, "tracing", 0) + 1
        if here.tracing == 1:
            here.graphs = []

    def end(self, graph: Any, concrete: Any, hits: Counter[SourceLine]) -> None:
        """It ends. `concrete` is None when it failed."""
        here = self._here
        here.tracing -= 1
        if concrete is not None:
            mine = [one for one in here.graphs if one is not graph and _outermost(one) is graph]
            here.graphs = [one for one in here.graphs if _outermost(one) is not graph]
            self._keep(graph, concrete, mine, hits)
        if not here.tracing:
            here.graphs = []

    def _keep(self, graph: Any, concrete: Any, inner: list[Any], hits: Counter[SourceLine] | None) -> None:
        try:
            names = {graph.name}
            if concrete is not None:
                names.add(_text(concrete.name))
            kept = [kept_graph(one, self._maps) for one in inner]
            self._roots.append(Root(kept_graph(graph, self._maps), names, {one.name: one for one in kept}, hits))
        except Exception as error:  # a graph that is being dismantled; its lines get no number
            self._limit(f"{type(error).__name__}: {error}")


def _outermost(graph: Any) -> Any:
    """The graph of the traced function around a branch or a loop's body."""
    for _ in range(100):
        if type(graph).__name__ == "FuncGraph" and getattr(graph, "name", "") != "tmp":
            return graph
        outer = getattr(graph, "outer_graph", None)
        if outer is None:
            return graph
        graph = outer
    return graph


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


__all__ = ["LONGEST_S", "GraphLines"]
