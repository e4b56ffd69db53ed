"""`class_weight` that Keras does not take: for several outputs, and for targets with an axis beside the classes.

It takes one weight a class for the rows of one output. For everything else it has `sample_weight`.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits, fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import datasets
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_dataset, lookup
from pyfunc_debug.interception.names.private import sliced_labels

RULE = "class-weight"
_OUTPUTS = re.compile(r"`class_weight` is only supported for Models with a single output")
_AXES = re.compile(r"`class_weight` not supported for 3\+ dimensional|only 0-dimensional arrays can be converted|"
                   r"only length-1 arrays can be converted|only size-1 arrays can be converted")  # fmt: skip
_NO_RANK = re.compile(r"not supported between instances of 'NoneType' and 'int'")
_RANGE = re.compile(r"indices\[[\d,]*\] = (-?\d+) is not in \[0, (\d+)\)")
_TEXT_KEYS = 'can only concatenate str (not "int") to str'
_THIRD = "Give weights as the third part of the dataset's elements: one for each row, or for each label of it."
_WORDS = "Give sample_weight instead: for each output an array with the weight of each row's class."


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if Keras took no class_weight."""
    spot, text = situation.last, situation.message
    statement = situation.statement
    several = _OUTPUTS.search(text) is not None
    if spot is None or statement is None or not (several or (_AXES.search(text) and _weighs(situation.inner))):
        return None
    for call in fits(statement):
        named = {one.arg: one for one in call.keywords}
        weight = named.get("class_weight")
        given = call.args[0] if call.args else getattr(named.get("x"), "value", None)
        labels = call.args[1] if len(call.args) > 1 else getattr(named.get("y"), "value", None)
        if weight is None or given is None or named.get("sample_weight") is not None:
            continue
        weights = _dict(weight.value, spot)
        data = lookup(given, spot)
        model = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
        pieces: dict[ast.expr, str] | None = None
        if isinstance(weights, dict) and weights and is_dataset(data):
            pieces = _mapped(spot, call, given, weight, weights, data, model)
        elif isinstance(weights, dict) and weights and labels is not None:
            new = _of_arrays(spot, weight.value, weights, labels, list(getattr(model, "output_names", ())))
            text = spot.source.text_with(call, _listed(labels, spot))
            pieces = {call: with_weights(text, spot.source.text(weight.value), f"sample_weight={new}")} if new else None
        cause = "Keras' class_weight has one weight a class for the rows of one output"
        cause += ": this model has several outputs." if several else ", and these targets have more axes than that."
        cause += " sample_weight takes a weight for each."
        edit = edit_of(spot.file, spot.source.replaced(pieces)) if pieces else None
        return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit is not None else _WORDS)
    return None


def of_dataset(situation: Situation) -> Explanation | None:
    """The explanation, if keys of class_weight are text, or a label of a dataset has no weight: Keras makes a list."""
    text, match = situation.message, _RANGE.search(situation.message)
    texts = situation.kind == "TypeError" and text == _TEXT_KEYS and _weighs(situation.inner)
    for spot, call in failed_fits(situation) if texts or match else ():
        weight = next((one.value for one in call.keywords if one.arg == "class_weight"), None)
        weights = _dict(weight, spot) if weight is not None else None
        given = argument(call, 0, "x")
        data = lookup(given, spot) if given is not None else None
        if weight is None or not isinstance(weights, dict) or not weights:
            continue
        if texts:
            if all(type(one) is str and one.isdecimal() for one in weights):
                cause = (
                    "the keys of class_weight are text, and Keras computes with them: they are labels, whole numbers."
                )
                return _rekeyed(spot, call, weight, cause, "int(key)")
        elif match is not None and all(type(one) is int for one in weights) and max(weights) + 1 == int(match[2]):
            every = [data] if is_dataset(data) else list(datasets.held(situation))
            return _out_of_range(spot, call, weight, weights, every, int(match[1]))
    return None


def _out_of_range(
    spot: Spot, call: ast.Call, weight: ast.expr, weights: dict[int, Any], every: list[Any], label: int
) -> Explanation | None:
    """A class that Keras reads out of the labels and that is beyond the weights."""
    specs = [spec[1] for one in every if isinstance(spec := one.element_spec, tuple) and len(spec) > 1]
    shapes = {str(one.shape): one.shape for one in specs if hasattr(one, "shape")}
    shape = next(iter(shapes.values())) if len(shapes) == 1 else None
    upto = f"class_weight has weights for {min(weights)} to {max(weights)}"
    if shape is None or shape.rank is None:
        cause = f"Keras read the class {label} out of the labels, and {upto}."
        return Explanation(RULE, spot.file, call.lineno, cause, None, f"Give each class a weight, {label} too.")
    if shape.rank > 1 and shape[-1] != 1:
        cause = (
            f"of labels of shape {shape} Keras takes the place of the greatest in a row for the class: here {label}, "
        )
        return Explanation(RULE, spot.file, call.lineno, f"{cause}and {upto}.", None, _THIRD)
    labels = sliced_labels(every[0]) if len(every) == 1 else None
    classes = sorted({int(one) for one in labels.round().ravel()}) if labels is not None else []
    steps = {own - key for own, key in zip(classes, sorted(weights))} if len(classes) == len(weights) else set()
    cause = f"a label is {label}, and {upto}: Keras looks each label of a dataset up in a list of them."
    if len(steps) != 1:
        words = f"Give each label a weight, {label} too: its keys are the labels."
        return Explanation(RULE, spot.file, call.lineno, cause, None, words)
    step = steps.pop()
    cause += f" The labels are {', '.join(map(str, classes[:4]))}{', ...' * (len(classes) > 4)}."
    return _rekeyed(spot, call, weight, cause, f"key + {step}" if step > 0 else f"key - {-step}")


def _rekeyed(spot: Spot, call: ast.Call, weight: ast.expr, cause: str, key: str) -> Explanation:
    """The same weights with other keys."""
    text = spot.source.text(weight)
    new = f"{{{key}: weight for key, weight in {text}.items()}}"
    edit = edit_of(spot.file, spot.source.replaced({weight: new}))
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit is not None else f"Give it {new}.")


def asks_rank(situation: Situation) -> bool:
    """Whether Keras compared the rank of the labels of a dataset, which is not known, to weigh their classes."""
    return _NO_RANK.search(situation.message) is not None and _weighs(situation.inner)


def _weighs(error: BaseException) -> bool:
    """Whether a function of Keras' that makes weights of classes failed."""
    return any("class_weight" in one.f_code.co_name for one in frames(error.__traceback__))


def _dict(node: ast.expr, spot: Spot) -> Any:
    """A dict by its name, or as it is written."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return lookup(node, spot)


def _listed(labels: ast.expr, spot: Spot) -> dict[ast.expr, str]:
    """Labels in a dict as a list of them: beside a dict, Keras finds no weights."""
    text = spot.source.text
    if isinstance(labels, ast.Dict):
        return {labels: f"[{', '.join(map(text, labels.values))}]"}
    return {labels: f"list({text(labels)}.values())"} if isinstance(lookup(labels, spot), dict) else {}


def with_weights(text: str, own: str, new: str) -> str:
    """A call with another argument in the place of `class_weight=own`; without one for ""."""
    pattern = re.compile(r"class_weight\s*=\s*" + re.escape(own))
    if new:
        return pattern.sub(lambda _: new, text, count=1)
    return re.sub(r",\s*" + pattern.pattern, "", text, count=1)


def _of_arrays(spot: Spot, node: ast.expr, weights: dict[Any, Any], labels: ast.expr, outputs: list[str]) -> str:
    """Weights of rows for arrays of labels."""
    np, text, own = alias(spot, "numpy"), spot.source.text(labels), spot.source.text(node)
    value = lookup(labels, spot)
    if value is None and isinstance(labels, (ast.List, ast.Tuple)):
        value = [lookup(one, spot) for one in labels.elts]
    if value is None and isinstance(labels, ast.Dict):
        value = {
            one.value: lookup(part, spot)
            for one, part in zip(labels.keys, labels.values)
            if isinstance(one, ast.Constant)
        }
    each = _parts(value)
    forms = {_form(one) for one in each}
    if len(forms) != 1 or None in forms:
        return ""
    (form,) = forms
    nested = all(isinstance(one, dict) for one in weights.values())
    if isinstance(value, dict):
        if (nested and set(value) - set(weights)) or list(value) != outputs:  # weights go by position
            return ""
        chosen = f"{own}[name]" if nested else own
        return f"[{np}.vectorize({chosen}.get, otypes=[float])(one{form}) for name, one in {text}.items()]"
    if isinstance(value, (list, tuple)):
        if not nested:
            return f"[{np}.vectorize({own}.get, otypes=[float])(one{form}) for one in {text}]"
        if len(outputs) != len(each) or set(outputs) - set(weights):
            return ""
        return f"[{np}.vectorize({own}[name].get, otypes=[float])(one{form}) for name, one in zip({outputs!r}, {text})]"
    return "" if nested else f"{np}.vectorize({own}.get, otypes=[float])({text}{form})"


def _parts(value: Any) -> list[Any]:
    """What a dict or a list holds; the one value that stands alone."""
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _form(value: Any) -> str | None:
    """What makes classes of labels: nothing, `[..., 0]` of a last axis of one, a maximum of one-hot ones."""
    shape, kind = getattr(value, "shape", None), getattr(getattr(value, "dtype", None), "kind", "")
    if not isinstance(shape, tuple) or kind not in "iubf" or not shape:
        return None
    if len(shape) > 1 and shape[-1] > 1:
        one_of = bool(((value == 0) | (value == 1)).all() and (value.sum(-1) == 1).all())
        return ".argmax(-1)" if one_of else "" if len(shape) > 2 else None
    return "[..., 0]" if len(shape) > 2 else ""


def _have(model: Any, classes: int, outputs: int) -> list[bool]:
    """Which outputs of a model have this many classes, two of which may stand in one column; all where that is open."""
    shapes = [getattr(one, "shape", ()) for one in getattr(model, "outputs", None) or ()]
    if len(shapes) != outputs:
        return [True] * outputs
    return [not shape or shape[-1] == classes or (shape[-1] == 1 and classes == 2) for shape in shapes]


def _mapped(
    spot: Spot, call: ast.Call, given: ast.expr, weight: ast.keyword, weights: dict[Any, Any], data: Any, model: Any
) -> dict[ast.expr, str] | None:
    """The dataset with the weights of its labels beside them, for whole numbers from 0 on.

    Outputs that have another number of classes get 1.
    """
    spec = getattr(data, "element_spec", None)
    parts = spec[1] if isinstance(spec, tuple) and len(spec) == 2 else None
    if parts is None or sorted(map(str, weights)) != sorted(map(str, range(len(weights)))):
        return None
    each = _parts(parts)
    ranks = {getattr(one.shape, "rank", None) for one in each}
    hot = {one.shape[-1] == len(weights) > 1 for one in each if one.shape.rank and one.shape.rank > 1}
    if len(ranks) != 1 or None in ranks or len(hot) > 1:
        return None
    tf = alias(spot, "tensorflow")
    values = [float(weights[one]) for one in sorted(weights)]
    classes = f"{tf}.argmax(one, -1)" if hot == {True} else f"{tf}.cast(one, {tf}.int32)"
    gathered, ones = f"{tf}.gather({values}, {classes})", f"{tf}.ones_like(one, {tf}.float32)"
    chosen = f"{tf}.nest.map_structure(lambda one: {gathered}, y)"
    have = _have(model, len(weights), len(each))
    if not all(have):
        if not any(have) or hot:
            return None
        names = [repr(name) for name in parts] if isinstance(parts, dict) else [str(at) for at in range(len(each))]
        texts = [
            (gathered if fits_it else ones).replace("(one,", f"(y[{name}],") for name, fits_it in zip(names, have)
        ]  # fmt: skip
        chosen = f"({', '.join(texts)})"
        if isinstance(parts, dict):
            chosen = f"{{{', '.join(f'{name}: {text}' for name, text in zip(names, texts))}}}"
    text = f"{spot.source.text(given)}.map(lambda x, y: (x, y, {chosen}))"
    whole = with_weights(spot.source.text(call), spot.source.text(weight.value), "")
    return {call: whole.replace(spot.source.text(given), text, 1)}
