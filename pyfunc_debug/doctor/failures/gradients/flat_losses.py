"""No gradient, because the loss or a layer counts, rounds or compares what the model gave, or the loss ignores it."""

from __future__ import annotations

import ast
import dataclasses
import json
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor.failures.ops.smooth import NEAR, comparisons, of_type, ranks_in_ops, smoothed
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import as_read, dotted, is_tape, names, parameters, read, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, root_is

RULE = "cut-gradient"
_FARTHEST = 8
"""Lines from the first to the last that one paste changes."""
_SAID = "No gradients provided for any variable"
_FLAT = {
    "argmax", "argmin", "argsort", "round", "rint", "floor", "ceil", "sign", "equal", "not_equal", "greater", "less",
    "greater_equal", "less_equal", "count_nonzero", "one_hot", "bincount", "histogram_fixed_width", "searchsorted",
    "confusion_matrix", "unique",
}  # fmt: skip


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if such an op stands between the model's output and the loss."""
    if situation.body or _SAID not in situation.message:
        return None
    for spot in reversed(situation.spots):
        for function, compiled in _losses(spot):
            predicted = parameters(function)[-1]
            if compiled and predicted not in {name for part in function.body for name in names(part)}:
                cause = (
                    f"the loss {function.name} does not use {predicted}: what it returns does not depend on the model, "
                    "so that no variable has a gradient."
                )
                advice = (
                    f"Compute it from {predicted}, with TensorFlow's ops; what files or programs say has no gradient."
                )
                return Explanation(RULE, spot.file, function.lineno, cause, None, advice)
            flat = _flat(function.body, predicted, spot)
            if flat:
                of_ranks = _ranks(function, predicted, flat, spot)
                return of_ranks or _explanation(f"the loss {function.name}", predicted, flat, spot)
    for file, source in situation.sources():
        module = next((one.module for one in situation.spots if one.file == file), {})
        for layer in _lambdas(source.tree):
            spot, given = Spot(file, layer.lineno, {}, module, ""), parameters(layer)[0]
            flat = _flat([ast.Expr(layer.body)], given, spot)
            if flat:
                return _explanation("a Lambda layer", given, flat, spot)
    return _measured(situation)


def _measured(situation: Situation) -> Explanation | None:
    """An op that the recording found on all ways from the variables to the loss: in a layer, or under a tape."""
    told = [json.loads(text) for (text,) in situation.rows("SELECT facts FROM notice WHERE rule = 'flat-op'")]
    places = {(one["op"], one["file"], one["line"]) for one in told if len(one["variables"]) == one["count"]}
    if len(places) != 1:
        return None
    kind, file, line = places.pop()
    file, line = as_read(file, line)
    module = next((one.module for one in situation.spots if one.file == file), {})
    spot = Spot(file, line, {}, module, "")
    found = of_type(kind, read(file), line)
    statement = read(file).statement(line)
    if found is None and statement is not None:
        cause = (
            f"`{short(spot.source.text(statement), 50)}` makes the op {kind}, which moves in steps: a small change of "
            "the model changes nothing of it, so that no variable has a gradient."
        )
        advice = "Take something smooth for the loss, and keep this as a metric."
        return Explanation(RULE, file, line, cause, None, advice)
    if found is None:
        return None
    function = spot.source.function(line)
    where = f"{function.name} (line {function.lineno})" if isinstance(function, ast.FunctionDef) else "the loss"
    explained = _explanation(where, "what it is given", [found], spot)
    return dataclasses.replace(explained, confidence="measured")


def _ranks(function: ast.FunctionDef, predicted: str, flat: list[ast.expr], spot: Spot) -> Explanation | None:
    """A loss of ranks, where nothing else of it moves in steps."""
    pieces = ranks_in_ops(function.body, {predicted}, spot)
    inside = {id(part) for one in pieces for part in ast.walk(one)}
    if not pieces or any(id(one) not in inside for one in flat):
        return None
    first, last = min(one.lineno for one in pieces), max(one.end_lineno or one.lineno for one in pieces)
    if last - first >= _FARTHEST:
        return None
    cause = (
        f"`{short(spot.source.text(flat[0]), 50)}` in the loss {function.name} gives ranks. They move in steps, so "
        f"that no variable has a gradient. These are smooth: values nearer than {NEAR} share a rank."
    )
    edit = Edit(spot.file, first, last, spot.source.spliced(pieces, first, last))
    return Explanation(RULE, spot.file, flat[0].lineno, cause, edit, "", "likely")


def _lambdas(tree: ast.Module) -> Iterator[ast.Lambda]:
    """What Lambda layers are given, written in place."""
    for call in calls(tree):
        given = call.args[0] if call.args else None
        if dotted(call.func).rpartition(".")[2] == "Lambda" and isinstance(given, ast.Lambda) and parameters(given):
            yield given


def _explanation(where: str, predicted: str, flat: list[ast.expr], spot: Spot) -> Explanation:
    """Where it moves in steps; with something smooth in its place, if it is the only op that does."""
    found = flat[0]
    name = dotted(found.func) if isinstance(found, ast.Call) else "the comparison"
    cause = (
        f"`{short(spot.source.text(found), 50)}` in {where} moves in steps: a small "
        "change of the model changes nothing of it, so that no variable has a gradient."
    )
    new = smoothed(found, spot.source.parent(found), spot) if len(flat) == 1 else None
    edit = new.edit(spot.file, spot.source) if new is not None else None
    if edit is not None:
        return Explanation(RULE, spot.file, found.lineno, f"{cause} This is close, and has one.", edit, "", "likely")
    within = found
    while isinstance(within, ast.Call) and within.args and within in flat:
        within = within.args[0]
    of = spot.source.text(within) if within is not found else predicted
    others = {
        f"{dotted(one.func)} (line {one.lineno})" for one in flat[1:]
        if isinstance(one, ast.Call) and (dotted(one.func), one.lineno) != (name, found.lineno)
    }  # fmt: skip
    also = f" and what is made of it: {', '.join(sorted(others))}" if others else ""
    advice = (
        f"Let {where.removeprefix('the loss ')} compute with {short(of, 30)} itself, without {name}{also}; or keep it "
        "as a metric beside a loss that has a gradient."
    )
    return Explanation(RULE, spot.file, found.lineno, cause, None, advice, "likely")


def _losses(spot: Spot) -> Iterator[tuple[ast.FunctionDef, bool]]:
    """Functions of the user's that give what is differentiated, and whether they were given to `compile`."""
    tree = spot.source.tree
    own = {one.name: one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}
    given = [
        one for call in calls(tree) if dotted(call.func).endswith("compile")
        for one in [*call.args[1:2], *(part.value for part in call.keywords if part.arg == "loss")]
    ]  # fmt: skip
    compiled = [dotted(one) for one in given]
    asked = {
        name for call in calls(tree)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "gradient" and call.args
        for name in names(call.args[0])
    }  # fmt: skip
    blocks = filter(is_tape, ast.walk(tree))
    taped = [
        dotted(call.func) for block in blocks for one in ast.walk(block) if isinstance(one, ast.Assign)
        and {part.id for part in one.targets if isinstance(part, ast.Name)} & asked for call in calls(one.value)
    ]  # fmt: skip
    made = [dotted(one.func) for one in given if isinstance(one, ast.Call)]
    for name in dict.fromkeys([*compiled, *taped]):
        function = own.get(name.rpartition(".")[2])
        if function is not None and len(parameters(function)) >= 2:
            yield function, name in compiled
    for name in made:
        function = _returned(own.get(name))
        if function is not None and len(parameters(function)) >= 2:
            yield function, True


def _returned(maker: ast.FunctionDef | None) -> ast.FunctionDef | None:
    """The function that a function defines and returns: `compile(loss=weighted(2.0))`."""
    if maker is None:
        return None
    inside = {one.name: one for one in maker.body if isinstance(one, ast.FunctionDef)}
    given = [one.value.id for one in maker.body if isinstance(one, ast.Return) and isinstance(one.value, ast.Name)]
    return inside.get(given[0]) if len(given) == 1 else None


def _flat(body: Sequence[ast.stmt], predicted: str, spot: Spot) -> list[ast.expr]:
    """Such ops on what the model gave, and comparisons of it that become numbers."""
    known, found = {predicted}, list[ast.expr]()
    for statement in body:
        for call in calls(statement):
            name = dotted(call.func).rpartition(".")[2]
            module = root_is(call.func, spot, "tensorflow") or root_is(call.func, spot, "keras")
            if name in _FLAT and module and known & set(names(call)):
                found.append(call)
        found += comparisons(statement, known, spot)
        if isinstance(statement, ast.Assign) and known & set(names(statement.value)):
            known |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
    return found
