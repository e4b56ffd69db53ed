"""A feature that a `tf.train.Example` does not have, or not in that list: protocol buffers give an empty one for it."""

from __future__ import annotations

import ast
import difflib
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.symbols import lookup

RULE = "body-input"
_KINDS = ("bytes_list", "float_list", "int64_list")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if `example.features.feature["x"].bytes_list.value[0]` is asked of an empty list."""
    spot = situation.last
    statement = situation.statement if situation.kind == "IndexError" else None
    if spot is None or statement is None:
        return None
    for one in ast.walk(statement):
        if isinstance(one, ast.Attribute) and one.attr in _KINDS and isinstance(one.value, ast.Subscript):
            told = _explanation(one, one.value, spot)
            if told is not None:
                return told
    return None


def _explanation(asked: ast.Attribute, feature: ast.Subscript, spot: Spot) -> Explanation | None:
    """What the record has in the place of one feature's list; None where it has that."""
    every = _features(feature.value, spot)
    key = computed(feature.slice, spot) if every is not None else None
    if every is None or not isinstance(key, str):
        return None
    kinds = {name: kind for name in list(every) if (kind := every[name].WhichOneof("kind"))}
    kind = kinds.get(key)
    if kind == asked.attr:
        return None
    text = spot.source.text(feature)
    if kind is not None:
        cause = f"the record has {key!r} in its {kind}, and `{asked.attr}` of it is empty."
        edit = in_place(spot, {asked: f"{text}.{kind}"})
        return Explanation(RULE, spot.file, spot.line, cause, edit) if edit is not None else None
    names = sorted(kinds)
    cause = f"the record has no feature {key!r}: it has {', '.join(map(repr, names[:6])) or 'none at all'}."
    near = difflib.get_close_matches(key.lower(), [one.lower() for one in names], 1)
    like = [one for one in names if near and one.lower() == near[0] and kinds[one] == asked.attr]
    if len(like) != 1 or not isinstance(feature.slice, ast.Constant):
        return Explanation(RULE, spot.file, spot.line, cause, None, "Ask for one of these names.")
    edit = in_place(spot, {feature.slice: f'"{like[0]}"'})
    return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")


def _features(node: ast.expr, spot: Spot) -> Any:
    """The map of features that `example.features.feature`, or a name of it, is; None of all else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute) and node.attr in ("features", "feature"):
        names.append(node.attr)
        node = node.value
    found = lookup(node, spot)
    if type(found).__name__ not in ("Example", "Features", "MessageMapContainer"):
        return None
    for name in reversed(names):
        found = getattr(found, name, None)
    return found if type(found).__name__ == "MessageMapContainer" else None
