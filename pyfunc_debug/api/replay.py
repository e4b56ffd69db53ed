"""What it takes to run a recorded call again: all its inputs, in full."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyfunc_debug.errors import BadOptionError, NotKeptError
from pyfunc_debug.records import Call, Value


def whole_inputs(call: Call, instead: Mapping[str, Any] | None = None) -> list[np.ndarray[Any, Any]]:
    """The inputs of a call, in their order.

    Args:
      call: The call.
      instead: Other values, by the inputs' names; each gets the recorded type.

    Raises:
      NotKeptError: one was not kept in full, and nothing is given instead.
      BadOptionError: there is no input of that name, or the value does not have its type.
    """
    given = dict(instead or {})
    unknown = given.keys() - {value.path for value in call.inputs}
    if unknown:
        names = ", ".join(value.path for value in call.inputs) or "none"
        raise BadOptionError(f"call #{call.id} has no input {sorted(unknown)[0]!r}; there are: {names}")
    lost = [value for value in call.inputs if value.kept != "full" and value.path not in given]
    if lost:
        which = ", ".join(repr(value.path) for value in lost)
        why = next((f" ({value.note})" for value in lost if value.note), "")
        raise NotKeptError(
            f"call #{call.id} cannot run again: its {'input' if len(lost) == 1 else 'inputs'} {which} "
            f'{"was" if len(lost) == 1 else "were"} not kept in full{why}. Record with values="full" '
            "(%%pyfunc_trace --values full)"
        )
    return [_as(value, given[value.path]) if value.path in given else value.array() for value in call.inputs]


def _as(value: Value, other: Any) -> np.ndarray[Any, Any]:
    """A value in the type of a recorded one."""
    dtype = None if value.dtype in ("string", "bfloat16") else value.dtype
    try:
        return np.asarray(other, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise BadOptionError(f"{other!r} cannot be {value.dtype} for {value.path!r}: {error}"[:500]) from None


def same_as_recorded(call: Call, outputs: list[Any]) -> bool | None:
    """Whether a replay returned what was recorded; None if that was not kept in full."""
    if call.status != "ok" or any(value.kept != "full" for value in call.outputs):
        return None
    recorded = [value.array() for value in call.outputs]
    return len(recorded) == len(outputs) and all(
        np.array_equal(np.asarray(one), other, equal_nan=other.dtype.kind in "fc")
        for one, other in zip(outputs, recorded)
    )
