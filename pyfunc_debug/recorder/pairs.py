"""Which forward call a gradient call belongs to, and whose tape it used.

Interception knows for nodes that were made while it was on. For all others TensorFlow's own rule is followed: the tape
is the one of the node's newest finished call (script_ops.py, `tape_cache`); that this is the call it belongs to is
certain only when there was one call since the last gradient.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict

from pyfunc_debug.recorder.ticket import Ticket

_NODES = 20_000
_RECENT = 16


class _Recent:
    """The newest calls of one node, as end, call, end, call, and how many were not differentiated yet."""

    __slots__ = ("calls", "pending")

    def __init__(self) -> None:
        self.calls = array("q")  # there may be thousands of nodes: in a list, each call takes a hundred bytes
        self.pending = 0


class Pairs:
    """Sees all calls in the order of their ends."""

    def __init__(self) -> None:
        self._recent: OrderedDict[str, _Recent] = OrderedDict()

    def forward(self, ticket: Ticket) -> None:
        """A forward call ended."""
        recent = self._recent.get(ticket.token)
        if recent is None:
            if len(self._recent) >= _NODES:  # every eager call has a token of its own: the oldest are forgotten
                self._recent.popitem(last=False)
            recent = self._recent[ticket.token] = _Recent()
        recent.calls.extend((ticket.end_ns, ticket.call))
        if len(recent.calls) > 2 * _RECENT:
            del recent.calls[:2]
        recent.pending += 1

    def gradient(self, ticket: Ticket, forward_token: str | None) -> tuple[int | None, int | None]:
        """The forward call that a gradient call belongs to, and the one whose tape it used; None where not known."""
        if ticket.pair is not None:
            return ticket.pair[0], ticket.pair[1]
        recent = self._recent.get(forward_token or "")
        if recent is None:
            return None, None
        before = [call for end, call in zip(recent.calls[::2], recent.calls[1::2]) if end <= ticket.start_ns]
        tape = before[-1] if before else None
        certain = recent.pending == 1 and tape is not None
        recent.pending = 0
        return (tape if certain else None), tape


def gradient_names(
    pair: tuple[int | None, int | None, tuple[int, ...], tuple[int, ...]] | None,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the gradients coming in and going out: those of the forward outputs and inputs, with a d before."""
    if pair is None:
        return tuple(f"d{name}" for name in outputs), tuple(f"d{name}" for name in inputs)
    dy = tuple(f"d{outputs[index]}" if index < len(outputs) else f"dy[{index}]" for index in pair[2])
    dx = tuple(f"d{inputs[index]}" if index < len(inputs) else f"dx[{index}]" for index in pair[3])
    return dy, dx
