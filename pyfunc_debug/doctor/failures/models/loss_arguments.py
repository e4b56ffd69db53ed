"""Losses, metrics and optimizers as `compile` takes them: functions of (y_true, y_pred) that return, and objects."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits, given
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.returning import with_return
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, parameters
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "structure"
_MISSING = re.compile(r"^(?:[\w.<>]+\.)?(\w+)\(\) missing \d+ required (?:positional|keyword-only) arguments?: (.+)$")
_ONE = re.compile(r"^(?:[\w.<>]+\.)?(\w+)\(\) takes 1 positional argument but 2 were given")
_NONE = "None values not supported"
_CLASS = re.compile(r"^Could not interpret optimizer identifier: <class '[\w.]+\.(\w+)'>")
_GIVES = "Keras calls it with y_true and y_pred only"
_TRUE = re.compile(r"true|label|target|^y$")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if `compile` got something that Keras cannot call, or that gives it nothing."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body:
        return None
    missing = _MISSING.search(situation.message)
    if missing is not None:
        names = re.findall(r"'(\w+)'", missing[2])
        return _called(spot, statement, missing[1], names) or _too_many(situation, spot, missing[1], names)
    one = _ONE.search(situation.message)
    if one is not None:
        return _too_few(situation, spot, one[1])
    made = _CLASS.search(situation.message)
    if made is not None:
        return _optimizer(spot, statement, made[1])
    return _without_return(situation, spot) if situation.message.startswith(_NONE) else None


def _called(spot: Spot, statement: ast.stmt, name: str, missing: list[str]) -> Explanation | None:
    """`compile(loss=f(w=2.0))`: the function itself is called, without what Keras gives it."""
    text = spot.source.text
    compiles = [one for one in calls(statement) if dotted(one.func).endswith("compile")]
    found = [
        one for each in compiles for part in (*each.args[1:], *(word.value for word in each.keywords))
        for one in calls(part) if dotted(one.func).rpartition(".")[2] == name
    ]  # fmt: skip
    if len(found) != 1 or len(missing) != 2 or any(word.arg is None for word in found[0].keywords):
        return None
    call = found[0]
    if not call.args and not call.keywords:
        cause = f"{text(call)} calls the function. compile takes the function itself, which Keras calls for each batch."
        return _replaced(spot, call, cause, text(call.func))
    if call.args:
        return None
    own = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    if len(own) != 1 or parameters(own[0])[:2] != missing:
        return None
    first, second = missing
    words = ", ".join(f"{word.arg}={text(word.value)}" for word in call.keywords)
    cause = f"{text(call)} calls the function without {first} and {second}. compile takes a function of these two."
    return _replaced(spot, call, cause, f"lambda {first}, {second}: {text(call.func)}({first}, {second}, {words})")


def _replaced(spot: Spot, node: ast.expr, cause: str, new: str) -> Explanation:
    edit = edit_of(spot.file, spot.source.replaced({node: new}))
    return Explanation(RULE, spot.file, node.lineno, cause, edit, "" if edit else f"Pass {new}.")


def _own(spot: Spot, name: str) -> tuple[ast.FunctionDef, ast.expr] | None:
    """A function of the file that `compile` is given as a loss or a metric, and where."""
    places = [one for one in given(spot) if dotted(one) == name]
    own = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    return (own[0], places[0]) if len(own) == 1 and len(places) == 1 else None


def _too_many(situation: Situation, spot: Spot, name: str, missing: list[str]) -> Explanation | None:
    """A loss with a third parameter."""
    found = _own(spot, name) if any(True for _ in failed_fits(situation)) else None
    if found is None:
        return None
    function, place = found
    first, *rest = parameters(function)
    if not rest or first in missing or rest[0] in missing:
        return None
    more, one = " and ".join(missing), len(missing) == 1
    cause = f"{name} takes {more} as well. {_GIVES}."
    new = f"lambda {first}, {rest[0]}: {name}({first}, {rest[0]}, {', '.join(f'{part}={part}' for part in missing)})"
    if all(spot.value(part) is not None for part in missing):
        return _replaced(spot, place, f"{cause} A function of two gives it {'that' if one else 'these'}.", new)
    return Explanation(
        RULE, spot.file, place.lineno, cause, None,
        f"Give compile {new}, with {'a value' if one else 'values'} for {more}.",
    )  # fmt: skip


def _too_few(situation: Situation, spot: Spot, name: str) -> Explanation | None:
    """A loss with one parameter."""
    found = _own(spot, name) if any(True for _ in failed_fits(situation)) else None
    if found is None or any(isinstance(one, ast.FunctionDef) for one in ast.walk(found[0]) if one is not found[0]):
        return None  # it makes the function that is wanted
    function = found[0]
    whole = function.args.args
    if len(whole) != 1 or function.args.posonlyargs:
        return None
    own = whole[0].arg
    two = f"{own}, y_pred" if _TRUE.search(own) else f"y_true, {own}"
    line = spot.source.lines[function.lineno - 1]
    new = line.replace(f"{name}({own}", f"{name}({two}", 1)
    cause = f"{name} takes {own} alone. Keras calls it with two: y_true and y_pred, in this order."
    edit = Edit(spot.file, function.lineno, function.lineno, (new,)) if new != line else None
    return Explanation(
        RULE, spot.file, function.lineno, cause, edit, "" if edit else f"Write def {name}({two})."
    )  # fmt: skip


def _without_return(situation: Situation, spot: Spot) -> Explanation | None:
    """A loss or metric that returns None."""
    if not any(True for _ in failed_fits(situation)):
        return None
    names = {dotted(one) for one in given(spot)}
    silent = [
        one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name in names
        and not any(
            isinstance(part, (ast.Return, ast.Yield, ast.YieldFrom)) and part.value is not None
            for part in own_nodes(one)
        )
    ]  # fmt: skip
    if len(silent) != 1:
        return None
    function = silent[0]
    cause = f"{function.name} has no return: Keras gets None from it."
    edit = with_return(spot.file, spot.source, function)
    advice = "" if edit is not None else f"Return what {function.name} computes."
    return Explanation(RULE, spot.file, function.lineno, cause, edit, advice)


def _optimizer(spot: Spot, statement: ast.stmt, name: str) -> Explanation | None:
    """`compile(optimizer=Adam)`: the class, not an optimizer."""
    for one in calls(statement):
        optimizer = argument(one, 0, "optimizer") if dotted(one.func).endswith("compile") else None
        if optimizer is not None and not isinstance(optimizer, (ast.Call, ast.Constant)):
            text = spot.source.text(optimizer)
            return _replaced(spot, optimizer, f"{text} is the class {name}, and not yet an optimizer.", f"{text}()")
    return None
