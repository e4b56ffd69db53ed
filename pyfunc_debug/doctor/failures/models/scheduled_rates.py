"""A schedule of the optimizer's given to the callback LearningRateScheduler, which wants a float of Python's."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument, return_values
from pyfunc_debug.doctor.failures.reading.returning import ends_without_return, with_return
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup

RULE = "symbolic-value"
_NO_FUNCTION = re.compile(r"^'(float|int|list)' object is not callable")
_SAID = re.compile(r"should be (?:a )?float\. Got:? ?(.*)", re.DOTALL)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the callback got a tensor for a rate."""
    said = _SAID.search(situation.message)
    if said is None:
        return None
    for spot in reversed(situation.spots):
        made = [
            one for one in calls(spot.source.tree)
            if dotted(one.func).rpartition(".")[2] == "LearningRateScheduler" and one.args
        ]  # fmt: skip
        if len(made) != 1:
            continue
        given, text = made[0].args[0], spot.source.text(made[0].args[0])
        if said[1] == "None":
            return _without_return(spot, given)
        value = lookup(given, spot)
        schedule = any(one.__name__ == "LearningRateSchedule" for one in type(value).__mro__)
        whole = re.fullmatch(r"-?\d+", said[1]) is not None
        what = f"the whole number {said[1]}" if whole else "a tensor, as the optimizer's schedules do"
        what = what if whole or schedule else "a tensor"
        named = short(text, 30) if not isinstance(given, ast.Lambda) else "The lambda"
        cause = (
            f"{named} gives {what}, and the callback LearningRateScheduler takes a float of Python's: it calls "
            f"{named if named != 'The lambda' else 'it'} with the number of the epoch, not of the step."
        )
        node, rate = given, f"lambda epoch, lr: float({text}(epoch, lr))"
        if isinstance(given, ast.Lambda):
            node, rate = given.body, f"float({spot.source.text(given.body)})"
        elif schedule or _parameters(spot.source.tree, text) == 1:
            rate = f"lambda epoch: float({text}(epoch))"
        edit = wrapping.replace_expression(spot, node, rate)
        advice = f" By the step: keras.optimizers.Adam({text}), without the callback." if schedule else ""
        return Explanation(RULE, spot.file, made[0].lineno, cause + advice, edit)
    return None


def uncalled(situation: Situation) -> Explanation | None:
    """The explanation, if the callback was made with a number or a list, and not with a function."""
    said = _NO_FUNCTION.search(situation.message)
    for spot, _ in failed_fits(situation) if said is not None else ():
        made = [
            one for one in calls(spot.source.tree) if dotted(one.func).rpartition(".")[2] == "LearningRateScheduler"
        ]
        given = argument(made[0], 0, "schedule") if len(made) == 1 else None
        if said is None or given is None:
            continue
        value = given.value if isinstance(given, ast.Constant) else lookup(given, spot)
        listed = isinstance(given, ast.List) or type(value) is list
        if said[1] == "list" and listed and not isinstance(spot.source.parent(given), ast.Starred):
            text = spot.source.text(given)
            new = f"lambda epoch: float({spot.source.atom(given)}[min(epoch, len({text}) - 1)])"
            what, more = "a list", " Below, each rate is that of one epoch, and the last one that of all others."
        elif type(value).__name__ == said[1]:
            new, what, more = f"lambda epoch: float({spot.source.text(given)})", "a number", ""
        else:
            continue
        cause = f"LearningRateScheduler asks a function for the rate of each epoch, and has {what}.{more}"
        edit = wrapping.replace_expression(spot, given, new)
        return Explanation(
            "argument", spot.file, given.lineno, cause, edit, "" if edit else f"Give it {short(new, 60)}."
        )
    return None


def _without_return(spot: Spot, given: ast.expr) -> Explanation | None:
    """A schedule that gave None: of some epochs, or of all."""
    own = [
        one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == dotted(given)
    ]  # fmt: skip
    if len(own) != 1:
        return None
    function, last = own[0], own[0].body[-1]
    blanks, line = indent_of(spot.source.lines[last.lineno - 1]), last.end_lineno or last.lineno
    rate = parameters(function)[1] if len(parameters(function)) > 1 else ""
    some = bool(return_values(function))
    if not ends_without_return(function):
        return None
    cause = f"{function.name} gave None for the rate of an epoch: it {'came to its end' if some else 'ends'} without a "
    cause += "return."
    if some and rate:
        edit = Edit(spot.file, line + 1, line, (f"{blanks}return {rate}",))
        return Explanation(RULE, spot.file, function.lineno, f"{cause} This keeps the rate that was.", edit)
    made = with_return(spot.file, spot.source, function) if not some else None
    advice = (
        ""
        if made is not None
        else "Return a rate there too. With def schedule(epoch, lr) it can return lr, the last one."
    )
    return Explanation(RULE, spot.file, function.lineno, cause, made, advice)


def _parameters(tree: ast.AST, name: str) -> int:
    found = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    return len(parameters(found[0])) if found else 0
