"""Tapes of forward passes that were never differentiated: TensorFlow keeps them, with all their tensors, for ever."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pyfunc_debug.pfrec import Reader
from pyfunc_debug.records import Finding

_MUCH_BYTES = 10_000_000


def check(reader: Reader) -> Iterator[Finding]:
    """One finding a recording."""
    rows = reader.rows("SELECT facts FROM notice WHERE rule = 'leaked-tapes' ORDER BY id DESC LIMIT 1")
    if not rows:
        return
    facts = json.loads(rows[0][0])
    count, size = facts["tapes"], facts["nbytes"]
    tapes = "1 tape was" if count == 1 else f"{count:,} tapes were"
    yield Finding(
        "leaked-tapes", "warning" if size >= _MUCH_BYTES else "note", None, (),
        f"{tapes} still kept by TensorFlow at the end for forward passes that nobody differentiated, with "
        f"{size / 1e6:,.1f} MB of inputs and outputs",
        "run inference outside of tf.GradientTape, or switch on pyfunc_debug.exact_gradients(), which drops such tapes",
        None, None,
    )  # fmt: skip
