"""Models, optimizers and metrics that were made again behind a graph that was traced with others."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.graphs.kept_values import KeptValue
from pyfunc_debug.records import Function

_VARIABLES = ("Variable", "variable")
"""What makes a variable: `tf.Variable(0.0)`, `K.variable(0.0)`."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def fix(facts: Facts, function: Function | None, values: Sequence[KeptValue], names: Sequence[str], file: str) -> str:
    """The line that makes the tf.function again where its objects are made again, else what to do in words.

    Args:
      facts: The recording.
      function: The user's tf.function; None where Keras made it.
      values: What was replaced.
      names: As the code says it.
      file: Where it is read.
    """
    assigned = _assigned(facts, values, file)
    if assigned:
        return assigned
    if function is None:
        return (
            f"give the model the new {names[0]} before it is compiled, or compile it again: Keras then traces its "
            "steps again"
        )
    edit = _made_again(facts, function, values, file)
    if edit is not None:
        return pastes.written(edit)
    short = function.name.rpartition(".")[2]
    return (
        f"make one tf.function for each: define {short} in a function that takes {', '.join(names)} and returns it, "
        "and call that function where they are made. Or keep the first objects, and change what they hold: "
        "optimizer.learning_rate.assign(...), metric.reset_state(), model.set_weights(...)"
    )


def _assigned(facts: Facts, values: Sequence[KeptValue], file: str) -> str:
    """`w.assign(x)` where a new variable is put in the place of one: the graph reads the first one's value."""
    edits = list[Edit | None]()
    for value in values:
        for target, statement in value.writes:
            made = statement.value if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
            lines = pastes.lines_of(facts, file, statement.lineno)
            if not isinstance(made, ast.Call) or dotted(made.func).rpartition(".")[2] not in _VARIABLES:
                return ""
            if lines is None or not isinstance(value.initial, ast.Call) or not made.args:
                return ""
            if dotted(value.initial.func).rpartition(".")[2] not in _VARIABLES:
                return ""
            text = f"{pastes.text_of(facts, file, target)}.assign({pastes.text_of(facts, file, made.args[0])})"
            edits.append(Edit(file, statement.lineno, statement.end_lineno or statement.lineno, (lines[0] + text,)))
    return pastes.written(*edits) if 0 < len(edits) <= pastes.MOST else ""


def _made_again(facts: Facts, function: Function, values: Sequence[KeptValue], file: str) -> Edit | None:
    """The line behind the last statement that replaces one of the objects, where they stand in one block."""
    source, short = pastes.source(facts, file), function.name.rpartition(".")[2]
    definition = facts.definition(function.file, function.line)
    writes = [write for value in values for _, write in value.writes]
    if function.file != file or not isinstance(definition, ast.FunctionDef) or not writes:
        return None
    if isinstance(source.parent(definition), ast.ClassDef) or not all(isinstance(one, ast.Assign) for one in writes):
        return None
    home = _scope(source, definition)
    blocks = [source.block(one) for one in writes]
    made = making(source, definition, short)
    if made is None or blocks[0] is None or any(one is not blocks[0] for one in blocks):
        return None
    last = max(writes, key=lambda one: one.lineno)
    scope = _scope(source, last)
    head: tuple[str, ...] = ()
    if scope is not home:
        if home is not None or scope is None or _uses_before(scope, made[0], last):
            return None
        head = (f"global {made[0]}",)
    line = (last.end_lineno or last.lineno) + 1
    blanks = pastes.indent(facts, file, last.lineno) or ""
    return Edit(file, line, line - 1, tuple(f"{blanks}{one}" for one in (*head, f"{made[0]} = {made[1]}")))


def making(source: Source, definition: ast.FunctionDef, short: str) -> tuple[str, str] | None:
    """Name of the tf.function, and the expression that makes it again; None where the file does not tell.

    Args:
      source: The file.
      definition: The Python function.
      short: Its name.
    """
    own = [one for one in definition.decorator_list if source.text(one).partition("(")[0].endswith("function")]
    if len(own) == 1 and len(definition.decorator_list) == 1:
        return short, f"{source.text(own[0])}({short}.python_function)"
    found = [
        one for one in ast.walk(source.tree)
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and len(one.targets) == 1
        and dotted(one.value.func).endswith("function") and [dotted(arg) for arg in one.value.args[:1]] == [short]
    ]  # fmt: skip
    if len(found) != 1 or definition.decorator_list or not isinstance(found[0].targets[0], ast.Name):
        return None
    name = found[0].targets[0].id
    return None if name == short else (name, source.text(found[0].value))


def _scope(source: Source, node: ast.AST) -> ast.AST | None:
    return next((one for one in source.around(node) if isinstance(one, _FUNCTIONS)), None)


def _uses_before(scope: ast.AST, name: str, statement: ast.stmt) -> bool:
    """Whether a function says a name above a statement: there it cannot be declared global any more."""
    return any(
        isinstance(one, ast.Name) and one.id == name and one.lineno <= statement.lineno for one in ast.walk(scope)
    )


__all__ = ["fix"]
