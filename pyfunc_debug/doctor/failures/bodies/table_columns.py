"""A column that a table lacks, or has with spaces around its name: `row["label"]` of a header "name, label"."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import lookup
from pyfunc_debug.doctor.failures.reading.tables import is_frame, is_table

_SHOWN = 5


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line of a body or a generator asks a table, or a row of one, for a name."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not situation.data or situation.kind != "KeyError":
        return None
    asked = situation.inner.args[0] if situation.inner.args else None
    for one in ast.walk(statement):
        key = one.slice.value if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Constant) else None
        if not isinstance(one, ast.Subscript) or not isinstance(key, str) or type(asked) is not str or key != asked:
            continue
        value: Any = lookup(one.value, spot)
        if not is_table(value):
            continue
        names = [name for name in (value.columns if is_frame(value) else value.index) if type(name) in (str, int)]
        if key in names or not names or len(names) > 1000:
            continue
        text = short(spot.source.text(one.value), 30)
        listed = ", ".join(map(repr, names[:_SHOWN])) + ", ..." * (len(names) > _SHOWN)
        near = [name for name in names if isinstance(name, str) and name.strip().lower() == key.strip().lower()]
        what = "column" if is_frame(value) else "field"
        if len(near) == 1:
            how = "spaces around it" if near[0].strip() == key.strip() else "other upper and lower case"
            cause = f"{text} has no {what} {key!r}, but {near[0]!r}: the header of the table has {how}."
            edit = in_place(spot, {one.slice: repr(near[0])})
            return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")
        cause = f"{text} has no {what} {key!r}. It has {listed}."
        advice = "Ask for one of these."
        if all(isinstance(name, int) for name in names):
            advice = "Its columns are numbered, as it was read with header=None: ask by number, or leave that out."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    return None
