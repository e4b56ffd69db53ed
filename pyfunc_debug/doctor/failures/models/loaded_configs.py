"""What a layer's `get_config` gives as an array, a layer or a function, and its `__init__` gets back as a dict.

Keras writes those as a dict of a class and its config, and gives `__init__` that dict when it loads the model: plain
values come back as they were (keras/src/saving/serialization_lib.py). And a number that `tf.train.Checkpoint` refuses.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from types import FrameType
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, parameters
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, extends_keras, is_ndarray, keras_name, lookup

RULE = "saved-classes"
_KINDS = {"__numpy__": "an array", "__tensor__": "a tensor", "function": "a function"}
_DEEPEST = 12
_REFUSED = re.compile(r"`Checkpoint` was expecting (\w+) to be a trackable object")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a class of the user's was loaded with a dict where it was made with an object."""
    spot = situation.last
    if spot is None or situation.body or situation.kind not in ("TypeError", "ValueError", "AttributeError"):
        return None
    for frame in _frames(situation.error):
        found = _dict_of(frame) if spot.first_line(frame.f_code) is not None else None
        if found is None:
            continue
        kind, name, value = found
        made = [
            part for one in ast.walk(spot.source.tree) if isinstance(one, ast.ClassDef) and one.name == kind.__name__
            for part in one.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"
        ]  # fmt: skip
        if len(made) != 1 or name not in parameters(made[0]):
            continue
        what = _KINDS.get(str(value.get("class_name")), "an object")
        cause = (
            f"get_config of {kind.__name__} gives {name}, {what}. Keras saves that as a dict of its class and config, "
            "and __init__ gets the dict when the model is loaded."
        )
        first = made[0].body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(made[0].body) > 1:
            first = made[0].body[1]
        if first.lineno == made[0].lineno:
            return Explanation(RULE, spot.file, made[0].lineno, cause, None, _ADVICE.format(name=name))
        blanks = indent_of(spot.source.lines[first.lineno - 1])
        back = f"{keras_name(spot)}.utils.deserialize_keras_object({name})"
        line = f"{blanks}{name} = {back} if isinstance({name}, dict) else {name}"
        return Explanation(
            RULE, spot.file, made[0].lineno, cause, Edit(spot.file, first.lineno, first.lineno - 1, (line,))
        )
    return None


_ADVICE = "In __init__, make {name} again with keras.utils.deserialize_keras_object where it is a dict."


def _frames(error: BaseException) -> Iterator[FrameType]:
    """The frames of an exception and of those that it came from: Keras wraps one for each object that it loads."""
    one: BaseException | None = error
    for _ in range(_DEEPEST):
        if one is None:
            return
        yield from reversed(frames(one.__traceback__))
        one = one.__cause__ or one.__context__


def _dict_of(frame: FrameType) -> tuple[type, str, Any] | None:
    """A frame's object of the user's, and a name under which it has, or is given, what Keras wrote of an object."""
    held = frame.f_locals.get("self")
    kind = type(held)
    if not extends_keras(kind):
        return None
    given = frame.f_locals if frame.f_code.co_name == "__init__" else vars(held)
    for name, value in list(given.items()):
        if isinstance(value, dict) and {"class_name", "config"} <= set(value):
            return kind, name, value
    return None


def of_checkpoint(situation: Situation) -> Explanation | None:
    """The explanation, if a checkpoint was given a number, or an array, to keep."""
    said, spot = _REFUSED.search(situation.message), situation.last
    statement = situation.statement
    if said is None or spot is None or statement is None or situation.body:
        return None
    words = [
        word.value for one in calls(statement) if dotted(one.func).endswith("Checkpoint") for word in one.keywords
        if word.arg == said[1]
    ]  # fmt: skip
    if len(words) != 1 or not (_is_number(words[0], spot) or is_ndarray(lookup(words[0], spot))):
        return None
    tf, text = alias(spot, "tensorflow"), spot.source.text(words[0])
    what = "a number" if _is_number(words[0], spot) else "an array"
    cause = (
        f"{said[1]} is {what}, and a checkpoint keeps variables, and what has some. A {tf}.Variable of it changes "
        "with .assign, or .assign_add(1)."
    )
    edit = edit_of(spot.file, spot.source.replaced({words[0]: f"{tf}.Variable({text})"}))
    return Explanation("serialization", spot.file, spot.line, cause, edit)


def _is_number(node: ast.expr, spot: Spot) -> bool:
    value = node.value if isinstance(node, ast.Constant) else lookup(node, spot)
    return type(value) in (int, float)
