"""A loss that reads tensors of the model it trains by its closure: Keras hands it `y_true` and `y_pred` only."""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.models import keras_calls
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, names, parameters
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_keras, is_symbolic, keras_name, lookup

RULE = "symbolic-value"
_SAID = re.compile(r"KerasTensor|Failed to convert elements of \(None")
"""What is said of a tensor that only describes a model: `y_pred * weights` names its shape only."""
_FARTHEST = 24
"""Lines from the loss to `compile` that one paste changes."""


@dataclass(frozen=True)
class _Compiled:
    """A call of `compile`, the loss in it, and the name of the model."""

    statement: ast.stmt
    loss: ast.expr
    model: str


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a loss that Keras traced computes with a KerasTensor."""
    spot = situation.last
    function = spot.function if spot is not None else None
    if spot is None or situation.body or not _SAID.search(situation.message):
        return None
    if wrapping.entry(situation)[1] != "Keras":
        return _returned(situation, spot)
    if isinstance(function, ast.FunctionDef) and (read := _attributes(spot, function)):
        return _of_object(situation, spot, function, read)
    if not isinstance(function, ast.FunctionDef) or situation.spots[wrapping.entry(situation)[0]] is not spot:
        return None
    given = parameters(function)
    first = list(map(spot.value, given[:2]))
    if len(first) < 2 or not all(is_symbolic(value) and not is_keras(value) for value in first):
        return None
    bound = [name for name in given[2:] if is_keras(spot.value(name))]
    if bound:
        return _bound(situation, spot, function, bound)
    kept = [name for name in _read(function) if name not in given and is_keras(spot.value(name))]
    compiled = _compiled(spot, function)
    if not kept and (parts := _outputs(spot)):
        cause = _cause(f"{function.name} reads", parts, f"a loss {' and '.join(given)}")
        advice = "Make it an output of the model, or compute the loss in the model's compute_loss(x, y, y_pred, ...)."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    if not kept or compiled is None:
        return None
    return _told(situation, spot, function, kept, compiled)


def _cause(who: str, parts: list[str], given: str) -> str:
    """That a function has tensors without values, and what Keras gives it."""
    one = len(parts) == 1
    return (
        f"{who} {' and '.join(parts)}, which describe{'s' * one} the model and {'has' if one else 'have'} no value: "
        f"Keras gives {given} only."
    )


def _told(
    situation: Situation, spot: Spot, function: ast.FunctionDef, kept: list[str], compiled: _Compiled
) -> Explanation:
    given, line = parameters(function), spot.line if spot.function is function else function.lineno
    owner = _model(situation, compiled.model)
    edit = _edit(spot, function, kept, compiled) if owner is not None else None
    one = len(kept) == 1
    cause = _cause(f"{function.name} reads", kept, f"a loss {' and '.join(given)}")
    if edit is not None:
        cause += f" Below, compute_loss computes {'it' if one else 'them'} for each batch, before the loss."
        return Explanation(RULE, spot.file, line, cause, edit)
    advice = f"Compute the loss in the model's compute_loss(x, y, y_pred, ...): it has the inputs x of {'it' * one}"
    return Explanation(RULE, spot.file, line, cause, None, f"{advice.rstrip(' of')}, too.")


def _attributes(spot: Spot, function: ast.FunctionDef) -> list[ast.Attribute]:
    """`self.mu` in a function, where the object keeps a tensor of the model by that name."""
    found = [one for one in ast.walk(function) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load)]
    return [one for one in found if is_keras(lookup(one, spot))]


def _of_object(
    situation: Situation, spot: Spot, function: ast.FunctionDef, parts: list[ast.Attribute]
) -> Explanation | None:
    """A loss, a metric or what one of them calls, that reads such attributes."""
    outermost = situation.spots[wrapping.entry(situation)[0]].function
    given = [dotted(one).rpartition(".")[2] for one in keras_calls.given(spot)]
    if not isinstance(outermost, ast.FunctionDef) or outermost.name not in given:
        return None
    kept = list(dict.fromkeys(spot.source.text(one) for one in parts))
    one = len(kept) == 1
    cause = _cause(f"{function.name} reads", kept, f"it {' and '.join(parameters(function)[:2])}")
    edit = _edit_object(situation, spot, function, parts, kept)
    advice = "" if edit is not None else "Compute it in a layer that has them, with self.add_loss(...)."
    if edit is not None:
        cause += f" Below, compute_loss computes {'it' if one else 'them'} for each batch, before the loss."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _edit_object(
    situation: Situation, spot: Spot, function: ast.FunctionDef, parts: list[ast.Attribute], kept: list[str]
) -> Edit | None:
    """The function with what the list `now` holds, and the lines above the one `compile` that fill it."""
    source = spot.source
    models = [
        one.func.value for one in calls(source.tree)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "compile"
        and any(kind.__name__ == "Functional" for kind in type(lookup(one.func.value, spot)).__mro__)
    ]  # fmt: skip
    statement = source.statement(models[0].lineno) if len(models) == 1 else None
    if statement is None or "now" in names(source.tree):
        return None
    scopes = [_scope(source, one) for one in (function, statement)]
    first, last = min(one.lineno for one in parts), statement.end_lineno or statement.lineno
    if scopes[0] is None or scopes[0] is not scopes[1] or not 0 < statement.lineno - first <= _FARTHEST:
        return None
    pieces: dict[ast.expr, str] = {one: f"now[{kept.index(source.text(one))}]" for one in parts}
    lines = source.spliced(pieces, first, last)
    if len(lines) != last - first + 1:
        return None
    at = statement.lineno - first
    return Edit(
        spot.file, first, last, (*lines[:at], *_held(spot, statement, kept, source.text(models[0])), *lines[at:])
    )


def _scope(source: Source, node: ast.AST) -> ast.AST | None:
    """The function that a definition or a statement stands in; None for the file."""
    return next((one for one in source.around(node) if one is not node and isinstance(one, ast.FunctionDef)), None)


def _returned(situation: Situation, spot: Spot) -> Explanation | None:
    """A loss that gave Keras a KerasTensor: nothing failed in it, and Keras could compute nothing of what it gave."""
    statement = spot.statement
    if statement is None or not any(dotted(one.func).endswith(".fit") for one in calls(statement)):
        return None
    for function in (one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef)):
        compiled = _compiled(spot, function) if len(parameters(function)) == 2 else None
        if compiled is None:
            continue
        read = [dotted(one) for one in compiled.loss.args] if isinstance(compiled.loss, ast.Call) else _read(function)
        kept = [name for name in read if name not in parameters(function) and is_keras(spot.value(name))]
        if kept and not (isinstance(compiled.loss, ast.Call) and len(kept) != len(compiled.loss.args)):
            return _told(situation, spot, function, kept, compiled)
    return None


def _bound(situation: Situation, spot: Spot, function: ast.FunctionDef, bound: list[str]) -> Explanation | None:
    """A loss that functools.partial gave a tensor of the model."""
    one, given = len(bound) == 1, parameters(function)
    cause = _cause(f"{function.name} got", bound, f"a loss {given[0]} and {given[1]}")
    edit = None
    for outer in situation.spots[:-1]:
        named = {
            name: key for name in bound for key, value in {**outer.module, **outer.variables}.items()
            if value is spot.value(name)
        }  # fmt: skip
        compiled = [
            one for one in calls(outer.source.tree)
            if isinstance(one.func, ast.Attribute) and one.func.attr == "compile" and "." not in dotted(one.func.value)
        ]  # fmt: skip
        losses = [
            one for call in compiled
            for part in (*call.args[1:2], *(word.value for word in call.keywords if word.arg == "loss"))
            for one in ast.walk(part)
            if isinstance(one, ast.Name) and _is_partial_of(outer.value(one.id), function.name)
        ]  # fmt: skip
        if len(named) != len(bound) or len(compiled) != 1 or len(losses) != 1:
            continue
        model = dotted(compiled[0].func).rpartition(".")[0]
        statement = outer.source.statement(compiled[0].lineno)
        if statement is None or _model(situation, model) is None or "now" in names(outer.source.tree):
            return None
        words = ", ".join(f"{name}=now[{place}]" for place, name in enumerate(bound))
        new = f"lambda {given[0]}, {given[1]}: {losses[0].id}({given[0]}, {given[1]}, {words})"
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        held = _held(outer, statement, [named[name] for name in bound], model)
        edit = Edit(outer.file, first, last, (*held, *outer.source.spliced({losses[0]: new}, first, last)))
        cause += f" Below, compute_loss computes {'it' if one else 'them'} for each batch, before the loss."
        break
    advice = (
        "" if edit is not None else "Compute it in the model's compute_loss(x, y, y_pred, ...): it has the inputs x."
    )
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _is_partial_of(value: Any, name: str) -> bool:
    return isinstance(value, functools.partial) and getattr(value.func, "__name__", "") == name


def _held(spot: Spot, statement: ast.stmt, kept: list[str], model: str) -> tuple[str, ...]:
    """Lines after which the list `now` holds the tensors of the batch that a model is trained on."""
    keras, blanks = f"{keras_name(spot)}.Model", indent_of(spot.source.lines[statement.lineno - 1])
    outputs = f"{keras}({model}.input, [{', '.join(kept)}])(x)"
    if len(kept) == 1:  # Keras gives one output as it is
        outputs = f"[{keras}({model}.input, {kept[0]})(x)]"
    return (
        f"{blanks}now = []  # {' and '.join(kept)} of the batch",
        f"{blanks}def compute_loss(x, *given, **words):",
        f"{blanks}    now[:] = {outputs}",
        f"{blanks}    return {keras}.compute_loss({model}, x, *given, **words)",
        f"{blanks}{model}.compute_loss = compute_loss",
    )


def _outputs(spot: Spot) -> list[str]:
    """`model.layers[1].output` in the line that failed: a Keras tensor, whatever the model is given."""
    statement = spot.statement
    found = [
        spot.source.text(one) for one in (ast.walk(statement) if statement is not None else ())
        if isinstance(one, ast.Attribute) and one.attr in ("output", "input") and _is_layers(one.value, spot)
    ]  # fmt: skip
    return list(dict.fromkeys(found))


def _is_layers(node: ast.expr, spot: Spot) -> bool:
    """Whether it is a model or a layer, or a layer of one: `model.layers[1]`, `model.get_layer("h")`."""
    root: ast.AST = node
    while isinstance(root, (ast.Attribute, ast.Subscript, ast.Call)):
        root = root.func if isinstance(root, ast.Call) else root.value
    kinds = type(spot.value(root.id)).__mro__ if isinstance(root, ast.Name) else ()
    return any(one.__name__ == "Layer" and one.__module__.startswith("keras.") for one in kinds)


def _read(function: ast.FunctionDef) -> list[str]:
    """The names that a function reads and does not write itself."""
    found = [name for one in function.body for name in names(one)]
    own = {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return [name for name in dict.fromkeys(found) if name not in own]


def _compiled(spot: Spot, function: ast.FunctionDef) -> _Compiled | None:
    """The one `model.compile(loss=...)` of the file that is given the function, or what makes it."""
    outer = next((one for one in spot.source.around(function) if isinstance(one, ast.FunctionDef)), None)
    found: list[_Compiled] = []
    for call in calls(spot.source.tree):
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "compile":
            continue
        loss = next((one.value for one in call.keywords if one.arg == "loss"), None) or next(iter(call.args[1:2]), None)
        statement = spot.source.statement(call.lineno)
        made = dotted(loss.func) if isinstance(loss, ast.Call) else ""
        plain = isinstance(loss, ast.Name) and loss.id == function.name
        if loss is None or statement is None or not isinstance(call.func.value, ast.Name):
            continue
        if plain or (outer is not None and made == outer.name):
            found.append(_Compiled(statement, loss, call.func.value.id))
    return found[0] if len(found) == 1 else None


def _model(situation: Situation, name: str) -> Any:
    """The Functional model of a name, whose way to compute a loss is Keras' own."""
    for spot in situation.spots:
        value = spot.value(name)
        kinds = [one.__name__ for one in type(value).__mro__]
        if "Functional" in kinds:
            own = type(value).__module__.partition(".")[0] in ("keras", "tf_keras")
            return value if own else None
    return _built(situation, name)


def _built(situation: Situation, name: str) -> Any:
    """The model that is trained, where the name that it was compiled by is none of a frame that is left."""
    for spot in situation.spots:
        for value in (*spot.variables.values(), *spot.module.values()):
            kind = type(value)
            if kind.__name__ == "Functional" and kind.__module__.partition(".")[0] == "keras":
                return value
    return None


def _metrics(spot: Spot, compiled: _Compiled, kept: list[str]) -> dict[ast.expr, str]:
    """`metrics=[make_acc(mask)]`, which is made of the same tensors, as what makes it of those of the batch."""
    found: dict[ast.expr, str] = {}
    for one in calls(compiled.statement):
        maker = next(
            (each for each in spot.source.tree.body if isinstance(each, ast.FunctionDef)
             and each.name == dotted(one.func)), None,
        )  # fmt: skip
        given = [dotted(each) for each in one.args]
        if one is compiled.loss or maker is None or not given or not set(given) <= set(kept) or one.keywords:
            continue
        inner = [each for each in maker.body if isinstance(each, ast.FunctionDef)]
        if len(inner) != 1 or len(parameters(inner[0])) != 2:
            continue
        held = ", ".join(f"now[{kept.index(each)}]" for each in given)
        listed = ", ".join(parameters(inner[0]))
        made = f"lambda {listed}: {dotted(one.func)}({held})({listed})"
        found[one] = f'{keras_name(spot)}.metrics.MeanMetricWrapper({made}, "{inner[0].name}")'
    return found


def _edit(spot: Spot, function: ast.FunctionDef, kept: list[str], compiled: _Compiled) -> Edit | None:
    source, loss = spot.source, compiled.loss
    model, statement = compiled.model, compiled.statement
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    if isinstance(loss, ast.Call):  # what makes the loss is given the tensors
        kept = [dotted(one) for one in loss.args if dotted(one)]
        if loss.keywords or len(kept) != len(loss.args) or not kept:
            return None
        listed = ", ".join(parameters(function))
        pieces: dict[ast.expr, str] = {loss: f"lambda {listed}: {dotted(loss.func)}(*now)({listed})"}
        pieces |= _metrics(spot, compiled, kept)
    else:
        pieces = {}
    if any(not name.isidentifier() for name in kept) or "now" in {*names(source.tree), *kept}:
        return None
    held = _held(spot, statement, kept, model)
    if isinstance(loss, ast.Call):
        return Edit(spot.file, first, last, (*held, *source.spliced(pieces, first, last)))
    begins = function.body[0]
    if not function.lineno < begins.lineno < first or first - begins.lineno > _FARTHEST:
        return None
    inside = indent_of(source.lines[begins.lineno - 1])
    target = ", ".join(kept) + ("," if len(kept) == 1 else "")
    between = source.lines[begins.lineno - 1 : first - 1]
    lines = (f"{inside}{target} = now", *between, *held, *source.lines[first - 1 : last])
    return Edit(spot.file, begins.lineno, last, lines)
