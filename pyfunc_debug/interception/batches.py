"""The first batch of a generator that Keras reads, looked at again when it has made the second: memory used again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyfunc_debug.events import Notice, Observer
from pyfunc_debug.values.digest import LARGEST_BYTES, digest_of

_Digest = dict[tuple[int, ...], bytes | None]


def digests(batch: Any) -> _Digest:
    """What the NumPy arrays of a batch hold, by their places in its tuples and lists; empty of large ones."""
    import numpy as np

    arrays = {
        place: one for place, one in _leaves(batch, ()) if isinstance(one, np.ndarray) and one.dtype.kind in "biuf"
    }
    if sum(one.nbytes for one in arrays.values()) > LARGEST_BYTES:
        return {}
    return {place: digest_of(one) for place, one in arrays.items()}


def _leaves(value: Any, place: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Any]]:
    if type(value) in (tuple, list):
        for index, one in enumerate(value):
            yield from _leaves(one, (*place, index))
    else:
        yield place, value


def tell(generator: Any, first: Any, before: _Digest, observer: Observer) -> None:
    """Tells which arrays of the first batch are others than when it was made.

    Args:
      generator: The user's generator, which stands at the yield of the second.
      first: The first batch.
      before: What its arrays held when it was made.
      observer: Who is notified.
    """
    now = digests(first)
    changed = [place for place, digest in before.items() if now.get(place, digest) != digest]
    frame = generator.gi_frame
    if changed and frame is not None:
        file = frame.f_code.co_filename
        observer.notice(
            Notice.REUSED_BATCH, None, None, file=file, line=frame.f_lineno, name=frame.f_code.co_name,
            places=[list(one) for one in changed], sources=[file],
        )  # fmt: skip
