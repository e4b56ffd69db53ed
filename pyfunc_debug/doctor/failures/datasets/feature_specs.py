"""A feature's description, `tf.io.FixedLenFeature`, given to an op in the place of what was parsed by it."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import assignments
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, names
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "structure"
_SAID = re.compile(r"got (\w*LenFeature|RaggedFeature|SparseFeature)\(")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if one function parses by a dict of descriptions, and takes a part of that dict after it."""
    found, spot = _SAID.search(situation.message), situation.last
    function = spot.function if spot is not None else None
    statement = situation.statement
    if found is None or spot is None or function is None or statement is None:
        return None
    parsed = {
        name: value for name, value in assignments(function).items()
        if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2].startswith("parse_")
    }  # fmt: skip
    for call in calls(statement):
        for one in call.args:
            owner = dotted(one.value) if isinstance(one, ast.Subscript) else ""
            held = [name for name, value in parsed.items() if owner and owner in names(value)]
            if len(held) != 1 or not isinstance(one, ast.Subscript):
                continue
            placed = spot.source.replaced({one.value: held[0]})
            text = spot.source.text(one)
            cause = (
                f"{text} is the description, a {found[1]}, by which {held[0]} was parsed: the value of this example is "
                f"{held[0]}[{spot.source.text(one.slice)}]."
            )
            edit = edit_of(spot.file, placed)
            return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Take it from {held[0]}.")
    return None
