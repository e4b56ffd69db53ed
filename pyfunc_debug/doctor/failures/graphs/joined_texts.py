"""`"images/" + i + ".png"` of a number's tensor: only text is joined with text, and the op makes a number's text."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import alias, dtype_of, is_tensor, lookup

RULE = "mixed-dtypes"
_SAID = re.compile(r"but got .* of type 'str'|to EagerTensor of dtype \w+|must be str, not|concatenate str")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line adds text and a tensor of numbers."""
    if situation.kind not in ("TypeError", "ValueError") or not _SAID.search(situation.message):
        return None
    for spot in reversed(situation.spots):
        statement = spot.statement
        for one in ast.walk(statement) if statement is not None else ():
            if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add):
                found = _told(spot, _summed(one))
                if found is not None:
                    return found
    return None


def _summed(node: ast.expr) -> list[ast.expr]:
    """The parts of `a + b + c`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_summed(node.left), *_summed(node.right)]
    return [node]


def _told(spot: Spot, parts: list[ast.expr]) -> Explanation | None:
    values = {one: one.value if isinstance(one, ast.Constant) else lookup(one, spot) for one in parts}
    texts = [one for one, value in values.items() if type(value) is str]
    numbers = {
        one: value for one, value in values.items()
        if is_tensor(value) and dtype_of(value) != "string"
    }  # fmt: skip
    if not texts or not numbers:
        return None
    tf, text = alias(spot, "tensorflow"), spot.source.text
    edit = edit_of(spot.file, spot.source.replaced({one: f"{tf}.strings.as_string({text(one)})" for one in numbers}))
    one, value = next(iter(numbers.items()))
    cause = (
        f"{short(text(one), 30)} is a tensor of {dtype_of(value)}, and + joins text with text only. as_string gives "
        "the text of each number."
    )
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else "Write tf.strings.as_string around it.")
