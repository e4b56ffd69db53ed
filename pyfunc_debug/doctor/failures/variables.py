"""Variables made inside a tf.function: each trace would make new ones."""

from __future__ import annotations

import ast
import textwrap

from pyfunc_debug.doctor.failures.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.situation import Situation, Spot
from pyfunc_debug.doctor.failures.source import indent_of, names, short

RULE = "variable-in-function"
_SAID = "tf.function only supports singleton tf.Variables created on the first call"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a tf.function made a variable in a later trace."""
    spot = situation.last
    if spot is None or _SAID not in situation.message:
        return None
    statement, function = spot.source.statement(spot.line), spot.function
    if statement is None or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    code = short(spot.source.text(statement).split("\n")[0], 36)
    cause = (
        f"`{code}` makes variables at each trace of {function.name}. TensorFlow traces it twice, and only "
        "the first trace "
        "may make them."
    )
    edit = _lifted(spot, function, statement)
    target = "__init__" if "self." in code else f"a line above {function.name}"
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Move the line into {target}.")


def _lifted(spot: Spot, function: ast.FunctionDef | ast.AsyncFunctionDef, statement: ast.stmt) -> Edit | None:
    """The function with the statement above it instead of at its beginning."""
    local = {one.arg for one in (*function.args.args, *function.args.kwonlyargs)}
    if (
        not isinstance(statement, ast.Assign)
        or function.body[0] is not statement
        or any(name in local for name in names(statement))
    ):
        return None
    first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
    lines = spot.source.lines
    moved = textwrap.dedent("\n".join(lines[statement.lineno - 1 : statement.end_lineno])).split("\n")
    blanks = indent_of(lines[first - 1])
    new = (*(blanks + line for line in moved), *lines[first - 1 : statement.lineno - 1])
    return Edit(spot.file, first, statement.end_lineno or statement.lineno, new) if len(new) <= 3 else None
