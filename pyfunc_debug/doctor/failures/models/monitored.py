"""A callback that watches a number which `fit` does not have: `val_acc` for `val_accuracy`, or no validation data."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup

RULE = "unknown-metric"
_SAID = re.compile(r"^(\w+) callback received monitor=(\S+), but Keras isn't able to automatically determine")
_ALIKE = {
    "acc": "accuracy", "accuracy": "acc", "lr": "learning_rate", "mse": "mean_squared_error",
    "mean_squared_error": "mse", "mae": "mean_absolute_error", "mean_absolute_error": "mae",
}  # fmt: skip
_PLACES = {"ModelCheckpoint": 1}
"""Where `monitor` stands, if not first."""
_SMALLER = re.compile(r"loss|err|mse|mae|mape|deviation|distance|divergence")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a callback does not know which way its number is better."""
    said = _SAID.search(situation.message)
    for spot, fit in failed_fits(situation) if said is not None else ():
        assert said is not None
        kind, monitor, logs = said[1], said[2], logs_of(spot, fit)
        made = [
            one for one in calls(spot.source.tree)
            if dotted(one.func).rpartition(".")[2] == kind
            and _names(argument(one, _PLACES.get(kind, 0), "monitor"), monitor)
        ]  # fmt: skip
        if not logs or len(made) != 1:
            return None
        text = spot.source.text
        place = argument(made[0], _PLACES.get(kind, 0), "monitor")
        if monitor in logs:
            better = "min" if _SMALLER.search(monitor) else "max"
            cause = f"{kind} cannot know whether a smaller {monitor} is better or a larger one: say it by mode."
            edit = edit_of(
                spot.file, spot.source.replaced({made[0]: spot.source.with_argument(made[0], f'mode="{better}"')})
            )
            return Explanation(
                RULE, spot.file, made[0].lineno, cause, edit, "" if edit else f'Give it mode="{better}".', "likely"
            )
        cause = f"{kind} watches {monitor}, and fit has {short(', '.join(logs), 60)}."
        new = instead(monitor, logs)
        if monitor.startswith("val_") and not any(one.startswith("val_") for one in logs):
            cause += f" Numbers that begin with val_ are those of validation_data: {text(fit.func)} got none."
        if new is None or place is None:
            return Explanation(RULE, spot.file, made[0].lineno, cause, None, _advice(monitor, logs))
        edit = edit_of(spot.file, spot.source.replaced({place: f'"{new}"'}))
        return Explanation(RULE, spot.file, made[0].lineno, cause, edit, "" if edit else f'Give it monitor="{new}".')
    return None


def logs_of(spot: Spot, fit: ast.Call) -> list[str]:
    """The names of the numbers that Keras gives the callbacks of this call of `fit`."""
    model = lookup(fit.func.value, spot) if isinstance(fit.func, ast.Attribute) else None
    found = [
        str(metric.name) for one in getattr(model, "metrics", None) or ()
        for metric in getattr(one, "metrics", None) or (one,)
    ]  # fmt: skip
    validates = any(one.arg in ("validation_data", "validation_split") for one in fit.keywords)
    return [*found, *(f"val_{one}" for one in found if validates)]


def _names(node: ast.expr | None, monitor: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == monitor


def instead(monitor: str, logs: list[str]) -> str | None:
    """The name that was meant: of the same metric, of validation or not."""
    before, name = ("val_", monitor[4:]) if monitor.startswith("val_") else ("", monitor)
    same = [name, _ALIKE.get(name, name)]
    wanted = [f"{before}{one}" for one in same] + ([] if any(one.startswith("val_") for one in logs) else same)
    found = next((one for one in wanted if one in logs), None)
    if found is not None:
        return found
    base = re.sub(r"_\d+$", "", monitor).lower()  # Keras 2 numbered the metrics of all models of a process
    numbered = [one for one in logs if re.sub(r"_\d+$", "", one).lower() in (base, f"{before}{same[1]}")]
    if not numbered and name in ("acc", "accuracy"):
        numbered = [one for one in logs if re.fullmatch(rf"{before}(?!val_)\w*_accuracy", one)]
    if not numbered and len(name) > 2:  # `dice` for `dice_coef`
        rest = [
            one.removeprefix(before)
            for one in logs
            if one.startswith(before) and one.startswith("val_") is bool(before)
        ]
        numbered = [
            f"{before}{one}"
            for one in rest
            if one.startswith(f"{name}_") or (name.startswith(f"{one}_") and one not in ("loss", "learning_rate"))
        ]
    return numbered[0] if len(numbered) == 1 else None


def _advice(monitor: str, logs: list[str]) -> str:
    if monitor.startswith("val_") and not any(one.startswith("val_") for one in logs):
        return "Give fit validation_data, or validation_split of arrays."
    return "Give it one of these names."
