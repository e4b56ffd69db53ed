"""Checking a recorded gradient: finite differences of the body at the recorded inputs, against the recorded dx."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyfunc_debug.errors import NotDeterministicError, NotKeptError
from pyfunc_debug.records import Call

_ELEMENTS = 32
"""How many elements of each input are checked, evenly spaced: each costs two runs of the body."""


@dataclass(frozen=True)
class InputCheck:
    """One input. `worst` is the index of the element that is furthest off; `tolerance` is absolute, for that one.

    `wrong` counts the checked elements that are off; `flat` says that none of them changed the result.
    """

    path: str
    ok: bool
    checked: int
    size: int
    worst: tuple[int, ...]
    recorded: float
    finite: float
    tolerance: float
    step: float
    wrong: int = 0
    flat: bool = False

    def __str__(self) -> str:
        sign = "ok " if self.ok else "BAD"
        return (
            f"{sign} d{self.path}: {self.checked} of {self.size} elements; worst at {list(self.worst)}: recorded "
            f"{self.recorded:.6g}, finite difference {self.finite:.6g} (tolerance {self.tolerance:.2g}, "
            f"step {self.step:.2g})"
        )


@dataclass(frozen=True)
class GradientCheck:
    """What `check_gradient` found for one gradient call."""

    call: int
    gradient: int
    inputs: tuple[InputCheck, ...]

    @property
    def ok(self) -> bool:
        """Whether every input is within its tolerance."""
        return all(one.ok for one in self.inputs)

    def __str__(self) -> str:
        return "\n".join([f"gradient call #{self.gradient} of call #{self.call}", *(f"  {one}" for one in self.inputs)])


def check(call: Call, gradient: Call, body: Callable[..., Sequence[Any]], elements: int = _ELEMENTS) -> GradientCheck:
    """Compares the dx of a gradient call with finite differences of Σ dy·body(x).

    Args:
      call: A forward call with all its values.
      gradient: One of its gradient calls.
      body: Runs the body on flat arrays and returns flat arrays.
      elements: How many elements of each input are checked at most.

    Raises:
      NotKeptError: values are missing.
      NotDeterministicError: the body does not do the same twice.
    """
    inputs = [value.array() for value in call.inputs]
    dys = {value.path: value.array() for value in gradient.inputs}
    outputs = [
        (position, dys[f"d{value.path}"]) for position, value in enumerate(call.outputs) if f"d{value.path}" in dys
    ]
    first, second = body(*inputs), body(*inputs)
    _refuse_unsteady(call, first, second)

    def total(changed: list[Any]) -> float:
        found = body(*changed)
        return float(
            sum(np.sum(np.asarray(found[position], np.float64) * dy.astype(np.float64)) for position, dy in outputs)
        )

    size = max(1.0, abs(total(inputs)))
    recorded = {value.path: value.array() for value in gradient.outputs}
    checks = [
        _check_input(total, inputs, position, value.path, recorded[f"d{value.path}"], size, elements)
        for position, value in enumerate(call.inputs)
        if f"d{value.path}" in recorded and inputs[position].dtype.kind == "f" and inputs[position].size
    ]
    if not checks:
        types = ", ".join(f"{value.path} is {value.dtype}" for value in gradient.outputs)
        raise NotKeptError(
            f"gradient call #{gradient.id} has no gradient of a float16, float32 or float64 input to compare"
            f"{types and f': {types}'}"
        )
    return GradientCheck(call.id, gradient.id, tuple(checks))


def _refuse_unsteady(call: Call, first: Sequence[Any], second: Sequence[Any]) -> None:
    for value, one, other in zip(call.outputs, first, second):
        if not np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f"):
            raise NotDeterministicError(
                f"the body of call #{call.id} is not deterministic: its output {value.path!r} differs between two runs "
                "on the same inputs, so finite differences mean nothing. Fix its random seed, or its state"
            )
        if not np.allclose(one, value.array(), rtol=1e-4, atol=1e-6, equal_nan=True):
            raise NotDeterministicError(
                f"the body of call #{call.id} depends on something other than its inputs: its output {value.path!r} is "
                "not what was recorded (a variable that changed since, say), so its gradient cannot be checked there"
            )


def _check_input(
    total: Callable[[list[Any]], float], inputs: list[Any], position: int, path: str, recorded: Any, size: float,
    most: int,
) -> InputCheck:  # fmt: skip
    array = inputs[position]
    precision = float(np.finfo(array.dtype).eps)
    elements = np.unique(np.linspace(0, array.size - 1, min(array.size, most)).astype(int))
    dx = np.broadcast_to(recorded, array.shape).reshape(-1)
    worst: tuple[float, InputCheck] | None = None
    wrong, flat = 0, True
    for index in elements:
        value = float(array.reshape(-1)[index])
        step = precision ** (1 / 3) * max(1.0, abs(value))
        sums, ends = [], []
        for sign in (1, -1):
            changed = array.copy()
            changed.reshape(-1)[index] = value + sign * step
            ends.append(float(changed.reshape(-1)[index]))  # what the dtype made of it
            sums.append(total([*inputs[:position], changed, *inputs[position + 1 :]]))
        finite = (sums[0] - sums[1]) / (ends[0] - ends[1])
        mine = float(dx[index])
        # Rounding of the sum over the step, and what the central difference cuts off.
        tolerance = 4 * precision * size / step + 100 * precision ** (2 / 3) * max(1.0, abs(mine), abs(finite))
        flat &= finite == 0
        off = abs(finite - mine) / tolerance if np.isfinite(finite) and np.isfinite(mine) else np.inf
        wrong += off > 1
        if worst is None or off > worst[0]:
            where = tuple(int(one) for one in np.unravel_index(index, array.shape))
            worst = off, InputCheck(path, off <= 1, len(elements), array.size, where, mine, finite, tolerance, step)
    assert worst is not None
    return replace(worst[1], wrong=wrong, flat=flat)
