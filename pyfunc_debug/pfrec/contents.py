"""Elements of kept values as bytes and back: raw little-endian memory, or JSON for strings. No pickle."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from typing import Any

import numpy as np


def encode(array: np.ndarray[Any, Any]) -> tuple[bytes, str, str, str, bytes]:
    """(digest, encoding, dtype, shape, data) of an array, ready for the table `blob`."""
    shape = json.dumps(array.shape)
    if array.dtype.hasobject or array.dtype.kind in "SU":
        items = [_base64(item) for item in array.reshape(-1)]
        encoding, dtype, data = "strings", "string", json.dumps(items).encode()
    else:
        encoding, dtype = "raw", array.dtype.name
        array = np.asarray(array, order="C")
        if array.dtype.byteorder == ">":
            array = array.astype(array.dtype.newbyteorder("<"))
        data = array.tobytes()
    digest = hashlib.blake2b(f"{encoding} {dtype}{shape}\n".encode(), digest_size=16)
    digest.update(data)
    return digest.digest(), encoding, dtype, shape, data


def most_bytes(array: np.ndarray[Any, Any]) -> int:
    """How many bytes `encode` makes of an array, at most; more only for texts beyond ASCII."""
    if array.dtype.hasobject or array.dtype.kind in "SU":
        return sum(4 + (len(item) + 2) // 3 * 4 if isinstance(item, (bytes, str)) else 0 for item in array.reshape(-1))
    return int(array.nbytes)


def decode(encoding: str, dtype: str, shape: str, data: bytes) -> Any:
    """The array again; strings come as an object array of bytes."""
    dims = tuple(json.loads(shape))
    if encoding == "strings":
        items = [base64.b64decode(item) for item in json.loads(data)]
        if len(items) != math.prod(dims):
            raise ValueError(f"{len(items):,} strings for the shape {shape}")
        array = np.empty(dims, dtype=object)
        array.reshape(-1)[:] = items
        return array
    return np.frombuffer(data, dtype=_dtype(dtype)).reshape(dims).copy()


def _base64(item: Any) -> str:
    return base64.b64encode(item if isinstance(item, bytes) else str(item).encode(errors="surrogatepass")).decode()


def _dtype(name: str) -> Any:
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes  # comes with TensorFlow: bfloat16, the float8 and int4 families

        return np.dtype(getattr(ml_dtypes, name))
