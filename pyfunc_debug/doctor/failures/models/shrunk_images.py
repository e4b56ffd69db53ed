"""Convolutions and poolings of more pixels than are left, and a Dense behind a Flatten of an open size."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, together
from pyfunc_debug.doctor.failures.reading.failed_layers import FailedLayer, Shape, failed_layer
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import shape_of, sizes_of
from pyfunc_debug.interception.names.private import keras_given

RULE = "structure"
_SAID = re.compile(r"Computed output size would be zero or negative|Computed output size would be negative")
_OPEN = re.compile(
    r"Shapes used to initialize variables must be fully-defined.*?shape=\(None, |"
    r"last dimension of the inputs to a Dense layer should be defined"
)
_SIZED = re.compile(r"(?:Separable|Depthwise)?Conv[123]D|(?:Max|Average)Pooling[123]D")
_FEW, _LEAST, _MOST = 4, 8, 4
"""Channels of an image at most, and pixels at least; and lines of a paste."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an image or series is smaller than what a layer takes at once, or of an open size."""
    small, unknown = _SAID.search(situation.message), _OPEN.search(situation.message)
    failed = failed_layer(situation) if small or unknown else None
    if failed is None or len(failed.shapes) != 1:
        return None
    if unknown is not None:
        return _flattened(failed) if failed.kind == "Dense" else None
    if not _SIZED.fullmatch(failed.kind) or vars(failed.layer).get("data_format") != "channels_last":
        return None
    shape = failed.shapes[0]
    if [type(one).__name__ for one in failed.before] == ["InputLayer"] and _is_turned(shape):
        return _turned(failed, shape)
    return _padded(failed, shape)


def _is_turned(shape: Shape) -> bool:
    """Whether the first axis has the channels."""
    first, rest = shape[1] or 0, [size or 0 for size in shape[2:]]
    return first <= _FEW and min(rest) >= _LEAST


def _turned(failed: FailedLayer, shape: Shape) -> Explanation | None:
    dims = (*range(2, len(shape)), 1)
    edit = failed.with_layer(f"Permute({dims})")
    if edit is None:
        return None
    what = "an image" if len(shape) == 4 else "a series" if len(shape) == 3 else "a volume"
    last = "channels" if len(shape) > 3 else "features"
    cause = (
        f"{failed.kind} takes {what} with its {last} in the last axis, and the input has them in the first, "
        f"{sizes_of(shape)}: so it is {' x '.join(str(one) for one in shape[1:-1])} with {shape[-1]} {last}."
    )
    return Explanation(RULE, failed.spot.file, edit.first, cause, edit, "", "likely")


def _padded(failed: FailedLayer, shape: Shape) -> Explanation | None:
    """What comes from here on keeps the size."""
    made = failed.made(failed.layer)
    first = shape_of(failed.before[-1].output) if type((failed.before or [None])[-1]).__name__ == "InputLayer" else None
    if made is None or vars(failed.layer).get("padding") != "valid" or None in shape[1:]:
        return None
    around = made.source.parent(made.call)
    block: list[ast.expr | ast.stmt] = [made.call]
    statement = made.source.statement(made.call.lineno)
    if isinstance(around, ast.List):
        block = [one for one in around.elts if one.lineno >= made.call.lineno]
        block = block if len({one.lineno for one in block}) == len(block) else [made.call]
    elif statement is not None:
        block = list(made.source.block(statement) or ())
        if not failed.runs_often:
            block = [one for one in block if one.lineno >= statement.lineno]
    sized = [
        one for part in block for one in ast.walk(part)
        if isinstance(one, ast.Call) and _SIZED.fullmatch(dotted(one.func).rpartition(".")[2]) and _pads_nothing(one)
    ]  # fmt: skip
    if not 0 < len(sized) <= _MOST or len({one.lineno for one in sized}) != len(sized):
        sized = [made.call]
    edits = [made.with_other(one).edit(made.with_other(one).with_arguments(padding='"same"')) for one in sized]
    left = " x ".join(str(size) for size in shape[1:-1])
    needs = vars(failed.layer).get("kernel_size") or vars(failed.layer).get("pool_size") or ()
    whole = f" of {' x '.join(map(str, first[1:-1]))}" if first is not None and len(first) == len(shape) else ""
    only = f"The input is {left}" if whole == f" of {left}" else f"Only {left} is left{whole} here"
    cause = (
        f"{only}, and {failed.kind} takes {' x '.join(map(str, needs))} at once. "
        'padding="same" adds at the borders what is missing.'
    )
    return Explanation(RULE, made.spot.file, made.call.lineno, cause, together(edits, made.source.lines), "", "likely")


def _pads_nothing(call: ast.Call) -> bool:
    given = next((one.value for one in call.keywords if one.arg == "padding"), None)
    return given is None or (isinstance(given, ast.Constant) and given.value == "valid")


def _flattened(failed: FailedLayer) -> Explanation | None:
    """A Flatten of images or series of any size: a Dense needs as many numbers each time."""
    layer = next((one for one in failed.before if type(one).__name__ == "Flatten"), None)
    given = keras_given(layer) if layer is not None else []
    shape = shape_of(given[0]) if len(given) == 1 else None
    made = failed.made(layer) if layer is not None else None
    if shape is None or made is None or len(shape) not in (3, 4, 5) or shape[-1] is None:
        return None
    name = f"GlobalAveragePooling{len(shape) - 2}D"
    cause = (
        f"Flatten gets {sizes_of(shape)}: with an open size an example has any number of values, and Dense has weights "
        f"for a fixed number. {name} makes {shape[-1]} of each."
    )
    return Explanation(RULE, made.spot.file, made.call.lineno, cause, made.edit(f"{made.other(name)}()"), "", "likely")
