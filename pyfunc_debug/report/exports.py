"""Recordings for other tools: Parquet for tables, Chrome's and Perfetto's formats for timelines; written as read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO

from pyfunc_debug.analysis.flat import TABLES, flat_query
from pyfunc_debug.analysis.parquet import ROWS, write_parquet
from pyfunc_debug.errors import BadOptionError, CannotWriteError, NotInstalledError
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.report.slices import COUNTERS, Slice, changes, slices

FORMATS = ("parquet", "chrome", "perfetto")
_AGAIN = 10_000
"""A packet keeps the memory of every text that it was filled with: after this number, all are made again."""
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
            file.write(lead + event)
            lead = ",\n"
        file.write("\n]}\n")


def _chrome_events(readers: Iterable[Reader]) -> Iterator[str]:
    """Events, as text."""
    encode = json.JSONEncoder(ensure_ascii=False).encode  # Perfetto shows an escaped ∇ as it stands
    for reader in readers:
        pid = reader.meta["pid"]
        name = os.path.basename(reader.path)
        yield encode({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}})
        for order, thread in enumerate(reader.threads()):
            of = {"ph": "M", "pid": pid, "tid": thread.id}
            yield encode({**of, "name": "thread_name", "args": {"name": thread.name}})
            yield encode({**of, "name": "thread_sort_index", "args": {"sort_index": order}})
        heads: dict[tuple[Any, ...], str] = {}
        for one in slices(reader):
            head = heads.get(one[:1] + one[3:5])
            if head is None:
                event = {"ph": "X", "pid": pid, "tid": one.thread, "name": one.name, "cat": one.category}
                head = heads[one[:1] + one[3:5]] = encode(event)[:-1]
            facts = {key: value for key, value in one.facts.items() if value is not None}
            event = {"args": facts} if facts else {}
            if one.flow is not None:
                event |= {"bind_id": hex(pid << 32 | one.flow), "flow_in": one.arrives, "flow_out": one.leaves}
            more = f", {encode(event)[1:]}" if event else "}"
            yield f'{head}, "ts": {one.start_ns / 1000}, "dur": {one.duration_ns / 1000}{more}'
        for name, stretches in COUNTERS.items():
            head = f'{{"ph": "C", "pid": {pid}, "name": "{name}", "ts": '
            for at_ns, count in changes(reader, stretches):
                yield f'{head}{at_ns / 1000}, "args": {{"value": {count}}}}}'


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
            packets = _Packets(file, pid, TrackEvent)
            for one in slices(reader):
                packets.add(one)
            for number, (name, stretches) in enumerate(COUNTERS.items(), 1):
                packet = builder.create_packet()
                track = packet.track_descriptor
                track.uuid, track.parent_uuid, track.name = process - number, process, name
                track.counter.SetInParent()
                builder.write_packet(packet)
                for at_ns, count in changes(reader, stretches):
                    packets.count(track.uuid, at_ns, count)


class _Packets:
    """Writes slices and counters: a packet is made once for each name, and filled in again.

    To make one takes longer than everything else; a million calls have ten million.

    Args:
      file: Where to.
      pid: The process.
      kinds: Perfetto's TrackEvent.
    """

    def __init__(self, file: BinaryIO, pid: int, kinds: Any) -> None:
        from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket

        self._write, self._of, self._kinds, self._new = file.write, pid << 32, kinds, TracePacket
        self._begins: dict[tuple[str, ...], tuple[Any, list[Any]]] = {}
        self._filled = 0
        self._at = TracePacket()
        self._rests: dict[tuple[Any, ...], bytes] = {}

    def _packet(self, kind: int) -> Any:
        packet = self._new(trusted_packet_sequence_id=1)
        packet.track_event.type = kind
        return packet

    def add(self, one: Slice) -> None:
        """Writes a slice, or a moment."""
        if "call" in one.facts:
            self._put(self._fill(one).SerializeToString())
        else:  # many are alike but for their time
            key = one.thread, one.name, one.duration_ns > 0, *one.facts.items()
            self._put(self._rests.get(key) or self._keep(key, self._fill(one)), one.start_ns)
        if one.duration_ns:
            rest = self._rests.get((one.thread,))
            if rest is None:
                packet = self._packet(self._kinds.TYPE_SLICE_END)
                packet.track_event.track_uuid = self._of | one.thread
                rest = self._keep((one.thread,), packet)
            self._put(rest, one.start_ns + one.duration_ns)

    def _fill(self, one: Slice) -> Any:
        """The packet for slices of its name, filled in for this one."""
        facts = {key: value for key, value in one.facts.items() if value is not None}
        key = one.name, one.category, *facts
        self._filled += 1
        if self._filled % _AGAIN == 0:
            self._begins.clear()
        found = self._begins.get(key)
        if found is None:
            found = self._begins[key] = self._named(one, facts)
        packet, notes = found
        event = packet.track_event
        packet.timestamp, event.track_uuid = one.start_ns, self._of | one.thread
        event.type = self._kinds.TYPE_SLICE_BEGIN if one.duration_ns else self._kinds.TYPE_INSTANT
        for note, value in zip(notes, facts.values(), strict=True):
            note.string_value = str(value)
        if one.flow is not None or event.flow_ids:
            event.flow_ids[:] = [] if one.flow is None else [self._of | one.flow]
        return packet

    def _named(self, one: Slice, facts: Iterable[str]) -> tuple[Any, list[Any]]:
        """A packet for slices of a name, and where what is known of them goes."""
        packet = self._packet(self._kinds.TYPE_SLICE_BEGIN)
        packet.track_event.name = one.name
        packet.track_event.categories.append(one.category)
        for name in facts:
            packet.track_event.debug_annotations.add().name = name
        return packet, list(packet.track_event.debug_annotations)

    def count(self, track: int, at_ns: int, value: float) -> None:
        """Writes what a counter is from now on."""
        rest = self._rests.get((track, value))
        if rest is None:
            packet = self._packet(self._kinds.TYPE_COUNTER)
            packet.track_event.track_uuid, packet.track_event.double_counter_value = track, value
            rest = self._keep((track, value), packet)
        self._put(rest, at_ns)

    def _keep(self, key: tuple[Any, ...], packet: Any) -> bytes:
        """A packet without its time, for the next that is like it."""
        if len(self._rests) >= _AGAIN:
            self._rests.clear()
        packet.ClearField("timestamp")
        kept: bytes = packet.SerializeToString()
        self._rests[key] = kept
        return kept

    def _put(self, rest: bytes, at_ns: int | None = None) -> None:
        """As the builder's `write_packet`, which copies it before: field 1 of a Trace, its length, its bytes.

        The time may stand before the rest: the fields of a message come in any order.
        """
        if at_ns is None:
            data = rest
        else:
            self._at.timestamp = at_ns
            data = self._at.SerializeToString() + rest
        length = len(data)
        head = b"\n"
        while length > 127:
            head += bytes((length & 127 | 128,))
            length >>= 7
        self._write(head + bytes((length,)) + data)
