"""A date beside a time of a day: `date - datetime`, which Python's datetime does not compute or compare."""

from __future__ import annotations

import ast
import datetime
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import lookup

_SAID = re.compile(
    r"'datetime\.date(?:time)?' and 'datetime\.date(?:time)?'|can't compare datetime\.datetime to datetime\.date"
    r"|offset-naive and offset-aware datetimes"
)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line of a body or a generator has the two on the sides of a sign."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not situation.data or not _SAID.search(situation.message):
        return None
    for one in ast.walk(statement):
        sides = [one.left, one.right] if isinstance(one, ast.BinOp) else []
        sides += [one.left, one.comparators[0]] if isinstance(one, ast.Compare) and len(one.ops) == 1 else []
        values = [lookup(side, spot) for side in sides]
        kinds = [type(value) for value in values]
        text = spot.source.text
        if set(kinds) == {datetime.date, datetime.datetime}:
            whole = sides[kinds.index(datetime.datetime)]
            day = sides[kinds.index(datetime.date)]
            cause = f"{short(text(day), 30)} is a date, and {short(text(whole), 30)} has a time of the day, too. "
            cause += "date() leaves it out."
            return Explanation(
                RULE, spot.file, spot.line, cause, in_place(spot, {whole: f"{spot.source.atom(whole)}.date()"})
            )
        if kinds == [datetime.datetime] * 2 and (values[0].tzinfo is None) != (values[1].tzinfo is None):
            zoned = sides[0 if values[0].tzinfo is not None else 1]
            cause = f"{short(text(zoned), 30)} has a time zone, and the other has none."
            edit = in_place(spot, {zoned: f"{spot.source.atom(zoned)}.replace(tzinfo=None)"})
            return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")
    return None
