"""No gradient, because the loss counts, rounds or compares what the model gave: ops whose result moves in steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.explanation import Explanation
from pyfunc_debug.doctor.failures.keras_calls import given
from pyfunc_debug.doctor.failures.situation import Situation, Spot
from pyfunc_debug.doctor.failures.source import dotted, names, parameters, short
from pyfunc_debug.doctor.failures.symbols import calls, root_is

RULE = "cut-gradient"
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
        for function in _losses(spot):
            found = _flat(function, spot)
            if found is not None:
                name = dotted(found.func)
                cause = (
                    f"`{short(spot.source.text(found), 50)}` in the loss {function.name} moves in steps: a small "
                    "change of the model changes nothing of it, so that no variable has a gradient."
                )
                advice = (
                    f"Let {function.name} compute with {parameters(function)[-1]} itself, without {name}, or keep it "
                    "as a metric beside a loss that has a gradient."
                )
                return Explanation(RULE, spot.file, found.lineno, cause, None, advice, "likely")
    return None


def _losses(spot: Spot) -> Iterator[ast.FunctionDef]:
    """Functions of the user's that are given to `compile` as losses, or called under the one tape."""
    own = {one.name: one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef)}
    called = [dotted(one) for one in given(spot)]
    blocks = [
        one for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.With) and any("GradientTape(" in ast.unparse(item) for item in one.items)
    ]  # fmt: skip
    if len(blocks) == 1:
        called += [dotted(one.func) for one in calls(blocks[0])]
    for name in dict.fromkeys(called):
        function = own.get(name.rpartition(".")[2])
        if function is not None and len(parameters(function)) >= 2:
            yield function


def _flat(function: ast.FunctionDef, spot: Spot) -> ast.Call | None:
    """The first such op that the loss computes from its last argument."""
    known = {parameters(function)[-1]}
    for statement in function.body:
        for call in calls(statement):
            name = dotted(call.func).rpartition(".")[2]
            if name in _FLAT and root_is(call.func, spot, "tensorflow") and known & set(names(call)):
                return call
        if isinstance(statement, ast.Assign) and known & set(names(statement.value)):
            known |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
    return None
