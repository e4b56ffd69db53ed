"""A tape that is asked twice: without `persistent=True` the first answer frees what it recorded."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, is_tape
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "untaped"
_SAID = "A non-persistent GradientTape can only be used to compute one set of gradients"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a tape was asked again."""
    spot = situation.last if _SAID in situation.message else None
    statement = situation.statement
    if spot is None or statement is None or situation.body:
        return None
    asked = {dotted(one.func).rpartition(".")[0] for one in calls(statement) if dotted(one.func).endswith(".gradient")}
    around = spot.function or spot.source.tree
    made = [
        (block, item.context_expr) for block in ast.walk(around) if isinstance(block, ast.With) and is_tape(block)
        for item in block.items if dotted(item.optional_vars) in asked and block.lineno <= spot.line
    ]  # fmt: skip
    if not made:
        return None
    block, call = max(made, key=lambda one: one[0].lineno)
    cause = (
        f"The tape of line {block.lineno} was asked before: TensorFlow frees what a tape recorded after the first "
        "answer. A persistent one keeps it until `del`."
    )
    edit = None
    if isinstance(call, ast.Call) and "persistent" not in {one.arg for one in call.keywords} and not call.args:
        edit = wrapping.replace_expression(spot, call, spot.source.with_argument(call, "persistent=True"))
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else "Give the tape persistent=True.")
