"""A metric of Keras' as a loss: it adds up what it saw in variables, and what it gives has no gradient."""

from __future__ import annotations

import ast
import sys

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup, of_keras

RULE = "cut-gradient"
_SAID = "No gradients provided for any variable"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a loss given to `compile`, or what a tape is asked for, comes from a metric."""
    if situation.body or _SAID not in situation.message:
        return None
    for spot in reversed(situation.spots):
        for name, scope in _losses(spot):
            for call in calls(scope):
                metric = lookup(call.func, spot)
                if of_keras(type(metric), "Metric"):
                    return _explanation(spot, name, call, metric)
    return None


def _losses(spot: Spot) -> list[tuple[str, ast.AST]]:
    """The functions of the file that `compile` gets for losses, by name."""
    given = [
        part.id for one in calls(spot.source.tree) if dotted(one.func).endswith(".compile")
        for value in (*one.args[1:2], *(each.value for each in one.keywords if each.arg == "loss"))
        for part in ast.walk(value) if isinstance(part, ast.Name)
    ]  # fmt: skip
    return [
        (one.name, one) for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.FunctionDef) and one.name in given
    ]  # fmt: skip


def _explanation(spot: Spot, name: str, call: ast.Call, metric: object) -> Explanation:
    kind, source = type(metric).__name__, spot.source
    text = short(source.text(call), 40)
    cause = (
        f"`{text}` of {name} calls a metric, keras.metrics.{kind}: it adds up in variables of its own what it was "
        "given, and what it returns is read from these. That has no gradient."
    )
    made = [
        one for one in ast.walk(source.tree)
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)
        and [dotted(target) for target in one.targets] == [dotted(call.func)]
    ]  # fmt: skip
    func = made[0].value.func if len(made) == 1 and isinstance(made[0].value, ast.Call) else None
    losses = getattr(sys.modules.get("keras"), "losses", None)
    edit = None
    if func is not None and dotted(func).endswith(f"metrics.{kind}") and hasattr(losses, kind):
        found = source.replaced({func: dotted(func)[: -len(f"metrics.{kind}")] + f"losses.{kind}"})
        edit = edit_of(spot.file, found)
    advice = "" if edit is not None else "Compute the loss by a function of keras.losses, or by ops."
    return Explanation(RULE, spot.file, call.lineno, cause, edit, advice)
