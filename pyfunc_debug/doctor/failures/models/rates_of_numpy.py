"""An optimizer whose learning rate is a number of NumPy's, as `np.float32(0.1)` or `rates[0]`: Keras takes Python's."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "array-for-number"
_SAID = re.compile(
    r"Argument `learning_rate` should be float, or an instance of LearningRateSchedule, "
    r".*learning_rate=(-?[\d.]+(?:e-?\d+)?)$",
    re.DOTALL,
)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the rate is a number of another kind than Python's float."""
    spot, said = situation.last, _SAID.search(situation.message.strip())
    statement = situation.statement
    if spot is None or said is None or statement is None:
        return None
    given = [
        (one, rate) for one in calls(statement) if (rate := argument(one, 0, "learning_rate")) is not None
        and (any(word.arg == "learning_rate" for word in one.keywords) or ast.unparse(one.func)[:1].isupper()
             or "optimizers." in ast.unparse(one.func))
    ]  # fmt: skip
    if len(given) != 1:
        return None
    rate = given[0][1]
    text = spot.source.text(rate)
    cause = (
        f"an optimizer takes a float of Python's as its learning rate. {text} is {said[1]}, and no such float: NumPy's "
        "float32, whole numbers and texts are none."
    )
    edit = wrapping.replace_expression(spot, rate, f"float({text})")
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Give it float({text}).")
