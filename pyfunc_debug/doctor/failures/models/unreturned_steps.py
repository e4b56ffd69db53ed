"""A `train_step` or `test_step` that returns nothing: Keras shows what it returns, a dict of tensors by their names."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import return_values
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, parameters
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "method-signature"
_SAID = "Attr 'Toutput_types' of 'OptionalFromValue' Op passed list of length 0"
_STEPS = ("train_step", "test_step", "predict_step")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if Keras could keep nothing of what a step returned."""
    if _SAID not in situation.message:
        return None
    for file, source in situation.sources():
        found = [
            one for one in ast.walk(source.tree)
            if isinstance(one, ast.FunctionDef) and one.name in _STEPS and isinstance(source.parent(one), ast.ClassDef)
            and not return_values(one)
        ]  # fmt: skip
        if len(found) != 1:
            continue
        step = found[0]
        last = step.body[-1]
        blanks = indent_of(source.lines[step.body[0].lineno - 1])
        value, line = _shown(step), last.end_lineno or last.lineno
        what = f"{step.name} returns nothing. Keras takes a dict of what it shows after each batch"
        edit = None
        if value:
            edit = Edit(file, line + 1, line, (f'{blanks}return {{"loss": {value}}}',))
        advice = "" if edit else 'Return one: {"loss": loss}.'
        return Explanation(RULE, file, step.lineno, f"{what}.", edit, advice, "likely")
    return None


def _shown(step: ast.FunctionDef) -> str:
    """The loss by its name: what a tape was asked for, or what the name says."""
    for call in calls(step):
        asked = isinstance(call.func, ast.Attribute) and call.func.attr == "gradient" and call.args
        if asked and isinstance(call.args[0], ast.Name):
            return call.args[0].id
    named = [
        dotted(target) for one in ast.walk(step) if isinstance(one, ast.Assign) for target in one.targets
        if isinstance(target, ast.Name) and target.id.endswith("loss") and target.id not in parameters(step)
    ]  # fmt: skip
    return named[-1] if named else ""
