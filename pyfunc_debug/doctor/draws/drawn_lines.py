"""A line that draws a random number in Python, as a line of the graph: for all functions that are traced."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.draws.drawn_in_python import cast_beside, fits, in_python
from pyfunc_debug.doctor.draws.draws import in_graph, op_of
from pyfunc_debug.doctor.draws.whole_names import is_whole
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.program import syntax


def drawn_line(facts: Facts, file: str | None, draw: code.Write, autograph: bool = True) -> Edit | None:
    """The line with a draw of the graph in the place of Python's; None where it cannot be one line.

    Args:
      facts: The recording.
      file: The user's file.
      draw: The draw in it.
      autograph: Whether AutoGraph converts the function, so that a tensor may stand in its conditions.
    """
    return _with_op(facts, file, draw, autograph) or in_python(facts, file, draw, autograph)


def _with_op(facts: Facts, file: str | None, draw: code.Write, autograph: bool) -> Edit | None:
    """The line with TensorFlow's draw; None where there is no such op."""
    own = pastes.source(facts, file)
    calls = [one for one in pastes.around(own.tree, draw.line, ast.Call) if ast.unparse(one) == draw.text]
    if any(not fits(own, one, autograph) for one in calls):
        return None

    def is_number(text: str) -> bool:
        every = [part for one in calls for part in ast.walk(one) if isinstance(part, ast.expr)]
        known = [one for one in every if ast.unparse(one) == text]
        return bool(known) and all(is_whole(own, one) for one in known)

    op = op_of(draw.text, draw.called, is_number)
    constant = _constant_of(own, calls[0]) if len(calls) == 1 else None
    if op is not None and constant is not None:
        kind = pastes.argument(constant, 1, "dtype")
        return pastes.replaced(facts, file, {constant: f"tf.cast({op}, {own.text(kind)})" if kind is not None else op})
    line, indent = facts.line(file, draw.line), pastes.indent(facts, file, draw.line)
    statement = own.statement(draw.line) if file is not None else None
    simple = statement is not None and not hasattr(statement, "body")
    if statement is not None and simple and statement.lineno != statement.end_lineno:
        return None if op is None else pastes.call_replaced(facts, file, draw.line, draw.text, op)
    drawn = in_graph(line, draw.text, draw.called, is_number)
    if drawn is None or indent is None or file is None:
        return None
    if op is not None and op.endswith("tf.int32)") and len(calls) == 1:
        drawn = drawn.replace(op, cast_beside(own, calls[0], op))
    if drawn.count("tf.gather(") > line.count("tf.gather(") and not _of_numbers(facts, file, draw):
        return None
    return Edit(file, draw.line, draw.line, (f"{indent}{drawn}",))


def _constant_of(own: Source, draw: ast.Call) -> ast.Call | None:
    """`tf.constant(np.random.randint(2), tf.int64)` around a draw: no tensor of a graph is a constant."""
    around = own.parent(draw)
    made = isinstance(around, ast.Call) and around.args[:1] == [draw]
    return around if made and pastes.last_name(around.func) in ("constant", "convert_to_tensor") else None  # type: ignore[union-attr,return-value]


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
