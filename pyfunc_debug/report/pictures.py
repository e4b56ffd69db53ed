"""Kept elements as small pictures and tables: an image where the shape suggests one, a heat map for a matrix."""

from __future__ import annotations

import base64
import sqlite3
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfunc_debug.pfrec.contents import decode

Json = dict[str, Any]
SIDE = 64
LARGE = 256
"""Pixels of a side: of a thumbnail, and of a picture that somebody asks for."""
_MAX_CELLS = 48
_BYTES_FROM = 16.0
_MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of one value; `array` is None for strings, whose decoded texts are in `texts`."""

    array: np.ndarray[Any, Any] | None
    texts: tuple[str, ...] = ()


def elements(connection: sqlite3.Connection, digest: bytes) -> Elements | None:
    """Reads kept elements; None if they are missing, too large for a picture, or of an unknown type."""
    row = connection.execute(
        "SELECT encoding, dtype, shape, CASE WHEN length(data) <= ? THEN data END FROM blob WHERE digest = ?",
        (_MAX_BYTES, digest),
    ).fetchone()
    if row is None or row[3] is None:
        return None
    try:
        array = decode(*row)
    except (ValueError, TypeError, AttributeError):
        return None
    if array.dtype != object:
        return Elements(array)
    texts = [text[:200].decode("utf-8", "backslashreplace") for text in array.reshape(-1)[:_MAX_CELLS].tolist()]
    return Elements(None, tuple(texts))


def difference(new: Elements, old: Elements | None) -> float | None:
    """Largest absolute difference of two arrays of one shape; None where that has no meaning."""
    if (
        old is None
        or new.array is None
        or old.array is None
        or new.array.shape != old.array.shape
        or not new.array.size
    ):
        return None
    if new.array.dtype.kind not in "biufcV":
        return None
    wide = np.complex128 if new.array.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        try:
            gap = np.abs(new.array.astype(wide) - old.array.astype(wide))
        except (TypeError, ValueError):
            return None
    finite = gap[np.isfinite(gap)]
    return float(finite.max()) if finite.size else None


def small_table(kept: Elements) -> list[str] | None:
    """The elements themselves as texts when there are few; None otherwise."""
    if kept.array is None:
        return list(kept.texts) if kept.texts else None
    if not 1 < kept.array.size <= _MAX_CELLS or kept.array.dtype.kind not in "biufc":
        return None
    return [
        f"{element:.4g}" if kept.array.dtype.kind in "fc" else str(element) for element in kept.array.ravel().tolist()
    ]


def frames(kept: Elements, most: int = 16, side: int = SIDE) -> tuple[list[Json], int]:
    """The first images of a batch as thumbnails, and how many it has; nothing of anything else."""
    array = kept.array
    channels = array is not None and array.ndim >= 3 and array.shape[-1] in (1, 3, 4)
    if array is None or array.ndim < (4 if channels else 3) or len(array) < 2:
        return [], 0
    found = [picture(Elements(one), side) for one in array[:most]]
    shown = [one for one in found if one is not None]
    return (shown, len(array)) if len(shown) == len(found) else ([], 0)


def picture(kept: Elements, side: int = SIDE) -> Json | None:
    """A picture of at most `side` x `side` pixels, or None if the shape does not suggest one.

    Returns:
      `width`, `height`, `kind` (`rgb`, `gray` or `diverging`), `low` and `high` (the values of the darkest and the
      brightest), and `data`: base64 of one byte (three for rgb) a pixel.
    """
    array = kept.array
    if array is None or array.size < 16 or array.dtype.kind not in "biuf":
        return None
    while array.ndim > 3 or (array.ndim == 3 and array.shape[-1] not in (1, 3, 4) and array.shape[0] > 0):
        array = array[0]
    if array.ndim == 3 and array.shape[-1] == 1:
        array = array[..., 0]
    if array.ndim == 1:
        edge = int(array.size**0.5)
        # A flattened square image is common in lessons; other vectors are better served by their histogram.
        if edge * edge != array.size or edge < 8:
            return None
        array = array.reshape(edge, edge)
    if array.ndim < 2 or min(array.shape[:2]) < 4 or max(array.shape[:2]) > 40 * min(array.shape[:2]):
        return None
    whole = array.dtype.kind in "biu"
    with np.errstate(invalid="ignore"):  # NumPy warns of some NaN
        array = _shrink(array[..., :3] if array.ndim == 3 else array, side).astype(np.float64)
    finite = array[np.isfinite(array)]
    if not finite.size:
        return None
    low, high = float(finite.min()), float(finite.max())
    if array.ndim == 3 and (low < 0 or high > 255 or high < 0.05):
        # Three channels, but no colours (a gradient, say): how large each element is says more.
        array = array.mean(-1)
        low, high = float(np.nanmin(array)), float(np.nanmax(array))
    kind = "rgb" if array.ndim == 3 else "gray"
    if low < 0 < high:
        high = max(-low, high)
        low, kind = -high, "diverging"
    elif kind == "rgb":
        # Float images are 0 to 1 or 0 to 255; what is a little above 1 is the former, times something.
        low, high = 0.0, 1.0 if high <= 1.5 else 255.0 if whole or high > _BYTES_FROM else high
    span = high - low or 1.0
    pixels = np.clip(np.nan_to_num((array - low) / span * 255), 0, 255).astype(np.uint8)
    return {
        "width": int(array.shape[1]),
        "height": int(array.shape[0]),
        "kind": kind,
        "low": low,
        "high": high,
        "data": base64.b64encode(np.ascontiguousarray(pixels).tobytes()).decode("ascii"),
    }


def png(made: Json) -> bytes:
    """A picture as a PNG file (RFC 2083), in the panel's colours."""
    data = np.frombuffer(base64.b64decode(made["data"]), np.uint8).reshape(made["height"], made["width"], -1)
    if made["kind"] == "diverging":  # Okabe-Ito blue below zero, vermilion above, as in figures.ts
        apart = (data.astype(np.float64) - 127.5) / 127.5
        data = np.uint8(255 + (np.where(apart < 0, [0, 114, 178], [213, 94, 0]) - 255) * np.abs(apart))
    rows = b"".join(b"\0" + row.tobytes() for row in data)
    colours = 0 if data.shape[-1] == 1 else 2
    head = struct.pack(">IIBBBBB", made["width"], made["height"], 8, colours, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts
    )


def _shrink(array: np.ndarray[Any, Any], most: int) -> np.ndarray[Any, Any]:
    rows, columns = (max(1, -(-side // most)) for side in array.shape[:2])
    return array[::rows, ::columns]
