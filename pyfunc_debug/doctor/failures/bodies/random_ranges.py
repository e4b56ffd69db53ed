"""`random.randint(0, image.shape[1] - size)` where the image is smaller than the crop: a range without numbers."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, shape_of_data, sizes_of

_SAID = re.compile(r"empty range (?:for|in) rand|^low >= high|^high <= 0")
_DRAWS = ("integers", "randint", "randrange")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the end of a random number's range in the failing line is below its beginning."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not _SAID.search(situation.message):
        return None
    for call in calls(statement):
        if dotted(call.func).rpartition(".")[2] not in _DRAWS or not call.args:
            continue
        end = call.args[1] if len(call.args) > 1 else call.args[0]
        value, text = computed(end, spot), short(spot.source.text(end), 40)
        if not isinstance(end, ast.BinOp) or not isinstance(end.op, ast.Sub) or not _is_number(value) or value > 0:
            continue
        sides = " and ".join(_sides(end, spot))
        cause = f"`{text}` is {int(value)}: there is no number to draw{f'. {sides}' if sides else ''}."
        advice = (
            f"What is cut out has to be at most as large: pad or resize first, or draw up to max(0, {text}) and cut "
            "what is there."
        )
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, int) or (type(value).__module__ == "numpy" and getattr(value, "shape", None) == ())


def _sides(node: ast.BinOp, spot: Spot) -> list[str]:
    """What the two sides are made of: `image is [32, 20, 3]`, `size is 24`."""
    found = []
    for side in (node.left, node.right):
        name = next((one.id for one in ast.walk(side) if isinstance(one, ast.Name) and one.id in spot.variables), "")
        value = spot.variables.get(name)
        shape = shape_of_data(value) if name else None
        if shape:
            found.append(f"{name} has the shape {sizes_of(shape)}")
        elif name and _is_number(computed(side, spot)):
            found.append(f"{short(spot.source.text(side), 30)} is {int(computed(side, spot))}")
    return found
