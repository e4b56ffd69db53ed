"""tf.data's debug mode, which forgets its functions: the first garbage collection takes them (tensorflow#127022)."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of
from pyfunc_debug.interception.names import private

RULE = "lost-object"
_SAID = re.compile(r"Could not find callback with key=pyfunc_\d+|callback pyfunc_\d+ is not found")
_ON = "enable_debug_mode"
_GENERATOR = "from_generator"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the program turned debug mode on and a function is not there any more."""
    if _SAID.search(situation.text) is None or not private.data_debug_mode():
        return None
    found = [(file, source, call) for file, source in situation.sources() for call in _calls(source)]
    if not found:
        return None
    file, source, call = found[0]
    made = any(source.calls_of(frozenset({_GENERATOR})) for _, source in situation.sources())
    what = _GENERATOR if made else "a dataset"
    cause = (
        f"tf.data's debug mode is on, in which Python runs the functions of {what} and nothing keeps them: a garbage "
        "collection of Python took them away. That is an error of TensorFlow's. The dataset runs without debug mode."
    )
    edit = _without(file, source, call) if len(found) == 1 else None
    lines = " and ".join(str(one.lineno) for _, _, one in found)
    advice = "" if edit is not None else f"Leave {dotted(call.func)}() out (line {lines})."
    return Explanation(RULE, file, call.lineno, cause, edit, advice)


def _calls(source: Source) -> list[ast.Call]:
    return [one for one in source.calls_of(frozenset({_ON})) if not one.args and not one.keywords]


def _without(file: str, source: Source, call: ast.Call) -> Edit | None:
    """The lines without the call, which is a statement of its own."""
    statement = source.statement(call.lineno)
    if not isinstance(statement, ast.Expr) or statement.value is not call:
        return None
    first, last = source.span(statement)
    block = source.block(statement) or [statement]
    follows = block[block.index(statement) + 1 :]
    if not follows:
        blanks = indent_of(source.lines[first - 1])
        return Edit(file, first, last, (f"{blanks}pass",)) if len(block) == 1 else None
    if follows[0].lineno <= last or source.lines[first - 1][: statement.col_offset].strip():  # `a(); b()`
        return None
    lines = source.lines[last : follows[0].lineno]
    while not lines[0].strip():
        lines = lines[1:]
    return Edit(file, first, follows[0].lineno, tuple(lines))
