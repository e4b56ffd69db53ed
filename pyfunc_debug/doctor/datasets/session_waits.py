"""Runs of sessions of TensorFlow 1 that wait for a body: in the graph that they run, or in a Dataset or queue.

What a run needs and when it went on was noticed; a body in a Dataset without anything that runs ahead works while the
run waits for its element, as one in the graph does. Beside a queue or prefetch, it sets the pace where it never rests.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pyfunc_debug.analysis.inputs import together
from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies import slow_lines
from pyfunc_debug.doctor.bodies.shared_objects import are_apart
from pyfunc_debug.doctor.datasets import input_cures, pipelines
from pyfunc_debug.doctor.datasets.session_shuffles import ITERATORS
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.graphs.session_lines import Body, SessionLine, body_of, session_lines
from pyfunc_debug.gil.whatif import percent
from pyfunc_debug.program.frames import is_tensorflow
from pyfunc_debug.records import Finding, Node

_SHARE = 0.5
_BUSY = 0.95
"""The same where something runs ahead: then a body that rests is waited for by nobody."""
_NEARLY = 0.8
"""The same where it is seen that the body never rests: the remainder is the way into Python and back."""
_REST = 0.25
"""Of a call's time: a longer pause before the next one is a rest."""
_PACE = 0.8
"""From here on, a faster model would not help."""
_WAIT_NS = 200_000_000
_RUNS = 10
_GAIN = 1.3
"""What a prefetch has to bring: a part of the runs' other time is the way into Python, and what tf.data does itself."""
_AHEAD = ("Parallel", "Prefetch", "Queue")
_THREADS = 4


@dataclass(frozen=True)
class _Waits:
    """A line that waits for a body, after its first run, in which TensorFlow prepares the graph.

    Attributes:
      line, node: These.
      kinds: Types of the ops of the Dataset or queue that holds the body; None where the graph of the step does.
      runs: How many runs there were.
      run_ns: How long they took.
      body_ns: For how much of it the body ran.
    """

    line: SessionLine
    node: Node
    kinds: set[str] | None
    runs: int
    run_ns: int
    body_ns: int

    @property
    def share(self) -> float:
        """Of the runs' time, the body's."""
        return self.body_ns / max(self.run_ns, 1)

    @property
    def ahead(self) -> bool:
        """Whether the body may run before its element is asked for."""
        return any(ahead in kind for kind in self.kinds or () for ahead in _AHEAD)


def findings(facts: Facts, rule: str) -> Iterator[Finding]:
    """One finding a body, at the line that waited for it longest.

    Args:
      facts: The recording.
      rule: The finding's name.
    """
    found = [one for line in session_lines(facts) for one in _waits(facts, line)]
    bodies, places = set[Body](), set[tuple[str, int]]()
    for one in sorted(found, key=lambda one: -one.body_ns):
        body, place = body_of(one.node), (one.line.file, one.line.line)
        if body not in bodies and place not in places:
            bodies.add(body)
            places.add(place)
            yield _finding(facts, rule, one)


def _waits(facts: Facts, line: SessionLine) -> Iterator[_Waits]:
    spans = sorted(line.spans)[1:]
    if len(spans) < _RUNS:
        return
    runs = np.array(spans, np.float64)
    for body, nodes in line.nodes.items():
        node = nodes[0]
        kinds = line.read.get(body)
        if (kinds is None and body not in line.step) or not _is_users(node) or facts.counted_only(map(_number, nodes)):
            continue
        calls = facts.reader.rows(
            f"SELECT start_ns, end_ns FROM call WHERE node IN ({', '.join('?' * len(nodes))}) AND end_ns IS NOT NULL "
            "AND kind = 'forward' AND start_ns <= ? AND end_ns >= ? ORDER BY start_ns",
            (*map(_number, nodes), spans[-1][1], spans[0][0]),
        )
        if not calls:
            continue
        found = _Waits(line, node, kinds, len(spans), *together(runs, np.array(calls, np.float64)))
        least = _SHARE if not found.ahead else _NEARLY if _never_rests(calls, len(spans)) else _BUSY
        if found.share >= least and found.body_ns >= facts.least_ns(_WAIT_NS):
            yield found


def _never_rests(calls: list[tuple[int, int]], runs: int) -> bool:
    """Whether a body always began its next call at once: where it is waited for by nobody, it rests in each run."""
    gaps = sorted((after[0] - before[1] for before, after in pairwise(calls)), reverse=True)
    each = sum(end - begin for begin, end in calls) / len(calls)
    seldom = runs // 10 + 1
    return len(gaps) > seldom and gaps[seldom] <= _REST * each


def _number(node: Node) -> int:
    return node.id


def _is_users(node: Node) -> bool:
    return node.origin == "user" or not (node.file is None or is_tensorflow(node.file))


def _finding(facts: Facts, rule: str, one: _Waits) -> Finding:
    name, where = facts.name(one.node), facts.source_line(one.line.file, one.line.line)
    times = f"{one.body_ns / one.runs / 1e6:.2f} of {one.run_ns / one.runs / 1e6:.2f} ms a run, {one.runs:,} runs"
    message = f"{name} ran for {percent(one.share)} of the time of the session's runs at {where} ({times}): "
    if one.ahead:
        message += "the input sets their pace, a faster model would not help"
    else:
        message += "it is a part of the graph that they run" if one.kinds is None else (
            "they wait for it, as nothing in its Dataset works ahead"
        )  # fmt: skip
        better = (
            "a faster model would not help" if one.share >= _PACE else f"without it they would be x{_gain(one):.1f}"
        )
        message += f", and {better}"
    cures = list(dict.fromkeys(_cures(facts, one)))
    calls = facts.calls(one.node.id)
    each = f"{calls.total_ns / calls.count / 1e6:.2f} ms in each of {calls.count:,} calls" if calls.count else ""
    return Finding(
        rule, "warning", None, (), message, cures[0], one.line.file, one.line.line,
        evidence=tuple(
            filter(None, [f"{name}: {each}" if each else "", slow_lines.said(facts, one.node)])
        ) + tuple(f"also: {cure}" for cure in cures[1:] if "\n" not in cure)[:2],
        confidence="likely" if one.ahead else "measured",
    )  # fmt: skip


def _gain(one: _Waits) -> float:
    return 1.0 / max(1.0 - one.share, 0.01)


def _cures(facts: Facts, one: _Waits) -> Iterator[str]:
    """What helps, the best first, and one at least."""
    node, name, holds = one.node, facts.name(one.node), input_cures.holds_gil(facts, one.node)
    line = slow_lines.cure(facts, node)
    if line:
        yield line
    if one.kinds is not None and not holds:
        text = _threads(facts, one) if "Queue" in one.kinds else _parallel(facts, one)
        if text:
            yield text
            line = text
    if one.kinds is None:
        in_step = one.line.step.get(body_of(node), True)
        if not in_step:
            yield (
                f"nothing of the model comes into {name}: call it in front of the step, in dataset.map(..., "
                "num_parallel_calls=...) with .prefetch(1) behind it, or in a thread that makes what is fed next"
            )
        yield (
            f"{name} in TensorFlow ops, or by NumPy on whole arrays in place of Python loops"
            f"{': it gets what the model gives, and cannot run ahead of it' if in_step else ''}"
        )
        return
    if not any("Prefetch" in kind for kind in one.kinds) and "Queue" not in one.kinds:
        gain = one.run_ns / max(one.body_ns, one.run_ns - one.body_ns, 1)
        if gain >= _GAIN:
            yield _prefetched(facts, one) or (
                f".prefetch(1) at the end of the Dataset: makes the next element while a step runs, at most x{gain:.1f}"
            )
    if node.origin == "user" and holds and not line:
        yield input_cures.without_loops(facts, node)
    elif not line:
        yield (
            f"make a call of {name} cost less, or let several of its calls run at once"
            if node.origin == "user" or "Queue" in one.kinds
            else f"yield in {name} only what is cheap, as names or indices, and do the slow part in dataset.map(..., "
            "num_parallel_calls=...)"
        )


def _tensorflow(facts: Facts, file: str) -> str | None:
    return pastes.module(facts, file, "tensorflow") or pastes.module(facts, file, "tensorflow.compat.v1")


def _parallel(facts: Facts, one: _Waits) -> str:
    """The map with parallel calls, where its calls share nothing."""
    found = pipelines.map_of(facts, one.node)
    if found is None or any("Parallel" in kind for kind in one.kinds or ()) or not are_apart(facts, one.node):
        return ""
    tf = _tensorflow(facts, found[0])
    return pastes.written(pipelines.with_calls(facts, one.node, f"{tf}.data.AUTOTUNE")) if tf is not None else ""


def _prefetched(facts: Facts, one: _Waits) -> str:
    """The Dataset whose iterator the only line of the file makes, with a prefetch."""
    file = one.line.file
    made = [call for call in pastes.walk(facts.tree(file), ast.Call) if pastes.last_name(call.func) in ITERATORS]
    if len(made) != 1:
        return ""
    given = made[0].args[0] if made[0].args else getattr(made[0].func, "value", None)
    if not isinstance(given, (ast.Name, ast.Call)):
        return ""
    return pastes.written(pastes.replaced(facts, file, {given: f"{pastes.text_of(facts, file, given)}.prefetch(1)"}))


def _threads(facts: Facts, one: _Waits) -> str:
    """`tf.train.batch` with more threads; where the order is that of the elements, in words, as it would be lost."""
    file = one.line.file
    calls = [call for call in pastes.walk(facts.tree(file), ast.Call) if _is_batch(call)]
    if len(calls) != 1 or not are_apart(facts, one.node):
        return ""
    shuffles = pastes.last_name(calls[0].func) == "shuffle_batch"
    given = pastes.argument(calls[0], 4 if shuffles else 2, "num_threads")
    if given is not None and not (isinstance(given, ast.Constant) and given.value == 1):
        return ""
    if not shuffles:
        return (
            f"num_threads={_THREADS} for tf.train.batch, if its elements may come in another order: calls of "
            f"{facts.name(one.node)} then run at once"
        )
    if given is not None:
        return pastes.written(pastes.replaced(facts, file, {given: str(_THREADS)}))
    text = pastes.source(facts, file).with_argument(calls[0], f"num_threads={_THREADS}")
    return pastes.written(pastes.replaced(facts, file, {calls[0]: text}))


def _is_batch(call: ast.Call) -> bool:
    """Whether this is `tf.train.batch(...)`, and not the method of a Dataset."""
    return ast.unparse(call.func).endswith(("train.batch", "train.shuffle_batch"))
