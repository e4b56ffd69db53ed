"""Recordings for other tools: Parquet for tables, Chrome's and Perfetto's formats for timelines; written as read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pyfunc_debug.analysis.flat import TABLES, flat_query
from pyfunc_debug.analysis.parquet import ROWS, write_parquet
from pyfunc_debug.errors import BadOptionError, CannotWriteError, NotInstalledError
from pyfunc_debug.pfrec import Reader

FORMATS = ("parquet", "chrome", "perfetto")
_NO_THREAD = 0xFFFF_FFFF
"""Of the numbers that name tracks of a process: no thread has it, or those right below it."""


class Slice(NamedTuple):
    """A stretch of time on a thread. `flow` ties a forward call (which begins it) to its gradient calls."""

    thread: int
    start_ns: int
    duration_ns: int
    name: str
    category: str
    facts: dict[str, Any]
    flow: int | None = None
    begins: bool = False


_COUNTERS = {
    "bodies running": "SELECT start_ns, end_ns FROM call WHERE end_ns IS NOT NULL",
    "waiting for the GIL": "SELECT c.start_ns - g.wait_ns, c.start_ns FROM call c JOIN gil g ON g.call = c.id "
    "WHERE g.wait_ns > 0 AND c.end_ns IS NOT NULL",
}
"""By name of the counter, the stretches of time that it counts: how many there are at once."""


def export(readers: Sequence[Reader], path: str | os.PathLike[str], kind: str) -> str:
    """Writes recordings in another format; an older file is replaced.

    Args:
      readers: The recordings, one a process.
      path: The file; a folder for parquet.
      kind: One of FORMATS.

    Returns:
      The absolute path of what was written.

    Raises:
      BadOptionError: no such format.
      NotInstalledError: its package is not installed.
      CannotWriteError: it cannot be written there.
    """
    out = os.path.abspath(os.fspath(path))
    writers: dict[str, Callable[[Sequence[Reader], str], None]] = {
        "parquet": _parquet, "chrome": _chrome, "perfetto": _perfetto
    }  # fmt: skip
    if kind not in writers:
        raise BadOptionError(f"format={kind!r} is not one of {', '.join(FORMATS)}")
    try:
        writers[kind](readers, out)
    except OSError as error:
        raise CannotWriteError(f"cannot write {out}: {error.strerror or error}") from error
    except ImportError as error:
        package = {"parquet": "pyarrow"}.get(kind, kind)
        raise NotInstalledError(f"--format {kind} needs {package}: pip install {package}") from error
    return out


def _parquet(readers: Sequence[Reader], out: str) -> None:
    """`OUT/calls/process=PID/NAME.parquet`, and so on for each table."""
    for reader in readers:
        stem = os.path.splitext(os.path.basename(reader.path))[0]
        for table in TABLES:
            query, types = flat_query(reader, table)
            folder = os.path.join(out, table, f"process={reader.meta['pid']}")
            os.makedirs(folder, exist_ok=True)
            write_parquet(os.path.join(folder, f"{stem}.parquet"), types, reader.pages(query, ROWS))


def _slices(reader: Reader) -> Iterator[Slice]:
    """Graph traces, runs, then calls, each with what it waited for the GIL before."""
    functions = {one.id: one.name for one in reader.functions()}
    for row in reader.traces():
        name = f"trace {functions.get(row.function)}"
        yield Slice(row.thread, row.start_ns, row.duration_ns, name, "graph trace", {"signature": row.signature})
    runs = "SELECT thread, start_ns, duration_ns, function, name, id FROM run WHERE duration_ns IS NOT NULL"
    for thread, start, duration, function, own, number in _rows(reader, runs):
        yield Slice(thread, start, duration, f"run {functions.get(function, own)}", "run", {"run": number})
    calls = (
        "SELECT c.thread, c.start_ns, c.end_ns, n.body, c.kind, c.id, c.status, c.run, c.forward, g.wait_ns, "
        "g.held_ns, g.released_ns, "
        "(SELECT group_concat(v.path || ' ' || v.text, '; ') FROM value v WHERE v.call = c.id AND v.role = 'input'), "
        "c.kind = 'forward' AND EXISTS (SELECT 1 FROM call o WHERE o.forward = c.id) "
        "FROM call c JOIN node n ON n.id = c.node LEFT JOIN gil g ON g.call = c.id ORDER BY c.id"
    )
    for thread, start, end, body, kind, number, status, run, forward, wait, held, free, inputs, first in _rows(
        reader, calls
    ):
        if end is None:
            continue
        if wait:
            yield Slice(thread, start - wait, wait, "waits for the GIL", "gil", {"call": number})
        facts = {"call": number, "status": status, "run": run, "inputs": inputs}
        facts |= {name: ns / 1e6 for name, ns in (("held_ms", held), ("released_ms", free)) if ns is not None}
        name = f"∇ {body}" if kind == "gradient" else body
        flow = number if first else forward
        yield Slice(thread, start, end - start, name, kind, facts, flow, bool(first))


def _counts(reader: Reader, stretches: str) -> Iterator[tuple[int, int]]:
    """When a counter changes, and what it is from then on."""
    query = (
        f"WITH stretch(begin, until) AS ({stretches}) SELECT at, sum(change) OVER (ORDER BY at, change) FROM "
        "(SELECT begin AS at, 1 AS change FROM stretch UNION ALL SELECT until, -1 FROM stretch)"
    )
    last: tuple[int, int] | None = None
    for at, count in _rows(reader, query):
        if last is not None and last[0] != at:
            yield last
        last = at, count
    if last is not None:
        yield last


def _rows(reader: Reader, query: str) -> Iterator[tuple[Any, ...]]:
    return reader.stream(query)[1]


def _chrome(readers: Sequence[Reader], out: str) -> None:
    """The JSON of chrome://tracing, which Perfetto's page reads as well."""
    with open(out, "w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [')
        lead = "\n"
        for event in _chrome_events(readers):
            file.write(lead + json.dumps(event))
            lead = ",\n"
        file.write("\n]}\n")


def _chrome_events(readers: Iterable[Reader]) -> Iterator[dict[str, Any]]:
    for reader in readers:
        pid = reader.meta["pid"]
        for thread in reader.threads():
            yield {"ph": "M", "pid": pid, "tid": thread.id, "name": "thread_name", "args": {"name": thread.name}}
        for one in _slices(reader):
            at = {"pid": pid, "tid": one.thread, "ts": one.start_ns / 1000, "name": one.name, "cat": one.category}
            yield {"ph": "X", **at, "dur": one.duration_ns / 1000, "args": one.facts}
            if one.flow is not None:
                tie = {"ph": "s"} if one.begins else {"ph": "f", "bp": "e"}
                yield {**tie, **at, "name": "gradient", "cat": "gradient", "id": hex(pid << 32 | one.flow)}
        for name, stretches in _COUNTERS.items():
            for at_ns, count in _counts(reader, stretches):
                yield {"ph": "C", "pid": pid, "ts": at_ns / 1000, "name": name, "args": {"value": count}}


def _perfetto(readers: Sequence[Reader], out: str) -> None:
    """Perfetto's own track events."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
    from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

    with open(out, "wb") as file:
        builder = StreamingTraceProtoBuilder(file)
        for reader in readers:
            pid = int(reader.meta["pid"])
            for thread in reader.threads():
                packet = builder.create_packet()
                track = packet.track_descriptor
                track.uuid = pid << 32 | thread.id
                track.thread.pid, track.thread.tid = pid, thread.native_id
                track.thread.thread_name = thread.name
                builder.write_packet(packet)
            for one in _slices(reader):
                packet = builder.create_packet()
                packet.timestamp, packet.trusted_packet_sequence_id = one.start_ns, 1
                event = packet.track_event
                event.type, event.track_uuid = TrackEvent.TYPE_SLICE_BEGIN, pid << 32 | one.thread
                event.name = one.name
                event.categories.append(one.category)
                if one.flow is not None:
                    event.flow_ids.append(pid << 32 | one.flow)
                for key, value in one.facts.items():
                    if value is not None:
                        note = event.debug_annotations.add()
                        note.name, note.string_value = key, str(value)
                builder.write_packet(packet)
                end = builder.create_packet()
                end.timestamp, end.trusted_packet_sequence_id = one.start_ns + one.duration_ns, 1
                end.track_event.type, end.track_event.track_uuid = TrackEvent.TYPE_SLICE_END, event.track_uuid
                builder.write_packet(end)
            _perfetto_counters(builder, reader, pid, TrackEvent.TYPE_COUNTER)


def _perfetto_counters(builder: Any, reader: Reader, pid: int, kind: int) -> None:
    """A track for the process, and in it one for each counter."""
    packet = builder.create_packet()
    packet.track_descriptor.uuid = process = pid << 32 | _NO_THREAD
    packet.track_descriptor.process.pid = pid
    builder.write_packet(packet)
    for number, (name, stretches) in enumerate(_COUNTERS.items(), 1):
        packet = builder.create_packet()
        track = packet.track_descriptor
        track.uuid, track.parent_uuid, track.name = process - number, process, name
        track.counter.SetInParent()
        builder.write_packet(packet)
        for at_ns, count in _counts(reader, stretches):
            packet = builder.create_packet()
            packet.timestamp, packet.trusted_packet_sequence_id = at_ns, 1
            event = packet.track_event
            event.type, event.track_uuid, event.counter_value = kind, track.uuid, count
            builder.write_packet(packet)
