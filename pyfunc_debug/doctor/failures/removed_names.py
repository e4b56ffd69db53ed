"""Keywords and methods for Python in Keras 2 that Keras 3 refuses: `dynamic=True`, `workers=`, `fit_generator`."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.situation import Situation, Spot
from pyfunc_debug.doctor.failures.source import dotted
from pyfunc_debug.doctor.failures.symbols import calls

RULE = "removed-name"
_LAYER = re.compile(r"Unrecognized keyword arguments passed to (\w+): (\{.*\})", re.DOTALL)
_METHOD = re.compile(r"\b(fit|evaluate|predict|compile)\(\) got an unexpected keyword argument '(\w+)'")
_MISSING = re.compile(r"has no attribute '((fit|evaluate|predict)_generator)'")
_KEY = re.compile(r"'(\w+)':")
_WORKERS = ("workers", "use_multiprocessing", "max_queue_size")
_WHY = {
    "dynamic": "told Keras 2 to run a layer as Python. Keras 3 traces each layer: Python runs in a py_function",
    "experimental_run_tf_function": "switched Keras 2 between two ways to train, of which one is left",
    **dict.fromkeys(_WORKERS, "was for how Keras 2 read a generator. A keras.utils.PyDataset takes it in its __init__"),
}
"""What Keras 3 has no keyword for, so that it can only be left out."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if Keras refused a name that Keras 2 had."""
    missing = _MISSING.search(situation.message)
    if missing is not None:
        return _method(situation, missing[1], missing[2])
    layer, method = _LAYER.search(situation.message), _METHOD.search(situation.message)
    refused = _KEY.findall(layer[2]) if layer is not None else [method[2]] if method is not None else []
    known = [name for name in refused if name in _WHY]
    for spot in reversed(situation.spots) if known else ():
        statement = spot.source.statement(spot.line)
        for call in calls(statement) if statement is not None else ():
            given = [one for one in call.keywords if one.arg in _WHY]
            if any(one.arg in known for one in given):
                return _left_out(spot, call, given, "layer" if layer is not None else str(method and method[1]))
    return None


def _left_out(spot: Spot, call: ast.Call, given: list[ast.keyword], where: str) -> Explanation:
    text = spot.source.text
    rest = [*map(text, call.args), *(text(one) for one in call.keywords if one not in given)]
    placed = spot.source.replaced({call: f"{text(call.func)}({', '.join(rest)})"})
    edit = None if placed is None else Edit(spot.file, placed[0], placed[1], (placed[2],))
    names = ", ".join(f"{one.arg}=" for one in given)
    whose = "has no" if where == "layer" else f"has in {where} no"
    cause = f"Keras 3 {whose} {names}: it {_WHY[str(given[0].arg)]}."
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else f"Leave {names} out.")


def _method(situation: Situation, old: str, new: str) -> Explanation | None:
    spot = situation.last
    statement = spot.source.statement(spot.line) if spot is not None else None
    found = [
        one for one in (calls(statement) if statement is not None else ())
        if isinstance(one.func, ast.Attribute) and one.func.attr == old
    ]  # fmt: skip
    if spot is None or len(found) != 1:
        return None
    call, text = found[0], spot.source.text
    first = {"generator": "x"}
    kept = [one for one in call.keywords if one.arg not in _WORKERS]
    given = [*map(text, call.args), *(f"{first.get(str(one.arg), one.arg)}={text(one.value)}" if one.arg else text(one)
                                      for one in kept)]  # fmt: skip
    placed = spot.source.replaced({call: f"{dotted(call.func).rpartition('.')[0]}.{new}({', '.join(given)})"})
    edit = None if placed is None else Edit(spot.file, placed[0], placed[1], (placed[2],))
    cause = f"Keras 3 has no {old}: {new} takes generators, too."
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else f"Call {new}.")
