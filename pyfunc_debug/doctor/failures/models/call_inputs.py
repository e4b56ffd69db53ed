"""A model whose `call` reads a dict by its keys, and data that give tensors or tuples; and the reverse."""

from __future__ import annotations

import ast
import difflib
import json
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import fits
from pyfunc_debug.doctor.failures.models.keras_structures import Given, through_keras, validation
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import indent_of, names, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import (
    calls,
    described,
    extends_keras,
    is_dataset,
    is_keras_class,
    is_tensor,
    lookup,
    of_keras,
)

RULE = "structure"
_BY_KEY = ("are valid indices, got '", "tuple indices must be", "list indices must be")
_KEY = re.compile(r"^Exception encountered when calling .*?\n\n(?:\x1b\[1m)?(.*?)(?:\x1b\[0m)?(?:\n|$)", re.DOTALL)
_ALIKE = 0.7
_MOST = 4
"""Keys that are named."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if `call` of the user's model failed as it read its inputs."""
    spot, statement = situation.last, situation.statement
    function = spot.function if spot is not None else None
    if spot is None or statement is None or situation.body or not isinstance(function, ast.FunctionDef):
        return None
    taken = parameters(function)[:1]
    model = extends_keras(type(spot.value("self"))) and of_keras(type(spot.value("self")), "Model")
    stored = {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    if function.name != "call" or not taken or not model or taken[0] in stored or not through_keras(situation.inner):
        return None
    (name,), value = taken, spot.value(taken[0])
    keys = _keys(function, name)
    if type(value) is dict:
        return _of_dict(situation, spot, statement, function, name, value, keys)
    plain = is_tensor(value) or (type(value) in (tuple, list) and all(map(is_tensor, value)))
    read = any(one.slice.value in keys for one in _reads(statement, name) if isinstance(one.slice, ast.Constant))
    if situation.kind != "TypeError" or not plain or not read or not any(one in situation.message for one in _BY_KEY):
        return None
    return _wants_dict(situation, spot, name, value, keys)


def _reads(node: ast.AST, name: str) -> list[ast.Subscript]:
    """`inputs[...]`, in the order of the text."""
    found = [
        one for one in ast.walk(node)
        if isinstance(one, ast.Subscript) and isinstance(one.value, ast.Name) and one.value.id == name
    ]  # fmt: skip
    return sorted(found, key=lambda one: (one.lineno, one.col_offset))


def _keys(function: ast.FunctionDef, name: str) -> list[str]:
    found = [one.slice.value for one in _reads(function, name) if isinstance(one.slice, ast.Constant)]
    return list(dict.fromkeys(one for one in found if isinstance(one, str)))


def _quoted(keys: list[str]) -> str:
    listed = [json.dumps(one) for one in keys[:_MOST]]
    return f"{', '.join(listed[:-1])} and {listed[-1]}" if len(listed) > 1 else "".join(listed)


# -- a dict is wanted


def _wants_dict(situation: Situation, spot: Spot, name: str, value: Any, keys: list[str]) -> Explanation:
    """The data give a tensor, or a tuple, where the model reads keys."""
    given = _given(situation)
    what = described(value) if is_tensor(value) else f"a {type(value).__name__} of {len(value)}"
    cause = f"call reads the keys {_quoted(keys)}" if len(keys) > 1 else f"call reads the key {_quoted(keys)}"
    cause += f" of {name}, so it takes a dict, and {name} is {what}"
    if given is None:
        cause += "."
        return Explanation(RULE, spot.file, spot.line, cause, None, f"Give it a dict: {_written(keys)}.")
    text, data = short(given.text(given.x), 30), lookup(given.x, given.spot)
    cause += f", which {text} gives it (line {given.call.lineno})."
    spec = data.element_spec if is_dataset(data) else None
    parts = ["x", "y", "w"][: len(spec)] if isinstance(spec, tuple) else ["x"]
    if len(keys) == 1 and is_tensor(value):
        inside = f"{{{json.dumps(keys[0])}: x}}"
        pieces: dict[ast.expr, str] = {given.x: f"{{{json.dumps(keys[0])}: {given.text(given.x)}}}"}
        if spec is not None:
            whole = f"({', '.join([inside, *parts[1:]])})" if isinstance(spec, tuple) else inside
            mapped = f".map(lambda {', '.join(parts)}: {whole})"
            pieces = {
                one: f"{given.spot.source.atom(one)}{mapped}" for one in (given.x, *validation(given, spec))
            }  # fmt: skip
        edit = edit_of(given.spot.file, given.spot.source.replaced(pieces))
        if edit is not None and len(parts) <= 3 and (spec is None) == hasattr(type(data), "__array__"):
            return Explanation(RULE, spot.file, spot.line, cause, edit)
    if spec is None:
        return Explanation(RULE, spot.file, spot.line, cause, None, f"Give it a dict: {_written(keys)}.")
    advice = f"Give each element as ({_written(keys)}, y): yield that, or make it with {text}.map(...)."
    if isinstance(spec, tuple) and is_tensor(value) and len(spec) > 2:
        cause += " Of a tuple, Keras takes the first part for the inputs, the second for the labels."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _written(keys: list[str]) -> str:
    listed = [f"{json.dumps(one)}: ..." for one in keys[:_MOST]]
    return "{" + ", ".join(listed) + (", ...}" if len(keys) > _MOST else "}")


def _given(situation: Situation) -> Given | None:
    """The call of `fit` and the like that the model was called by, and its data."""
    for spot in reversed(situation.spots[:-1]):
        found = fits(spot.statement) if spot.statement is not None else []
        x = argument(found[0], 0, "x") if len(found) == 1 else None
        if x is not None:
            return Given(spot, found[0], None, x, None)
    return None


# -- a dict is given


def _of_dict(
    situation: Situation, spot: Spot, statement: ast.stmt, function: ast.FunctionDef, name: str, value: dict[Any, Any],
    keys: list[str],
) -> Explanation | None:  # fmt: skip
    has = [one for one in value if isinstance(one, str)]
    if not has or len(has) != len(value):
        return None
    said = f"{name} is a dict with {_quoted(has)}"
    source = spot.source
    places = [one for one in _reads(statement, name) if isinstance(one.slice, ast.Constant)]
    said_key = _missing(situation.inner)
    missing = next((one for one in places if str(one.slice.value) == said_key), None)  # type: ignore[attr-defined]
    if missing is not None:
        key = missing.slice.value  # type: ignore[attr-defined]
        if not isinstance(key, str):
            cause = f"call reads {source.text(missing)}, by its place, and {said}: it is read by its keys."
            listed = " or ".join(f"{name}[{json.dumps(one)}]" for one in has[:_MOST])
            return Explanation(RULE, spot.file, spot.line, cause, None, f"Read {listed} there.")
        alike = difflib.get_close_matches(key, has, 2, _ALIKE)
        cause = f"call reads the key {json.dumps(key)}, and {said}."
        whole = [one for one in _reads(function, name) if getattr(one.slice, "value", None) == key]
        new = f"{name}[{json.dumps(alike[0])}]" if len(alike) == 1 else ""
        edit = edit_of(spot.file, source.replaced({missing: new})) if new and len(whole) == 1 else None
        advice = "" if edit else "Name in the model and in the data what is the same by one name."
        return Explanation(RULE, spot.file, spot.line, cause, edit, advice, "likely" if edit else "measured")
    if keys or _looked_into(function, name) or not _whole(statement, name, spot):
        return None
    cause = f"call takes {name} for one tensor, and {said}"
    given = _given(situation)
    cause += f", as {short(given.text(given.x), 30)} gives it (line {given.call.lineno})." if given else "."
    if len(has) > 1:
        listed = ", ".join(f"{name}[{json.dumps(one)}]" for one in has[:_MOST])
        return Explanation(RULE, spot.file, spot.line, cause, None, f"Read what is in it: {listed}.")
    body = function.body[0]
    documented = isinstance(body, ast.Expr) and isinstance(body.value, ast.Constant) and len(function.body) > 1
    first = function.body[1] if documented else body
    if first.lineno == function.lineno:
        return None
    above = f"{indent_of(source.lines[first.lineno - 1])}{name} = {name}[{json.dumps(has[0])}]"
    return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, first.lineno, first.lineno - 1, (above,)))


def _missing(error: BaseException) -> str | None:
    """The key that a `KeyError` says was not there: Keras puts words around it, which Python then quotes."""
    said = str(error.args[0]) if isinstance(error, KeyError) and error.args else ""
    found = _KEY.search(said)
    return found[1].strip("'\"") if found is not None else said.strip("'\"") or None


def _looked_into(function: ast.FunctionDef, name: str) -> bool:
    """Whether a function reads a parameter as something with parts, or asks what it is."""
    for one in ast.walk(function):
        if isinstance(one, (ast.Subscript, ast.Attribute)) and getattr(one.value, "id", "") == name:
            return True
        if isinstance(one, ast.Call) and getattr(one.func, "id", "") in ("isinstance", "len", "dict", "list", "type"):
            return True
        if isinstance(one, ast.For) and name in names(one.iter):
            return True
    return False


def _whole(statement: ast.stmt, name: str, spot: Spot) -> bool:
    """Whether a statement computes with a parameter, or gives it to a layer of Keras' that takes a tensor."""
    for one in ast.walk(statement):
        if isinstance(one, ast.BinOp) and name in (getattr(one.left, "id", ""), getattr(one.right, "id", "")):
            return True
    for call in calls(statement):
        layer = lookup(call.func, spot)
        taken = [getattr(one, "id", "") for one in call.args[:1]]
        if taken == [name] and is_keras_class(type(layer)) and not of_keras(type(layer), "Model"):
            return True
    return False
