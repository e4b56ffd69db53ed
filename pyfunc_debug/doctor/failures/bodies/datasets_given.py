"""A dataset in `inp=`: a numpy_function gives its body an array of no dimension for it, a py_function the dataset."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_dataset, lookup

RULE = "body-input"
_SAID = ("iteration over a 0-d array", "len() of unsized object", "<NOT CONVERTIBLE TO TENSOR>", "Dataset'")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the body failed on a dataset that a line with a name for it gives."""
    if situation.kind not in ("TypeError", "AttributeError") or not any(one in situation.message for one in _SAID):
        return None
    for spot in reversed(situation.spots):
        for call in calls(spot.source.tree):
            inp, body = argument(call, 1, "inp"), argument(call, 0, "func")
            if not dotted(call.func).endswith(("numpy_function", "py_function", "py_func")) or body is None:
                continue
            listed = inp.elts if isinstance(inp, (ast.List, ast.Tuple)) else []
            given = [one for one in listed if isinstance(one, ast.Name) and is_dataset(lookup(one, spot))]
            here = situation.body or any(
                one.file == spot.file and call.lineno <= one.line <= (call.end_lineno or 0) for one in situation.spots
            )
            if len(given) != 1 or inp is None or not here:
                continue
            name, source = given[0].id, spot.source
            if situation.body and dotted(call.func).rpartition(".")[2] == "py_function":
                return _mapped(spot, call, given[0], body, alone=len(listed) == 1)
            op = "py_func" if dotted(call.func).endswith("py_func") else "numpy_function"
            cause = f"{name} is a dataset, and a {op} gives its body arrays only. A body can read it by its name."
            advice = f"Let the body read {name}.as_numpy_iterator()."
            iterated = isinstance(body, ast.Name) and len(listed) == 1 and _iterates(body.id, spot)
            pieces: dict[ast.expr, str] = {inp: "[]", body: f"lambda: {source.text(body)}({name}.as_numpy_iterator())"}
            edit = edit_of(spot.file, source.replaced(pieces)) if iterated else None
            return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit is not None else advice)
    return None


def _mapped(spot: Spot, call: ast.Call, given: ast.Name, body: ast.expr, alone: bool) -> Explanation:
    """`ds.map(tf.py_function(load, [ds], tf.float32))`: a map takes a function, which gets each element."""
    source, name = spot.source, given.id
    parent = source.parent(call)
    inside = isinstance(parent, ast.Call) and call in parent.args and dotted(parent.func) == f"{name}.map"
    taken = {one.id for one in ast.walk(source.tree) if isinstance(one, ast.Name)}
    element = next(one for one in ("x", "element", "one_element") if one not in taken or one == "one_element")
    new = f"lambda {element}: {source.text_with(call, {given: element})}"
    cause = (
        f"{name} is a dataset, and {short(source.text(body), 30)} gets it whole, once. map calls a function with each "
        "element: here a lambda."
    )
    edit = edit_of(spot.file, source.replaced({call: new if inside else f"{name}.map({new})"})) if alone else None
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else f"Write it in {name}.map.", "likely")


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
