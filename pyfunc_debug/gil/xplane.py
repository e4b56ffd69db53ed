"""Reads spans of py_function-like ops out of an XSpace file, which TensorFlow's profiler writes.

The format is a protocol buffer (tsl/profiler/protobuf/xplane.proto); only what is needed is decoded, because a window
holds about five other events for each call.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

OPS = (b"EagerPyFunc", b"PyFunc", b"PyFuncStateless")
_MASK = (1 << 64) - 1
_MUL = 0xC6A4A793_5BD1E995


class Event(NamedTuple):
    """One event of a host thread, in ns of the profiler's clock."""

    line: int
    name: bytes
    begin_ns: int
    end_ns: int


def line_of(ident: int) -> int:
    """The id that the profiler gives to the line of a thread.

    It is std::hash of std::thread::id (tsl/platform/default/env.cc), which libstdc++ computes as MurmurHash64A of
    pthread_self(). TensorFlow up to 2.18 keeps its low 32 bits only, so those are used of all.
    """
    data = struct.pack("<Q", ident)
    h = 0xC70F6907 ^ (len(data) * _MUL & _MASK)
    k = int.from_bytes(data, "little") * _MUL & _MASK
    k = (k ^ (k >> 47)) * _MUL & _MASK
    h = (h ^ k) * _MUL & _MASK
    h = (h ^ (h >> 47)) * _MUL & _MASK
    return (h ^ (h >> 47)) & 0xFFFFFFFF


def is_op(name: bytes) -> bool:
    """Whether an event's name, `node:type` or the type alone, is that of a py_function-like op."""
    return name.rpartition(b":")[2] in OPS


def events(data: bytes, marker: bytes) -> list[Event]:
    """Ops and markers in an XSpace.

    Args:
      data: The file's content.
      marker: Prefix of other event names that are wanted.
    """
    return [event for number, plane in _fields(data) if number == 1 for event in _plane(_bytes(plane), marker)]


def _plane(data: bytes, marker: bytes) -> Iterator[Event]:
    lines: list[bytes] = []
    wanted: dict[int, bytes] = {}
    for number, value in _fields(data):
        if number == 3:
            lines.append(_bytes(value))
        elif number == 4:  # map<int64, XEventMetadata>
            entry = dict(_fields(_bytes(value)))
            name = _bytes(dict(_fields(_bytes(entry.get(2, b"")))).get(2, b""))
            if is_op(name) or name.startswith(marker):
                wanted[_int(entry.get(1, 0))] = name
    if not wanted:
        return
    for line in lines:
        ident = start_ns = 0
        raw: list[bytes] = []
        for number, value in _fields(line):
            if number == 4:
                raw.append(_bytes(value))
            elif number == 1:
                ident = _int(value) & 0xFFFFFFFF
            elif number == 3:
                start_ns = _int(value)
        for event in raw:
            # Field 1, the metadata id, comes first: most events are read no further.
            if not event or event[0] != 0x08:
                continue
            kind, _ = _varint(event, 1)
            if kind not in wanted:
                continue
            fields = dict(_fields(event))
            begin_ns = start_ns + _int(fields.get(2, 0)) // 1000
            yield Event(ident, wanted[kind], begin_ns, begin_ns + _int(fields.get(3, 0)) // 1000)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    i, n = 0, len(data)
    while i < n:
        key, i = _varint(data, i)
        kind = key & 7
        value: int | bytes
        if kind == 0:
            value, i = _varint(data, i)
        else:
            size = 8
            if kind == 2:
                size, i = _varint(data, i)
            elif kind == 5:
                size = 4
            elif kind != 1:
                raise ValueError(f"wire type {kind} in a profile")
            value = data[i : i + size]
            i += size
        yield key >> 3, value


def _varint(data: bytes, i: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[i]
        i += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result, i
        shift += 7


def _bytes(value: int | bytes) -> bytes:
    return value if isinstance(value, bytes) else b""


def _int(value: int | bytes) -> int:
    return value if isinstance(value, int) else 0
