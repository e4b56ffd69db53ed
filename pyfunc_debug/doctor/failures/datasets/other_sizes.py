"""Images, or rows, of several shapes that the program makes one array of: `np.array(images)`, `np.stack([...])`."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, keras_name, lookup

RULE = "ragged-batch"
_SAID = re.compile(r"inhomogeneous shape|all input arrays must have the same shape")
_MAKES = ("array", "asarray", "stack")
_LOOKED_AT = 10_000


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if what is made one array of has elements of several shapes."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not _SAID.search(situation.message):
        return None
    for call in calls(statement):
        if dotted(call.func).rpartition(".")[2] not in _MAKES or not call.args:
            continue
        given = call.args[0]
        inside = given.generators[0].iter if isinstance(given, ast.ListComp) and len(given.generators) == 1 else given
        every = lookup(inside, spot)
        every = evaluation.computed(inside, spot) if every is None else every
        shapes = _shapes(every)
        if len(shapes) > 1:
            return _told(spot, call, inside, shapes, every)
    return None


def _shapes(every: Any) -> list[tuple[int, ...]]:
    """The different shapes of the elements of a list: arrays, or lists of numbers."""
    if type(every) not in (list, tuple):
        return []
    found = []
    for one in every[:_LOOKED_AT]:
        if type(one) in (list, tuple) and all(type(each) in (int, float) for each in one):
            found.append((len(one),))
        elif type(one).__module__ == "numpy" and hasattr(one, "shape"):
            found.append(tuple(one.shape))
        else:
            return []
    return list(dict.fromkeys(found))


def _told(spot: Spot, call: ast.Call, inside: ast.expr, shapes: list[tuple[int, ...]], every: Any) -> Explanation:
    text, rows = spot.source.text, short(spot.source.text(inside), 40)
    cause = f"the elements of {rows} have the shapes {list(shapes[0])} and {list(shapes[1])}: no array holds them."
    new, advice = None, "Bring them to one shape first."
    if all(len(shape) == 1 for shape in shapes):
        whole = all(_is_whole(one) for one in every[:_LOOKED_AT])
        dtype = "" if whole else ', dtype="float32"'
        new = f'{keras_name(spot)}.utils.pad_sequences({text(call.args[0])}, padding="post"{dtype})'
        cause += " Padded with zeros at their ends they have one length."
        advice = "Pad them to one length."
    elif {len(shape) for shape in shapes} == {2, 3} or _differ_in_colors(shapes):
        advice = "Some have an axis for colors, and others have none, as gray images: read all of them as one kind."
        if _differ_in_colors(shapes):
            advice = "They have different channels, as images with an alpha channel: read all of them as one kind."
        read = _as_colors(spot, inside)
        if read is not None:
            cause += f" {advice.partition(':')[0]}. As RGB all have three channels."
            edit = edit_of(spot.file, spot.source.replaced(dict([read])))
            return Explanation(RULE, spot.file, read[0].lineno, cause, edit, "" if edit else advice, "likely")
    elif {len(shape) for shape in shapes} == {3} and len({shape[2] for shape in shapes}) == 1:
        resized = _resized(spot, inside, shapes[0])
        if resized is not None:
            new = spot.source.text_with(call, {inside: resized})
            cause += " Resized they make one."
        advice = "Resize them where they are read."
    edit = edit_of(spot.file, spot.source.replaced({call: new})) if new is not None else None
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else advice, "likely")


def _differ_in_colors(shapes: list[tuple[int, ...]]) -> bool:
    return {len(one) for one in shapes} == {3} and len({one[:2] for one in shapes}) == 1


def _as_colors(spot: Spot, images: ast.expr) -> tuple[ast.expr, str] | None:
    """Where an image of PIL's is made an array that a list gets, and that with three channels."""
    function, name = spot.function, dotted(images)
    if function is None or not name:
        return None
    added = [
        one.args[0] for one in calls(function)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "append" and dotted(one.func.value) == name
        and len(one.args) == 1
    ]  # fmt: skip
    if len(added) != 1:
        return None
    value = added[0]
    if isinstance(value, ast.Name):
        made = [
            one.value for one in ast.walk(function)
            if isinstance(one, ast.Assign) and [dotted(each) for each in one.targets] == [value.id]
        ]  # fmt: skip
        value = made[-1] if made else value
    held = {
        dotted(item.optional_vars) for one in ast.walk(function) if isinstance(one, ast.With) for item in one.items
        if item.optional_vars is not None and _opens(item.context_expr)
    } | {
        dotted(one.targets[0]) for one in ast.walk(function) if isinstance(one, ast.Assign) and _opens(one.value)
    }  # fmt: skip
    for one in ast.walk(value):
        if isinstance(one, ast.Call) and _opens(one):
            return one, f'{spot.source.text(one)}.convert("RGB")'
        if isinstance(one, ast.Name) and one.id in held:
            return one, f'{one.id}.convert("RGB")'
    return None


def _opens(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func).endswith("Image.open")


def _resized(spot: Spot, images: ast.expr, shape: tuple[int, ...]) -> str | None:
    """A list of images of one size, that of the first."""
    high, wide, depth = shape
    text = spot.source.text(images)
    name = next(name for name in ("image", "one", "each") if name not in names(images))
    if spot.value(cv2 := alias(spot, "cv2")) is not None and depth in (3, 4):
        return f"[{cv2}.resize({name}, ({wide}, {high})) for {name} in {text}]"
    if spot.value(tf := alias(spot, "tensorflow")) is not None:
        return f"[{tf}.image.resize({name}, ({high}, {wide})) for {name} in {text}]"
    keras = keras_name(spot)
    return f"[{keras}.ops.image.resize({name}, ({high}, {wide})) for {name} in {text}]" if spot.value(keras) else None


def _is_whole(one: Any) -> bool:
    """Whether a row has whole numbers only."""
    return one.dtype.kind in "iu" if hasattr(one, "dtype") else all(type(each) is int for each in one)
