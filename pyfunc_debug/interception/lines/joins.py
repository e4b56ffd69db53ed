"""From events of TensorFlow's profiler to lines: which op ran, in which function, and what that says of its line."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pyfunc_debug.interception.graphs.functions import TF_DATA, readable
from pyfunc_debug.interception.lines.iterations import MARK, Iterations
from pyfunc_debug.interception.lines.kept_graphs import IDLE, Graph, Op, Root
from pyfunc_debug.interception.lines.line_maps import SourceLine, loops_left
from pyfunc_debug.profiler import xspace

_DEEPEST = 50
_LOOPS = ("While", "StatelessWhile")
_INLINED = re.compile(r"(cond|body|then|else|branch)(\d*)/_\d+/")
"""What TensorFlow puts between the name of a loop or branch and that of an op in it (common_runtime/lower_*.cc)."""
_ATTRIBUTES = {"then": "then_branch", "else": "else_branch", "branch": "branches"}
_FUSED = "/unary_ops_composition"
"""What TensorFlow adds to the name of the last of several ops that it made one (grappler/optimizers/remapper.cc)."""
_OP = re.compile(rb"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*:[A-Z_]\w*")  # the profiler's name of an op: node:Type
_PROCESS, _RUN, _EAGER = b"ExecutorState::Process", b"FunctionRun", b"EagerExecute"
_CAPTURED = b"InstantiatedCapturedFunction::"
_OWN_STEP = 2**64 - 1
"""What TensorFlow runs for itself has this number: constants computed ahead, datasets being made."""


class Executed(NamedTuple):
    """An op of a root: its graph, and its name there."""

    graph: int
    name: str
    fused: bool = False


@dataclass
class Count:
    """How often a line ran in graphs."""

    times: int = 0
    at_least: bool = False


class Join:
    """From events of the profiler to lines."""

    def __init__(self, roots: list[Root], iterations: Iterations) -> None:
        self._roots = roots
        self._iterations = iterations
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
        marks: list[xspace.Event] = []
        for event in xspace.events(data, _wanted, _with_stats):
            if event.name.startswith(MARK):
                marks.append(event)
                continue
            by_line[event.line].append(event)
            if event.name == _PROCESS:
                begins[_number(event)] = min(event.begin_ns, begins.get(_number(event), event.begin_ns))
            elif event.name.startswith(_CAPTURED + b"Run"):
                captured.append((event.begin_ns, event.end_ns))
        orphans: Counter[str] = Counter()
        runs: dict[int, int] = {}
        first_ns = None  # of the orphans
        for events in by_line.values():
            around: list[xspace.Event] = []
            for event in sorted(events, key=lambda one: (one.begin_ns, -one.end_ns)):
                while around and around[-1].end_ns <= event.begin_ns and around[-1].end_ns < event.end_ns:
                    around.pop()
                if event.name == _RUN:
                    started[_number(event)] = _starter(around)
                    runs[_number(event)] = event.begin_ns
                elif not _is_frame(event.name):
                    process = next((one for one in reversed(around) if one.name == _PROCESS), None)
                    path, _, kind = event.name.decode().rpartition(":")
                    if kind in IDLE:
                        continue
                    if process is None:
                        first_ns = event.begin_ns if first_ns is None else min(first_ns, event.begin_ns)
                    (orphans if process is None else steps[_number(process)])[path] += 1
                    continue
                around.append(event)
        without = [step for step in started if step not in begins]
        if first_ns is not None and len(without) == 1 and runs[without[0]] <= first_ns:
            # A thread had run its ops, but not left the executor when the session ended: there is no event for that.
            steps[without[0]].update(orphans)
            begins[without[0]] = 0
        elif orphans:
            for path in orphans:
                self._lose(path)
        merged: defaultdict[tuple[str | None, frozenset[str], frozenset[int]], Counter[str]] = defaultdict(Counter)
        for step, begin_ns in begins.items():
            if step not in started and step != _OWN_STEP and any(low <= begin_ns <= high for low, high in captured):
                started[step] = None  # the body of a loop over a Dataset: run by the thread that asks for the element
        of_data = [root for root in self._roots if root.graph.name.startswith(TF_DATA)]
        spans = self._iterations.spans(marks)
        for step, ops in steps.items():
            if step in started:  # else TensorFlow's own: constants computed ahead, datasets being made
                who, kinds, candidates = started[step], frozenset[str](), frozenset[int]()
                if who is None:
                    kinds, at_ns = frozenset(ops), begins[step]
                    candidates = frozenset(id(root) for root in of_data if spans.possible(root.names, at_ns))
                merged[who, kinds, candidates].update(ops)
        for (who, _, candidates), ops in merged.items():
            roots = [root for root in of_data if id(root) in candidates] if who is None else self._named(who)
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
    return _is_frame(name) or name.startswith(MARK) or _OP.fullmatch(name) is not None


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
