"""A dataset's function without a return: tf.data makes no dataset of elements that hold nothing."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.returning import returns_nothing, with_return
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import method_calls

RULE = "structure"
_SAID = re.compile(r"Length for attr 'output_(?:types|shapes)' of 0 must be at least")
_METHODS = ("map", "flat_map", "interleave", "filter", "apply", "scan", "group_by_window")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the function of the failing line's dataset has nothing to return."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not _SAID.search(situation.message):
        return None
    for call in method_calls(statement, *_METHODS):
        name = dotted(call.args[0]).rpartition(".")[2] if call.args else ""
        for file, source in situation.sources() if name else ():
            own = [one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
            if len(own) == 1 and returns_nothing(own[0]):
                cause = f"{name} has no return: the elements of the dataset would hold nothing."
                edit = with_return(file, source, own[0])
                advice = "" if edit is not None else f"Return at the end of {name} what an element is to hold."
                return Explanation(
                    RULE, file, own[0].lineno, cause, edit, advice, "likely" if edit is not None else "measured"
                )
    return None
