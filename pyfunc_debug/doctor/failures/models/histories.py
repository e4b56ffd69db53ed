"""What `fit` gives, a History: taken for the model or for its dict of numbers, or that dict without a number."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup, of_keras, shape_of_data, sizes_of

RULE = "structure"
_SAID = re.compile(r"'History' object (?:has no attribute '(\w+)'|is not (?:subscriptable|callable|iterable))")
_OF_DICT = ("keys", "values", "items", "get")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line uses a History as something else."""
    said, spot, statement = _SAID.search(situation.message), situation.last, situation.statement
    if said is None or spot is None or statement is None:
        return None
    for one in ast.walk(statement):
        owner = one.value if isinstance(one, (ast.Subscript, ast.Attribute)) else None
        owner = one.func if isinstance(one, ast.Call) else owner
        if owner is None or not of_keras(type(lookup(owner, spot)), "History"):
            continue
        name, source = dotted(owner), spot.source
        made = [
            each for each in ast.walk(source.tree)
            if isinstance(each, ast.Assign) and [dotted(target) for target in each.targets] == [name]
            and isinstance(each.value, ast.Call) and dotted(each.value.func).endswith(".fit")
        ]  # fmt: skip
        call = made[-1].value if made else None
        model = dotted(call.func).rpartition(".")[0] if isinstance(call, ast.Call) else ""
        if isinstance(one, ast.Subscript) or (isinstance(one, ast.Attribute) and one.attr in _OF_DICT):
            cause = f"{name} is the History that fit gives: its numbers are in the dict {name}.history."
            edit = edit_of(spot.file, source.replaced({owner: f"{name}.history"}))
            return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Use {name}.history.")
        if model and made:
            text = source.text(made[-1].value)
            cause = f"fit trains {short(model, 30)} itself, and gives a History, which is {name} then."
            blanks = indent_of(source.lines[made[-1].lineno - 1])
            lines = tuple(f"{blanks}{text}".split("\n"))
            own = Edit(spot.file, made[-1].lineno, made[-1].end_lineno or made[-1].lineno, lines)
            other = edit_of(spot.file, source.replaced({owner: model}))
            edit = own if model == name else other
            return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Use {model}.")
    return None


def empty(situation: Situation) -> Explanation | None:
    """The explanation, if the dict of a History has no number since `fit` was given no row."""
    spot, statement = situation.last, situation.statement
    if situation.kind != "KeyError" or situation.body or spot is None or statement is None:
        return None
    read = [
        one for one in ast.walk(statement)
        if isinstance(one, ast.Subscript) and isinstance(one.value, ast.Attribute) and one.value.attr == "history"
    ]  # fmt: skip
    fitted = [
        one for one in calls(spot.source.tree) if isinstance(one.func, ast.Attribute) and one.func.attr == "fit"
    ]  # fmt: skip
    if len(read) != 1 or len(fitted) != 1 or (data := argument(fitted[0], 0, "x")) is None:
        return None
    held = lookup(read[0].value.value, spot) if isinstance(read[0].value, ast.Attribute) else None
    if held is not None and not (of_keras(type(held), "History") and vars(held).get("history") == {}):
        return None
    shape = shape_of_data(lookup(data, spot))
    if not shape or shape[0] != 0:
        return None
    name = short(spot.source.text(data), 40)
    cause = f"{name} has the shape {sizes_of(shape)}, no row: fit trains nothing then, and its history has no number."
    advice = f"Look at the lines that make {name}: a slice or a filter may leave no row."
    return Explanation(RULE, spot.file, fitted[0].lineno, cause, None, advice, "likely")
