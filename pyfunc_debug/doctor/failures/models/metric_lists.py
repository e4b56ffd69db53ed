"""`compile(metrics="mae")`: one metric, or a set of them, where Keras 3 wants a list."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import short

RULE = "argument"
_SAID = re.compile(
    r"^Expected `(metrics|weighted_metrics)` argument to be a list, tuple, or dict\. Received instead: .* of type "
    r"<class '([\w.]+)'>$",
    re.DOTALL,
)
_FUNCTIONS = {"function": "a function", "str": "a text", "set": "a set, which has no order"}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the one `compile` of a file that has such an argument got another kind of it."""
    said = _SAID.search(situation.message)
    if said is None or situation.body:
        return None
    name, kind = said[1], said[2]
    for file, source in situation.sources():
        every = source.calls_of(frozenset({"compile"}))
        given = [one.value for call in every for one in call.keywords if one.arg == name]
        given = [one for one in given if not isinstance(one, (ast.List, ast.Tuple, ast.Dict))]
        if len(given) != 1:
            continue
        text = source.text(given[0])
        what = _FUNCTIONS.get(kind, f"a {kind.rpartition('.')[2]}")
        cause = f"compile takes {name} as a list, also of one, and {short(text, 40)} is {what}."
        new = f"[{text}]"
        if kind in ("set", "frozenset"):
            literal = isinstance(given[0], ast.Set)
            new = f"[{text[1:-1].strip()}]" if literal else f"sorted({text}, key=str)"
        edit = edit_of(file, source.replaced({given[0]: new}))
        advice = "" if edit is not None else f"Give it {name}={short(new, 40)}."
        return Explanation(RULE, file, given[0].lineno, cause, edit, advice)
    return None
