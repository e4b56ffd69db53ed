"""Numbers that a layer, an optimizer or a schedule refuses: a division that gives 0, groups of unlike sizes."""

from __future__ import annotations

import ast
import math
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.failed_layers import failed_layer
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "structure"
_ZERO = re.compile(r"(?:Received:? \(?`?|argument `)(\w+)`?(?:=0\b|`, expected a positive integer, got 0)")
_GROUPS = re.compile(r"Number of groups \((\d+)\) (?:must be a multiple of|cannot be more than) the number of channels")
_PARTS = re.compile(r"Number of channels \((\d+)\)|number of channels \((\d+)\)")
_CLIPS = re.compile(r"^Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set")
_CLIP = {
    "clipnorm": "shortens each gradient to a length", "clipvalue": "cuts each number of a gradient",
    "global_clipnorm": "shortens all gradients together",
}  # fmt: skip


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a number that was computed, or two that exclude each other, were refused."""
    spot, statement, said = situation.last, situation.statement, situation.message
    if spot is None or statement is None or situation.body:
        return None
    if _CLIPS.search(said):
        return _clipped(spot, statement)
    if _GROUPS.search(said):
        return _groups(situation)
    zero = _ZERO.search(said)
    return _divided(spot, statement) if zero is not None else None


def _divided(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`n // batch` of fewer than a batch, in an argument or in what gave its name the value."""
    given = [part for one in calls(statement) for part in (*one.args, *(word.value for word in one.keywords))]
    for one in given:
        node = one
        if isinstance(one, (ast.Name, ast.Attribute)):
            values = spot.source.given_to(dotted(one))
            node = values[0] if len(values) == 1 else one
        if computed(one, spot) != 0 or isinstance(one, ast.Constant) or type(computed(one, spot)) is not int:
            continue
        division = next((each for each in ast.walk(node) if _is_zero(each, spot)), None)
        if not isinstance(division, ast.BinOp):
            continue
        asked = (each for each in ast.walk(division) if isinstance(each, (ast.Name, ast.Attribute)))
        numbers = dict.fromkeys(
            f"{dotted(each)} is {value}" for each in asked if type(value := computed(each, spot)) in (int, float)
        )
        text = spot.source.text(division)
        why = f": {', '.join(numbers)}" if numbers else ""
        cause = f"{text} is 0{why}. With max it is 1 at least."
        edit = edit_of(spot.file, spot.source.replaced({division: f"max(1, {text})"}))
        return Explanation(RULE, spot.file, division.lineno, cause, edit, "", "likely")
    return None


def _is_zero(node: ast.AST, spot: Spot) -> bool:
    """Whether it is a whole division that gives 0."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv) and computed(node, spot) == 0


def _groups(situation: Situation) -> Explanation | None:
    """A GroupNormalization of more groups than channels, or of groups of unlike sizes."""
    failed = failed_layer(situation)
    made = failed.made(failed.layer) if failed is not None else None
    if failed is None or made is None or failed.kind != "GroupNormalization" or len(failed.shapes) != 1:
        return None
    axis, groups = vars(failed.layer).get("axis"), vars(failed.layer).get("groups")
    channels = failed.shapes[0][axis] if isinstance(axis, int) else None
    if not channels or not isinstance(groups, int):
        return None
    most = max(one for one in range(1, channels // 2 + 1) if channels % one == 0) if channels > 1 else 1
    new = math.gcd(groups, channels)
    new = new if 1 < new < channels else most
    said = (
        f"{groups} groups"
        if any(one.arg == "groups" for one in made.call.keywords) or made.call.args
        else "32 groups, which it takes where it is not told another number"
    )
    cause = f"GroupNormalization parts {channels} channels into {said}: each group needs as many channels. {new} does."
    edit = made.edit(made.with_arguments(groups=str(new)))
    return Explanation(RULE, made.spot.file, made.call.lineno, cause, edit, "", "likely")


def _clipped(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """Two ways to clip a gradient."""
    found = [one for one in calls(statement) if len([word for word in one.keywords if word.arg in _CLIP]) > 1]
    if len(found) != 1:
        return None
    call, source = found[0], spot.source
    first, *others = [str(word.arg) for word in call.keywords if word.arg in _CLIP]
    rest = [*map(source.text, call.args)]
    rest += [
        f"{word.arg}={source.text(word.value)}" if word.arg else f"**{source.text(word.value)}"
        for word in call.keywords if word.arg not in others
    ]  # fmt: skip
    cause = f"Keras 3 clips in one way: {first} {_CLIP[first]}, {others[0]} {_CLIP[others[0]]}."
    edit = edit_of(spot.file, source.replaced({call: f"{source.text(call.func)}({', '.join(rest)})"}))
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "", "likely")
