"""Reads events of host threads out of an XSpace file, which TensorFlow's profiler writes.

The format is a protocol buffer (tsl/profiler/protobuf/xplane.proto); only what is asked for is decoded: a session holds
many other events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple


class Event(NamedTuple):
    """One event of a host thread, in ns of the profiler's clock. `stats` only where they were asked for."""

    line: int
    name: bytes
    begin_ns: int
    end_ns: int
    stats: dict[bytes, int | bytes] = {}  # noqa: RUF012 - a named tuple's default; nobody changes it


def events(
    data: bytes, wanted: Callable[[bytes], bool], with_stats: Callable[[bytes], bool] = lambda name: False
) -> list[Event]:
    """Events of all host threads, thread by thread in the order of the file.

    Args:
      data: The file's content.
      wanted: Whether events of this name are.
      with_stats: Whether their stats are, too: numbers and texts by name.
    """
    return [
        event for number, plane in _fields(data) if number == 1 for event in _plane(_bytes(plane), wanted, with_stats)
    ]


def _plane(data: bytes, wanted: Callable[[bytes], bool], with_stats: Callable[[bytes], bool]) -> Iterator[Event]:
    lines: list[bytes] = []
    kinds: dict[int, bytes] = {}
    stats: dict[int, bytes] = {}
    for number, value in _fields(data):
        if number == 3:
            lines.append(_bytes(value))
        elif number == 4:
            key, name = _metadata(value)
            if wanted(name):
                kinds[key] = name
        elif number == 5:
            key, name = _metadata(value)
            stats[key] = name
    if not kinds:
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
            name = kinds.get(kind, b"")
            if not name:
                continue
            begin = duration = 0
            found: dict[bytes, int | bytes] = {}
            for number, value in _fields(event):
                if number == 2:
                    begin = _int(value)
                elif number == 3:
                    duration = _int(value)
                elif number == 4 and with_stats(name):
                    label, stat = _stat(_bytes(value), stats)
                    found[label] = stat
            begin_ns = start_ns + begin // 1000
            yield Event(ident, name, begin_ns, begin_ns + duration // 1000, found)


def _metadata(value: int | bytes) -> tuple[int, bytes]:
    """An entry of map<int64, XEventMetadata> or XStatMetadata: id and name."""
    entry = dict(_fields(_bytes(value)))
    return _int(entry.get(1, 0)), _bytes(dict(_fields(_bytes(entry.get(2, b"")))).get(2, b""))


def _stat(data: bytes, names: dict[int, bytes]) -> tuple[bytes, int | bytes]:
    """An XStat: its name and value. A text may be a reference to a name."""
    name = b""
    value: int | bytes = b""
    for field, one in _fields(data):
        if field == 1:
            name = names.get(_int(one), b"")
        elif field == 7:
            value = names.get(_int(one), b"")
        else:
            value = one
    return name, value


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
