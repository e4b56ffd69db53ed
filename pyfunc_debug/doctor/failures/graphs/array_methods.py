"""A method of NumPy's arrays asked of a tensor that has values: `model(x).argmax(axis=1)` in a callback."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import short, tapes_around

RULE = "symbolic-value"
_SAID = re.compile(r"EagerTensor' object has no attribute '(\w+)'")
_METHODS = (
    "argmax", "argmin", "argsort", "astype", "mean", "sum", "std", "var", "min", "max", "reshape", "flatten", "ravel",
    "transpose", "tolist", "item", "round", "clip", "copy", "squeeze", "any", "all", "cumsum", "dot", "tobytes", "size",
    "T", "sort", "prod", "nonzero", "swapaxes", "repeat",
)  # fmt: skip


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an eager tensor was asked for a method or an attribute that arrays have."""
    said, spot = _SAID.search(situation.message), situation.last
    statement = situation.statement
    if said is None or spot is None or statement is None or situation.kind != "AttributeError":
        return None
    if situation.body or said[1] not in _METHODS or tapes_around(spot.source, spot.line):  # an array has no gradient
        return None
    asked = [one for one in ast.walk(statement) if isinstance(one, ast.Attribute) and one.attr == said[1]]
    if len(asked) != 1:
        return None
    owner = spot.source.text(asked[0].value)
    simple = isinstance(asked[0].value, (ast.Name, ast.Call, ast.Attribute, ast.Subscript))
    new = f"{owner if simple else f'({owner})'}.numpy().{said[1]}"
    cause = (
        f"{short(owner, 40)} is a tensor, which has no {said[1]}: that is NumPy's. It has its values here, and "
        ".numpy() gives them as an array."
    )
    edit = edit_of(spot.file, spot.source.replaced({asked[0]: new}))
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Write {new}.")
