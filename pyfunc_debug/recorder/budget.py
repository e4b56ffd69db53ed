"""How many bytes a recording may take: of memory while it waits to be written, and of disk."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyfunc_debug.errors import BadOptionError

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_SMALLEST = 1_000_000


def parse_bytes(text: str | int) -> int:
    """`"256MB"` -> 256000000.

    Raises:
      BadOptionError: no such amount, or too little to hold any recording.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", str(text))
    unit = _UNITS.get(match.group(2).lower()) if match else None
    if match is None or unit is None:
        raise BadOptionError(f"budget={text!r} is not an amount of bytes: write 64MB, 1GB or 500000000")
    amount = int(float(match.group(1)) * unit)
    if amount < _SMALLEST:
        raise BadOptionError(f"budget={text!r} is too small: a recording needs at least 1MB")
    return amount


@dataclass(frozen=True)
class Budget:
    """Limits that follow from one number.

    Attributes:
      file_bytes: The file stays below this. Beyond `values_bytes` values are dropped, beyond `calls_bytes` calls are
        counted but not stored; what is left is for nodes, traces and counts.
      queue_bytes: Values waiting to be written keep at most this much memory alive.
      queue_calls: So many calls may wait; more are counted but not stored.
    """

    file_bytes: int

    @property
    def values_bytes(self) -> int:
        return int(self.file_bytes * 0.75)

    @property
    def calls_bytes(self) -> int:
        return int(self.file_bytes * 0.95)

    @property
    def queue_bytes(self) -> int:
        return min(max(self.file_bytes // 4, 1 << 20), 128 << 20)

    @property
    def queue_calls(self) -> int:
        return 200_000
