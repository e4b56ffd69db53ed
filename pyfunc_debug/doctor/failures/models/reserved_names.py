"""`self.layers = [...]` of a Model, which has its layers by that name."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted

RULE = "structure"
_SAID = re.compile(r"^`(?:Model|Sequential)\.layers` attribute is reserved")
_FARTHEST = 20
"""Lines from the first to the last that one paste changes."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a model keeps its own layers as `self.layers`."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or not _SAID.search(situation.message):
        return None
    source = spot.source
    holder = next((one for one in source.around(statement) if isinstance(one, ast.ClassDef)), None)
    if holder is None:
        return None
    used = [one for one in ast.walk(holder) if isinstance(one, ast.Attribute) and dotted(one) == "self.layers"]
    taken = {one.attr for one in ast.walk(holder) if isinstance(one, ast.Attribute)}
    name = next((one for one in ("blocks", "own_layers", "layer_list") if one not in taken), "")
    cause = "self.layers is Keras' own list of a model's layers, and cannot be set."
    first, last = min(one.lineno for one in used), max(one.end_lineno or one.lineno for one in used)
    if not name or last - first >= _FARTHEST:
        return Explanation(RULE, spot.file, spot.line, cause, None, "Call yours by another name.")
    pieces: dict[ast.expr, str] = dict.fromkeys(used, f"self.{name}")
    edit = Edit(spot.file, first, last, source.spliced(pieces, first, last))
    return Explanation(RULE, spot.file, spot.line, cause, edit)
