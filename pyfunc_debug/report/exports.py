"""Recordings for other tools: Parquet for tables, Chrome's and Perfetto's formats for timelines; written as read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pyfunc_debug.analysis.flat import TABLES, flat_query
from pyfunc_debug.analysis.parquet import ROWS, write_parquet
from pyfunc_debug.errors import BadOptionError, CannotWriteError, NotInstalledError
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.report.slices import COUNTERS, changes, slices

FORMATS = ("parquet", "chrome", "perfetto")
_NO_THREAD = 0xFFFF_FFFF
"""Of the numbers that name tracks of a process: no thread has it, or those right below it."""


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


def _chrome(readers: Sequence[Reader], out: str) -> None:
    """The JSON of chrome://tracing, which Perfetto's page reads as well."""
    with open(out, "w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [')
        lead = "\n"
        for event in _chrome_events(readers):
            file.write(lead + json.dumps(event, ensure_ascii=False))  # Perfetto shows \u2207 as it stands
            lead = ",\n"
        file.write("\n]}\n")


def _chrome_events(readers: Iterable[Reader]) -> Iterator[dict[str, Any]]:
    for reader in readers:
        pid = reader.meta["pid"]
        yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": os.path.basename(reader.path)}}
        for order, thread in enumerate(reader.threads()):
            of = {"ph": "M", "pid": pid, "tid": thread.id}
            yield {**of, "name": "thread_name", "args": {"name": thread.name}}
            yield {**of, "name": "thread_sort_index", "args": {"sort_index": order}}
        for one in slices(reader):
            event = {
                "ph": "X", "pid": pid, "tid": one.thread, "ts": one.start_ns / 1000, "dur": one.duration_ns / 1000,
                "name": one.name, "cat": one.category,
                "args": {key: value for key, value in one.facts.items() if value is not None},
            }  # fmt: skip
            if one.flow is not None:
                event |= {"bind_id": hex(pid << 32 | one.flow), "flow_in": one.arrives, "flow_out": one.leaves}
            yield event
        for name, stretches in COUNTERS.items():
            for at_ns, count in changes(reader, stretches):
                yield {"ph": "C", "pid": pid, "ts": at_ns / 1000, "name": name, "args": {"value": count}}


def _perfetto(readers: Sequence[Reader], out: str) -> None:
    """Perfetto's own track events."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
    from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

    with open(out, "wb") as file:
        builder = StreamingTraceProtoBuilder(file)
        for reader in readers:
            pid = int(reader.meta["pid"])
            packet = builder.create_packet()
            packet.track_descriptor.uuid = process = pid << 32 | _NO_THREAD
            packet.track_descriptor.process.pid = pid
            packet.track_descriptor.process.process_name = os.path.basename(reader.path)
            builder.write_packet(packet)
            for thread in reader.threads():
                packet = builder.create_packet()
                track = packet.track_descriptor
                track.uuid = pid << 32 | thread.id
                track.thread.pid, track.thread.tid = pid, thread.native_id
                track.thread.thread_name = thread.name
                builder.write_packet(packet)
            for one in slices(reader):
                packet = builder.create_packet()
                packet.timestamp, packet.trusted_packet_sequence_id = one.start_ns, 1
                event = packet.track_event
                event.type = TrackEvent.TYPE_SLICE_BEGIN if one.duration_ns else TrackEvent.TYPE_INSTANT
                event.track_uuid, event.name = pid << 32 | one.thread, one.name
                event.categories.append(one.category)
                if one.flow is not None:
                    event.flow_ids.append(pid << 32 | one.flow)
                for key, value in one.facts.items():
                    if value is not None:
                        note = event.debug_annotations.add()
                        note.name, note.string_value = key, str(value)
                builder.write_packet(packet)
                if one.duration_ns:
                    end = builder.create_packet()
                    end.timestamp, end.trusted_packet_sequence_id = one.start_ns + one.duration_ns, 1
                    end.track_event.type, end.track_event.track_uuid = TrackEvent.TYPE_SLICE_END, event.track_uuid
                    builder.write_packet(end)
            for number, (name, stretches) in enumerate(COUNTERS.items(), 1):
                packet = builder.create_packet()
                track = packet.track_descriptor
                track.uuid, track.parent_uuid, track.name = process - number, process, name
                track.counter.SetInParent()
                builder.write_packet(packet)
                for at_ns, count in changes(reader, stretches):
                    packet = builder.create_packet()
                    packet.timestamp, packet.trusted_packet_sequence_id = at_ns, 1
                    event = packet.track_event
                    event.type, event.track_uuid = TrackEvent.TYPE_COUNTER, track.uuid
                    event.double_counter_value = count
                    builder.write_packet(packet)
