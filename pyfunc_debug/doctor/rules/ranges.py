"""Outputs that look wrong by their numbers: always the same, at the bounds of a function, or out of range once."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.rules import caught_errors, whole_stores
from pyfunc_debug.records import Finding, Node

NAMES = ("constant-output", "saturated", "range-jump")
_LEAST_CALLS = 10
_LEAST_INPUTS = 5
_SQUASH = re.compile(r"tanh|sigmoid|expit|logistic|softmax|\bclip|clip_by_value|erf\b")
_SATURATED = 0.95
_JUMP = 1000.0
_NO_LARGER = 10.0
"""Inputs that differ by less are as in other calls."""
_ROWS = 2000
"""Calls of a node that are looked at one by one."""


def check(facts: Facts) -> Iterator[Finding]:
    """At most one finding a body and rule. Float outputs only; numbers that were not kept say nothing."""
    looked_at = list(_looked_at(facts))
    for group, ids, rows in looked_at:
        if len({row[5] for row in rows}) == 1 and rows[0][5] is not None:
            yield from () if caught_errors.is_said(facts, group) else _constant(facts, group[0], ids)
        yield from _saturated(facts, group[0], rows)
    usual = {group[0].id: size for group, _, rows in looked_at if (size := _usual(rows)) > 0}
    largest = _largest(facts, _JUMP * min(usual.values())) if usual else {}
    for group, ids, rows in looked_at:
        if group[0].id in usual and any(largest.get(node.id, 0.0) > _JUMP * usual[group[0].id] for node in group):
            yield from _jump(facts, group[0], ids, rows, usual[group[0].id])


def _looked_at(facts: Facts) -> Iterator[tuple[Sequence[Node], str, list[tuple[object, ...]]]]:
    """The nodes of a line with enough calls, their ids as in SQL, and what is looked at of their first outputs."""
    for group in facts.lines:
        if facts.calls_of(group).count < _LEAST_CALLS:
            continue
        ids = ", ".join(str(node.id) for node in group)
        rows = facts.reader.rows(
            "SELECT c.id, v.min, v.max, v.histogram, v.shape, v.digest FROM (SELECT id FROM call WHERE "
            f"node IN ({ids}) AND kind = 'forward' AND status = 'ok' ORDER BY id LIMIT {_ROWS}) c JOIN value v "
            "ON v.call = c.id AND v.role = 'output' AND v.position = 0 WHERE v.dtype LIKE '%float%' "
            "AND v.min IS NOT NULL ORDER BY c.id"
        )
        if len(rows) >= _LEAST_CALLS:
            yield group, ids, rows


def _usual(rows: list[tuple[object, ...]]) -> float:
    """The median of their largest numbers; 0 where all are."""
    size = _sizes(rows)
    return float(np.median(size[size > 0])) if (size > 0).any() else 0.0


def _sizes(rows: list[tuple[object, ...]]) -> np.ndarray[Any, Any]:
    return np.array([max(abs(float(str(row[1]))), abs(float(str(row[2])))) for row in rows])


def _largest(facts: Facts, above: float) -> dict[int, float]:
    """The largest number that each node's first output ever held, for nodes where it is `above` that."""
    return dict(
        facts.reader.rows(  # CROSS JOIN: values first, for almost none of a million is as large
            "SELECT c.node, max(max(abs(v.min), abs(v.max))) FROM value v CROSS JOIN call c ON c.id = v.call "
            "WHERE v.role = 'output' AND v.position = 0 AND (v.max > ? OR v.min < ?) AND v.dtype LIKE '%float%' "
            "AND c.kind = 'forward' GROUP BY c.node",
            (above, -above),
        )
    )


def _constant(facts: Facts, node: Node, ids: str) -> Iterator[Finding]:
    outputs = facts.reader.rows(
        "SELECT count(*), count(DISTINCT v.digest), count(v.digest), min(c.id), max(c.id), v.shape FROM call c "
        "JOIN value v ON v.call = c.id AND v.role = 'output' AND v.position = 0 "
        f"WHERE c.node IN ({ids}) AND c.kind = 'forward' AND v.dtype LIKE '%float%'"
    )
    count, distinct, known, first, last, shape = outputs[0]
    if whole_stores.cuts(facts, [node]):
        return  # lost-fraction says why
    if distinct != 1 or known != count or count < _LEAST_CALLS or shape in (None, "[]"):
        return  # one number, such as a reward, can be the same each time
    inputs = facts.reader.rows(
        f"SELECT count(DISTINCT v.digest) FROM call c JOIN value v ON v.call = c.id AND v.role = 'input' "
        f"WHERE c.node IN ({ids}) AND c.kind = 'forward' GROUP BY v.position"
    )
    different = max((row[0] for row in inputs), default=0)
    if different < _LEAST_INPUTS:
        return
    several = len(node.tout) > 1
    which = f"the same values as its first result (of {len(node.tout)})" if several else "the same values"
    meant = f"the first result of {facts.name(node)}" if several else facts.name(node)
    yield Finding(
        "constant-output", "note", node.id, (first, last),
        f"{node.body} returned {which} in all {count:,} calls, for {different:,} different inputs. Either it "
        "does not use its input as it should, or it can be computed once, outside",
        f"if {meant} is meant to be constant, compute it once, before the loop or the dataset; else use the input",
        node.file, node.line, evidence=(facts.shown(first),
                                        facts.shown(last)),
    )  # fmt: skip


def _saturated(facts: Facts, node: Node, rows: list[tuple[object, ...]]) -> Iterator[Finding]:
    squash = _squash(facts, node)
    if not squash:
        return
    bounds = {(0.0, 1.0), (-1.0, 1.0), (0.0, 255.0)}
    full = []
    for call, low, high, histogram, shape, _ in rows:
        counts = json.loads(str(histogram)) if histogram else []
        close = next(
            (one for one in bounds if abs(float(str(low)) - one[0]) < 1e-3 and abs(float(str(high)) - one[1]) < 1e-3),
            None,
        )
        if close and sum(counts) > 1 and (counts[0] + counts[-1]) / sum(counts) >= _SATURATED and shape != "[]":
            full.append(int(str(call)))
    if len(full) < 0.9 * len(rows):
        return
    yield Finding(
        "saturated", "note", node.id, tuple(full[:3]),
        f"at least {_SATURATED:.0%} of the values that {node.body} returned were at the ends of its range in "
        f"{len(full):,} of {len(rows):,} calls. What goes into {squash} is too large, and its gradient is "
        "almost zero",
        squashed(facts, node) or f"scale what goes into {squash}, in {facts.name(node)}",
        node.file, node.line,
        evidence=(facts.shown(full[0]),), confidence="likely",
    )  # fmt: skip


def _squash(facts: Facts, node: Node) -> str:
    """The first function that a body calls whose values have two ends: `tanh`; "" where it calls none."""
    every = list(pastes.walk(facts.function(node), ast.Call))
    whole = {id(part) for one in every if ast.unparse(one.func) in ("int", "round", "range") for part in ast.walk(one)}
    calls = [one for one in every if id(one) not in whole]  # positions and indices are not what it gives
    found = sorted((one.lineno, one.col_offset, ast.unparse(one.func).rpartition(".")[2]) for one in calls)
    return next((match.group() for *_, name in found if (match := _SQUASH.search(name))), "")


def squashed(facts: Facts, node: Node) -> str:
    """What goes into a squashing function, made to have mean 0 and deviation 1 first; for clip, to fill its range."""
    squash = _squash(facts, node)
    if not squash or isinstance(facts.function(node), ast.Lambda):
        return ""
    for number, statement in facts.statements(node):
        calls = [one for one in pastes.walk(statement, ast.Call) if squash in ast.unparse(one.func) and one.args]
        lines = pastes.lines_of(facts, node.file, number) if len(calls) == 1 else None
        if lines is None or len(lines[1]) != 1 or node.file is None:
            continue
        call = calls[0]
        inside = call.args[0]
        if not ast.unparse(call.func).startswith(("np.", "tf.", "numpy.", "scipy.", "special.")):
            continue  # a method, or a function of the user's
        tf = node.kind == "py_function"
        low, high = [ast.unparse(one) for one in call.args[-2:]] if len(call.args) > 1 else ("0.0", "1.0")
        text = pastes.text_of(facts, node.file, inside)
        line = pastes.replaced(facts, node.file, {inside: "scaled"})
        if line is None:
            continue
        if "clip" in squash:
            least, most = ("tf.reduce_min(scaled)", "tf.reduce_max(scaled)") if tf else ("scaled.min()", "scaled.max()")
            scale = f"{low} + ({high} - {low}) * (scaled - {least}) / ({most} - {least} + 1e-6)"
        elif tf:
            scale = "(scaled - tf.reduce_mean(scaled)) / (tf.math.reduce_std(scaled) + 1e-6)"
        else:
            scale = "(scaled - scaled.mean()) / (scaled.std() + 1e-6)"
        first = (f"{lines[0]}scaled = {text}", f"{lines[0]}scaled = {scale}")
        return pastes.written(Edit(node.file, line.first, line.last, (*first, *line.lines)))
    return ""


def _jump(facts: Facts, node: Node, ids: str, rows: list[tuple[object, ...]], usual: float) -> Iterator[Finding]:
    if np.count_nonzero(_sizes(rows) > _JUMP * usual) > max(1, 0.05 * len(rows)):
        return
    found = facts.reader.rows(
        "SELECT c.id, max(abs(v.min), abs(v.max)) AS size FROM call c JOIN value v ON v.call = c.id AND "
        f"v.role = 'output' AND v.position = 0 WHERE c.node IN ({ids}) AND c.kind = 'forward' AND v.dtype LIKE "
        "'%float%' AND size > ? ORDER BY c.id",
        (_JUMP * usual,),
    )
    every = facts.calls_of([facts.nodes[int(one)] for one in ids.split(", ")]).count
    if not found or len(found) > max(1, 0.05 * every):
        return
    call, value = found[0]
    yield Finding(
        "range-jump", "warning", node.id, (call,),
        f"{node.body} returned values up to {value:.3g} in call #{call}, where they are {usual:.3g} otherwise "
        f"({len(found):,} of {every:,} calls are like it). {_came_in(facts, ids, call, value / usual)}",
        facts.stop_at(node.body, "after", f"np.abs(outputs[0]).max() > {_JUMP * usual:.3g}"), node.file, node.line,
        evidence=(facts.shown(call),), confidence="likely",
    )  # fmt: skip


def _came_in(facts: Facts, ids: str, call: int, factor: float) -> str:
    """Whether a jump by a factor was in the inputs of its call already.

    Args:
      facts: The recording.
      ids: The body's nodes, as in SQL.
      call: The call.
      factor: By how much its output is larger than usual.
    """
    size = "max(abs(v.min), abs(v.max))"
    there = facts.reader.rows(
        f"SELECT v.position, v.path, {size} FROM value v WHERE v.call = ? AND v.role = 'input' ORDER BY v.position",
        (call,),
    )
    usual: dict[int, list[float]] = {}
    for position, one in facts.reader.rows(
        f"SELECT v.position, {size} FROM (SELECT id FROM call WHERE node IN ({ids}) AND kind = 'forward' AND id <> ? "
        f"ORDER BY id LIMIT {_ROWS}) c JOIN value v ON v.call = c.id AND v.role = 'input' WHERE v.min IS NOT NULL",
        (call,),
    ):
        usual.setdefault(position, []).append(one)
    if not there or any(one is None or position not in usual for position, _, one in there):
        return "Its input of that call shows whether it came in or was made here"
    medians = {position: float(np.median(sizes)) for position, sizes in usual.items()}
    larger = {position: one / medians[position] if medians[position] else 1.0 for position, _, one in there}
    position, path, one = max(there, key=lambda row: larger[row[0]])
    if larger[position] <= _NO_LARGER:
        return "It was made here: no input of that call is much larger than in the others"
    origin = "It came in: " if larger[position] >= factor / _NO_LARGER else ""
    return f"{origin}{path} is up to {one:.3g} in that call, and {medians[position]:.3g} otherwise"
