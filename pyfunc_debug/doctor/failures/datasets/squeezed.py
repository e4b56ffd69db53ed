"""`np.squeeze(y)` without an axis in a generator: a batch of one row loses the axis of its rows, too."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import is_generator
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "ragged-batch"
_SHAPES = re.compile(r"yielded an element of shape \(([^)]*)\) where an element of shape \(([^)]*)\) was expected")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a generator's element has fewer axes than those before, and its code squeezes all."""
    found = _SHAPES.search(situation.message) or _SHAPES.search(situation.text)
    got, wanted = (re.findall(r"\w+", part) for part in found.groups()) if found is not None else ([], [])
    if found is None or len(got) >= len(wanted):
        return None
    for file, source in situation.sources():
        every = [
            one for function in ast.walk(source.tree)
            if isinstance(function, ast.FunctionDef) and is_generator(function)
            for one in calls(function) if _of_all_axes(one)
        ]  # fmt: skip
        if len(every) != 1:
            continue
        placed = source.replaced({every[0]: source.with_argument(every[0], "axis=-1")})
        edit = edit_of(file, placed)
        cause = (
            f"the generator yielded an element of shape ({found[1]}), and those before had ({found[2]}): "
            f"`{source.text(every[0])}` drops every axis of size 1, so of a batch of one row its only axis, too."
        )
        return Explanation(RULE, file, every[0].lineno, cause, edit, "" if edit else "Give it the axis: axis=-1.")
    return None


def _of_all_axes(call: ast.Call) -> bool:
    """Whether it is `np.squeeze(y)` or `y.squeeze()`, without an axis."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "squeeze" or call.keywords:
        return False
    return len(call.args) == (1 if dotted(call.func.value) in ("np", "numpy", "tf") else 0)
