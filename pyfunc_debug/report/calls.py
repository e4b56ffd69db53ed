"""Pages of the calls table, and all that is known about one call."""

from __future__ import annotations

import functools
import json
import math
import sqlite3
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyfunc_debug.analysis.columns import ERROR, GRADIENT, INTERRUPTED, Array, Columns
from pyfunc_debug.analysis.contention import grade_of
from pyfunc_debug.analysis.facts import ProgramFacts
from pyfunc_debug.gil import RESOLUTION_NS
from pyfunc_debug.pfrec.reader import read_frames
from pyfunc_debug.pfrec.stopped import without
from pyfunc_debug.records import Node
from pyfunc_debug.report import looks
from pyfunc_debug.report.noticed import logged, notices
from pyfunc_debug.report.pictures import SIDE, Elements, difference, elements, frames, picture, small_table

Json = dict[str, Any]
SORTS = ("id", "start", "thread", "wait", "held", "released", "duration", "status")
_STATUS = ("ok", "error", "running", "interrupted")
_MAX_VALUES = 64
_MOST_ODD = 5000


def page(
    connection: sqlite3.Connection,
    columns: Columns,
    *,
    nodes: Sequence[int] | None = None,
    kind: str | None = None,
    status: str | None = None,
    sort: str = "id",
    descending: bool = False,
    offset: int = 0,
    limit: int = 100,
    find: int | None = None,
    only: Array | None = None,
) -> Json:
    """Some rows of the calls table.

    Args:
      connection: The recording, open for reading.
      columns: Its calls.
      nodes: Only calls of these nodes.
      kind: Only `forward` or only `gradient` calls.
      status: Only calls with this status.
      sort: One of `SORTS`.
      descending: Largest first.
      offset: Number of the first row.
      limit: How many rows at most.
      find: A call whose row number is wanted too (`index`, None if it is not in the table).
      only: Numbers of the calls that are wanted; None for all.
    """
    order = ordered(columns, nodes, kind, status, sort, descending)
    if only is not None:
        order = order[np.isin(columns.id[order], only)]
    picked = order[max(0, offset) : max(0, offset) + min(limit, 1000)]
    index = None
    if find is not None:
        at = np.flatnonzero(columns.id[order] == find)
        index = int(at[0]) if len(at) else None
    failed = columns.id[picked[columns.status[picked] == ERROR]].tolist()
    return {
        "total": len(order),
        "offset": offset,
        "index": index,
        "rows": rows(
            columns, picked, failures(connection, failed), not_finite(connection, columns.id[picked].tolist())
        ),
    }


def ordered(
    columns: Columns, nodes: Sequence[int] | None, kind: str | None, status: str | None, sort: str, descending: bool
) -> Array:
    """Positions of the calls that pass the filters, in the order asked for."""
    key = ("order", None if nodes is None else tuple(nodes), kind, status, sort, descending)
    return columns.cached(key, lambda: _ordered(columns, nodes, kind, status, sort, descending))


def _ordered(
    columns: Columns, nodes: Sequence[int] | None, kind: str | None, status: str | None, sort: str, descending: bool
) -> Array:
    mask = np.ones(len(columns), bool)
    if nodes is not None:
        mask &= np.isin(columns.node, list(nodes))
    if kind in ("forward", "gradient"):
        mask &= (columns.kind == GRADIENT) == (kind == "gradient")
    if status in _STATUS:
        mask &= columns.status == _STATUS.index(status)
    positions = np.flatnonzero(mask)
    if sort in SORTS and sort != "id":
        key = getattr(columns, sort)[positions].astype(np.float64)
        missing = np.isnan(key) | ((key < 0) & (sort == "duration"))
        # What was not measured comes last in both directions.
        key = np.where(missing, np.inf, -key if descending else key)
        return positions[np.argsort(key, kind="stable")]
    return positions[::-1] if descending else positions


def failures(connection: sqlite3.Connection, ids: Sequence[int]) -> dict[int, str]:
    """Types of the exceptions of these calls."""
    result: dict[int, str] = {}
    for low in range(0, len(ids), 500):
        marks = ",".join(str(int(i)) for i in ids[low : low + 500])
        result.update(
            connection.execute(
                "SELECT call.id, failure.type FROM call JOIN failure ON failure.id = call.failure"
                f" WHERE call.id IN ({marks})"
            )
        )
    return result


def not_finite(connection: sqlite3.Connection, ids: Sequence[int] | None = None) -> dict[int, str]:
    """`NaN` or `Inf` by call, of these calls that gave such a value, or the first of all that did."""
    asked = "" if ids is None else f" AND call IN ({','.join(str(int(i)) for i in ids)})"
    found = connection.execute(
        "SELECT call, CASE WHEN max(nan) > 0 THEN 'NaN' ELSE 'Inf' END FROM value"
        f" WHERE role = 'output' AND (nan > 0 OR inf > 0){asked} GROUP BY call LIMIT {_MOST_ODD}"
    )
    return {int(call): str(odd) for call, odd in found}


def rows(columns: Columns, positions: Array, types: dict[int, str], odd: dict[int, str]) -> list[Json]:
    """Rows of the calls table; numbers that are not known are None."""
    result = []
    held = {stop.call for stop in columns.stops if stop.open}
    for position in positions.tolist():
        end = int(columns.end[position])
        call = int(columns.id[position])
        result.append(
            {
                "id": call,
                "node": int(columns.node[position]),
                "kind": "gradient" if columns.kind[position] == GRADIENT else "forward",
                "thread": int(columns.thread[position]),
                "start_ns": int(columns.start[position]),
                "duration_ns": None if end < 0 else int(columns.duration[position]),
                "held_here": call in held,
                **{f"{name}_ns": _known(getattr(columns, name)[position]) for name in ("wait", "held", "released")},
                "status": _STATUS[int(columns.status[position])],
                "failure": types.get(call),
                "odd": odd.get(call),
            }
        )
    return result


def detail(
    connection: sqlite3.Connection, facts: ProgramFacts, columns: Columns, call: int, *, of_page: bool = False
) -> Json | None:
    """Everything about one call, or None if the recording does not hold it.

    Args:
      connection: The recording, open for reading.
      facts: Its small tables.
      columns: Its calls.
      call: Its id.
      of_page: For a page that cannot ask: with the first images of batches, without what the page holds by node.
    """
    row = connection.execute(
        "SELECT node, kind, forward, run, runs, thread, start_ns, end_ns, cpu_ns, status, failure, tape FROM call"
        " WHERE id = ?",
        (call,),
    ).fetchone()
    if row is None:
        return None
    node_id, kind, forward, run, runs, thread, start, end, cpu, status, failure, tape = row
    previous, following = _neighbours(columns, facts, call, node_id, kind)
    gradients = [i for (i,) in connection.execute("SELECT id FROM call WHERE forward = ? ORDER BY id", (call,))]
    origin = columns.origin_ns
    index = columns.find(call)
    stopped = 0 if index is None else int(columns.stopped[index])
    if index is not None and columns.status[index] == INTERRUPTED:
        status = "interrupted"
    return {
        "id": call,
        "node": node_id,
        "group": facts.group_of.get(node_id, node_id),
        "name": facts.label(node_id),
        "kind": kind,
        "thread": thread,
        "thread_name": facts.threads.get(thread, f"thread {thread}"),
        "status": status,
        "start_ns": start - origin,
        "end_ns": None if end is None else end - origin,
        "duration_ns": None if end is None else max(0, end - start - stopped),
        "stopped_ns": stopped,
        "held_here": any(stop.open and stop.call == call for stop in columns.stops),
        "cpu_ns": cpu,
        "forward": forward,
        # Stock TensorFlow may have used another call's tape: then the gradient belongs to that one.
        "tape": tape if tape != forward else None,
        "gradients": gradients,
        "previous": previous,
        "next": following,
        "run": _run(connection, facts, run),
        "runs": json.loads(runs) if runs else [],
        "gil": _gil(connection, call, stopped),
        "values": (values := _values(connection, call, kind, gradients, previous, of_page)),
        "trends": _trends(connection, facts, columns, node_id, kind, values),
        "failure": _failure(connection, facts, failure),
        **({} if of_page else node_facts(facts, facts.nodes.get(node_id))),
        "notices": notices(connection, columns, call),
    }


def _trends(
    connection: sqlite3.Connection, facts: ProgramFacts, columns: Columns, node: int, kind: str, values: Sequence[Json]
) -> dict[str, Json]:
    roles = {"in": "input", "out": "output"} if kind == "forward" else {"grad in": "input", "grad out": "output"}
    scalars = [
        (roles[value["role"]], value["position"])
        for value in values
        if value["role"] in roles and value["mean"] is not None and value["min"] == value["max"] and not value["shape"]
    ]
    ids = _ids(columns, facts.group(node), kind)
    key = ("trends", tuple(facts.group(node)), kind, tuple(scalars))
    return columns.cached(key, lambda: {**looks.trends(connection, ids, scalars), **logged(connection, columns, ids)})


def _ids(columns: Columns, nodes: Sequence[int], kind: str) -> Array:
    """Numbers of the calls of these nodes, in their order."""
    key = ("ids", tuple(nodes), kind)
    return columns.cached(key, lambda: columns.id[ordered(columns, nodes, kind, None, "id", False)])


def node_facts(facts: ProgramFacts, node: Node | None) -> Json:
    """What is the same for all calls of a node."""
    if node is None:
        return {"node_kind": None, "trace_stack": [], "body": None, "function": None}
    source_line = facts.source_line(node.file, node.line)
    return {
        "node_kind": node.kind,
        "trace_stack": [_frame(facts, frame) for frame in reversed(node.stack)],
        "body": {"file": node.file, "line": node.line, "place": source_line, "function": node.body},
        "function": node.function,
    }


def _neighbours(
    columns: Columns, facts: ProgramFacts, call: int, node: int, kind: str
) -> tuple[int | None, int | None]:
    """The calls before and after it of the same line of code."""
    ids = _ids(columns, facts.group(node), kind)
    before, after = np.searchsorted(ids, call, "left"), np.searchsorted(ids, call, "right")
    return int(ids[before - 1]) if before else None, int(ids[after]) if after < len(ids) else None


def _run(connection: sqlite3.Connection, facts: ProgramFacts, run: int | None) -> Json | None:
    if run is None:
        return None
    row = connection.execute("SELECT trace, function, name, kind FROM run WHERE id = ?", (run,)).fetchone()
    if row is None:
        return None
    trace = facts.traces.get(row[0])
    function = facts.functions.get(row[1] if row[1] is not None else trace.function if trace else -1)
    return {
        "id": run,
        "kind": row[3],
        "name": function.name if function else row[2],
        "trace": trace.ordinal if trace else None,
    }


def _gil(connection: sqlite3.Connection, call: int, stopped: int) -> Json | None:
    row = connection.execute(
        "SELECT grade, wait_ns, held_ns, released_ns, reacquire_ns, blame FROM gil WHERE call = ?", (call,)
    ).fetchone()
    if row is None:
        return None
    names = ("grade", "wait_ns", "held_ns", "released_ns", "reacquire_ns")
    blame = sorted(json.loads(row[5] or "[]"), key=lambda item: -item[1])
    numbers = dict(zip(names, (*row[:2], *without(stopped, *row[2:5])), strict=True))
    return {**numbers, "resolution_ns": RESOLUTION_NS[grade_of(row[0])], "blame": blame}


def _failure(connection: sqlite3.Connection, facts: ProgramFacts, failure: int | None) -> Json | None:
    if failure is None:
        return None
    row = connection.execute("SELECT type, message, traceback, frames FROM failure WHERE id = ?", (failure,)).fetchone()
    if row is None:
        return None
    return {
        "type": row[0],
        "message": row[1][:20_000],
        "traceback": row[2][-40_000:],
        "frames": [_frame(facts, frame) for frame in read_frames(row[3])],
    }


_VALUE = (
    "role, position, path, dtype, shape, nbytes, min, max, mean, std, nan, inf, zeros, sampled, histogram, text, note,"
    " kept, blob"
)
_NAMES = (*_VALUE.replace("role", "side").replace(" ", "").split(","), "digest")


def _values(
    connection: sqlite3.Connection, call: int, kind: str, gradients: Sequence[int], previous: int | None, batches: bool
) -> list[Json]:
    result = _side(connection, call, previous, {"input": "in", "output": "out"}, batches)
    if kind == "gradient":
        for value in result:
            value["role"] = "grad " + value["role"]
    elif gradients:
        result += _side(connection, gradients[0], None, {"input": "grad in", "output": "grad out"}, batches)
    return result


def _side(
    connection: sqlite3.Connection, call: int, previous: int | None, roles: dict[str, str], batches: bool
) -> list[Json]:
    # A file of version 1 has no digests.
    digest = "digest" if connection.execute("PRAGMA user_version").fetchone()[0] >= 2 else "NULL"
    sql = f"SELECT {_VALUE}, {digest} FROM value WHERE call = ? ORDER BY role, position LIMIT ?"
    before: dict[tuple[str, int], Json] = {}
    if previous is not None:
        unread = sql.replace(" histogram,", " NULL,")
        before = {
            (v["side"], v["position"]): v for v in map(_value, connection.execute(unread, (previous, _MAX_VALUES)))
        }
    result = []
    for value in map(_value, connection.execute(sql, (call, _MAX_VALUES))):
        blob = value.pop("blob")
        kept: Elements | None = elements(connection, blob) if blob and value["kept"] == "full" else None
        other = before.get((value["side"], value["position"]))
        value["delta"] = _delta(connection, value, blob, kept, other)
        del value["digest"]
        value["picture"] = picture(kept) if kept is not None else None
        if batches:
            value["frames"] = frames(kept, 9, SIDE // 2)[0] if kept is not None else []
        value["table"] = small_table(kept) if kept is not None else None
        value["role"] = roles[value.pop("side")]
        result.append(value)
    return result


def _delta(
    connection: sqlite3.Connection, value: Json, blob: bytes | None, kept: Elements | None, other: Json | None
) -> Json | None:
    """How a value differs from the one in the same place of the node's call before; None if that is not known."""
    if other is None:
        return None
    if (value["dtype"], value["shape"]) != (other["dtype"], other["shape"]):
        return {"kind": "type", "text": f"was {other['dtype']}{other['shape'] if other['shape'] is not None else ''}"}
    if (blob and blob == other["blob"]) or (value["digest"] and value["digest"] == other["digest"]):
        return {"kind": "equal"}
    if kept is not None and other["blob"] and other["kept"] == "full":
        largest = difference(kept, elements(connection, other["blob"]))
        return {"kind": "max", "value": largest} if largest is not None else {"kind": "differs"}
    if value["mean"] is not None and other["mean"] is not None:
        same = all(value[name] == other[name] for name in ("min", "max", "mean", "std", "nan", "inf"))
        if same and value["digest"] and other["digest"]:
            return {"kind": "differs"}  # the same numbers in another order, say
        return {"kind": "same-summary"} if same else {"kind": "mean", "value": value["mean"] - other["mean"]}
    return None


def _value(row: tuple[Any, ...]) -> Json:
    value = dict(zip(_NAMES, row, strict=True))
    value["shape"] = _shape(value["shape"]) if value["shape"] else None
    value["histogram"] = json.loads(value["histogram"]) if value["histogram"] else []
    for name in ("min", "max", "mean", "std"):
        number = value[name]
        value[name] = number if number is None or math.isfinite(number) else None
    return value


@functools.lru_cache(maxsize=1000)
def _shape(text: str) -> Any:
    """Few shapes are in most recordings. Nobody changes what this gives."""
    return json.loads(text)


def _frame(facts: ProgramFacts, frame: Any) -> Json:
    return {
        "file": frame.file,
        "line": frame.line,
        "place": facts.source_line(frame.file, frame.line),
        "function": frame.function,
        "text": frame.text,
    }


def _known(number: Any) -> float | None:
    value = float(number)
    return None if np.isnan(value) else value
