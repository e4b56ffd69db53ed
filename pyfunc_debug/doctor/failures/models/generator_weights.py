"""`fit(generator(), class_weight=...)`: Keras 3 takes weights of classes beside arrays and datasets only."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.models.class_weights import with_weights
from pyfunc_debug.doctor.failures.models.keras_calls import compiled, failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import as_literal, dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, lookup

RULE = "class-weight"
_SAID = re.compile(r"Argument `class_weight` is not supported for Python generator inputs")
_THERE = (
    "The generator yields weights already: multiply them by the weight of each row's class, and leave class_weight out."
)
_WORDS = "Yield a third part with each batch: the weight of each row's class."


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if fit was given a generator and weights of classes."""
    for spot, call in failed_fits(situation) if _SAID.search(situation.message) else ():
        weight = next((one.value for one in call.keywords if one.arg == "class_weight"), None)
        given = argument(call, 0, "x")
        if weight is None or given is None:
            continue
        weights = lookup(weight, spot) if dotted(weight) else as_literal(weight)
        cause = (
            "Keras takes class_weight beside arrays, datasets and a Sequence, and not beside a Python generator. A "
            "third part of each batch is the weights of its rows."
        )
        if isinstance(weights, dict) and any(type(key) is str for key in weights):
            cause += " The keys of these weights are names, and labels are numbers."
            return Explanation(RULE, spot.file, call.lineno, cause, None, _WORDS)
        rows = _classes(compiled(spot, call, "loss"), spot)
        np = alias(spot, "numpy")
        plain = dotted(weight) and isinstance(weights, dict) and spot.value(np) is not None and rows
        parts = _yielded(spot, given)
        if parts == {3}:
            return Explanation(RULE, spot.file, call.lineno, cause, None, _THERE)
        if not plain or parts != {2}:
            return Explanation(RULE, spot.file, call.lineno, cause, None, _WORDS)
        text, own = spot.source.text, spot.source.text(weight)
        made = f"{np}.array([{own}[int(label)] for label in {rows.format(np=np)}])"
        new = with_weights(text(call), own, "").replace(text(given), f"((x, y, {made}) for x, y in {text(given)})", 1)
        edit = edit_of(spot.file, spot.source.replaced({call: new}))
        return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else _WORDS)
    return None


def _classes(loss: ast.expr | None, spot: Spot) -> str:
    """The class of each row of a batch's labels `y`, by the loss that takes them; "" where that does not say it."""
    text = spot.source.text(loss).lower().replace("_", "") if loss is not None else ""
    if "sparsecategorical" in text or "binarycrossentropy" in text:
        return "{np}.ravel(y)"
    return "{np}.argmax(y, axis=-1)" if "categoricalcrossentropy" in text else ""


def _yielded(spot: Spot, given: ast.expr) -> set[int]:
    """How many parts each `yield` of the generator's function gives; 0 where that is not written out."""
    made = spot.source.given_to(dotted(given)) if dotted(given) else [given]
    call = made[0] if len(made) == 1 else None
    name = dotted(call.func) if isinstance(call, ast.Call) else ""
    found = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    yields = [one.value for one in ast.walk(found[0]) if isinstance(one, ast.Yield)] if len(found) == 1 else []
    return {len(one.elts) if isinstance(one, ast.Tuple) else 0 for one in yields}
