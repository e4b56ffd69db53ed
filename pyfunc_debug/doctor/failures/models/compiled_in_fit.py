"""A callback that compiles the model while `fit` runs: Keras throws away the function that `fit` goes on to call."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "structure"
_GONE = "'NoneType' object is not callable"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if `fit` has no function for its next step, and a callback of the file compiles the model."""
    if _GONE not in situation.message or situation.body:
        return None
    for spot, fit in failed_fits(situation):
        for holder in (one for one in ast.walk(spot.source.tree) if isinstance(one, ast.ClassDef)):
            for method in (one for one in holder.body if isinstance(one, ast.FunctionDef)):
                found = [one for one in calls(method) if ast.unparse(one.func) == "self.model.compile"]
                if not method.name.startswith("on_") or not found:
                    continue
                model, line = ast.unparse(fit.func).rpartition(".")[0], found[0].lineno
                cause = (
                    f"{holder.name}.{method.name} compiles {model} (line {line}) while fit runs: compile throws away "
                    "the function that fit calls for each batch."
                )
                given = {one.arg for one in found[0].keywords}
                advice = (
                    f"Fit in two parts: {model}.fit(...) until there, {model}.compile(...), {model}.fit(...) again."
                )
                if given == {"optimizer"}:
                    advice = f"Set {model}.optimizer.learning_rate there, or fit in two parts with compile between."
                return Explanation(RULE, spot.file, line, cause, None, advice)
    return None
