"""`tf.reshape(x, -1)` in a graph: its shape is a list there, while eager code takes a number, too."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup

RULE = "autograph"
_SAID = re.compile(r"Shape must be rank 1 but is rank 0 for .*= (Reshape|Fill|BroadcastTo|Tile)\[")
_NAMES = {"Reshape": "reshape", "Fill": "fill", "BroadcastTo": "broadcast_to", "Tile": "tile"}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a number stands where an op takes a list."""
    found, spot = _SAID.search(situation.message), situation.last
    statement = situation.statement
    value = wrapping.value_here(spot, statement) if spot is not None and statement is not None else None
    if found is None or spot is None or value is None or situation.body:
        return None
    name = _NAMES[found[1]]
    own = [one for one in calls(value) if dotted(one.func).rpartition(".")[2] == name]
    if len(own) != 1:
        return None
    place = 0 if name == "fill" else 1
    given = own[0].args[place] if len(own[0].args) > place else None
    given = next((one.value for one in own[0].keywords if one.arg in ("shape", "dims", "multiples")), given)
    number = isinstance(given, (ast.Constant, ast.UnaryOp)) or type(lookup(given, spot) if given else None) is int
    if given is None or not number:
        return None
    code = spot.source.text(given)
    cause = (
        f"{name} got {code} for its {'multiples' if name == 'tile' else 'shape'}. In a graph that is a list, also of "
        "one number; only eager code takes the number itself."
    )
    edit = wrapping.replace_expression(spot, given, f"[{code}]")
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Write [{code}].")
