"""One optimizer of Keras' for variables that it was not made for: a second model, or layers that train later."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import compiled, failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup, of_keras
from pyfunc_debug.interception.names.private import optimized

RULE = "shared-optimizer"
_SAID = "This optimizer can only be called for the variables it was originally built with"
_KNOWS = "An optimizer of Keras 3 keeps what it knows of each variable, and makes that for those of its first step"
_FARTHEST = 25
"""Lines from the first to the last that one paste changes."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an optimizer was given variables that it does not know."""
    if _SAID not in situation.message or situation.body:
        return None
    for spot, fit in failed_fits(situation):
        told = _compiled(spot, fit)
        if told is not None:
            return told
    for spot in reversed(situation.spots):
        statement = spot.statement
        for call in calls(statement) if statement is not None else ():
            if isinstance(call.func, ast.Attribute) and call.func.attr in ("apply_gradients", "apply", "minimize"):
                optimizer = lookup(call.func.value, spot)
                if optimizer is not None and of_keras(type(optimizer), "BaseOptimizer"):
                    return _applied(spot, call, optimizer)
    return None


def _made(source: Source, name: str) -> ast.expr | None:
    """What the file's one assignment makes of a name."""
    found = [
        one.value for one in ast.walk(source.tree)
        if isinstance(one, ast.Assign) and [ast.unparse(target) for target in one.targets] == [name]
    ]  # fmt: skip
    return found[0] if len(found) == 1 and isinstance(found[0], ast.Call) else None


def _compiled(spot: Spot, fit: ast.Call) -> Explanation | None:
    """`compile(optimizer=opt)` of a second model: an optimizer of its own, made there."""
    given = compiled(spot, fit, "optimizer")
    if given is None or not isinstance(given, ast.Name):
        return None
    model = spot.source.text(fit.func.value) if isinstance(fit.func, ast.Attribute) else "the model"
    cause = f"{given.id} has trained another model before {model}. {_KNOWS}: each model needs an optimizer of its own."
    made = _made(spot.source, given.id)
    new = spot.source.text(made) if made is not None else ""
    edit = edit_of(spot.file, spot.source.replaced({given: new})) if new and "\n" not in new else None
    return Explanation(RULE, spot.file, fit.lineno, cause, edit, "" if edit else "Make one for each compile.")


def _applied(spot: Spot, call: ast.Call, optimizer: Any) -> Explanation:
    """`opt.apply_gradients(zip(grads, b.trainable_variables))` behind the same of a."""
    assert isinstance(call.func, ast.Attribute)
    name, text, owner = dotted(call.func.value), spot.source.text, _owner(call)
    called, model = name or "This optimizer", text(owner.value) if isinstance(owner, ast.Attribute) else ""
    cause = f"{called} does not know {text(owner) if owner is not None else 'these variables'}. {_KNOWS}"
    known = {id(one) for one in optimized(optimizer)}
    value = lookup(owner.value, spot) if isinstance(owner, ast.Attribute) else None
    if known & {id(one) for one in getattr(value, "trainable_variables", ())}:
        builds = [one for one in calls(spot.source.tree) if name and dotted(one.func) == f"{name}.build"]
        if len(builds) == 1 and len(builds[0].args) == 1 and owner is not None:
            given = builds[0].args[0]
            cause = f"{name}.build({text(given)}) lacks variables of {text(owner)}: {name} knows those of its build."
            edit = edit_of(spot.file, spot.source.replaced({given: text(owner)}))
            return Explanation(
                RULE, spot.file, builds[0].lineno, cause, edit, "" if edit else f"Give it {text(owner)}."
            )
        cause += f": of {model} some were frozen then."
        advice = f"Call {called}.build({model}.weights) before the first step: that makes it for all."
        return Explanation(RULE, spot.file, call.lineno, cause, _built(spot, call, model, name), advice)
    cause += f": {short(model, 30)} needs an optimizer of its own." if model else "."
    edit, new = _second(spot, call, owner, name)
    made = _made(spot.source, name)
    advice = "Make one for each model."
    if new and made is not None:
        advice = f"Make {new} = {short(text(made), 50)} below {name}, and call {new} here."
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else advice)


def _owner(call: ast.Call) -> ast.expr | None:
    """`b.trainable_variables` of a call of `apply_gradients`."""
    ends = ("variables", "weights")
    found = [one for one in ast.walk(call) if isinstance(one, ast.Attribute) and one.attr.endswith(ends)]
    return found[-1] if found else None


def _built(spot: Spot, call: ast.Call, model: str, name: str) -> Edit | None:
    """What the optimizer knows made for all weights, above its step."""
    statement, lines = spot.source.statement(call.lineno), spot.source.lines
    if statement is None or not name or not model:
        return None
    first, last = spot.source.span(statement)
    indent = indent_of(lines[first - 1])
    new = [
        f"{indent}if not {name}.built:",
        f"{indent}    {name}.build({model}.weights)  # also those that are frozen now",
    ]
    return Edit(spot.file, first, last, (*new, *lines[first - 1 : last]))


def _second(spot: Spot, call: ast.Call, owner: ast.expr | None, name: str) -> tuple[Edit | None, str]:
    """A second optimizer below the first, where the file names both models; and what it would be called."""
    source, made = spot.source, _made(spot.source, name)
    if made is None or not isinstance(owner, ast.Attribute) or not dotted(owner.value):
        return None, ""
    owners = [_owner(one) for one in calls(source.tree) if dotted(one.func) == dotted(call.func)]
    models = {ast.unparse(one.value) for one in owners if isinstance(one, ast.Attribute)}
    holder, dot, short_name = name.rpartition(".")
    new, statement = f"{holder}{dot}{dotted(owner.value).rpartition('.')[2]}_{short_name}", source.parent(made)
    if len(models) < 2 or not isinstance(statement, ast.Assign) or new in source.code_of(source.tree):
        return None, ""
    assert isinstance(call.func, ast.Attribute)
    placed = source.replaced({call.func.value: new})
    first, last = source.span(statement)
    if placed is None or first != last or not 0 < placed[0] - first < _FARTHEST:
        return None, new
    line = source.lines[first - 1]
    edits = [
        Edit(spot.file, first, last, (line, f"{indent_of(line)}{new} = {source.text(made)}")),
        Edit(spot.file, placed[0], placed[1], (placed[2],)),
    ]
    return together(edits, source.lines), new
