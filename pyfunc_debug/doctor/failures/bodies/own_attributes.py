"""A name in a method that is an attribute of its object, `n` for `self.n`, and an attribute by nearly its name."""

from __future__ import annotations

import ast
import difflib
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot

_UNKNOWN = re.compile(r"name '(\w+)' is not defined")
_ABSENT = re.compile(r"'(\w+)' object has no attribute '(\w+)'")
_ALIKE = 0.7


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the object of a body or a generator has an attribute of that name."""
    spot, said = situation.last, _UNKNOWN.search(situation.message)
    if spot is None or spot.statement is None or not situation.data:
        return None
    absent = _ABSENT.search(situation.message) if situation.kind == "AttributeError" else None
    if absent is not None:
        return _nearly(spot, spot.statement, absent[1], absent[2])
    if said is None:
        return None
    name, owner = said[1], spot.variables.get("self")
    if owner is None or not (name in getattr(owner, "__dict__", {}) or hasattr(type(owner), name)):
        return None
    uses: dict[ast.expr, str] = {
        one: f"self.{name}" for one in ast.walk(spot.statement)
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
    }  # fmt: skip
    edit = in_place(spot, uses)
    cause = f"no variable is called {name} here. The object has an attribute of that name."
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Write self.{name}.")


def _nearly(spot: Spot, statement: ast.stmt, kind: str, name: str) -> Explanation | None:
    """`self.indices` of an object that has `indexes`."""
    owner = spot.variables.get("self")
    if owner is None or type(owner).__name__ != kind:
        return None
    close = difflib.get_close_matches(name, [str(one) for one in getattr(owner, "__dict__", {})], 2, _ALIKE)
    uses: dict[ast.expr, str] = {
        one: f"self.{close[0]}" for one in ast.walk(statement)
        if isinstance(one, ast.Attribute) and one.attr == name and ast.unparse(one.value) == "self"
    } if len(close) == 1 else {}  # fmt: skip
    if not uses:
        return None
    cause = f"the object has no {name}, but {close[0]}: its methods set it by that name."
    return Explanation(RULE, spot.file, spot.line, cause, in_place(spot, uses), "", "likely")
