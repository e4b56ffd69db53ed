"""Dicts whose keys are not the names of a model's inputs or outputs, and a list of metrics for several outputs."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import compiled, failed_fits, keras_given
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import is_dataset, lookup, method_calls

RULE = "structure"
_LOSSES = re.compile(r"Expected keys \[.*\] in loss dict, but found loss\.keys\(\)=\[(.*)\]")
_METRICS = re.compile(r"Invalid `(metrics|weighted_metrics)`\. `\w+` should contain metrics objects and either")
_BY_KEYS = re.compile(
    r"Invalid `(metrics|weighted_metrics)`\. `\w+` should contain metrics objects and match the output structure of "
    r"the model: (\{[^{}]*\})"
)
"""What Keras says of a list of metrics where `call` of a model returns a dict."""
_INPUTS = re.compile(r"Missing data for input \"|should be passed as a dict|Missing data for input '")
_TENSOR = re.compile(
    r"^Expected \w+, but got .+ of type 'str'"
    r"|y_true and y_pred have different structures.\s*y_true: {.*}\s*y_pred: \*\s*$"
)
"""What TensorFlow says where the loss of one tensor of predictions gets a dict of labels."""
_LABELS = re.compile(r"^Expected \w+, but got .+ of type 'str'|y_true and y_pred have different structures|"
                     r"path: .* in the `loss` argument, can't be found")  # fmt: skip


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if names in a dict are not those of the model."""
    said = situation.message
    given = keras_given(situation)
    for spot, call in (*failed_fits(situation), *_of_batches(situation)):
        model = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
        model = given.get("self") if isinstance(getattr(call.func, "value", None), ast.Call) else model
        outputs = [str(one) for one in getattr(model, "output_names", None) or ()]
        found, tensor = None, _TENSOR.search(said)
        if tensor is not None and len(outputs) < 2:
            return _one_label(spot, call, outputs, given)
        if (by_keys := _BY_KEYS.search(said)) is not None:
            keys = re.findall(r"'([^']*)': 'X'", by_keys[2])
            found = _metrics(spot, call, keys, by_keys[1]) if len(keys) > 1 else None
        elif len(outputs) == 0:
            continue
        elif _LOSSES.search(said):
            found = _losses(spot, call, outputs)
        elif (metrics := _METRICS.search(said)) and len(outputs) > 1:
            found = _metrics(spot, call, outputs, metrics[1])
        elif _INPUTS.search(said):
            names = [str(one.name) for one in getattr(model, "inputs", None) or ()]
            found = _keys(spot, call, names, "input", argument(call, 0, "x"))
        elif _LABELS.search(said):
            found = _keys(spot, call, outputs, "output", argument(call, 1, "y"))
        if found is not None:
            return found
    return None


def _of_batches(situation: Situation) -> Iterator[tuple[Spot, ast.Call]]:
    """The failing frame with its calls of train_on_batch, where a dict of labels may have failed."""
    spot, statement = situation.last, situation.statement
    if spot is not None and statement is not None and _TENSOR.search(situation.message):
        yield from ((spot, one) for one in method_calls(statement, "train_on_batch", "test_on_batch"))


# -- compile


def _losses(spot: Spot, fit: ast.Call, outputs: Sequence[str]) -> Explanation | None:
    """A dict of losses by other names than the model's."""
    losses = compiled(spot, fit, "loss")
    keys = _constants(losses) if isinstance(losses, ast.Dict) else None
    if losses is None or not keys:
        return None
    said = f"The losses are for {_listed(keys)}, and the model's outputs are {_listed(outputs)}."
    layers = _output_layers(spot, len(outputs))
    if len(keys) == len(outputs) == len(layers) and not any(_named(one) for one in layers):
        pieces: dict[ast.expr, str] = {
            layer: spot.source.with_argument(layer, f'name="{key}"') for layer, key in zip(layers, keys)
        }
        said += " Their last layers have no names: Keras gave them some."
        return _told(spot, losses.lineno, said, pieces, "")
    matched = _matched(list(keys), outputs)
    pieces = {node: f'"{matched[key]}"' for key, node in keys.items() if matched is not None and matched[key] != key}
    return _told(spot, losses.lineno, said, pieces, "Give both the same names: name=... of the last layers.")


def _output_layers(spot: Spot, count: int) -> list[ast.Call]:
    """The calls that make the layers of the outputs of the file's one functional model with this number of outputs."""
    lists = [
        found for one in spot.source.calls_of(frozenset({"Model"}))
        if isinstance(found := argument(one, 1, "outputs"), (ast.List, ast.Tuple)) and len(found.elts) == count
    ]  # fmt: skip
    layers: list[ast.Call] = []
    for part in lists[0].elts if len(lists) == 1 else ():
        values = [
            one.value for one in ast.walk(spot.source.tree)
            if isinstance(one, ast.Assign) and [dotted(target) for target in one.targets] == [dotted(part)]
        ]  # fmt: skip
        value = part if isinstance(part, ast.Call) else values[-1] if values else None
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Call):
            layers.append(value.func)
    return layers


def _named(layer: ast.Call) -> bool:
    return any(one.arg in ("name", None) for one in layer.keywords)


def _metrics(spot: Spot, fit: ast.Call, outputs: Sequence[str], name: str) -> Explanation | None:
    """One flat list of metrics: each output has a list of its own."""
    metrics, losses = compiled(spot, fit, name), compiled(spot, fit, "loss")
    if not isinstance(metrics, (ast.List, ast.Tuple)):
        return None
    text, chosen = spot.source.text(metrics), list(outputs)
    if "accuracy" in text:
        listed = losses.elts if isinstance(losses, (ast.List, ast.Tuple)) else ()
        each = dict(zip(outputs, map(spot.source.text, listed)))
        if isinstance(losses, ast.Dict):
            each = {key: spot.source.text(node) for key, node in zip(_constants(losses), losses.values)}
        of_classes = [one for one in outputs if "crossentropy" in each.get(one, "").lower()]
        chosen = of_classes or chosen
    new = "{" + ", ".join(f'"{one}": {text}' for one in chosen) + "}"
    cause = (
        f"The model has {len(outputs)} outputs ({_listed(outputs)}), and compile has one list of {name} for all. "
        "Keras 3 wants them by output."
    )
    return _told(spot, metrics.lineno, cause, {metrics: new}, "")


# -- data


def _keys(spot: Spot, fit: ast.Call, names: Sequence[str], what: str, node: ast.expr | None) -> Explanation | None:
    """A dict of arrays, or of a dataset's elements, by other names than the model's inputs or outputs."""
    data = argument(fit, 0, "x")
    if data is None:
        return None
    given, value = spot.source.text(data), lookup(data, spot)
    of_data = is_dataset(value)
    if of_data:
        spec = value.element_spec
        parts = spec if isinstance(spec, tuple) else (spec,)
        place = 0 if what == "input" else 1
        found: Any = parts[place] if place < len(parts) else None
    elif isinstance(node, ast.Dict):
        found = _constants(node)
    else:
        found = lookup(node, spot) if node is not None else None
    keys = [str(one) for one in found] if isinstance(found, Mapping) else []
    matched = _matched(keys, names)
    if not keys or set(names) <= set(keys):
        return None
    cause = f"The model's {what}s are {_listed(names)}, and the data has {_listed(keys)}."
    advice = f"Give both the same names: keys of the dict, and name=... of the {what}s."
    if matched is None:
        return _told(spot, fit.lineno, cause, {}, advice)
    written = [
        one for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.Dict) and list(_constants(one)) == keys and one not in _of_compile(spot)
    ]  # fmt: skip
    if len(written) == 1:
        pieces: dict[ast.expr, str] = {
            one: f'"{matched[key]}"' for key, one in _constants(written[0]).items() if matched[key] != key
        }
        return _told(spot, written[0].lineno, cause, pieces, advice)
    if not of_data or len(parts) < 2 or len(parts) > 3:
        return _told(spot, fit.lineno, cause, {}, advice)
    own = "x" if what == "input" else "y"
    renamed = "{" + ", ".join(f'"{matched[key]}": {own}["{key}"]' for key in keys) + "}"
    row = "x, y" + ", w" * (len(parts) == 3)
    whole = f"{given}.map(lambda {row}: ({row.replace(own, renamed, 1)}))"
    return _told(spot, fit.lineno, cause, {data: whole}, advice)


def _one_label(spot: Spot, fit: ast.Call, outputs: Sequence[str], given: Mapping[str, Any]) -> Explanation | None:
    """A dict of labels for a model whose output is one tensor: Keras takes the label itself."""
    data, node = argument(fit, 0, "x"), argument(fit, 1, "y")
    if data is None:
        return None
    value, text, pieces = _value(data, "x", spot, given), spot.source.text, dict[ast.expr, str]()
    if is_dataset(value):
        found: Any = value.element_spec[1] if isinstance(value.element_spec, tuple) else None
        key = _own_key(found, outputs)
        row = "x, y" + ", w" * (isinstance(value.element_spec, tuple) and len(value.element_spec) == 3)
        for one in (data, next((word.value for word in fit.keywords if word.arg == "validation_data"), None)):
            called = "x" if one is data else "validation_data"
            spec = getattr(_value(one, called, spot, given), "element_spec", None) if one is not None and key else None
            if one is not None and isinstance(spec, tuple) and isinstance(spec[1], dict) and key in spec[1]:
                pieces[one] = f"{text(one)}.map(lambda {row}: ({row.replace('y', f'y[{key!r}]', 1)}))"
    elif isinstance(node, (ast.Name, ast.Attribute)):
        key = _own_key(lookup(node, spot), outputs)
        pieces |= {node: f"{text(node)}[{key!r}]"} if key else {}
    else:
        pieces, key = _written_labels(spot, node, outputs)
    if not key:
        return None
    shown = f"The labels of {short(text(data), 40)} are" if node is None else f"{short(text(node), 40)} is"
    cause = f"{shown} a dict, and the model's output is one tensor: its loss takes the labels without a name."
    line = min([one.lineno for one in pieces], default=fit.lineno)
    return _told(spot, line, cause, pieces, f"Give it what stands under {key!r} in the dict.")


def _value(node: ast.expr, name: str, spot: Spot, given: Mapping[str, Any]) -> Any:
    """What a name stands for, or what Keras was given where a call stands in the place."""
    return given.get(name) if isinstance(node, ast.Call) else lookup(node, spot)


def _own_key(found: object, outputs: Sequence[str]) -> str:
    """The name of the one label in a dict: the only one, or that of the model's output; "" where there is none."""
    keys = [one for one in found if isinstance(one, str)] if isinstance(found, dict) else []
    return keys[0] if len(keys) == 1 else next((one for one in keys if one in outputs), "")


def _written_labels(spot: Spot, node: ast.expr | None, outputs: Sequence[str]) -> tuple[dict[ast.expr, str], str]:
    """The dict that `fit` is given, or that a generator or `__getitem__` gives as labels, by what is under its key."""
    dicts: list[ast.expr] = [node] if node is not None else []
    if node is None:
        every = [one for one in ast.walk(spot.source.tree) if isinstance(one, (ast.Yield, ast.Return))]
        given = [one.value for one in every if isinstance(one.value, ast.Tuple) and len(one.value.elts) in (2, 3)]
        dicts = [one.elts[1] for one in given if isinstance(one, ast.Tuple)]
    pieces, keys = dict[ast.expr, str](), set[str]()
    for one in dicts:
        names = {part.id for part in [one] if isinstance(part, ast.Name)}
        values = [
            made.value for made in ast.walk(spot.source.tree)
            if isinstance(made, ast.Assign) and {dotted(target) for target in made.targets} == names
            and spot.source.function(made.lineno) is spot.source.function(one.lineno)
        ]  # fmt: skip
        written = values[0] if len(values) == 1 else one
        constants = _constants(written) if isinstance(written, ast.Dict) else {}
        key = _own_key(dict.fromkeys(constants), outputs)
        if isinstance(written, ast.Dict) and key and len(constants) == len(written.keys):
            pieces[written] = spot.source.text(written.values[list(constants).index(key)])
            keys.add(key)
    return (pieces, keys.pop()) if len(keys) == 1 and len(pieces) == len(dicts) else ({}, "")


def _of_compile(spot: Spot) -> list[ast.AST]:
    return [part for one in spot.source.calls_of(frozenset({"compile"})) for part in ast.walk(one)]


def _constants(node: ast.Dict) -> dict[str, ast.expr]:
    """The keys of a dict that are written as texts."""
    return {one.value: one for one in node.keys if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def _matched(keys: Sequence[str], names: Sequence[str]) -> dict[str, str] | None:
    """The name for each key: the same one, or the one that is left over, or that looks like it; None in doubt."""
    if len(keys) != len(names):
        return None
    found = {key: key for key in keys if key in names}
    left = [name for name in names if name not in found]
    rest = [key for key in keys if key not in found]
    if len(rest) == 1:
        return {**found, rest[0]: left[0]}
    for key in rest:
        close = difflib.get_close_matches(key, left, 1)
        if not close:
            return None
        left.remove(close[0])
        found[key] = close[0]
    return found


def _listed(names: Sequence[str] | Mapping[str, Any]) -> str:
    return short(", ".join(names), 50)


def _told(spot: Spot, line: int, cause: str, pieces: Mapping[ast.expr, str], advice: str) -> Explanation:
    edit = Edit(spot.file, *spot.source.kept_lines(pieces)) if pieces else None
    return Explanation(RULE, spot.file, line, cause, edit, "" if edit is not None else advice)
