"""A function of a SavedModel that was called as none of its graphs was saved: another shape, dtype or Python value.

A restored function has the graphs that were traced before saving, and no Python to trace another with
(tensorflow/python/saved_model/function_deserialization.py).
"""

from __future__ import annotations

import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls

RULE = "serialization"
_SAID = "Could not find matching concrete function to call loaded from the SavedModel"
_ITEM = re.compile(r"^    \* (.*)$", re.MULTILINE)
_TENSOR = re.compile(r"^(?:<tf\.Tensor '.*?'|TensorSpec\()\s*shape=(.*?),? dtype=(?:tf\.)?(\w+)")
_NUMBER = re.compile(r"-?\d[\d.e+-]*$")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the arguments of a restored function's call fit none of the graphs that were saved."""
    spot, statement = situation.last, situation.statement
    if not situation.message.startswith(_SAID) or spot is None or statement is None or situation.body:
        return None
    got, *options = [_ITEM.findall(part) for part in re.split(r"\nOption \d+:", situation.message)]
    fitting = [one for one in options if len(one) == len(got)]
    if not got or not fitting:
        return None
    nearest = min(fitting, key=lambda one: sum(_differ(*pair) for pair in zip(got, one)))
    places = [place for place, pair in enumerate(zip(got, nearest)) if _differ(*pair)]
    called = [one for one in calls(statement) if len(one.args) + len(one.keywords) >= len(got)]
    if len(places) != 1 or len(called) != 1:
        return None
    place = places[0]
    given, saved = got[place], list(dict.fromkeys(one[place] for one in fitting))
    name, tf = short(spot.source.text(called[0].func), 30), alias(spot, "tensorflow")
    known = " and ".join(map(_shown, saved[:2]))
    head = f"argument {place + 1} of {name} is {_shown(given)}, and the file has a graph for {known} only: "
    if _TENSOR.match(given):
        why = "a loaded function has the graphs that were traced before it was saved, and makes no others."
        advice = (
            f"Call it with {known}; or save it with input_signature=[...] in @{tf}.function, with None for each size "
            "that changes."
        )
    elif _NUMBER.match(given):
        why = "a number of Python's is a part of the graph, and a loaded function makes no others."
        advice = f"Where it is saved, call it with {tf}.constant({saved[0]}) first: one graph then takes every number."
    else:
        why = "a value of Python's is a part of the graph, and a loaded function makes no others."
        advice = f"Where it is saved, call it with {given} as well, above the line that saves."
    return Explanation(RULE, spot.file, spot.line, head + why, None, advice)


def _differ(given: str, saved: str) -> bool:
    """Whether an argument is another than the one of a graph: the names of tensors do not count."""
    found, wanted = _TENSOR.match(given), _TENSOR.match(saved)
    if found is None or wanted is None:
        return given != saved
    return found.groups() != wanted.groups()


def _shown(text: str) -> str:
    """How an argument is named: a tensor by its dtype and shape."""
    found = _TENSOR.match(text)
    return text if found is None else f"a tensor {found[2]} of shape {found[1]}"
