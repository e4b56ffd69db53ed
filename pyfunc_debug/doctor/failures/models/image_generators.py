"""An ImageDataGenerator given to `fit`, `evaluate` or `predict`: it says how images are changed and has none itself."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading.flows import METHODS, is_flow, is_image_generator
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import lookup, method_calls

RULE = "structure"
_SAID = re.compile(r"^Unrecognized data type: x=<.*?\.ImageDataGenerator object at ")
_FARTHEST = 25
"""Lines that one paste goes over."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a model is given an ImageDataGenerator in the place of what one of its flows gives."""
    if situation.body or not _SAID.search(situation.message):
        return None
    for spot, call in failed_fits(situation):
        for place, name in ((0, "x"), (99, "validation_data")):
            node = argument(call, place, name)
            if node is not None and is_image_generator(lookup(node, spot)):
                return _told(spot, call, node, name)
    return None


def _told(spot: Spot, call: ast.Call, node: ast.expr, name: str) -> Explanation:
    source, text = spot.source, short(spot.source.text(node), 30)
    method = call.func.attr if isinstance(call.func, ast.Attribute) else "fit"
    flows = [
        one for one in method_calls(source.tree, *METHODS.values())
        if isinstance(one.func, ast.Attribute) and dotted(one.func.value) == dotted(node)
    ]  # fmt: skip
    cause = f"{text} is an ImageDataGenerator: it says how images are changed and has no images itself. "
    one = flows[0] if len(flows) == 1 else None
    around = source.parent(one) if one is not None else None
    if one is not None and isinstance(around, ast.Expr):
        cause += f"{text}.{_method(one)}(...) gives them, and line {one.lineno} keeps them by no name."
        return Explanation(RULE, spot.file, call.lineno, cause, _kept(spot, call, node, around), _advice(method))
    if one is not None and isinstance(around, ast.Assign) and isinstance(around.targets[0], ast.Name):
        kept = around.targets[0].id
        if is_flow(lookup(around.targets[0], spot)):
            cause += f"{kept} gives them: what {text}.{_method(one)} made (line {one.lineno})."
            return Explanation(RULE, spot.file, call.lineno, cause, edit_of(spot.file, source.replaced({node: kept})))
    cause += f"What its flow, flow_from_directory or flow_from_dataframe gives has images: {method} takes that."
    new = _of_arrays(spot, call, node, name) if not flows else None
    edit = edit_of(spot.file, source.replaced({node: new})) if new else None
    if edit is not None:
        return Explanation(RULE, spot.file, call.lineno, cause, edit, "", "likely")
    shown = text if text.isidentifier() else "it"
    like = f'batches = {shown}.flow_from_directory("folder", target_size=(height, width), batch_size=32)'
    return Explanation(RULE, spot.file, call.lineno, cause, None, f"Keep one in a name: {like}; or {shown}.flow(x, y).")


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _advice(method: str) -> str:
    return f"Keep what it gives in a name, and give that to {method}."


def _kept(spot: Spot, call: ast.Call, node: ast.expr, statement: ast.Expr) -> Edit | None:
    """The flow in a name, and the name in the call."""
    source = spot.source
    first, last = statement.lineno, call.end_lineno or call.lineno
    scopes = [next((one for one in source.around(part) if isinstance(one, ast.FunctionDef)), None)
              for part in (statement, call)]  # fmt: skip
    if scopes[0] is not scopes[1] or not first < call.lineno or source.block(statement) is None:
        return None
    every = {one.id for one in ast.walk(source.tree) if isinstance(one, ast.Name)}
    named = next((one for one in ("generator", "image_batches", "batches_of_images") if one not in every), "")
    if not named:
        return None
    edits = [
        Edit(spot.file, first, statement.end_lineno or first, source.spliced(
            {statement.value: f"{named} = {source.text(statement.value)}"}, first, statement.end_lineno or first)),
        Edit(spot.file, *source.kept_lines({node: named})),
    ]  # fmt: skip
    if first != statement.end_lineno:  # its lines are kept as they are
        line = source.lines[first - 1]
        own = f"{line[: statement.col_offset]}{named} = {line[statement.col_offset :]}"
        edits[0] = Edit(spot.file, first, first, (own,))
    if last - first > _FARTHEST:
        return None
    whole = together(edits, source.lines)
    return Edit(whole.file, whole.first, whole.last, tuple(one for one in whole.lines if one.strip()))


def _of_arrays(spot: Spot, call: ast.Call, node: ast.expr, name: str) -> str | None:
    """`datagen.flow(x_train, y_train)` with the arrays that `datagen.fit(x_train)` was given, and their labels."""
    source, method = spot.source, call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if name != "x" or method == "predict":
        return None
    fitted = [
        one for one in source.calls_of(frozenset({"fit"}))
        if isinstance(one.func, ast.Attribute) and dotted(one.func.value) == dotted(node) and len(one.args) == 1
    ]  # fmt: skip
    images = dotted(fitted[0].args[0]) if len(fitted) == 1 else ""
    labels = _labels(images)
    shapes = [getattr(spot.value(one), "shape", None) for one in (images, labels)] if labels else [None, None]
    if not shapes[0] or not shapes[1] or len(shapes[0]) != 4 or shapes[0][0] != shapes[1][0]:
        return None
    if argument(call, 1, "y") is not None:
        return None
    size = argument(call, 99, "batch_size")
    return f"{source.text(node)}.flow({images}, {labels}{f', batch_size={source.text(size)}' if size else ''})"


def _labels(images: str) -> str:
    """`y_train` for `x_train`."""
    if images[:1] in ("x", "X"):
        return ("y" if images[0] == "x" else "Y") + images[1:]
    return images.replace("images", "labels") if "images" in images else ""
