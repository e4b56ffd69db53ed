"""`apply_gradients` that got no pairs of a gradient and its variable: no zip, its parts swapped, a tensor to change."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_tensor, lookup

RULE = "structure"
_NO_VARIABLE = re.compile(r"Tensor' object has no attribute '_unique_id'")
_NO_PAIRS = re.compile(
    r"(?:not enough values to unpack \(expected 2|too many values to unpack \(expected 2)"
    r"|iterating over `?tf\.Tensor|Iterating over a symbolic|Cannot iterate over a (?:scalar tensor|Tensor)"
)
_TWO = re.compile(r"apply_gradients\(\) takes 2 positional arguments but 3 were given")
_PAIRS = "apply_gradients takes pairs (gradient, variable)"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line gives an optimizer something else than pairs."""
    spot = situation.last if not situation.body else None
    statement = situation.statement
    asked = [one for one in calls(statement) if applies(one)] if statement is not None else []
    if spot is None or len(asked) != 1:
        return None
    call, text = asked[0], spot.source.text
    if _TWO.search(situation.message) and len(call.args) == 2:
        return _told(spot, call, f"{_PAIRS}, not two lists.", f"zip({', '.join(map(text, call.args))})")
    given = call.args[0] if len(call.args) == 1 and not isinstance(call.args[0], ast.Starred) else None
    if given is None:
        return None
    if _NO_VARIABLE.search(situation.message):
        return _swapped(spot, call, given) or _of_tensor(spot, given)
    if not _NO_PAIRS.search(situation.message):
        return None
    if isinstance(given, ast.Tuple) and len(given.elts) == 2:
        return _told(spot, call, f"{_PAIRS}, not two lists.", f"zip({', '.join(map(text, given.elts))})")
    variables = asked_for(spot.source, given, spot.line)
    if variables is None:
        return None
    return _told(
        spot, call, f"{_PAIRS}, and {text(given)} holds the gradients only.", f"zip({text(given)}, {variables})"
    )


def applies(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "apply_gradients"


def _told(spot: Spot, call: ast.Call, cause: str, new: str) -> Explanation:
    first = call.args[0]
    pieces: dict[ast.expr, str] = {call: f"{spot.source.text(call.func)}({new})"}
    if len(call.args) == 1:
        pieces = {first: new}
    return Explanation(RULE, spot.file, call.lineno, cause, edit_of(spot.file, spot.source.replaced(pieces)))


def asked_for(source: Source, gradients: ast.expr, line: int) -> str | None:
    """What the gradients were asked for, where the last line above that sets them asks a tape."""
    made = [
        one.value for one in ast.walk(source.tree)
        if isinstance(one, ast.Assign) and [dotted(target) for target in one.targets] == [dotted(gradients)]
        and one.lineno < line
    ]  # fmt: skip
    call = made[-1] if made else gradients
    if not isinstance(call, ast.Call) or dotted(call.func).rpartition(".")[2] not in ("gradient", "gradients"):
        return None
    return source.text(call.args[1]) if len(call.args) > 1 else None


def _swapped(spot: Spot, call: ast.Call, given: ast.expr) -> Explanation | None:
    """`zip(variables, gradients)`, the wrong way round."""
    zipped = given if isinstance(given, ast.Call) and dotted(given.func) == "zip" else None
    if zipped is None or len(zipped.args) != 2 or zipped.keywords:
        return None
    first, second = zipped.args
    if asked_for(spot.source, second, spot.line) is None or asked_for(spot.source, first, spot.line) is not None:
        return None
    text = spot.source.text
    cause = f"{_PAIRS}, the gradient first: zip gives it the variables first."
    return _told(spot, call, cause, f"zip({text(second)}, {text(first)})")


def _of_tensor(spot: Spot, given: ast.expr) -> Explanation | None:
    """A pair whose second is a tensor, which no optimizer can change."""
    pairs = (
        [one for one in given.elts if isinstance(one, ast.Tuple)] if isinstance(given, (ast.List, ast.Tuple)) else []
    )
    seconds: list[ast.expr] = [one.elts[1] for one in pairs if len(one.elts) == 2]
    if isinstance(given, ast.Call) and dotted(given.func) == "zip" and len(given.args) == 2:
        seconds = list(given.args[1].elts) if isinstance(given.args[1], (ast.List, ast.Tuple)) else []
    tensors = [one for one in seconds if isinstance(one, ast.Name) and is_tensor(lookup(one, spot))]
    if len(tensors) != 1:
        return None
    name, source, tf = tensors[0].id, spot.source, alias(spot, "tensorflow")
    cause = f"{name} is a tensor, and a tensor never changes. An optimizer changes a {tf}.Variable."
    made = [
        one.value for one in ast.walk(source.tree)
        if isinstance(one, ast.Assign) and [dotted(target) for target in one.targets] == [name]
    ]  # fmt: skip
    if len(made) != 1 or any(isinstance(one, (ast.For, ast.While)) for one in source.around(made[0])):
        return Explanation(RULE, spot.file, spot.line, cause, None, f"Make {name} once, as {tf}.Variable(...).")
    first, last, lines = source.kept_lines({made[0]: f"{tf}.Variable({source.text(made[0])})"})
    return Explanation(RULE, spot.file, made[0].lineno, cause, Edit(spot.file, first, last, lines))
