"""A dataset in `args=` of `from_generator`, whose values become tensors: a dataset is none."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.datasets import generator_calls
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.symbols import is_dataset, lookup

RULE = "generator"
_SAID = re.compile(r"Attempt to convert a value \(<\w*Dataset\w* element_spec=")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line gives one so."""
    spot = situation.last
    if spot is None or situation.body or not _SAID.search(situation.message):
        return None
    source = spot.source
    for file, _, call in generator_calls.calls(situation):
        word = next((one for one in call.keywords if one.arg == "args"), None)
        listed = word.value.elts if word is not None and isinstance(word.value, (ast.Tuple, ast.List)) else []
        found = [one for one in listed if is_dataset(lookup(one, spot))]
        if file != spot.file or not call.lineno <= spot.line <= (call.end_lineno or call.lineno) or not found:
            continue
        names = " and ".join(map(source.text, found))
        cause = (
            f"from_generator makes tensors of args, and {names} {'are datasets' if len(found) > 1 else 'is a dataset'}."
        )
        cause += " What the generator reads by a name, or gets of a lambda, stays as it is."
        given = generator_calls.given(call)
        edit = None
        if len(found) == len(listed) and given is not None and not isinstance(given, ast.Lambda):
            new = f"lambda: {source.text(given)}({', '.join(map(source.text, listed))})"
            rest = [new if one is given else source.text(one) for one in call.args]
            rest += [
                f"{one.arg}={new if one.value is given else source.text(one.value)}"
                for one in call.keywords if one is not word and one.arg is not None
            ]  # fmt: skip
            if all(one.arg is not None for one in call.keywords):
                edit = Edit(file, *source.kept_lines({call: f"{source.text(call.func)}({', '.join(rest)})"}))
        advice = f"Let the generator read {names} by its name, and leave it out of args."
        return Explanation(RULE, file, call.lineno, cause, edit, "" if edit else advice)
    return None
