"""Nodes with `stateful=False` whose body is random, reads a clock or counts: TensorFlow computes them once, or seldom.

Its optimizer takes what is declared stateless, and needs nothing that changes, for a constant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.datasets.cached_chains import kind_of
from pyfunc_debug.doctor.draws.drawn_once import draws_of
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.records import Finding, Node

NAMES = ("computed-once",)
_BRANCHES = {"cond", "case", "switch_case", "while_loop"}
_PLAIN = ("Batch", "ParallelBatch", "PaddedBatch", "Prefetch", "Map", "ParallelMap", "Options", "Model", "Take",
          "Shuffle")  # fmt: skip
"""Stages that need at least one element for each that they give."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body."""
    bodies: dict[tuple[str | None, int | None], list[tuple[Node, str]]] = {}
    for node, asked in _once(facts):
        if not _may_be_left_out(facts, node):
            bodies.setdefault((node.file, node.line), []).append((node, asked))
    for group in bodies.values():
        node, asked = group[0]
        function = facts.function(node)
        if function is None:
            continue
        tree = facts.tree(node.file)
        drawn = next(iter(draws_of(function, tree, of=code.global_random)), None)
        why = drawn or code.clock(function) or next(iter(code.state_writes(function)), None)
        if why is None:
            continue
        does = "draws random numbers" if drawn else "reads a clock" if code.clock(function) else "changes what it keeps"
        site = facts.site(node.id)
        yield Finding(
            NAMES[0], "warning", node.id, (),
            f"{node.body} {does}, and its call says stateful=False: TensorFlow took it for a constant and called it "
            f"once, for {asked}, which all got the same",
            pastes.written(*_stateful(facts, [one for one, _ in group])) or "stateful=True",
            site.file if site else node.file, site.line if site else node.line,
            evidence=(f"line {why.line}: {facts.line(node.file, why.line)}",),
        )  # fmt: skip


def _once(facts: Facts) -> Iterator[tuple[Node, str]]:
    """Stateless nodes with one call, and for what it was made, in words."""
    stateless = {one.id: one for one in facts.nodes.values() if one.kind == "py_func_stateless"}
    stateless = {
        at: one for at, one in stateless.items() if facts.calls(at).count == 1 and not facts.counted_only([at])
    }
    if not stateless:
        return
    runs = dict(facts.reader.rows("SELECT trace, count(*) FROM run WHERE kind = 'forward' GROUP BY trace"))
    for trace in facts.traces:
        made = facts.functions.get(trace.function)
        for node in (stateless[one] for one in trace.nodes if one in stateless and runs.get(trace.id, 0) > 1):
            by = made.name.rpartition(".")[2] if made is not None and made.origin == "user" else "what Keras runs"
            yield node, f"{runs[trace.id]:,} runs of {by}"
    for loop in facts.meta.get("inputs") or []:
        for place, stage in enumerate(loop["stages"]):  # the last first
            plain = all(kind_of(one) in _PLAIN for one in loop["stages"][: place + 1])
            for node in (one for one in stateless.values() if one.token in stage["tokens"]):
                if plain and (loop["taken"] or 0) > 1:
                    yield node, f"{loop['taken']:,} elements"


def _may_be_left_out(facts: Facts, node: Node) -> bool:
    """Whether a branch may be why a node was called once."""
    made = facts.functions.get(node.function or 0)
    traced = facts.definition(made.file, made.line) if made is not None else None
    frames = [one for one in node.stack if one.function != "<module>"]
    if traced is not None and made is not None:
        inside = [one for one in frames if one.file == made.file and _holds(traced, one.line)]
        frames = frames[frames.index(inside[0]) :] if inside else frames
    for frame in frames:
        own = pastes.source(facts, frame.file)
        for call in pastes.around(own.tree, frame.line, ast.Call):
            if dotted(call.func).rpartition(".")[2] in _BRANCHES:
                return True
            for one in own.around(call):
                if isinstance(one, (ast.FunctionDef, ast.Lambda)):
                    break
                if isinstance(one, (ast.If, ast.IfExp, ast.While, ast.For, ast.Try, ast.BoolOp)):
                    return True
    known = [one for frame in frames for one in pastes.walk(facts.tree(frame.file), ast.Call)]
    return any(dotted(one.func).rpartition(".")[2] in _BRANCHES for one in known)


def _holds(function: ast.AST, line: int) -> bool:
    return pastes.first_line(function) <= line <= (getattr(function, "end_lineno", None) or 0)


def _stateful(facts: Facts, nodes: Sequence[Node]) -> list[Edit | None]:
    """The lines of calls without `stateful=False`; None among them where one says it elsewhere."""
    pieces: dict[tuple[str, int, int], Edit | None] = {}
    for node in nodes:
        found = pastes.call_of(facts, node)
        given = None if found is None else pastes.argument(found[1], 3, "stateful")
        if found is None or given is None:
            return [None]
        file, call = found
        own = pastes.source(facts, file)
        new = f"{own.text(call.func)}({own.arguments(call, {'stateful': ''})})"
        piece: dict[ast.expr, str] = {given: "True"} if given in call.args else {call: new}
        pieces[file, call.lineno, call.col_offset] = pastes.replaced(facts, file, piece)
    return list(pieces.values())
