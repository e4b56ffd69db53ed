"""A method of Python's text asked of a tensor that has values: `line.split()` of a dataset's element."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import calls, dtype_of, lookup, root_is, shape_of

RULE = "symbolic-value"
_SAID = re.compile(r"EagerTensor' object has no attribute '(\w+)'")
_METHODS = {one for one in dir(str) if not one.startswith("_")} | {"decode"}
_ALONE = {
    "split", "rsplit", "splitlines", "strip", "lstrip", "rstrip", "lower", "upper", "startswith", "endswith", "encode",
    "decode", "partition", "rpartition", "isdigit", "isalpha", "isalnum", "casefold", "capitalize",
}  # fmt: skip
"""What nobody asks of numbers that are meant as numbers."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a tensor of texts, or of their ids, was taken for a text."""
    said, spot = _SAID.search(situation.message), situation.last
    statement = situation.statement
    if said is None or spot is None or statement is None or situation.kind != "AttributeError":
        return None
    method = said[1]
    if situation.body or method not in _METHODS:
        return None
    asked = [
        (one, value) for one in ast.walk(statement)
        if isinstance(one, ast.Attribute) and one.attr in _METHODS and _is_eager(value := lookup(one.value, spot))
    ]  # fmt: skip
    asked.sort(key=lambda one: one[0].attr != method)
    if not asked or asked[0][0].attr != method:
        return _given(situation, spot, statement)
    owner, value = asked[0][0].value, asked[0][1]
    name = short(spot.source.text(owner), 40)
    if dtype_of(value) != "string":
        return numbers(spot, name, value, method)
    if shape_of(value) != ():
        return _several(spot, asked[0][0], value)
    pieces: dict[ast.expr, str] = {}
    for one, found in asked:
        if dtype_of(found) != "string" or shape_of(found) != ():
            continue
        around, text = spot.source.parent(one), spot.source.text(one.value)
        if one.attr == "encode" and isinstance(around, ast.Call):
            pieces[around] = f"{text}.numpy()"
        else:
            pieces[one.value] = f"{text}.numpy()" if one.attr == "decode" else f"{text}.numpy().decode()"
    gives = "bytes" if method in ("decode", "encode") else "bytes, and .decode() makes text of them"
    cause = f"{name} is a tensor that holds a text: it has no {method}. .numpy() gives its value, {gives}."
    return Explanation(RULE, spot.file, spot.line, cause, edit_of(spot.file, spot.source.replaced(pieces)))


def _is_eager(value: object) -> bool:
    return type(value).__name__ == "EagerTensor"


def numbers(spot: Spot, name: str, value: Any, method: str, rule: str = RULE) -> Explanation | None:
    """What is said of ids of words, where a text is wanted.

    Args:
      spot: Where they were asked.
      name: How they are written there.
      value: The tensor.
      method: What was asked of them; None is given for what numbers may be asked, too.
      rule: The finding's.
    """
    if method not in _ALONE:
        return None
    shape = shape_of(value)
    cause = f"{name} is a tensor of numbers ({dtype_of(value)}), and no text: it has no {method}. "
    cause += "If they are ids, the text is what they stand for."
    text = f'" ".join(map(str, {name}.numpy().tolist()))' if shape is not None and len(shape) == 1 else ""
    text = f"str({name}.numpy())" if shape == () else text
    advice = "Give the text that your tokenizer or vocabulary makes of them"
    advice += f", or the numbers as words: {text}." if text else ", a row at a time."
    return Explanation(rule, spot.file, spot.line, cause, None, advice)


def _several(spot: Spot, asked: ast.Attribute, value: Any) -> Explanation | None:
    """A batch of texts: each of them has the method."""
    call, source = spot.source.parent(asked), spot.source
    name, shape = source.text(asked.value), shape_of(value)
    if not isinstance(call, ast.Call) or call.func is not asked or shape is None:
        return None
    cause = f"{short(name, 40)} is a tensor that holds {shape[0]} texts, a batch: only one text has {asked.attr}."
    given = source.text(call)[len(source.text(asked)) :]
    text = "one" if asked.attr == "decode" else "one.decode()"
    around = source.parent(call)
    if len(shape) != 1 or isinstance(around, (ast.Attribute, ast.Subscript)) or asked.attr == "encode":
        advice = f"Go through them, a text at a time: for one in {short(name, 40)}.numpy().ravel(): one.decode()."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    new = f"[{text}.{asked.attr}{given} for one in {name}.numpy()]"
    edit = edit_of(spot.file, source.replaced({call: new}))
    return Explanation(RULE, spot.file, spot.line, f"{cause} This asks each of them.", edit)


def _given(situation: Situation, spot: Spot, statement: ast.stmt) -> Explanation | None:
    """A library was given a tensor where it takes a text."""
    ran = frames(situation.inner.__traceback__)
    home = [str(one.f_globals.get("__name__", "")).partition(".")[0] for one in ran]
    outside = [one for one in home if one not in ("tensorflow", "keras", "tf_keras")]
    if not outside or home[-1] != "tensorflow" or len(home) - home[::-1].index(outside[-1]) < len(home) - 1:
        return None
    pieces: dict[ast.expr, str] = {}
    for call in calls(statement):
        if any(root_is(call.func, spot, one) for one in ("tensorflow", "keras")) or hasattr(statement, "body"):
            continue
        for one in call.args:
            value = lookup(one, spot)
            if _is_eager(value) and dtype_of(value) == "string" and shape_of(value) == ():
                pieces[one] = f"{spot.source.text(one)}.numpy().decode()"
    edit = edit_of(spot.file, spot.source.replaced(pieces)) if len(pieces) == 1 else None
    if edit is None:
        return None
    one = next(iter(pieces))
    around = spot.source.parent(one)
    called = short(spot.source.text(around.func), 30) if isinstance(around, ast.Call) else "it"
    cause = f"{called} takes a text, and {spot.source.text(one)} is a tensor that holds one. .numpy() gives its value, "
    cause += "bytes, and .decode() makes text of them."
    return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")


def of_texts_alone(function: ast.AST | None) -> bool:
    """Whether a function asks something for a method that nobody asks of numbers: `row.split()`."""
    return any(
        isinstance(one.func, ast.Attribute) and one.func.attr in _ALONE - {"partition"}
        for one in (calls(function) if function is not None else ())
    )
