"""How TensorFlow's profiler names py_function-like ops and the lines of threads."""

from __future__ import annotations

import struct

OPS = (b"EagerPyFunc", b"PyFunc", b"PyFuncStateless")
_MASK = (1 << 64) - 1
_MUL = 0xC6A4A793_5BD1E995


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
