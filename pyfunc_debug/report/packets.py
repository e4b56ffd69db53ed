"""Perfetto's packets of slices and counters: a million calls have sixteen million, so what repeats is encoded once.

What does not change is encoded by the `perfetto` package. Texts of slices, lengths and times are put in here, as
protobuf's wire format wants them (https://protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from typing import Any, BinaryIO

import numpy as np

from pyfunc_debug.report.slices import Facts, Slice

_BYTES = 2
"""Wire type of what has a length before it."""
_AT_ONCE = 4096
_KEPT = 10_000
_TIME = 9
"""Bytes of a time, also where fewer would do: then the length of a packet does not depend on it."""


class Packets:
    """Writes slices and counters of one process, some thousand packets at a time; leaving it writes the rest.

    Args:
      file: Where to.
      pid: The process.
    """

    def __init__(self, file: BinaryIO, pid: int) -> None:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as kinds

        self._write, self._of = file.write, pid << 32
        self._event = kinds.TrackEvent
        fields = kinds.Trace.DESCRIPTOR, kinds.TracePacket.DESCRIPTOR, kinds.TrackEvent.DESCRIPTOR
        trace, packet, event = (one.fields_by_name for one in fields)
        note = kinds.DebugAnnotation.DESCRIPTOR.fields_by_name
        self._head = _tag(trace["packet"].number, _BYTES)
        self._inner: bytes = kinds.TracePacket(trusted_packet_sequence_id=1).SerializeToString()
        self._inner += _tag(packet["track_event"].number, _BYTES)
        self._at = _tag(packet["timestamp"].number, 0)
        self._noted = _tag(event["debug_annotations"].number, _BYTES)
        self._called, self._valued = _tag(note["name"].number, _BYTES), _tag(note["string_value"].number, _BYTES)
        self._begins: dict[tuple[int, str, str, bool], bytes] = {}
        self._kept: dict[Any, bytes] = {}
        self._note = functools.lru_cache(maxsize=_KEPT)(self._fact)
        self._heads: list[bytes] = []
        self._times: list[int] = []

    def __enter__(self) -> Packets:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()

    def draw(self, slices: Iterable[Slice]) -> None:
        """Writes slices and moments."""
        heads, times, kept = self._heads, self._times, self._kept
        for thread, start, duration, name, category, facts, flow, _, _ in slices:
            key = thread, name, category, duration > 0
            if facts and facts[0][0] == "call":  # of one call only
                head = self._packet(self._begin(key, facts, flow))
            else:
                head = kept.get((key, facts)) or self._keep((key, facts), self._begin(key, facts, flow))
            heads.append(head)
            times.append(start)
            if duration:
                heads.append(kept.get(thread) or self._keep(thread, self._end(thread)))
                times.append(start + duration)
            if len(times) >= _AT_ONCE:
                self._flush()

    def count(self, track: int, times: list[int], values: list[float]) -> None:
        """Writes what a counter is from each of these times on."""
        kept = self._kept
        self._times += times
        self._heads += [kept.get((track, one)) or self._keep((track, one), self._counted(track, one)) for one in values]
        self._flush()

    def _begin(self, key: tuple[int, str, str, bool], facts: Facts, flow: int | None) -> bytes:
        """The event that begins a slice."""
        event = self._begins.get(key)
        if event is None:
            thread, name, category, lasts = key
            kind = self._event.TYPE_SLICE_BEGIN if lasts else self._event.TYPE_INSTANT
            event = self._begins[key] = self._encoded(
                type=kind, track_uuid=self._of | thread, name=name, categories=[category]
            )
        for fact in facts:
            event += self._note(*fact)
        if flow is not None:
            event += self._encoded(flow_ids=[self._of | flow])
        return event

    def _end(self, thread: int) -> bytes:
        """The event that ends a thread's innermost slice."""
        return self._encoded(type=self._event.TYPE_SLICE_END, track_uuid=self._of | thread)

    def _counted(self, track: int, value: float) -> bytes:
        """The event of a counter's value."""
        return self._encoded(type=self._event.TYPE_COUNTER, track_uuid=track, double_counter_value=value)

    def _encoded(self, **fields: Any) -> bytes:
        encoded: bytes = self._event(**fields).SerializeToString()
        return encoded

    def _fact(self, name: str, value: Any) -> bytes:
        """What an event says of one fact."""
        if value is None:
            return b""
        called, text = name.encode(), str(value).encode()
        note = self._called + _varint(len(called)) + called + self._valued + _varint(len(text)) + text
        return self._noted + _varint(len(note)) + note

    def _packet(self, event: bytes) -> bytes:
        """A packet up to its time, which may come last: the fields of a message come in any order."""
        inner = self._inner + _varint(len(event)) + event + self._at
        return self._head + _varint(len(inner) + _TIME) + inner

    def _keep(self, key: Any, event: bytes) -> bytes:
        """The packet of an event, for the next that is like it."""
        if len(self._kept) >= _KEPT:
            self._kept.clear()
        packet = self._kept[key] = self._packet(event)
        return packet

    def _flush(self) -> None:
        self._write(b"".join(itertools.chain.from_iterable(zip(self._heads, _times(self._times), strict=True))))
        self._heads.clear()
        self._times.clear()


@functools.lru_cache(maxsize=1024)
def _varint(number: int) -> bytes:
    """A number, seven bits a byte, the lowest first; all bytes but the last have their highest bit set."""
    digits = bytearray()
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])


def _tag(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _times(times: list[int]) -> list[bytes]:
    """Each as a varint of `_TIME` bytes."""
    if not times:
        return []
    digits = np.right_shift(np.array(times, np.int64)[:, None], np.arange(0, 7 * _TIME, 7)).astype(np.uint8)
    digits[:, :-1] |= 128
    digits[:, -1] &= 127
    found: list[bytes] = digits.view(f"V{_TIME}").ravel().tolist()
    return found
