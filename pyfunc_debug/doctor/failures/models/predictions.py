"""`model.predict(...)` in what is traced, a loss or a step: a loop of its own over arrays. A call is graph code."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup

RULE = "symbolic-value"
_SAID = re.compile(
    r"cross-replica context|Detected a call to `?\w+\.predict|inside a `?tf\.function|\b[Ss]ymbolic"
    r"|int\(\) argument must be .*, not 'NoneType'"  # the size of a batch
)
_LOOPS = ("predict", "predict_on_batch")
_TAKES = (ast.stmt, ast.BinOp, ast.Tuple, ast.List)
"""What takes a tensor as well as the array that predict gives."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the user's line asks a Keras model for a prediction while a function is traced."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or not _SAID.search(situation.message):
        return None
    if not any(one.by or one.generated for one in situation.spots):  # a model that fails in its own predict
        return None
    for call in calls(statement):
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in _LOOPS or not call.args:
            continue
        if not _is_model(lookup(call.func.value, spot)):
            continue
        text = f"{spot.source.text(call.func.value)}({spot.source.text(call.args[0])}, training=False)"
        cause = (
            f"`{short(spot.source.text(call), 44)}` ran while TensorFlow traced this function: predict is a loop "
            "of its own over arrays, which works outside of graphs only, and its result has no gradient. The model "
            "called is graph code, and has one."
        )
        found = spot.source.replaced({call: text}) if isinstance(spot.source.parent(call), _TAKES) else None
        edit = edit_of(spot.file, found)
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Write {text}.", "likely")
    return None


def _is_model(value: Any) -> bool:
    return any(
        one.__name__ == "Model" and one.__module__.partition(".")[0] in ("keras", "tf_keras", "tensorflow")
        for one in type(value).__mro__
    )
