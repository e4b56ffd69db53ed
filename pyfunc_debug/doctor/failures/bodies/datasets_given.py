"""A dataset in `inp=` of `numpy_function`: its body gets an array of no dimension, which has no elements."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import parameters
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_dataset, lookup

RULE = "body-input"
_SAID = ("iteration over a 0-d array", "len() of unsized object", "<NOT CONVERTIBLE TO TENSOR>")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the body failed on a dataset that a line with a name for it gives."""
    if situation.kind != "TypeError" or not any(one in situation.message for one in _SAID):
        return None
    for spot in reversed(situation.spots):
        for call in calls(spot.source.tree):
            inp, body = argument(call, 1, "inp"), argument(call, 0, "func")
            if not ast.unparse(call.func).endswith("numpy_function") or body is None:
                continue
            listed = inp.elts if isinstance(inp, (ast.List, ast.Tuple)) else []
            given = [one for one in listed if isinstance(one, ast.Name) and is_dataset(lookup(one, spot))]
            here = situation.body or any(
                one.file == spot.file and call.lineno <= one.line <= (call.end_lineno or 0) for one in situation.spots
            )
            if len(given) != 1 or inp is None or not here:
                continue
            name, source = given[0].id, spot.source
            cause = (
                f"{name} is a dataset, and a numpy_function gives its body arrays only. A body can read it by its name."
            )
            advice = f"Let the body read {name}.as_numpy_iterator()."
            iterated = isinstance(body, ast.Name) and len(listed) == 1 and _iterates(body.id, spot)
            pieces: dict[ast.expr, str] = {inp: "[]", body: f"lambda: {source.text(body)}({name}.as_numpy_iterator())"}
            edit = edit_of(spot.file, source.replaced(pieces)) if iterated else None
            return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit is not None else advice)
    return None


def _iterates(name: str, spot: Spot) -> bool:
    """Whether a function does nothing with its argument but iterate it."""
    functions = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    inputs = parameters(functions[0]) if len(functions) == 1 else []
    if len(inputs) != 1:
        return False
    used = [one for one in ast.walk(functions[0]) if isinstance(one, ast.Name) and one.id == inputs[0]]
    parents = [spot.source.parent(one) for one in used]
    return bool(used) and all(
        isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is one for one, parent in zip(used, parents)
    )
