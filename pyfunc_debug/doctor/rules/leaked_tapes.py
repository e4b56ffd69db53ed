"""Tapes of forward passes that were never differentiated: TensorFlow keeps them, with all their tensors, forever."""

from __future__ import annotations

from collections.abc import Iterator

from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.graphs import growing
from pyfunc_debug.doctor.locations import started
from pyfunc_debug.records import Finding

_MUCH_BYTES = 10_000_000
_LITTLE_BYTES = 1_000_000
"""Less than this is not reported: one last forward pass under a tape is in many programs."""

NAMES = ("leaked-tapes",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a recording, at the node that keeps most."""
    for node, _, noticed in facts.notices["leaked-tapes"][-1:]:
        count, size = noticed["tapes"], noticed["nbytes"]
        if size < _LITTLE_BYTES:
            return
        tapes = "1 tape" if count == 1 else f"{count:,} tapes"
        body = "" if node is None else f", most of them for {facts.nodes[node].body}"
        site = facts.site(node)
        last = facts.calls(node).last if node is not None else None
        where = started(facts.reader, last) if last is not None else ""
        yield Finding(
            "leaked-tapes", "warning" if size >= _MUCH_BYTES else "note", node, (),
            f"TensorFlow still kept {tapes} at the end, with {size / 1e6:,.1f} MB of inputs and outputs{body}. Each is "
            "from a forward pass under a tf.GradientTape that nobody differentiated, and stays forever. Exact "
            "gradients drop such tapes; or call the function outside of `with tf.GradientTape()` where no gradient is "
            "needed",
            facts.exact(),
            site.file if site else None, site.line if site else None,
            evidence=(
                *((f"its last call is #{last}{where}",) if last is not None else ()),
                *growing.growth(facts, "tapes", "tapes kept"), *growing.memory(facts),
            ),
        )  # fmt: skip
