"""`rejection_resample`: its class_func gives one whole number for one example, and its elements have that in front.

The specs of what class_func gave are in TensorFlow's frame, whichever op failed behind it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, frames
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    dtype_of,
    is_batched,
    is_dataset,
    is_symbolic,
    lookup,
    method_calls,
    shape_of,
    sizes_of,
)

RULE = "structure"
_NAME = "rejection_resample"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if what class_func gives, or what is resampled, is why the program failed."""
    if situation.body:
        return None
    known = [one for error in (situation.inner, situation.error) for one in frames(error.__traceback__)]
    resampled = next((one.f_locals.get("self") for one in known if one.f_code.co_name == _NAME), None)
    if not is_dataset(resampled):
        return _of_pairs(situation)
    given = [one for frame in known for one in _classes(frame.f_locals)]
    return _of_classes(situation, given[0], resampled) if given else None


def _classes(known: dict[str, Any]) -> Iterator[Any]:
    """What class_func gave, of the variables of a function of TensorFlow's: its spec, or a symbolic tensor."""
    if is_dataset(known.get("class_values_ds")):
        yield known["class_values_ds"].element_spec
    if is_symbolic(known.get("class_val")):
        yield known["class_val"]
    if is_dataset(known.get("current_probabilities_and_class_and_data_ds")):
        yield known["current_probabilities_and_class_and_data_ds"].element_spec[0]


def _of_classes(situation: Situation, spec: Any, resampled: Any) -> Explanation | None:
    """What class_func gives is not a whole number, or one for each example of a batch."""
    spot = next((one for one in reversed(situation.spots) if one.source.calls_of(frozenset({_NAME}))), None)
    shape, kind = shape_of(spec), dtype_of(spec)
    made = spot.source.calls_of(frozenset({_NAME})) if spot is not None else []
    if spot is None or len(made) != 1 or shape is None or not kind:
        return None
    call, source, tf = made[0], spot.source, alias(spot, "tensorflow")
    function = argument(call, 0, "class_func")
    cause = f"{_NAME} asks class_func for the class of one example, a whole number, and it gave {kind}"
    cause += sizes_of(shape) if shape else ""
    if shape and is_batched(resampled):
        batches = method_calls(source.tree, "batch")
        size = argument(batches[0], 0, "batch_size") if len(batches) == 1 else None
        behind = f".batch({source.text(size)})" if size is not None else ""
        edit = _unbatched(spot.file, source, call, behind) if behind else None
        advice = "" if edit else f"Call batch behind it, or unbatch() in front of {_NAME}."
        return Explanation(RULE, spot.file, call.lineno, f"{cause}, of a batch. Unbatched, it gets one.", edit, advice)
    if kind == "string" or len(shape) > 1 or function is None:
        return None
    if not shape and kind in ("int32", "int64", "uint8", "int8"):
        return None
    body = function.body if isinstance(function, ast.Lambda) else None
    given = source.text(body) if body is not None else f"{source.text(function)}(*data)"
    if shape == (None,):
        return None
    one_hot = bool(shape) and shape != (1,)
    scalar = f"{tf}.reshape({given}, [])" if shape else given
    new = f"{tf}.argmax({given}, output_type={tf}.int32)" if one_hot else f"{tf}.cast({scalar}, {tf}.int32)"
    new = new if body is not None else f"lambda *data: {new}"
    cause += ". Of one-hot labels argmax is the class." if one_hot else "."
    edit = edit_of(spot.file, source.replaced({body if body is not None else function: new}))
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "", "likely" if one_hot else "measured")


def _unbatched(file: str, source: Source, call: ast.Call, behind: str) -> Edit | None:
    """The call with one example at a time, and the batches made behind it."""
    whole, owner = _whole(source, call)
    if owner is None:
        return None
    place = ast.Name("end", ast.Load())
    place.lineno = place.end_lineno = owner.end_lineno or owner.lineno
    place.col_offset = place.end_col_offset = owner.end_col_offset or 0
    lines = source.ended(whole, "", behind, {place: ".unbatch()"})
    return Edit(file, whole.lineno, whole.end_lineno or whole.lineno, lines)


def _whole(source: Source, call: ast.Call) -> tuple[ast.Call, ast.expr | None]:
    """`ds.rejection_resample(...)`, or `ds.apply(rejection_resample(...))`, and its `ds`."""
    outer = source.parent(call)
    whole = outer if isinstance(outer, ast.Call) and dotted(outer.func).endswith("apply") else call
    return whole, whole.func.value if isinstance(whole.func, ast.Attribute) else None


def _of_pairs(situation: Situation) -> Explanation | None:
    """`fit` is given (class, (x, y)): nothing took the class away."""
    for spot, call in failed_fits(situation):
        given = argument(call, 0, "x")
        while isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute):
            given = given.func.value
        value = lookup(given, spot) if given is not None else None
        made = spot.source.calls_of(frozenset({_NAME}))
        spec: Any = value.element_spec if value is not None and is_dataset(value) else None
        if len(made) != 1 or type(spec) is not tuple or len(spec) != 2 or type(spec[1]) is not tuple:
            continue
        if not re.fullmatch(r"u?int\d+", dtype_of(spec[0])):
            continue
        whole, _ = _whole(spot.source, made[0])
        code = short(spot.source.text(whole).split("\n")[0], 30)
        cause = f"The elements of `{code}` are pairs of a class and the example: fit takes the class for x. "
        cause += "A map takes it away."
        lines = spot.source.ended(whole, "", ".map(lambda _, data: data)")
        edit = Edit(spot.file, whole.lineno, whole.end_lineno or whole.lineno, lines)
        return Explanation(RULE, spot.file, whole.lineno, cause, edit)
    return None
