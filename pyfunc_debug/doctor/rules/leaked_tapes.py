"""Tapes of forward passes that were never differentiated: TensorFlow keeps them, with all their tensors, for ever."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

_MUCH_BYTES = 10_000_000

NAMES = ("leaked-tapes",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a recording."""
    reader = facts.reader
    rows = reader.rows("SELECT facts FROM notice WHERE rule = 'leaked-tapes' ORDER BY id DESC LIMIT 1")
    if not rows:
        return
    told = json.loads(rows[0][0])
    count, size = told["tapes"], told["nbytes"]
    tapes = "1 tape was" if count == 1 else f"{count:,} tapes were"
    yield Finding(
        "leaked-tapes", "warning" if size >= _MUCH_BYTES else "note", None, (),
        f"{tapes} still kept by TensorFlow at the end for forward passes that nobody differentiated, with "
        f"{size / 1e6:,.1f} MB of inputs and outputs",
        "run inference outside of tf.GradientTape, or switch on pyfunc_debug.exact_gradients(), which drops such tapes",
        None, None,
    )  # fmt: skip
