"""A `filter` behind an endless `repeat`, or an endless generator, that lets nothing through: no first element comes.

Nothing fails, and nothing is printed. Who waits reads what the bodies in front of the filter did meanwhile. In front of
`repeat` such a filter does no harm: a `repeat` of nothing ends.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from pyfunc_debug.doctor.failures.datasets.endless_loops import source_spots
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Locate, Query, Spot, lines_around
from pyfunc_debug.doctor.failures.reading.source import read, short
from pyfunc_debug.doctor.generators.generator_source import is_endless
from pyfunc_debug.interception.names.private import keras_steps_begun
from pyfunc_debug.places import source_line
from pyfunc_debug.program.frames import is_tensorflow
from pyfunc_debug.records import FROM_GENERATOR

RULE = "all-dropped"
_LINEAR = frozenset((
    "Filter", "Map", "ParallelMap", "Batch", "ParallelBatch", "PaddedBatch", "Shuffle", "Prefetch", "Repeat",
    "Options", "Cache", "TensorSlice", "Range", "Tensor", "FlatMap", "Skip", "Take", "AssertCardinality", "MapAndBatch",
    "Unbatch",
))  # fmt: skip
"""Kinds of stages that have one input, and give its elements one by one."""
_TRAINERS = ("fit", "evaluate", "predict")
_FEW, _TIMES = 50, 3
"""Elements that went in, at least: a number, and as a multiple of those that the first one takes."""
_LEAST_S = 2.0
_SHOWN = 3
_CALLS = (
    "SELECT n.token, n.body, n.file, n.line, count(*), min(c.start_ns), f.name, n.id FROM call c "
    "JOIN node n ON n.id = c.node LEFT JOIN function f ON f.id = n.function "
    "WHERE c.start_ns >= ? AND c.end_ns IS NOT NULL AND c.kind = 'forward' AND c.status = 'ok' GROUP BY n.id"
)
_TRUE = (
    "SELECT count(*), total(v.max != 0 OR v.max IS NULL) FROM call c JOIN value v ON v.call = c.id "
    "AND v.role = 'output' AND v.position = 0 WHERE c.node = ? AND c.start_ns >= ? AND v.dtype = 'bool'"
)
_VALUES = (
    "SELECT DISTINCT v.text FROM call c JOIN value v ON v.call = c.id WHERE c.node = ? AND c.start_ns >= ? "
    "AND v.role = ? AND v.position = 0 LIMIT 3"
)


@dataclass(frozen=True)
class _Body:
    """A body, or a generator, and its calls since the pass began."""

    node: int
    name: str
    file: str | None
    line: int | None
    calls: int
    first_ns: int
    generator: bool


def waits(frame: FrameType) -> bool:
    """Whether a thread is inside TensorFlow, and Keras waits there for no second batch: the rest is asked only then."""
    return is_tensorflow(frame.f_code.co_filename) and _first(frame)


def going_on(frame: FrameType, locate: Locate, inputs: Sequence[Any], rows: Query) -> Explanation | None:
    """The explanation for a thread that waits for the first element of such a dataset.

    Args:
      frame: Where it is.
      locate: Maps a line of AutoGraph's generated code to the user's file and line.
      inputs: The program's loops over datasets: `Inputs.facts`.
      rows: Asks the recording.
    """
    for spot in reversed(source_spots(frame, locate)):
        here = [one for one in inputs if one["site"] and tuple(one["site"][:2]) == (spot.file, spot.line)]
        if here:
            return _told(here[0], spot, rows) if len(here) == 1 and not here[0]["taken"] else None
    return None


def _first(frame: FrameType) -> bool:
    """Whether Keras waits for the first batch of all; True of who loops without Keras."""
    for one, _ in lines_around(frame):
        if one.f_code.co_name in _TRAINERS and "keras" in one.f_code.co_filename:
            known = one.f_locals
            begun = keras_steps_begun(known.get("epoch_iterator"))
            return begun is None or (begun <= 1 and known.get("epoch", 0) == known.get("initial_epoch", 0))
    return True


def _told(loop: Any, spot: Spot, rows: Query) -> Explanation | None:
    stages, since = loop["stages"], loop["made_ns"]
    if loop["iterators"] != 1 or any(one["kind"] not in _LINEAR for one in stages):
        return None
    bodies: dict[str, list[_Body]] = {}
    for token, name, file, line, calls, first, function, node in rows(_CALLS, (since,)):
        one = _Body(node, name.rpartition(".")[2], file, line, calls, first, function == FROM_GENERATOR)
        bodies.setdefault(token, []).append(one)
    ran = [[one for token in stage["tokens"] for one in bodies.get(token, ())] for stage in stages]
    again = next((place for place, stage in enumerate(stages) if stage.get("repeats") == -1), None)
    after = [place for place, found in enumerate(ran) if found]
    filters = [
        place for place, stage in enumerate(stages)
        if stage["kind"] == "Filter" and (again is None or place < again) and not any(one < place for one in after)
    ]  # fmt: skip
    filters = [place for place in filters if not _let_through(ran[place], since, rows)]
    if not filters:
        return None
    front = filters[-1]
    seen = [one for found in ran[front:] for one in found]
    most = max(seen, key=lambda one: one.calls, default=None)
    need = _needed(stages[:front])
    if most is None or need is None or most.calls < _TIMES * need + _FEW:
        return None
    seconds = (time.monotonic_ns() - most.first_ns) / 1e9
    source = next((one for one in seen if one.generator), None)
    if seconds < _LEAST_S or (again is None and (source is None or not _is_endless(source))):
        return None
    return _explanation(spot, [stages[one] for one in filters], ran[front], most, seconds, need, source, again, rows,
                        since)  # fmt: skip


def _let_through(bodies: list[_Body], since: int, rows: Query) -> bool:
    """Whether a filter in Python is known to have said True."""
    return any(rows(_TRUE, (one.node, since))[0][1] for one in bodies)


def _needed(stages: Sequence[Any]) -> int | None:
    """How many elements behind a filter make the first of a dataset; None where that is not known."""
    buffered, size = 0, 1
    for stage in reversed(stages):
        if stage["kind"] in ("Batch", "ParallelBatch", "PaddedBatch", "MapAndBatch"):
            if stage["batch"] is None:
                return None
            size *= stage["batch"]
        elif stage["kind"] == "Shuffle":
            if "buffer" not in stage:
                return None
            buffered += stage["buffer"] * size
        elif stage["kind"] == "Skip":
            if "skips" not in stage:
                return None
            buffered += stage["skips"] * size
        elif stage["kind"] == "Unbatch":
            size = 1
    return buffered + size


def _is_endless(body: _Body) -> bool:
    if body.file is None:
        return False
    functions = [one for one in ast.walk(read(body.file).tree) if isinstance(one, ast.FunctionDef)]
    return any(one.lineno == body.line and is_endless(one) for one in functions)


def _explanation(
    spot: Spot, filters: list[Any], inside: list[_Body], most: _Body, seconds: float, need: int,
    source: _Body | None, again: int | None, rows: Query, since: int,
) -> Explanation:  # fmt: skip
    named = [one["predicate"] for one in reversed(filters) if one.get("predicate")]
    places = dict.fromkeys(
        f"{'the lambda' if name == '<lambda>' else name} ({source_line(file, line)})" for file, line, name in named
    )
    which = f"the filter by {' or '.join(list(places)[:2])}" if places else "the filter"
    if len(places) > 2:
        which = f"one of {len(places)} filters, the first by {next(iter(places))},"
    known = rows(_TRUE, (inside[0].node, since))[0] if len(inside) == 1 and len(filters) == 1 else (0, 0)
    if known[0]:
        what = f"{inside[0].name} ({source_line(inside[0].file, inside[0].line)}) was False for all "
        what += f"{known[0]:,} elements that the filter gave it"
        given = rows(_VALUES, (inside[0].node, since, "input"))
        shown = ", ".join(short(text, 24) for (text,) in given[:_SHOWN])
        what += f": {shown}." if shown else "."
    else:
        did = "has yielded" if most.generator else "was called"
        times = f"{most.calls:,} elements" if most.generator else f"{most.calls:,} times"
        what = f"{most.name} {did} {times} in {seconds:,.0f} s, and {which} has let through nothing"
        what += ", or too little for the first batch." if need > 1 else "."
        given = [] if most.generator else rows(_VALUES, (most.node, since, "output"))
        shown = short(given[0][0], 30) if given else ""
        what += f" A result of {most.name}: {shown}{'' if shown.endswith('.') else '.'}" if shown else ""
    goes = "repeat() begins again each time" if again is not None else f"{source.name if source else 'it'} never ends"
    cause = f"no element has come here yet, and this may go on for ever: {what}"
    advice = f"Print what the filter is given, or ask for less there. In front of it, {goes}."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice, "measured" if known[0] else "likely")
