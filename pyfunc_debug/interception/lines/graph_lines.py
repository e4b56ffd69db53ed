"""How often the graph ran each of the user's lines: TensorFlow's profiler, joined with where each op was made.

The graphs stay as they are. An event of the profiler is named after its op, with the calls, branches and loops that
TensorFlow inlined before it (`while/body/_1/while/mul`); the step that it belongs to says which function was run. What
is not certain gets no number.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pyfunc_debug.interception.bodies import SourceMaps
from pyfunc_debug.interception.graphs.functions import TF_DATA, readable
from pyfunc_debug.interception.graphs.library import live_graphs
from pyfunc_debug.interception.lines.line_maps import SourceLine, loops_left, statements
from pyfunc_debug.interception.names import TensorFlowNames
from pyfunc_debug.interception.patches import Patch
from pyfunc_debug.profiler import xspace
from pyfunc_debug.profiler.session import InUseError, Profiler
from pyfunc_debug.program.frames import is_user
from pyfunc_debug.program.threads import hide_from_debuggers

LONGEST_S = 60.0
"""So long the graph's lines are counted at most: the profiler keeps every op in memory."""
MOST_BYTES = 256 << 20
"""Or until the process has grown by this much."""
_LOOK_S = 0.1
_DEEPEST = 50
_IDLE = frozenset(
    ("Const", "Identity", "IdentityN", "NoOp", "Placeholder", "PlaceholderWithDefault", "_Arg", "_Retval", "Switch",
     "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "ControlTrigger", "StopGradient", "PreventGradient")
)  # fmt: skip
"""Ops that say nothing about a line: TensorFlow adds, moves and drops them as it likes."""
_LOOPS = ("While", "StatelessWhile")
_DATASET_LOOPS = ("ScanDataset", "ReduceDataset")
"""What AutoGraph makes of `for element in dataset` (data/ops/dataset_autograph.py)."""
_CALLEES = {
    "While": ("cond", "body"), "StatelessWhile": ("cond", "body"),
    "If": ("then_branch", "else_branch"), "StatelessIf": ("then_branch", "else_branch"),
    "Case": ("branches",), "StatelessCase": ("branches",),
    "PartitionedCall": ("f",), "StatefulPartitionedCall": ("f",),
}  # fmt: skip
_INLINED = re.compile(r"(cond|body|then|else|branch)(\d*)/_\d+/")
"""What TensorFlow puts between the name of a loop or branch and that of an op in it (common_runtime/lower_*.cc)."""
_ATTRIBUTES = {"then": "then_branch", "else": "else_branch", "branch": "branches"}
_FUSED = "/unary_ops_composition"
"""What TensorFlow adds to the name of the last of several ops that it made one (grappler/optimizers/remapper.cc)."""
_AUTOGRAPH = os.path.join("autograph", "operators", "control_flow.py")
_OP = re.compile(rb"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*:[A-Z_]\w*")  # the profiler's name of an op: node:Type
_PROCESS, _RUN, _EAGER = b"ExecutorState::Process", b"FunctionRun", b"EagerExecute"
_CAPTURED = b"InstantiatedCapturedFunction::"
_OWN_STEP = 2**64 - 1
"""What TensorFlow runs for itself has this number: constants computed ahead, datasets being made."""


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


class Executed(NamedTuple):
    """An op of a root: of which graph, and its name there."""

    graph: int
    name: str
    fused: bool = False


@dataclass
class Count:
    """How often a line ran in graphs."""

    times: int = 0
    at_least: bool = False


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
        self._thread = threading.Thread(target=self._look, name="pyfunc_debug graph lines", daemon=True)
        hide_from_debuggers(self._thread)
        self._thread.start()

    def stop(self) -> None:
        """Closes the session and joins what it has seen."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._end()
        if self._counts is None:
            self._counts = Join(self._roots).counts(self._files)
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
            self._files += self._profiler.close()
            self._profiler.unwatch()
            if yielded or self._profiler.yielded:
                self._limit(yielded or self._profiler.yielded)

    def _limit(self, why: str) -> None:
        if not self.limits:
            self.limits = f"the graph's lines were not counted to the end: {why}"

    def _look(self) -> None:
        end, before = time.monotonic() + LONGEST_S, _resident()
        while not self._stopped.wait(_LOOK_S) and self._profiler.is_open:
            large = _resident() - before > MOST_BYTES
            if large or time.monotonic() > end:
                with self._profiler.lock:
                    self._limit(f"after {MOST_BYTES >> 20} MB more memory" if large else f"after {LONGEST_S:.0f} s")
                    self._end()
                return

    # -- graphs -------------------------------------------------------------------------------------------------------

    def patches(self) -> list[Patch]:
        """The replacement that reports every graph."""
        kind = self._names.func_graph_type
        return [] if kind is None else [Patch(kind, "__init__", self._init)]

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
            kept = [_kept(one, self._maps) for one in inner]
            self._roots.append(Root(_kept(graph, self._maps), names, {one.name: one for one in kept}, hits))
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


def _kept(graph: Any, maps: SourceMaps) -> Graph:
    found = Graph(graph.name)
    for op in graph.get_operations():
        attributes = _CALLEES.get(op.type)
        if attributes is not None:
            found.callees[op.name] = {name: _function_names(op, name) for name in attributes}
        if op.type not in _IDLE:
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


def _resident() -> int:
    """Bytes of memory that this process has; 0 where that cannot be asked."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


# -- joining ----------------------------------------------------------------------------------------------------------


class Join:
    """From events of the profiler to lines."""

    def __init__(self, roots: list[Root]) -> None:
        self._roots = roots
        self._by_name: defaultdict[str, list[Root]] = defaultdict(list)
        for root in roots:
            for name in root.names:
                self._by_name[name].append(root)
        self._doubtful: set[SourceLine] = set()

    def counts(self, files: Iterable[bytes]) -> dict[SourceLine, Count]:
        """How often each line ran."""
        executed: defaultdict[int, Counter[Executed]] = defaultdict(Counter)  # by root
        for data in files:
            for roots, path, times in self._steps(data):
                self._note(executed, roots, path, times)
        found: defaultdict[SourceLine, Count] = defaultdict(Count)
        for number, ops in executed.items():
            owner = next(one for one in self._roots if id(one) == number)
            counts = _lines(owner, ops)
            self._loops_over_datasets(owner, ops, executed, counts)
            for source_line, count in counts.items():
                found[source_line].times += count.times
                found[source_line].at_least |= count.at_least
        return {
            source_line: count
            for source_line, count in found.items()
            if count.times and source_line not in self._doubtful
        }

    def _loops_over_datasets(
        self,
        owner: Root,
        ops: Counter[Executed],
        executed: dict[int, Counter[Executed]],
        counts: dict[SourceLine, Count],
    ) -> None:
        """The header of `for element in dataset` runs once more than the loop's body, as in Python."""
        rounds: defaultdict[SourceLine, int] = defaultdict(int)
        begun: Counter[SourceLine] = Counter()
        for name, op in owner.graph.ops.items():
            if not op.loop:
                continue
            begun[op.source_line] = max(begun[op.source_line], ops.get(Executed(id(owner.graph), name), 0))
            for body in self._by_name.get(op.loop, ()):
                most = max(executed.get(id(body), Counter()).values(), default=0)
                rounds[op.source_line] = max(rounds[op.source_line], most)
        for source_line, times in begun.items():
            counts.pop(source_line, None)
            if rounds[source_line] and times and source_line.line not in loops_left(source_line.file):
                counts[source_line] = Count(rounds[source_line] + times)

    def _steps(self, data: bytes) -> Iterator[tuple[list[Root], str, int]]:
        """The ops of each function that was run: candidates for the function, the op's path, how often."""
        started: dict[int, str | None] = {}  # by step: the function's name, None for one of tf.data's
        steps: defaultdict[int, Counter[str]] = defaultdict(Counter)
        by_line: defaultdict[int, list[xspace.Event]] = defaultdict(list)
        begins: dict[int, int] = {}
        captured: list[tuple[int, int]] = []
        for event in xspace.events(data, _wanted, _with_stats):
            by_line[event.line].append(event)
            if event.name == _PROCESS:
                begins[_number(event)] = min(event.begin_ns, begins.get(_number(event), event.begin_ns))
            elif event.name.startswith(_CAPTURED + b"Run"):
                captured.append((event.begin_ns, event.end_ns))
        for events in by_line.values():
            around: list[xspace.Event] = []
            for event in sorted(events, key=lambda one: (one.begin_ns, -one.end_ns)):
                while around and around[-1].end_ns <= event.begin_ns and around[-1].end_ns < event.end_ns:
                    around.pop()
                if event.name == _RUN:
                    started[_number(event)] = _starter(around)
                elif not _is_frame(event.name):
                    process = next((one for one in reversed(around) if one.name == _PROCESS), None)
                    if process is not None:
                        path, _, kind = event.name.decode().rpartition(":")
                        if kind not in _IDLE:
                            steps[_number(process)][path] += 1
                    continue
                around.append(event)
        merged: defaultdict[tuple[str | None, frozenset[str]], Counter[str]] = defaultdict(Counter)
        for step, begin_ns in begins.items():
            if step not in started and step != _OWN_STEP and any(low <= begin_ns <= high for low, high in captured):
                started[step] = None  # the body of a loop over a Dataset: run by the thread that asks for the element
        for step, ops in steps.items():
            if step in started:  # else TensorFlow's own: constants computed ahead, datasets being made
                who = started[step]
                merged[who, frozenset(ops) if who is None else frozenset()].update(ops)
        of_data = [root for root in self._roots if root.graph.name.startswith(TF_DATA)]
        for (who, _), ops in merged.items():
            roots = of_data if who is None else self._named(who)
            if who is None or len(roots) > 1:
                roots = self._likeliest(roots, ops)
            for path, times in ops.items():
                if not roots and "__backward_" not in (who or ""):
                    self._lose(path)
                yield roots, path, times

    def _named(self, name: str) -> list[Root]:
        if "__backward_" in name:
            return []
        return self._by_name.get(name) or self._by_name.get(readable(name)) or []

    def _likeliest(self, candidates: list[Root], ops: Iterable[str]) -> list[Root]:
        """Those of several functions that have most of these ops; several when that does not decide it.

        Functions traced before recording are known by their readable names only, and many are called `f`.
        """
        before = set(self._doubtful)
        scores = [sum(bool(self._resolve(root, root.graph, path)) for path in ops) for root in candidates]
        self._doubtful = before  # nothing is lost yet
        best = max(scores, default=0)
        return [root for root, score in zip(candidates, scores) if score == best and best]

    def _note(self, executed: dict[int, Counter[Executed]], roots: list[Root], path: str, times: int) -> None:
        """Gives an event to its op; what might be one of several lines makes all of them doubtful."""
        found = [one for root in roots for one in self._resolve(root, root.graph, path)]
        source_lines = {one[2].source_line for one in found}
        if len(source_lines) > 1:
            self._doubtful |= source_lines
        elif found:
            root, executed_op, _ = found[0]
            executed[id(root)][executed_op] += times

    def _resolve(self, root: Root, graph: Graph, path: str, depth: int = 0) -> list[tuple[Root, Executed, Op]]:
        """The op of a path, followed through calls, branches and loops; several when it is not certain which."""
        fused, path = path.endswith(_FUSED), path.removesuffix(_FUSED)
        op = graph.ops.get(path)
        if op is not None:
            return [(root, Executed(id(graph), path, fused), op)]
        path += _FUSED * fused
        caller = max((name for name in graph.callees if path.startswith(f"{name}/")), key=len, default=None)
        if caller is None or depth > _DEEPEST:
            return _rewritten(root, path)
        callees, rest = graph.callees[caller], path[len(caller) + 1 :]
        if "f" in callees:
            called = self._named(callees["f"][0])
            if not called:
                self._lose(rest)
            return [found for one in called for found in self._resolve(one, one.graph, rest, depth + 1)]
        inlined = _INLINED.match(rest)
        if inlined is None:
            return []
        names = callees.get(_ATTRIBUTES.get(inlined[1], inlined[1]), [])
        number = int(inlined[2] or 0)
        inner = root.inner.get(names[number]) if number < len(names) else None
        if inner is None:
            return _rewritten(root, path)
        return self._resolve(root, inner, rest[inlined.end() :], depth + 1)

    def _lose(self, path: str) -> None:
        """An op ran in a function whose graph is not known: lines that it may have been get no number."""
        parts = path.split("/")
        suffixes = {"/".join(parts[start:]) for start in range(len(parts))}
        for root in self._roots:
            for graph in (root.graph, *root.inner.values()):
                self._doubtful |= {graph.ops[name].source_line for name in suffixes if name in graph.ops}


def _rewritten(root: Root, path: str) -> list[tuple[Root, Executed, Op]]:
    """An op of a loop that TensorFlow built again with outputs for the gradient: its inner names are the same."""
    while "/" in path:
        path = path.partition("/")[2]
        found = [
            (root, Executed(id(graph), path), graph.ops[path]) for graph in root.inner.values() if path in graph.ops
        ]
        if found:
            return found
    return []


def _wanted(name: bytes) -> bool:
    return _is_frame(name) or _OP.fullmatch(name) is not None


def _is_frame(name: bytes) -> bool:
    return name in (_PROCESS, _RUN, _EAGER) or name.startswith(_CAPTURED)


def _with_stats(name: bytes) -> bool:
    return name in (_PROCESS, _RUN, _EAGER)


def _number(event: xspace.Event) -> int:
    found = event.stats.get(b"id", 0)
    return found if isinstance(found, int) else 0


def _starter(around: list[xspace.Event]) -> str | None:
    """Who started a function: its name when Python did, None when tf.data did, "?" for anybody else."""
    for event in reversed(around):
        if event.name == _EAGER:
            name = event.stats.get(b"eager_op", b"")
            return name.decode() if isinstance(name, bytes) else "?"
        if event.name.startswith(_CAPTURED):
            return None
    return "?"


def _lines(root: Root, executed: Counter[Executed]) -> dict[SourceLine, Count]:
    """From ops to lines.

    A line that Python ran several times while tracing (an unrolled loop, a helper called twice) made its ops several
    times: their runs add up. Of the ops that one run of a line makes, the busiest counts.
    """
    everywhere = [root.graph, *root.inner.values()]
    made: defaultdict[SourceLine, Counter[str]] = defaultdict(Counter)
    for graph in everywhere:
        for op in graph.ops.values():
            made[op.source_line][op.type] += 1
    depths: dict[SourceLine, int] = {}
    headers: set[SourceLine] = set()
    loops: Counter[SourceLine] = Counter()
    reached = list(root.reached())
    for depth, graph in reached:
        for op in graph.ops.values():
            depths[op.source_line] = min(depth, depths.get(op.source_line, depth))
            if op.header:
                headers.add(op.source_line)
                loops[op.source_line] += op.type in _LOOPS
    _unfuse(reached, executed)
    active = {id(graph) for _, graph in reached if any(Executed(id(graph), name) in executed for name in graph.ops)}
    gone: set[tuple[SourceLine, str]] = set()
    ran: defaultdict[SourceLine, Counter[str]] = defaultdict(Counter)
    busiest: Counter[SourceLine] = Counter()
    copies: defaultdict[SourceLine, Counter[str]] = defaultdict(Counter)
    for depth, graph in reached:
        for name, op in graph.ops.items():
            source_line = op.source_line
            if source_line not in headers and depth != depths[source_line]:
                continue  # what a line hides inside (the loop of tf.map_fn) is not the line
            copies[source_line][op.type] += 1
            times = executed.get(Executed(id(graph), name), 0)
            if not times and id(graph) in active:
                gone.add((source_line, op.type))
            ran[source_line][op.type] += times
            busiest[source_line] = max(busiest[source_line], times)
    found = {}
    for source_line, kinds in ran.items():
        if loops[source_line] and source_line.line in loops_left(source_line.file):
            continue  # a graph asks once more whether to go on after a break: Python would not
        if source_line in headers:
            runs, total = loops[source_line], copies[source_line]
        else:
            runs, total = (root.hits or Counter())[source_line], made[source_line]
        exact = [
            times * runs // total[kind] for kind, times in kinds.items()
            if runs and total[kind] % runs == 0 and times * runs % total[kind] == 0
            and (source_line, kind) not in gone
        ]  # fmt: skip
        if runs > 1 and source_line not in headers and not exact:
            continue  # TensorFlow made one op of several, or none: what is left says nothing of the line
        if runs > 1 and source_line not in headers:
            busiest[source_line] = 0
        several = source_line not in headers and not runs and max(total.values()) > 1
        found[source_line] = Count(max([busiest[source_line], *exact]), several)
    return found


def _unfuse(reached: list[tuple[int, Graph]], executed: Counter[Executed]) -> None:
    """Gives the runs of an op that TensorFlow made of a chain of unary ones to all of the chain.

    The chain's other ops are gone: one that still runs has a result that others use, and ends the chain.
    """
    graphs = {id(graph): graph for _, graph in reached}
    for one, times in list(executed.items()):
        if not one.fused:
            continue
        ops = graphs[one.graph].ops if one.graph in graphs else {}
        name = one.name
        executed[Executed(one.graph, name)] += times
        for _ in range(len(ops)):
            name = ops[name].source if name in ops else ""
            if name not in ops or not ops[name].source or Executed(one.graph, name) in executed:
                break
            executed[Executed(one.graph, name)] += times
        del executed[one]


__all__ = ["LONGEST_S", "GraphLines"]
