"""A SavedModel's function uses a table or variable that nothing which is saved holds."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_tf_variable

RULE = "serialization"
_SAID = "references an 'untracked' resource"
_TABLE = re.compile(r'type="tensorflow::lookup::')
_SAVES = ("save", "export")
_TABLES = ("StaticHashTable", "StaticVocabularyTable", "DenseHashTable", "MutableHashTable", "HashTable")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if `saved_model.save` refused a function for what it captured."""
    spot, statement = situation.last, situation.statement
    if _SAID not in situation.message or spot is None or statement is None:
        return None
    saves = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] in _SAVES and one.args]
    saved = argument(saves[0], 0, "obj") if len(saves) == 1 else None
    if not isinstance(saved, (ast.Name, ast.Attribute)):
        return None
    owner, is_table = dotted(saved), _TABLE.search(situation.message) is not None
    what = "table" if is_table else "variable"
    made = [
        one for one in calls(spot.source.tree)
        if dotted(one.func).rpartition(".")[2] in (_TABLES if is_table else ("Variable",))
    ]  # fmt: skip
    inside = [one for one in made if spot.source.function(one.lineno) is not None]
    cause = f"A function that is saved with {owner} uses a {what} that neither {owner} nor what it holds has."
    held = _held(spot, owner, is_table, situation.message)
    if held is not None and not inside:
        first = spot.source.span(statement)[0]
        blanks = indent_of(spot.source.lines[first - 1])
        line = f"{blanks}{owner}.{held.rpartition('.')[2]} = {held}"
        cause += " As an attribute it is saved, and loaded with it."
        return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, first, first - 1, (line,)))
    if len(inside) == 1:
        return _inside(spot, owner, what, inside[0], cause)
    advice = f"Make the {what} once, outside of the function, and keep it: {owner}.{what} = ..."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _held(spot: Spot, owner: str, is_table: bool, said: str) -> str | None:
    """The one name at the line that saves which has a table, or a variable."""

    def fits(value: Any) -> bool:
        kinds = {one.__name__ for one in type(value).__mro__}
        return bool(kinds & set(_TABLES)) if is_table else is_tf_variable(value) and f"'{value.name}'" in said

    found = {name for name, value in {**spot.module, **spot.variables}.items() if name != owner and fits(value)}
    return found.pop() if len(found) == 1 else None


def _inside(spot: Spot, owner: str, what: str, call: ast.Call, cause: str) -> Explanation:
    """One that is made in the function: kept in what is saved, as the line below it does."""
    source = spot.source
    statement = source.statement(call.lineno)
    names = [dotted(one) for one in statement.targets] if isinstance(statement, ast.Assign) else []
    function = source.function(call.lineno)
    cause += f" It is made while {getattr(function, 'name', 'the function')} is traced."
    if statement is None or len(names) != 1 or "." in names[0] or "." in owner or owner not in spot.module:
        advice = f"Make the {what} once, outside of the function, and keep it: {owner}.{what} = ..."
        return Explanation(RULE, spot.file, call.lineno, cause, None, advice)
    first, last = source.span(statement)
    lines = source.lines[first - 1 : last]
    new = (*lines, f"{indent_of(lines[0])}{owner}.{names[0]} = {names[0]}")
    cause += " As an attribute it is saved, and loaded with it."
    return Explanation(RULE, spot.file, call.lineno, cause, Edit(spot.file, first, last, new))
