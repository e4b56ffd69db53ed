"""Labels in a dict for a model of a class: a tuple that `call` returns has no names, and a label more has no output.

Keras fails inside its own comparison: "'NoneType' object is not iterable", or "different structures".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import compiled, failed_fits, keras_given
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument, return_values
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import begins, dotted, read, short
from pyfunc_debug.doctor.failures.reading.symbols import is_dataset, lookup

RULE = "structure"
_SAID = ("'NoneType' object is not iterable", "y_true and y_pred have different structures")


@dataclass(frozen=True)
class _Compared:
    """What Keras' loss was given: the keys of the labels, and the outputs, of which those of a dict have names."""

    labels: list[str]
    outputs: int
    names: list[str]


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the labels are a dict, and the outputs have no names or less of them."""
    found = _compared(situation) if any(one in situation.message for one in _SAID) else None
    for spot, fit in failed_fits(situation) if found is not None else ():
        if found is not None and found.names:
            more = set(found.names) < set(found.labels)
            return _more_labels(spot, fit, found, keras_given(situation)) if more else None
        if found is not None and _SAID[0] in situation.message:
            return _unnamed(spot, fit, found, keras_given(situation))
    return None


def _compared(situation: Situation) -> _Compared | None:
    for frame in frames(situation.inner.__traceback__):
        known = frame.f_locals
        if not frame.f_code.co_filename.endswith("compile_utils.py") or frame.f_code.co_name != "call":
            continue
        labels, outputs = known.get("y_true"), known.get("y_pred")
        names = (
            list(outputs) if isinstance(outputs, dict) else list(getattr(known.get("self"), "output_names", ()) or ())
        )
        texts = isinstance(labels, dict) and all(isinstance(one, str) for one in [*labels, *names])
        if texts and isinstance(labels, dict) and isinstance(outputs, (dict, list, tuple)):
            return _Compared(list(labels), len(outputs), names)
    return None


# -- outputs without names


def _unnamed(spot: Spot, fit: ast.Call, found: _Compared, given: dict[str, Any]) -> Explanation | None:
    """`return start, end` in the `call` of a model whose labels are a dict."""
    kind = type(given.get("self"))
    code = next((getattr(vars(one)["call"], "__code__", None) for one in kind.__mro__ if "call" in vars(one)), None)
    if code is None:
        return None
    file, line = begins(code)
    source = read(file)
    function = next(
        (one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.name == "call"
         and min([one.lineno, *(each.lineno for each in one.decorator_list)]) <= line <= one.lineno),
        None,
    )  # fmt: skip
    values = return_values(function) if function is not None else []
    losses = compiled(spot, fit, "loss")
    keys = _keys(losses, spot)
    named = keys or (found.labels if not isinstance(losses, (ast.List, ast.Tuple)) else [])
    wanted = named if len(named) == found.outputs and set(named) <= set(found.labels) else []
    which = (
        f"loss= and the labels are dicts ({_listed(keys)})"
        if keys
        else f"the labels are a dict ({_listed(found.labels)})"
    )
    cause = f"{kind.__name__}.call returns {found.outputs} outputs in a row: these have no names, and {which}."
    if not values or not wanted or _taken_apart(spot, given.get("self")):
        advice = (
            "Let call return a dict with a key for each output, and use the same keys for losses and labels; where "
        )
        advice += "the model is called, read its outputs by their keys."
        return Explanation(RULE, file, values[0].lineno if values else line, cause, None, advice)
    cause += " Return a dict with these keys."
    pieces = {one: _named(source.text(one), list(map(source.text, _parts(one))), wanted) for one in values}
    likely = any(not _by_names(list(map(source.text, _parts(one))), wanted) for one in values)
    if likely:
        cause += f" Below, the first is taken for {wanted[0]!r}."
    edit = Edit(file, *source.kept_lines(pieces))
    return Explanation(RULE, file, values[0].lineno, cause, edit, "", "likely" if likely else "measured")


def _parts(value: ast.expr) -> list[ast.expr]:
    return list(value.elts) if isinstance(value, (ast.Tuple, ast.List)) else []


def _named(text: str, parts: Sequence[str], keys: Sequence[str]) -> str:
    """A tuple as a dict: by the words in its parts' names, or in the order of the keys."""
    if len(parts) != len(keys):
        return f"dict(zip({tuple(keys)!r}, {text}))"
    matched = _by_names(parts, keys) or dict(zip(keys, parts))
    return "{" + ", ".join(f'"{key}": {matched[key]}' for key in keys) + "}"


def _by_names(parts: Sequence[str], keys: Sequence[str]) -> dict[str, str]:
    """The part for each key that shares most words with it, `start_logits` for "start"; {} where that is in doubt."""
    found: dict[str, str] = {}
    for key in keys:
        scores = [len(_words(key) & _words(part)) for part in parts]
        best = max(scores, default=0)
        if not best or scores.count(best) > 1:
            return {}
        found[key] = parts[scores.index(best)]
    return found if len(set(found.values())) == len(keys) == len(parts) else {}


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+|\d+", text.lower()))


def _taken_apart(spot: Spot, model: Any) -> bool:
    """Whether the file unpacks what the model returns: `start, end = model(x)`; a dict would give its keys there."""
    several = [
        one.value for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], (ast.Tuple, ast.List))
    ]  # fmt: skip
    asked = [one for value in several if isinstance(value, ast.Call) for one in [value.func]]
    owners = [one.value if isinstance(one, ast.Attribute) and one.attr == "predict" else one for one in asked]
    return any(lookup(one, spot) is model or dotted(one) == "self" for one in owners)


def _keys(node: ast.expr | None, spot: Spot) -> list[str]:
    """The keys of a dict that is written, or that a name stands for."""
    value = lookup(node, spot) if node is not None else None
    keys = list(value) if isinstance(value, dict) else []
    if isinstance(node, ast.Dict):
        keys = [getattr(one, "value", None) for one in node.keys]
    return keys if all(isinstance(one, str) for one in keys) else []


# -- labels without outputs


def _more_labels(spot: Spot, fit: ast.Call, found: _Compared, given: dict[str, Any]) -> Explanation:
    """A dict of labels with more keys than the outputs have."""
    more = [one for one in found.labels if one not in found.names]
    cause = (
        f"the labels have {_listed(more)} beside {_listed(found.names)}, and the model has no output of "
        f"{'that name' if len(more) == 1 else 'these names'}: Keras wants a label for each output and no other."
    )
    kept = [one for one in found.labels if one in found.names]
    pieces: dict[ast.expr, str] = {}
    text = spot.source.text
    for name, place in (("x", 0), ("validation_data", len(fit.args) + 1)):
        node = argument(fit, place, name)
        spec = getattr(given.get(name), "element_spec", None) if is_dataset(given.get(name)) else None
        if node is not None and isinstance(spec, tuple) and len(spec) in (2, 3) and isinstance(spec[1], dict):
            row = "x, y" + ", w" * (len(spec) == 3)
            pieces[node] = f"{text(node)}.map(lambda {row}: ({row.replace('y', _picked('y', kept), 1)}))"
    labels = argument(fit, 1, "y")
    if isinstance(labels, ast.Dict) and len(_keys(labels, spot)) == len(labels.values):
        each = dict(zip(_keys(labels, spot), labels.values))
        pieces[labels] = "{" + ", ".join(f'"{one}": {text(each[one])}' for one in kept) + "}"
    elif isinstance(labels, ast.Name) and isinstance(lookup(labels, spot), dict):
        pieces[labels] = _picked(labels.id, kept)
    edit = Edit(spot.file, *spot.source.kept_lines(pieces)) if pieces else None
    advice = f"Give only {_listed(kept)} as labels." if edit is None else ""
    return Explanation(RULE, spot.file, fit.lineno, cause, edit, advice)


def _picked(name: str, keys: Sequence[str]) -> str:
    return "{" + ", ".join(f'"{one}": {name}["{one}"]' for one in keys) + "}"


def _listed(names: Sequence[str]) -> str:
    return short(", ".join(names), 50)
