"""A line that draws a random number in Python, as a line of the graph: for all functions that are traced."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.draws import in_graph, op_of
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.program import syntax


def drawn_line(facts: Facts, file: str | None, draw: code.Write) -> Edit | None:
    """The line with TensorFlow's draw in the place of Python's; None where there is no such op.

    Args:
      facts: The recording.
      file: The user's file.
      draw: The draw in it.
    """
    line, indent = facts.line(file, draw.line), pastes.indent(facts, file, draw.line)
    statement = pastes.source(facts, file).statement(draw.line) if file is not None else None
    simple = statement is not None and not hasattr(statement, "body")
    if statement is not None and simple and statement.lineno != statement.end_lineno:
        new = op_of(draw.text, draw.called)
        return None if new is None else pastes.call_replaced(facts, file, draw.line, draw.text, new)
    drawn = in_graph(line, draw.text, draw.called)
    if drawn is None or indent is None or file is None:
        return None
    if drawn.count("tf.gather(") > line.count("tf.gather(") and not _of_numbers(facts, file, draw):
        return None
    return Edit(file, draw.line, draw.line, (f"{indent}{drawn}",))


def _of_numbers(facts: Facts, file: str | None, draw: code.Write) -> bool:
    """Whether what `choice` draws from is a list of numbers, or of texts, as the file makes it: then it is a tensor."""
    tree, call = facts.tree(file), syntax.expression(draw.text)
    if not isinstance(call, ast.Call) or len(call.args) != 1:
        return False
    drawn = ast.unparse(call.args[0])
    made: list[ast.expr] = [call.args[0]] if isinstance(call.args[0], (ast.List, ast.Tuple)) else []
    for one in pastes.walk(tree, ast.Assign) if not made else ():
        if drawn in [ast.unparse(target) for target in one.targets]:
            holders = pastes.around(tree, one.lineno, ast.ClassDef)
            given = isinstance(one.value, ast.Name) and holders
            made += code.given(holders[-1], tree, ast.unparse(one.value)) if given else [one.value]
    kinds = {
        type(part.value) if isinstance(part, ast.Constant) else None
        for one in made for part in (one.elts if isinstance(one, (ast.List, ast.Tuple)) and one.elts else [one])
    }  # fmt: skip
    return (
        len(kinds) == 1
        and kinds <= {int, float, str, bool}
        and all(isinstance(one, (ast.List, ast.Tuple)) for one in made)
    )
