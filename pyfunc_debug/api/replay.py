"""What it takes to run a recorded call again: all its inputs, in full."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfunc_debug.errors import NotKeptError
from pyfunc_debug.records import Call


def whole_inputs(call: Call) -> list[np.ndarray[Any, Any]]:
    """The inputs of a call, in their order.

    Raises:
      NotKeptError: one was not kept in full.
    """
    lost = [value for value in call.inputs if value.kept != "full"]
    if lost:
        which = ", ".join(repr(value.path) for value in lost)
        why = next((f" ({value.note})" for value in lost if value.note), "")
        raise NotKeptError(
            f"call #{call.id} cannot run again: its {'input' if len(lost) == 1 else 'inputs'} {which} "
            f'{"was" if len(lost) == 1 else "were"} not kept in full{why}. Record with values="full" '
            "(%%pyfunc_trace --values full)"
        )
    return [value.array() for value in call.inputs]


def same_as_recorded(call: Call, outputs: list[Any]) -> bool | None:
    """Whether a replay returned what was recorded; None if that was not kept in full."""
    if call.status != "ok" or any(value.kept != "full" for value in call.outputs):
        return None
    recorded = [value.array() for value in call.outputs]
    return len(recorded) == len(outputs) and all(
        np.array_equal(np.asarray(one), other, equal_nan=other.dtype.kind in "fc")
        for one, other in zip(outputs, recorded)
    )
