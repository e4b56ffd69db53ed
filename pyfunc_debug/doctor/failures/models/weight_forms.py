"""`class_weight` without keys: "balanced", as scikit-learn takes it, and lists or arrays of weights.

Keras asks it for a class by `get`, deep in its own code, and says only that a text or an array has none.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.flows import flow_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_dataset, lookup, method_calls

RULE = "class-weight"
_SAID = re.compile(r"^'([\w.]+)' object has no attribute '(?:get|keys)'")
_ROWS = 10
"""As many weights as rows, from this number on, are taken for weights of rows."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if Keras asked something else than a dict for the weight of a class."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or not _SAID.search(situation.message):
        return None
    inside = [one.f_locals for one in frames(situation.inner.__traceback__) if "class_weight" in one.f_code.co_name]
    if not inside or "class_weight" not in inside[-1]:
        return None
    weights, labels = inside[-1]["class_weight"], inside[-1].get("y")
    for call in [*fits(statement), *method_calls(statement, "train_on_batch")]:
        node = next((one.value for one in call.keywords if one.arg == "class_weight"), None)
        if node is None:
            continue
        if type(weights) is str:
            return _balanced(spot, statement, call, node, weights, labels)
        return _listed(spot, call, node, weights, labels)
    return None


def _balanced(spot: Spot, statement: ast.stmt, call: ast.Call, node: ast.expr, word: str, labels: Any) -> Explanation:
    """`class_weight="balanced"`: the weights that scikit-learn would compute."""
    cause = f'Keras\' class_weight is a dict with a weight for each class: "{short(word, 20)}" is none'
    cause += ", and scikit-learn's estimators know it." if word == "balanced" else "."
    text = _labels(spot, call, labels)
    if word not in ("balanced", "auto") or not text:
        advice = "Give it a dict: rows / (classes * rows of the class) for each class weighs all classes alike."
        return Explanation(RULE, spot.file, node.lineno, cause, None, advice)
    cause += " Below, each class weighs as much as the others, as \"balanced\" means." if word == "balanced" else (
        " Below, each class weighs as much as the others.")  # fmt: skip
    np = alias(spot, "numpy")
    known = (*spot.module, *spot.variables)
    classes, counts = (spot.source.unused_name(one, known) for one in ("classes", "counts"))
    blanks = indent_of(spot.source.lines[statement.lineno - 1])
    made = f"{blanks}{classes}, {counts} = {np}.unique({text}, return_counts=True)"
    new = f"dict(zip({classes}, {counts}.sum() / (len({classes}) * {counts})))"
    first, last = statement.lineno, node.end_lineno or node.lineno
    lines = spot.source.spliced({node: new}, first, last)
    return Explanation(RULE, spot.file, node.lineno, cause, Edit(spot.file, first, last, (made, *lines)))


def _labels(spot: Spot, call: ast.Call, labels: Any) -> str:
    """The expression of the label of each row, as its class; "" where it is not known."""
    source, np = spot.source, alias(spot, "numpy")
    given = argument(call, 0, "x")
    data: Any = lookup(given, spot) if given is not None else None
    if given is None:
        return ""
    if is_dataset(data):
        spec = data.element_spec
        label: Any = spec[1] if isinstance(spec, tuple) and len(spec) == 2 else None
        rank = getattr(getattr(label, "shape", None), "rank", None)
        if not rank or data.cardinality().numpy() == -1:
            return ""
        text = f"{np}.concatenate([y for x, y in {source.atom(given)}.as_numpy_iterator()])"
        if label.shape[-1] not in (1, None) and rank > 1:
            return f"{text}.argmax(-1)"
        return text if label.dtype.is_integer else f"{text}.astype(int)"
    flow = flow_of(given, spot)
    if flow is not None:
        name = "y" if flow.method == "flow" else "classes"
        if flow.held.get(name, flow.held.get(f"_{name}")) is None and flow.method == "flow":
            return ""
        hot = flow.method == "flow" and _is_hot(flow.held.get("y"))
        return f"{source.atom(given)}.{name}{'.argmax(-1)' * hot}"
    own = argument(call, 1, "y")
    if own is None or not hasattr(labels, "shape") or getattr(labels.shape, "rank", len(labels.shape)) > 2:
        return ""
    return f"{np}.argmax({source.text(own)}, axis=-1)" if _is_hot(labels) else source.text(own)


def _is_hot(labels: Any) -> bool:
    """Whether Keras takes the place of the greatest number in a row for its class."""
    shape: Any = getattr(labels, "shape", ())
    return len(shape) > 1 and shape[-1] != 1


def _listed(spot: Spot, call: ast.Call, node: ast.expr, weights: Any, labels: Any) -> Explanation | None:
    """Weights in a list or an array, by the place of the class."""
    size = _size(weights)
    if size is None:
        return None
    text = spot.source.text(node)
    named = short(text, 40)
    kind = "an array" if hasattr(weights, "shape") else f"a {type(weights).__name__}"
    cause = f"Keras' class_weight is a dict with a weight for each class, and {named} is {kind} of {size}."
    given, own = argument(call, 0, "x"), argument(call, 1, "y")
    whole = _classes(labels) if own is not None and given is not None else None
    rows = len(labels) if whole is not None else None
    if whole and rows == size >= _ROWS and max(whole) + 1 < size:
        cause += " As many rows there are: sample_weight takes a weight for each row."
        name = next(one for one in call.keywords if one.value is node)
        if any(one.arg == "sample_weight" for one in call.keywords):
            return None
        pattern = re.compile(r"class_weight(\s*=\s*)" + re.escape(text))
        new = pattern.sub(lambda one: f"sample_weight{one[1]}{text}", spot.source.text(call), count=1)
        edit = edit_of(spot.file, spot.source.replaced({call: new}))
        return Explanation(RULE, spot.file, name.value.lineno, cause, edit, "", "likely")
    advice, new = "", f"dict(enumerate({text}))"
    if whole and max(whole) >= size:
        if len(whole) != size or own is None:
            some = f"{', '.join(map(str, whole[:4]))}{', ...' * (len(whole) > 4)}"
            advice = f"Give it a dict whose keys are the labels: {some}."
            return Explanation(RULE, spot.file, node.lineno, cause, None, advice)
        np = alias(spot, "numpy")
        shown = f"{np}.argmax({spot.source.text(own)}, axis=-1)" if _is_hot(labels) else spot.source.text(own)
        new = f"dict(zip({np}.unique({shown}), {text}))"
        cause += f" The labels are {', '.join(map(str, whole[:4]))}{', ...' * (len(whole) > 4)}: these are its keys."
    else:
        cause += " Below, the first is that of class 0."
    edit = edit_of(spot.file, spot.source.replaced({node: new}))
    return Explanation(RULE, spot.file, node.lineno, cause, edit, "" if edit is not None else f"Give it {new}.")


def _size(weights: Any) -> int | None:
    """How many weights a list or an array has; None of everything else."""
    shape = getattr(weights, "shape", None)
    if shape is not None and type(weights).__module__ == "numpy":
        return int(shape[0]) if len(shape) == 1 else None
    return len(weights) if type(weights) in (list, tuple) and weights else None


def _classes(labels: Any) -> list[int] | None:
    """The classes that there are, as Keras reads labels."""
    if type(labels).__name__ == "EagerTensor":
        labels = labels.numpy()
    if type(labels).__module__ != "numpy" or labels.dtype.kind not in "iubf" or not labels.size or labels.ndim > 2:
        return None
    flat = labels.argmax(-1) if _is_hot(labels) else labels.ravel().round()
    return sorted({int(one) for one in flat})
