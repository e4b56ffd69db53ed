"""OpenCV or Pillow in a body that gets a batch of images: they take one, and refuse more in words of their own."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.datasets.batched_input import RULE
from pyfunc_debug.doctor.failures.datasets.mapped_first import mapped_first
from pyfunc_debug.doctor.failures.pastes.array_calls import takes_arrays
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.nodes import failed_node, inputs_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls, described

_CHANNELS = (1, 2, 3, 4)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line calls such a library, and the body was given a batch of images."""
    spot = situation.last if situation.body else None
    statement = situation.statement
    if spot is None or statement is None or not any(takes_arrays(one, spot) for one in calls(statement)):
        return None
    node = failed_node(situation)
    if node is None or node.site is None or not _is_given_a_batch(spot):
        return None
    batches = [one for one in inputs_of(node, situation).values() if _is_batch(one.shape)]
    placed = mapped_first(node, situation) if batches else None
    if placed is None:
        return None
    said, edit = placed
    cause = (
        f"{said} stands before the map: {node.called} got a batch of images, {described(batches[0])}, and this line "
        "takes one. Mapped first, each image comes alone."
    )
    return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")


def _is_batch(shape: tuple[int | None, ...] | None) -> bool:
    return shape is not None and len(shape) == 4 and shape[-1] in _CHANNELS


def _is_given_a_batch(spot: Spot) -> bool:
    """Whether a library's function is given an array of four axes in the function that failed."""
    function = spot.function
    for one in calls(function) if function is not None else ():
        if takes_arrays(one, spot):
            given = [spot.variables.get(_name(part)) for part in one.args]
            if any(_is_batch(_shape(value)) for value in given):
                return True
    return False


def _name(part: ast.expr) -> str:
    """The array that is given as it is: `image`, `image.numpy()`, `np.array(image)`; empty for a part of one."""
    if isinstance(part, ast.Call):
        whole = isinstance(part.func, ast.Attribute) and part.func.attr in ("numpy", "astype", "copy")
        converts = dotted(part.func).rpartition(".")[2] in ("array", "asarray", "uint8", "float32") and part.args
        part = part.func.value if whole else part.args[0] if converts else part  # type: ignore[attr-defined]
    return part.id if isinstance(part, ast.Name) else ""


def _shape(value: object) -> tuple[int | None, ...] | None:
    shape = getattr(value, "shape", None)
    return tuple(shape) if shape is not None and hasattr(shape, "__len__") else None
