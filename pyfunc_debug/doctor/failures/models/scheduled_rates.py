"""A schedule of the optimizer's given to the callback LearningRateScheduler, which wants a float of Python's."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup

RULE = "symbolic-value"
_SAID = re.compile(r"should be (?:a )?float\. Got")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the callback got a tensor for a rate."""
    if not _SAID.search(situation.message):
        return None
    for spot in reversed(situation.spots):
        made = [
            one for one in calls(spot.source.tree)
            if dotted(one.func).rpartition(".")[2] == "LearningRateScheduler" and one.args
        ]  # fmt: skip
        if len(made) != 1:
            continue
        given, text = made[0].args[0], spot.source.text(made[0].args[0])
        value = lookup(given, spot)
        schedule = any(one.__name__ == "LearningRateSchedule" for one in type(value).__mro__)
        what = "a tensor" if not schedule else "a tensor, as the optimizer's schedules do"
        cause = (
            f"{text} gives {what}, and the callback LearningRateScheduler takes a float of Python's: it calls {text} "
            "with the number of the epoch, not of the step."
        )
        alone = schedule or (isinstance(given, ast.Name) and _parameters(spot.source.tree, given.id) == 1)
        rate = f"lambda epoch: float({text}(epoch))" if alone else f"lambda epoch, lr: float({text}(epoch, lr))"
        edit = wrapping.replace_expression(spot, given, rate)
        advice = f" By the step: keras.optimizers.Adam({text}), without the callback." if schedule else ""
        return Explanation(RULE, spot.file, made[0].lineno, cause + advice, edit)
    return None


def _parameters(tree: ast.AST, name: str) -> int:
    found = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    return len(found[0].args.args) if found else 0
