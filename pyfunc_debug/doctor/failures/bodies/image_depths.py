"""Images whose dtype or shape OpenCV or Pillow does not take, as NumPy and TensorFlow make them."""

from __future__ import annotations

import ast
import re

import numpy as np

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, lookup, root_is

RULE = "body-input"
_SAID = re.compile(
    r"Unsupported depth of input image|'depth' is \d+ \(CV_(?:64F|32S|8S|16S|64S|64U|32U|16F|16BF)\)"
    r"|\bi?func != (?:0|NULL|nullptr)\b|depth\(\) == CV_8U|data type = \w+ is not supported"
    r"|Unsupported format or combination of formats"
)
_PILLOW = "Cannot handle this data type"
_BYTES = re.compile(r"depth\(\) == CV_8U")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a function of OpenCV's refused the dtype of an array."""
    if situation.body and situation.message.startswith(_PILLOW):
        return _of_pillow(situation)
    said = f"{situation.message}\n{situation.error}"
    as_bytes = _BYTES.search(said) is not None
    if not situation.body or _SAID.search(said) is None:
        return None
    for spot in reversed(situation.spots):
        statement = spot.statement
        for call in calls(statement) if statement is not None else ():
            told = (
                _explained(spot, call, call.args[0], as_bytes)
                if call.args and root_is(call.func, spot, "cv2")
                else None
            )
            if told is not None:
                return told
    return None


def _of_pillow(situation: Situation) -> Explanation | None:
    """What makes an array that `Image.fromarray` takes of one that it refused."""
    for spot in reversed(situation.spots):
        statement = spot.statement
        every = calls(statement) if statement is not None else ()
        made = [one for one in every if dotted(one.func).endswith("fromarray") and root_is(one.func, spot, "PIL")]
        value = _array(made[0].args[0], spot) if len(made) == 1 and made[0].args else None
        if value is None or not value.size or value.dtype.kind not in "biuf":
            continue
        given = made[0].args[0]
        text, numpy, missing = spot.source.atom(given), alias(spot, "numpy"), []
        if value.ndim == 3 and value.shape[-1] == 1:
            text, missing = f"{text}[..., 0]", ["gray images without an axis for their channel"]
        elif value.ndim == 3 and value.shape[0] in (1, 3, 4) and value.shape[-1] > 4:
            text, missing = f"{numpy}.transpose({spot.source.text(given)}, (1, 2, 0))", ["channels as the last axis"]
        if value.dtype != np.uint8:
            scaled = value.dtype.kind == "f" and value.min() >= 0 and value.max() <= 1
            text = f"({text} * 255).astype({numpy}.uint8)" if scaled else f"{text}.astype({numpy}.uint8)"
            missing.append("uint8" + (" from 0 to 255" if scaled else ""))
        edit = edit_of(spot.file, spot.source.replaced({given: text})) if missing else None
        if edit is not None:
            own = f"`{short(spot.source.text(given), 30)}` is {value.dtype}{list(value.shape)}"
            cause = f"{own}, and Image.fromarray takes {' and '.join(missing)}."
            return Explanation(RULE, spot.file, made[0].lineno, cause, edit, "", "likely")
    return None


def _array(node: ast.expr, spot: Spot) -> np.ndarray | None:
    """The array that a name stands for, or `img.numpy()` of an eager tensor."""
    asked = node.func if isinstance(node, ast.Call) and not node.args else None
    value = lookup(asked.value if isinstance(asked, ast.Attribute) and asked.attr == "numpy" else node, spot)
    if type(value).__name__ == "EagerTensor":
        return np.asarray(value)
    return value if isinstance(value, np.ndarray) else None


def _explained(spot: Spot, call: ast.Call, given: ast.expr, as_bytes: bool) -> Explanation | None:
    """What makes a dtype of an array that the function takes; `as_bytes` where that is uint8 alone."""
    value = lookup(given, spot)
    taken = ("uint8",) if as_bytes else ("uint8", "uint16", "float32")
    if (
        not isinstance(value, np.ndarray)
        or value.dtype.name in taken
        or not value.size
        or value.dtype.kind not in "biuf"
    ):
        return None
    least, most = float(value.min()), float(value.max())
    scaled = value.dtype.kind == "f" and least >= 0 and most <= 1
    wanted = "uint8" if as_bytes or (value.dtype.kind != "f" and least >= 0 and most <= 255) else "float32"
    text = f"({spot.source.text(given)} * 255)" if as_bytes and scaled else spot.source.atom(given)
    new = f"{text}.astype({alias(spot, 'numpy')}.{wanted})"
    cause = (
        f"{dotted(call.func)} takes images of {' or '.join(taken[::2])}, and `{short(spot.source.text(given), 30)}` is "
        f"{value.dtype.name}."
    )
    return Explanation(RULE, spot.file, call.lineno, cause, edit_of(spot.file, spot.source.replaced({given: new})))
