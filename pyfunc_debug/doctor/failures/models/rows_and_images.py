"""Images for a model of rows, or rows for one of images: what another call of the file gives the same model."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import failed_single_inputs, fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.flows import Flow, flow_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import is_dataset, lookup, shape_of, sizes_of

RULE = "structure"
_SAID = re.compile(
    r"Invalid input shape for input |is incompatible with the layer: expected (?:shape|axis|ndim|min_ndim)"
)
_RANKS = {1: "rows of {} numbers", 3: "images of {}"}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a model that takes rows is given images, or the other way round."""
    if situation.body or not _SAID.search(situation.message):
        return None
    for spot, call, model, node in failed_single_inputs(situation):
        wanted, given = (shape_of(model.inputs[0]) or ())[1:], _given(node, spot)
        if {len(wanted), len(given)} != {1, 3} or None in wanted:
            continue
        return _told(spot, call, node, wanted, given)
    return None


def _given(node: ast.expr, spot: Spot) -> tuple[int | None, ...]:
    """The shape of one example."""
    flow = flow_of(node, spot)
    if flow is not None:
        return flow.image_shape or ()
    value = lookup(node, spot)
    if is_dataset(value):
        spec: Any = value.element_spec
        value = spec[0] if isinstance(spec, tuple) and spec else spec
    return (shape_of(value) or ())[1:]


def _said(shape: tuple[int | None, ...]) -> str:
    shown = str(shape[0]) if len(shape) == 1 else sizes_of(shape)
    return _RANKS[len(shape)].format(shown.replace("None", "?"))


def _told(
    spot: Spot, call: ast.Call, node: ast.expr, wanted: tuple[int | None, ...], given: tuple[int | None, ...]
) -> Explanation:
    source, owner = spot.source, dotted(call.func).rpartition(".")[0]
    text = short(source.text(node), 40)
    call_name = getattr(call.func, "attr", "")
    verb = "has" if shape_of(lookup(node, spot)) else "gives"
    cause = f"{text} {verb} {_said(given)}, and {owner} takes {_said(wanted)}."
    nodes = [
        (one, other) for one in fits(source.tree)  # type: ignore[arg-type]
        if one is not call and dotted(one.func) .rpartition(".")[0] == owner
        and (other := argument(one, 0, "x")) is not None and isinstance(other, ast.Name)
        and _given(other, spot) == wanted
    ]  # fmt: skip
    if not nodes:
        advice = f"Give {owner} what it was built for, or build it with an Input of {list(given)}."
        return Explanation(RULE, spot.file, call.lineno, cause, None, advice)
    other, name = nodes[0]
    assert isinstance(name, ast.Name)
    method = getattr(other.func, "attr", "")
    cause += f" {method} (line {other.lineno}) gave it {name.id}"
    made = _made(spot, name.id)
    maker = dotted(made.value.func) if made is not None and isinstance(made.value, ast.Call) else ""
    if made is None or not maker:
        return Explanation(RULE, spot.file, call.lineno, f"{cause}.", None, f"Give {call_name} the like of {name.id}.")
    cause += f", which {maker} makes (line {made.lineno})."
    advice = f"Make the same of what {text} gives."
    function = next((one for one in source.tree.body if isinstance(one, ast.FunctionDef) and one.name == maker), None)
    early = _early(function) if function is not None else None
    if early is not None:
        advice = f"The `return` in line {early.lineno} stands in the loop: it ends after its first batch."
    flow = flow_of(node, spot)
    edit = _edit(spot, call, flow, made, name.id) if flow is not None and function is not None else None
    return Explanation(RULE, spot.file, call.lineno, cause, edit, advice if edit is None or early is not None else "")


def _made(spot: Spot, name: str) -> ast.Assign | None:
    """The assignment with the call that a name's rows come from: the first of the file, if others only reshape it."""
    found = [
        one for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.Assign) and any(name in _names(target) for target in one.targets)
    ]  # fmt: skip
    found.sort(key=lambda one: one.lineno)
    if not found or not isinstance(found[0].value, ast.Call):
        return None
    return found[0] if all(_is_reshape(one, name) for one in found[1:]) else None


def _names(target: ast.expr) -> list[str]:
    return [dotted(one) for one in target.elts] if isinstance(target, (ast.Tuple, ast.List)) else [dotted(target)]


def _is_reshape(one: ast.Assign, name: str) -> bool:
    """`a = np.reshape(a, ...)` or `a = a.reshape(...)`."""
    call = one.value
    return isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "reshape" and (
        dotted(getattr(call.func, "value", None)) == name or [dotted(each) for each in call.args[:1]] == [name]
    )  # fmt: skip


def _early(function: ast.FunctionDef) -> ast.Return | None:
    """The `return` that a loop over batches ends its first round with, where it counts its rounds."""
    for loop in (one for one in ast.walk(function) if isinstance(one, ast.For)):
        last = loop.body[-1]
        counts = any(isinstance(one, ast.AugAssign) for one in loop.body)
        goes_on = any(isinstance(one, ast.Continue) for one in ast.walk(loop))
        if isinstance(last, ast.Return) and counts and not goes_on:
            return last
    return None


def _edit(spot: Spot, call: ast.Call, flow: Flow, made: ast.Assign, name: str) -> Edit | None:
    """`a, b = rows_of(folder, count)` for the folder of the flow, and the call with both."""
    source, statement = spot.source, spot.statement
    folder = argument(flow.call, 0, "directory") if flow.call is not None else None
    count, value = flow.held.get("samples"), made.value
    if flow.method != "flow_from_directory" or folder is None or type(count) is not int or statement is None:
        return None
    if not isinstance(value, ast.Call) or len(value.args) != 2 or value.keywords or len(made.targets) != 1:
        return None
    target, size = made.targets[0], value.args[1]
    names = _names(target)
    if len(names) != 2 or names[0] != name or not isinstance(size, ast.Constant) or type(size.value) is not int:
        return None
    if len(call.args) != 1 or any(one.arg not in ("steps", "verbose") for one in call.keywords):
        return None
    if getattr(call.func, "attr", "") != "evaluate" or call.lineno != call.end_lineno:
        return None
    rows, labels = "rows", "labels_of_rows"
    if {rows, labels} & {one.id for one in ast.walk(source.tree) if isinstance(one, ast.Name)}:
        return None
    blanks = indent_of(source.lines[statement.lineno - 1])
    lines = [f"{blanks}{rows}, {labels} = {source.text(value.func)}({source.text(folder)}, {count})"]
    for one in ast.walk(source.tree):
        if isinstance(one, ast.Assign) and one is not made and name in map(dotted, one.targets):
            pieces: dict[ast.expr, str] = {}
            for part in ast.walk(one.value):
                if isinstance(part, ast.Name) and part.id == name:
                    pieces[part] = rows
                if isinstance(part, ast.Constant) and part.value == size.value:
                    pieces[part] = str(count)
            if one.value.lineno != one.value.end_lineno:
                return None
            lines.append(f"{blanks}{rows} = {source.text_with(one.value, pieces)}")
    words = [f"verbose={source.text(one.value)}" for one in call.keywords if one.arg == "verbose"]
    new = f"{source.text(call.func)}({', '.join([rows, labels, *words])})"
    first, last, own = source.kept_lines({call: new})
    return Edit(spot.file, first, last, (*lines, *own)) if first == statement.lineno else None
