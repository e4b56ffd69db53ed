"""`fit` without labels: a list `[x, y]` is inputs alone, and so is what a PyDataset or a generator gives by itself."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.batch_makers import (
    GIVEN,
    Maker,
    batch_maker,
    gives_its_input,
    is_array,
    twice,
)
from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.flows import flow_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import definition_of, dotted, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, lookup

RULE = "generator"
_NONE = "None values not supported"
_FARTHEST = 25
"""Lines that one paste changes."""
_LABELS = re.compile(r"(?:\w+_)?(?:y|labels?|targets?)(?:_(?:train|test|val|valid|set|data))?")
"""How labels are called."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a loss got None for its labels."""
    if situation.body or _NONE not in situation.message:
        return None
    for spot, call in failed_fits(situation):
        found = _inputs_only(spot, call) or _of_flows(spot, call)
        for given in (argument(call, 0, "x"), argument(call, 99, "validation_data")) if found is None else ():
            maker = batch_maker(given, spot) if given is not None else None
            found = found or (_alone(maker, call, _model(spot, call)) if maker is not None else None)
            found = found or (_nones(maker, _model(spot, call)) if maker is not None else None)
        if found is not None:
            return found
    return None


def _of_flows(spot: Spot, call: ast.Call) -> Explanation | None:
    """`flow_from_directory(..., class_mode=None)`: images alone, for a model that gives what it is given."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("fit", "evaluate"):
        return None
    given = [argument(call, 0, "x"), argument(call, 99, "validation_data")]
    flows = [flow for one in given if one is not None and (flow := flow_of(one, spot)) is not None and flow.parts == 1]
    if not flows:
        return None
    names, method = " and ".join(spot.source.text(one.node) for one in flows), call.func.attr
    cause = f"{names} give{'s' * (len(flows) == 1)} images without labels, and {method} needs both."
    words = [
        word.value for one in flows if one.call is not None for word in one.call.keywords if word.arg == "class_mode"
    ]  # fmt: skip
    if not gives_its_input(lookup(call.func.value, spot)) or len(words) < len(flows):
        advice = 'Have it give labels: class_mode="categorical", or "binary" for two classes.'
        if any(one.method == "flow" for one in flows):
            advice = "Give flow the labels as its second argument."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    first, last = min(one.lineno for one in words), max(one.end_lineno or one.lineno for one in words)
    pieces: dict[ast.expr, str] = dict.fromkeys(words, '"input"')
    edit = Edit(spot.file, first, last, spot.source.spliced(pieces, first, last)) if last - first <= _FARTHEST else None
    advice = "" if edit else 'Have them give the images as labels: class_mode="input".'
    return Explanation(RULE, spot.file, first, f"{cause}{GIVEN}", edit, advice)


def _alone(maker: Maker, call: ast.Call, model: Any) -> Explanation | None:
    """Batches of inputs alone, in `fit`, whose loss wants labels."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    made = [maker.made(one) for one in maker.values]
    if (
        method not in ("fit", "evaluate")
        or not made
        or not all(isinstance(one, ast.Subscript) or is_array(one) for one in made)
    ):
        return None
    cause = f"{maker.name} {maker.verb} the inputs alone, and {method} needs their labels: a tuple (inputs, labels)."
    edit = _with_labels(maker, maker.values[0], made[0]) if len(made) == 1 else None
    if edit is None and gives_its_input(model):
        cause += GIVEN
        edit = twice(maker)
    advice = "" if edit is not None else f"Have it give both: {maker.verb.removesuffix('s')} x, y."
    return Explanation(RULE, maker.spot.file, maker.values[0].lineno, cause, edit, advice)


def _nones(maker: Maker, model: Any) -> Explanation | None:
    """`yield (x, None)` for a model with a loss that is given labels, which it may never read."""
    if len(maker.values) != 1 or not isinstance(maker.values[0], ast.Tuple) or len(maker.values[0].elts) != 2:
        return None
    inputs, labels = maker.values[0].elts
    if not isinstance(labels, ast.Constant) or labels.value is not None:
        return None
    source, loss = maker.source, getattr(model, "loss", None)
    loss = getattr(loss, "fn", loss)
    name = getattr(loss, "__name__", "the loss")
    cause = (
        f"{maker.name} {maker.verb} None for the labels, and fit gives them to the loss: Keras makes a tensor of them "
        "first, and there is none of None."
    )
    given = inputs
    if isinstance(inputs, ast.Name):
        made = [
            one.value for one in ast.walk(maker.function)
            if isinstance(one, ast.Assign) and [dotted(each) for each in one.targets] == [inputs.id]
        ]  # fmt: skip
        given = made[0] if len(made) == 1 else inputs
    first = given.values[0] if isinstance(given, ast.Dict) and given.values else None
    if isinstance(given, (ast.List, ast.Tuple)) and given.elts:
        first = given.elts[0]
    text = source.text(first) if isinstance(first, (ast.Name, ast.Attribute)) else ""
    if not text and first is not None and isinstance(inputs, ast.Name):
        key = given.keys[0] if isinstance(given, ast.Dict) else ast.Constant(0)
        text = f"{inputs.id}[{source.text(key) if isinstance(given, ast.Dict) and key is not None else 0}]"
    if not text or not _reads_no_labels(loss):
        advice = (
            "Yield labels; or, for a loss that is computed of the inputs, take it from `model.add_loss` in a layer."
        )
        return Explanation(RULE, maker.spot.file, labels.lineno, cause, None, advice)
    rows = f"{alias(maker.spot, 'numpy')}.zeros(len({text}))"
    cause += f" {name} never reads them: zeros will do."
    return Explanation(
        RULE, maker.spot.file, labels.lineno, cause, edit_of(maker.spot.file, source.replaced({labels: rows}))
    )


def _reads_no_labels(loss: Any) -> bool:
    """Whether a function of the user's never reads its first parameter."""
    code = getattr(loss, "__code__", None)
    if code is None or not code.co_argcount:
        return False
    defined = definition_of(code)
    return defined is not None and not any(
        isinstance(one, ast.Name) and one.id == code.co_varnames[0] and isinstance(one.ctx, ast.Load)
        for one in ast.walk(defined[1])
    )


def _model(spot: Spot, call: ast.Call) -> Any:
    return lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None


def _with_labels(maker: Maker, value: ast.expr, made: ast.expr) -> Edit | None:
    """`return self.x[s], self.y[s]`: the same slice of what is called as labels are."""
    if not isinstance(made, ast.Subscript) or not dotted(made.value):
        return None
    data, holder = dotted(made.value), maker.source.parent(maker.function)
    if data.startswith("self.") and isinstance(holder, ast.ClassDef):
        known = {dotted(one) for one in ast.walk(holder) if isinstance(one, ast.Attribute)}
        known = {one for one in known if one.startswith("self.")}
    else:
        known = set(parameters(maker.function))
    labels = sorted(one for one in known if _LABELS.fullmatch(one.removeprefix("self.")))
    if len(labels) != 1:
        return None
    whole = f"{maker.source.text(value)}, {labels[0]}[{maker.source.text(made.slice)}]"
    return edit_of(maker.spot.file, maker.source.replaced({value: whole}))


def _inputs_only(spot: Spot, call: ast.Call) -> Explanation | None:
    """`fit([x, y])`: a list or tuple is the inputs, and nothing is the target."""
    given = call.args[0] if len(call.args) == 1 else None
    named = {one.arg for one in call.keywords}
    if given is None or named & {"x", "y", None} or not isinstance(call.func, ast.Attribute):
        return None
    if call.func.attr not in ("fit", "evaluate"):
        return None
    value = lookup(given, spot) if not isinstance(given, (ast.List, ast.Tuple)) else given.elts
    model = lookup(call.func.value, spot)
    if not isinstance(value, (list, tuple)) or len(value) != 2 or len(getattr(model, "inputs", None) or ()) != 1:
        return None
    text = spot.source.text(given)
    parts = ", ".join(map(spot.source.text, given.elts)) if isinstance(given, (ast.List, ast.Tuple)) else f"*{text}"
    found = spot.source.replaced({given: parts})
    edit = edit_of(spot.file, found)
    cause = (
        f"{call.func.attr} takes a list or tuple of arrays, `{short(text, 30)}`, for the inputs alone, and there is no "
        "target. Inputs and targets are two arguments."
    )
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Give it {parts}.", "likely")
