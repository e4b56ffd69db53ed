"""No gradient, because a line under the tape puts the loss into a variable: no op leads from there back."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, asked_of_tape, dotted, indent_of, short, tapes_before

RULE = "cut-gradient"
_SAID = "No gradients provided for any variable"
_ADDS = {"assign_add": "+=", "assign_sub": "-=", "assign": "="}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an optimizer got no gradient of what is in a variable."""
    if situation.body or _SAID not in situation.message:
        return None
    for spot in reversed(situation.spots):
        blocks = tapes_before(spot.source, spot.line)
        if len(blocks) == 1:
            return in_variable(spot.file, spot.source, blocks[0], "No variable has a gradient.")
    return None


def at_line(file: str, source: Source, line: int) -> Explanation | None:
    """The same for a gradient that is None while the program goes on.

    Args:
      file: The file.
      source: Its text.
      line: The line that asks the tape.
    """
    blocks = tapes_before(source, line)
    return in_variable(file, source, blocks[0], "The gradient is None.") if len(blocks) == 1 else None


def in_variable(file: str, source: Source, block: ast.With, so: str) -> Explanation | None:
    """A variable that is made of what is computed under a tape, or gets it there, and is differentiated.

    Args:
      file: The file.
      source: Its text.
      block: The tape's block.
      so: What follows.
    """
    asked = {one.id for one in asked_of_tape(source, block) if isinstance(one, ast.Name)}
    if len(asked) != 1:
        return None
    (name,) = asked
    holder = source.function(block.lineno)
    made = [
        one for one in ast.walk(source.tree)
        if isinstance(one, ast.Assign) and [dotted(target) for target in one.targets] == [name]
        and source.function(one.lineno) is holder
    ]  # fmt: skip
    given = [one for one in ast.walk(block) if isinstance(one, ast.Expr) and _assigns(one, name)]
    variable = _variable(made[0].value) if len(made) == 1 else None
    if variable is None or not isinstance(made[0], ast.Assign):
        return None
    value = variable.args[0] if variable.args else variable.keywords[0].value
    cause = f" puts a value into a variable, and no op leads from there back to what it is computed of. {so}"
    if not given and made[0] in ast.walk(block) and any(isinstance(one, ast.Name) for one in ast.walk(value)):
        edit = edit_of(file, source.replaced({variable: source.text(value)}))
        return Explanation(
            RULE, file, made[0].lineno, f"`{short(source.text(variable), 40)}`{cause}", edit,
            "" if edit else f"Differentiate {short(source.text(value), 40)} itself.",
        )  # fmt: skip
    if not given or made[0].lineno > given[0].lineno:
        return None
    first = edit_of(file, source.replaced({variable: source.text(value)}))
    edits = [first, *(_plain(file, source, one, name) for one in given)]
    known = [one for one in edits if one is not None]
    close = len(known) == len(edits) and given[-1].lineno - made[0].lineno < 12
    return Explanation(
        RULE, file, given[0].lineno, f"`{short(source.text(given[0]), 40)}`{cause}",
        together(known, source.lines) if close else None, "" if close else f"Let {name} be a tensor: {name} += ...",
    )  # fmt: skip


def _variable(value: ast.expr) -> ast.Call | None:
    """`tf.Variable(x)`, with a dtype perhaps."""
    made = isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] == "Variable"
    if not made or not isinstance(value, ast.Call) or len(value.args) > 1:
        return None
    words = [one.arg for one in value.keywords]
    if value.args:
        return value if not set(words) - {"dtype", "trainable", "name"} else None
    return value if words == ["initial_value"] else None


def _assigns(statement: ast.Expr, name: str) -> bool:
    call = statement.value
    return (
        isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and dotted(call.func.value) == name
        and call.func.attr in _ADDS and len(call.args) == 1
    )  # fmt: skip


def _plain(file: str, source: Source, statement: ast.Expr, name: str) -> Edit:
    """`loss.assign_add(x)` as `loss += x`."""
    call = statement.value
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Attribute)
    blanks = indent_of(source.lines[statement.lineno - 1])
    line = f"{blanks}{name} {_ADDS[call.func.attr]} {source.text(call.args[0])}"
    return Edit(file, statement.lineno, statement.end_lineno or statement.lineno, (line,))
