"""`get_variable` of TensorFlow 1 that makes a variable of a name which the graph has, or reuses one that it has not.

And what needs variables of a graph without any: a Saver, an optimizer (ops/variable_scope.py, training/).
"""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "uninitialized"
_SAID = re.compile(r"Variable (\S+) already exists, disallowed")
_ABSENT = re.compile(r"Variable (\S+) does not exist, or was not created with tf\.get_variable\(\)")
_NONE = re.compile(r"^No variables to (save|optimize)")
_FARTHEST = 8
"""Lines of a statement that gets a block around it."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a function that makes variables was called twice, for weights that are to be shared."""
    said, made = _SAID.search(situation.message), situation.last
    statement = made.statement if made is not None else None
    if said is None or made is None or statement is None or situation.body:
        return None
    found = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] == "get_variable"]
    spot = situation.spots[-2] if made.function is not None and len(situation.spots) > 1 else made
    line = spot.statement
    if len(found) != 1 or line is None or spot.file != made.file:
        return None
    name, tf = said[1].partition(":")[0], dotted(found[0].func).rpartition(".")[0]
    where = "" if made is spot else f" (line {made.line})"
    cause = (
        f"get_variable{where} makes {name}, and the graph has it from a call before. A second call gets the same "
        "variable only if its scope says so."
    )
    advice = "For weights of its own give each call a variable_scope of another name."
    edit = _scoped(spot, line, tf) if tf else None
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit is not None else advice, "likely")


def absent(situation: Situation) -> Explanation | None:
    """The explanation, if a scope is to reuse a variable that was not made before."""
    said, spot, statement = _ABSENT.search(situation.message), situation.last, situation.statement
    if said is None or spot is None or statement is None or situation.body:
        return None
    scopes = [
        (word.value, call) for one in (statement, *spot.source.around(statement)) if isinstance(one, ast.With)
        for item in one.items if isinstance(call := item.context_expr, ast.Call)
        and dotted(call.func).endswith("variable_scope") for word in call.keywords
        if word.arg == "reuse" and isinstance(word.value, ast.Constant) and word.value.value is True
    ]  # fmt: skip
    cause = f"{said[1]} was not made before, and a scope with reuse=True makes nothing: it finds variables of its name."
    if len(scopes) != 1:
        return Explanation(RULE, spot.file, spot.line, cause, None, "Make it first, in a scope without reuse=True.")
    value, call = scopes[0]
    new = f"{dotted(call.func).rpartition('.')[0]}.AUTO_REUSE".lstrip(".")
    edit = edit_of(spot.file, spot.source.replaced({value: new})) if "." in dotted(call.func) else None
    cause += " AUTO_REUSE makes it where it is not there."
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else "Write reuse=tf.AUTO_REUSE.", "likely")


def none_made(situation: Situation) -> Explanation | None:
    """The explanation, if a Saver or an optimizer finds no variable in the graph."""
    said, spot, statement = _NONE.search(situation.message), situation.last, situation.statement
    if said is None or spot is None or statement is None or situation.body:
        return None
    if said[1] == "save" and any(dotted(one.func).endswith("Saver") for one in calls(statement)):
        cause = "A Saver is for the variables that the graph has when it is made, and here it has none."
        return Explanation(RULE, spot.file, spot.line, cause, None, "Make it behind the lines that make the variables.")
    if said[1] == "optimize":
        cause = "An optimizer changes the graph's variables that are to be trained, and here it has none."
        advice = "Compute the loss with variables (get_variable, Variable), made in this graph above this line."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    return None


def _scoped(spot: Spot, statement: ast.stmt, tf: str) -> Edit | None:
    """A statement in a scope in which variables are made once."""
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    if hasattr(statement, "body") or last - first >= _FARTHEST:
        return None
    lines = spot.source.lines[first - 1 : last]
    blanks = indent_of(lines[0])
    above = f"{blanks}with {tf}.variable_scope({tf}.get_variable_scope(), reuse={tf}.AUTO_REUSE):"
    return Edit(spot.file, first, last, (above, *(f"    {line}" if line.strip() else line for line in lines)))
