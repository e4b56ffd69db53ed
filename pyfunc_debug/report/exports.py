"""Recordings for other tools: Parquet for tables, Chrome's and Perfetto's formats for timelines; written as read."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pyfunc_debug.analysis.flat import TABLES, flat_query
from pyfunc_debug.analysis.parquet import ROWS, write_parquet
from pyfunc_debug.errors import BadOptionError, CannotWriteError, NotInstalledError
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.report.packets import Packets
from pyfunc_debug.report.slices import COUNTERS, changes, slices

FORMATS = ("parquet", "chrome", "perfetto")
_KEPT = 10_000
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
        stem = os.path.splitext(reader.name)[0]
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
            file.write(lead + event)
            lead = ",\n"
        file.write("\n]}\n")


def _chrome_events(readers: Iterable[Reader]) -> Iterator[str]:
    """Events, as text."""
    encode = json.JSONEncoder(ensure_ascii=False).encode  # Perfetto shows an escaped ∇ as it stands
    for reader in readers:
        pid = reader.meta["pid"]
        yield encode({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": reader.name}})
        for order, thread in enumerate(reader.threads()):
            of = {"ph": "M", "pid": pid, "tid": thread.id}
            yield encode({**of, "name": "thread_name", "args": {"name": thread.name}})
            yield encode({**of, "name": "thread_sort_index", "args": {"sort_index": order}})
        yield from _chrome_slices(reader, pid, encode)
        for name in COUNTERS:
            head = f'{{"ph": "C", "pid": {pid}, "name": "{name}", "ts": '
            for times, counts in changes(reader, name):
                for at_ns, count in zip(times, counts, strict=True):
                    yield f'{head}{at_ns / 1000}, "args": {{"value": {count}}}}}'


def _chrome_slices(reader: Reader, pid: int, encode: Callable[[Any], str]) -> Iterator[str]:
    """What repeats is encoded once."""

    @functools.lru_cache(maxsize=_KEPT)
    def head(thread: int, name: str, category: str) -> str:
        return encode({"ph": "X", "pid": pid, "tid": thread, "name": name, "cat": category})[:-1]

    @functools.lru_cache(maxsize=_KEPT)
    def told(name: str, value: Any) -> str:
        return "" if value is None else f"{encode(name)}: {encode(value)}"

    for thread, start, duration, name, category, facts, flow, arrives, leaves in slices(reader):
        event = f'{head(thread, name, category)}, "ts": {start / 1000}, "dur": {duration / 1000}'
        args = ", ".join([text for fact in facts if (text := told(*fact))])
        if args:
            event += f', "args": {{{args}}}'
        if flow is not None:
            ties = {"bind_id": hex(pid << 32 | flow), "flow_in": arrives, "flow_out": leaves}
            event += f", {encode(ties)[1:-1]}"
        yield f"{event}}}"


def _perfetto(readers: Sequence[Reader], out: str) -> None:
    """Perfetto's own track events."""
    from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

    with open(out, "wb") as file:
        builder = StreamingTraceProtoBuilder(file)
        for reader in readers:
            pid = int(reader.meta["pid"])
            packet = builder.create_packet()
            packet.track_descriptor.uuid = process = pid << 32 | _NO_THREAD
            packet.track_descriptor.process.pid = pid
            packet.track_descriptor.process.process_name = reader.name
            builder.write_packet(packet)
            for thread in reader.threads():
                packet = builder.create_packet()
                track = packet.track_descriptor
                track.uuid = pid << 32 | thread.id
                track.thread.pid, track.thread.tid = pid, thread.native_id
                track.thread.thread_name = thread.name
                builder.write_packet(packet)
            with Packets(file, pid) as packets:
                packets.draw(slices(reader))
            for number, name in enumerate(COUNTERS, 1):
                packet = builder.create_packet()
                track = packet.track_descriptor
                track.uuid, track.parent_uuid, track.name = process - number, process, name
                track.counter.SetInParent()
                builder.write_packet(packet)
                with Packets(file, pid) as packets:
                    for times, counts in changes(reader, name):
                        packets.count(track.uuid, times, counts)
