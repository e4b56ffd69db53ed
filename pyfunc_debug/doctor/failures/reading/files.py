"""The first bytes, lines and records of the files that a program reads: of regular ones only, as a pipe would wait."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from contextlib import suppress
from typing import IO

_PACKED = {b"\x1f\x8b": "GZIP", b"\x78\x01": "ZLIB", b"\x78\x9c": "ZLIB", b"\x78\xda": "ZLIB"}
_LONGEST_LINE = 10_000
_LONGEST_RECORD = 16_000_000


def first_bytes(name: str, count: int = 8) -> bytes:
    """The first bytes of a file; empty where there is none."""
    with suppress(OSError, ValueError):
        if os.path.isfile(name):
            with open(name, "rb") as file:
                return file.read(count)
    return b""


def packing(head: bytes) -> str:
    """What a file that begins with `head` is compressed with, as TensorFlow calls it: "GZIP", "ZLIB" or ""."""
    return _PACKED.get(head[:2], "")


def first_line(path: object) -> str | None:
    """The first line of a file, without its end; None where `path`, or a list of that alone, is not one's name."""
    path = path[0] if isinstance(path, (list, tuple)) and len(path) == 1 else path
    with suppress(OSError, ValueError):  # a UnicodeDecodeError is a ValueError
        if isinstance(path, str) and os.path.isfile(path):
            with open(path, encoding="utf-8") as lines:
                return lines.readline(_LONGEST_LINE).rstrip("\r\n")
    return None


def first_record(name: str) -> bytes | None:
    """The first record of a TFRecord file, also of a packed one; None where that is not one."""
    kind = packing(first_bytes(name))
    with suppress(OSError, EOFError, ValueError, struct.error, zlib.error):
        if not os.path.isfile(name):
            return None
        with open(name, "rb") as file:
            if kind == "ZLIB":
                with suppress(zlib.error, struct.error):
                    whole = zlib.decompressobj().decompress(file.read(_LONGEST_RECORD), _LONGEST_RECORD)
                    return whole[12 : 12 + struct.unpack("<Q", whole[:8])[0]]
                file.seek(0)  # a record whose length begins so
            if kind == "GZIP":
                with gzip.open(file) as unpacked:
                    return _record(unpacked)
            return _record(file)
    return None


def _record(file: IO[bytes] | gzip.GzipFile) -> bytes | None:
    """A length of 8 bytes, 4 of a checksum, and the record: the format of TFRecord."""
    length: int = struct.unpack("<Q", file.read(12)[:8])[0]
    return file.read(length) if length <= _LONGEST_RECORD else None
