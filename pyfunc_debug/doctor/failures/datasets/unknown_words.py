"""A value that is not in the vocabulary of a lookup layer, which has no place for others."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "label-range"
_SAID = re.compile(r"When `num_oov_indices=0` all inputs should be in vocabulary, found OOV values \[?([^\]\n]{0,80})")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a StringLookup or IntegerLookup met such a value."""
    said = _SAID.search(situation.message)
    if said is None:
        return None
    shown = said[1].strip(" ,").replace("\\", "").replace("b'", "'")
    cause = f"{shown or 'a value'} is not in the vocabulary, and num_oov_indices=0 leaves no place for what is not."
    for file, source in situation.sources():
        found = [
            (one, keyword.value) for one in calls(source.tree) for keyword in one.keywords
            if dotted(one.func).endswith("Lookup") and keyword.arg == "num_oov_indices"
            and isinstance(keyword.value, ast.Constant) and keyword.value.value == 0
        ]  # fmt: skip
        if len(found) == 1:
            call, zero = found[0]
            cause += " With 1 it is number 0, and the words of the vocabulary count from 1."
            edit = edit_of(file, source.replaced({zero: "1"}))
            return Explanation(RULE, file, call.lineno, cause, edit, "", "likely")
    return None
