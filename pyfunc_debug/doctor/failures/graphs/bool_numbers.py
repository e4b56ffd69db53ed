"""`1 - dones` of a bool tensor: TensorFlow makes the number a bool first, and refuses."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.symbols import alias, dtype_of, is_symbolic, lookup

RULE = "mixed-dtypes"
_SAID = re.compile(
    r"Cannot convert [\d.]+ to EagerTensor of dtype bool"
    r"|Expected bool(?: passed to parameter '\w+' of op '\w+')?, (?:but )?got"
)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line computes with a number and a bool tensor."""
    spot, statement = situation.last, situation.statement
    if not _SAID.search(situation.message) or spot is None or statement is None:
        return None
    pieces: dict[ast.expr, str] = {}
    tf = alias(spot, "tensorflow")
    for one in ast.walk(statement):
        if not isinstance(one, ast.BinOp):
            continue
        for node, other in ((one.left, one.right), (one.right, one.left)):
            value = lookup(node, spot)
            tensor = is_symbolic(value) or type(value).__name__ == "EagerTensor"
            if isinstance(other, ast.Constant) and tensor and dtype_of(value) == "bool":
                pieces[node] = f"{tf}.cast({spot.source.text(node)}, {tf}.float32)"
    if not pieces:
        return None
    texts = " and ".join(map(spot.source.text, pieces))
    cause = f"{texts} is a bool tensor, and TensorFlow takes no number for one: as float32 it is 0 or 1."
    edit = edit_of(spot.file, spot.source.replaced(pieces))
    return Explanation(RULE, spot.file, spot.line, cause, edit)
