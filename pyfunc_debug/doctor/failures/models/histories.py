"""What `fit` gives, a History, taken for the model or for the dict of numbers that it holds."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import lookup, of_keras

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
