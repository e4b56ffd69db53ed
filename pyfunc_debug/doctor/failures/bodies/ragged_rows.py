"""Rows of different lengths that a body makes one array of."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import failed_node
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls

RULE = "output-contract"
_SAID = re.compile(r"inhomogeneous shape|non-rectangular Python sequence|all input arrays must have the same shape")
_MAKES = {"array", "asarray", "stack", "vstack", "convert_to_tensor", "constant", "float32", "int32", "int64"}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if rows of different lengths are why a body failed."""
    node = failed_node(situation) if situation.body and _SAID.search(situation.message) else None
    spot = situation.last
    if node is None or spot is None or not node.tout or node.tout[0] in ("string", "bool"):
        return None
    statement = spot.statement
    for call in calls(statement) if statement is not None else ():
        rows = spot.value(call.args[0].id) if call.args and isinstance(call.args[0], ast.Name) else None
        lengths = _lengths(rows) if dotted(call.func).rpartition(".")[2] in _MAKES else []
        if len(lengths) > 1:
            cause = (
                f"the rows of {spot.source.text(call.args[0])} have different lengths ({lengths[0]} and {lengths[1]}): "
                "no array and no tensor holds them."
            )
            return _explanation(spot, cause, call, node.tout[0])
    return None


def _lengths(rows: Any) -> list[int]:
    """The different lengths of plain rows of numbers."""
    if not isinstance(rows, (list, tuple)) or not all(hasattr(row, "__len__") for row in rows):
        return []
    if any(isinstance(row, (str, bytes, dict)) for row in rows):
        return []
    return list(dict.fromkeys(len(row) for row in rows))


def _explanation(spot: Spot, cause: str, call: ast.Call, dtype: str) -> Explanation:
    rows, tf = spot.source.text(call.args[0]), alias(spot, "tensorflow")
    placed = spot.source.replaced({call: f'{tf}.keras.utils.pad_sequences({rows}, padding="post", dtype="{dtype}")'})
    edit = edit_of(spot.file, placed)
    cause += " Pad them to the longest, with 0."
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else "Pad the rows to one length.", "likely")
