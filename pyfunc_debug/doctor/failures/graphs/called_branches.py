"""`tf.cond(p, train(), test())`: both branches are called while the graph is built, and their results are passed."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_symbolic

RULE = "structure"
_SAID = ("'true_fn' must be callable", "'false_fn' must be callable")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if `tf.cond` was given what its branches return."""
    spot = situation.last
    if situation.body or spot is None or not situation.message.startswith(_SAID):
        return None
    statement = spot.statement
    found = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] == "cond"] if statement else []
    if len(found) != 1:
        return None
    call = found[0]
    branches = [argument(call, 1, "true_fn"), argument(call, 2, "false_fn")]
    pieces = {one: _function(one, spot) for one in branches if one is not None}
    wrong = {one: text for one, text in pieces.items() if text is not None}
    if not wrong:
        return None
    first, name = next(iter(wrong)), dotted(call.func)
    text = spot.source.text
    what = "calls the branch" if isinstance(first, ast.Call) else "is made"
    cause = (
        f"`{short(text(first), 40)}` {what} while the graph is built, whatever the condition is. {name} wants "
        "functions, and runs the ops of one of them."
    )
    placed = spot.source.replaced(wrong)
    edit = edit_of(spot.file, placed)
    advice = "" if edit else f"Pass {name} functions: lambda: {short(text(first), 40)}."
    return Explanation(RULE, spot.file, call.lineno, cause, edit, advice)


def _function(branch: ast.expr, spot: Spot) -> str | None:
    """The branch as a function; None where it is one."""
    if isinstance(branch, ast.Lambda):
        return None
    text = spot.source.text(branch)
    if isinstance(branch, ast.Call):
        plain = not branch.args and not branch.keywords and dotted(branch.func)
        makes = dotted(branch.func).rpartition(".")[2] == "partial"
        return None if makes else dotted(branch.func) if plain else f"lambda: {text}"
    if isinstance(branch, (ast.Name, ast.Attribute)):
        value = spot.value(dotted(branch))
        return f"lambda: {text}" if is_symbolic(value) or isinstance(value, (bool, int, float, str)) else None
    return f"lambda: {text}"
