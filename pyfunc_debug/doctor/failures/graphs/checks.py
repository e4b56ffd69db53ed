"""`assert` and `if ...: raise` on tensors: a graph has neither, and what raises while it is traced always raises."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.ops.rewrites import as_ops
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.pastes.traced_text import few, when
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, symbolic_parts
from pyfunc_debug.interception.names.private import IF_STATEMENT

RULE = "autograph"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the program's own `raise` ran at trace, in an `if` that a tensor decides."""
    spot, statement = situation.last, situation.statement
    if spot is None or situation.body or not spot.generated or not isinstance(statement, ast.Raise):
        return None
    if not _in_a_branch_of_the_graph(situation):
        return None
    for one in spot.source.around(statement):
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Try)):
            break
        parts = symbolic_parts(one.test, spot) if isinstance(one, ast.If) else {}
        if isinstance(one, ast.If) and parts and as_ops(one.test, spot, conditions=True, same=True) is not None:
            test = short(spot.source.text(one.test), 36)
            cause = (
                f"this `raise` ran {when(situation)}: `if {test}` asks {few(parts)}, which has no value then, and "
                "AutoGraph runs both branches to make graph code of them. An op checks at run, and raises "
                "InvalidArgumentError."
            )
            edit, tf = as_op(spot, one), alias(spot, "tensorflow")
            advice = "" if edit is not None else f"Check it with {tf}.debugging.Assert(condition, [x])."
            return Explanation(RULE, spot.file, spot.line, cause, edit, advice)
    return None


def _in_a_branch_of_the_graph(situation: Situation) -> bool:
    """Whether AutoGraph was making a branch of a graph's `if` of it, by its frames; a shape decides at trace."""
    return any(one.f_code.co_name == IF_STATEMENT for one in frames(situation.inner.__traceback__))


def as_op(spot: Spot, statement: ast.stmt) -> Edit | None:
    """`assert x > 0` and `if x < 0: raise ...` as an op that checks when the graph runs; None for anything else."""
    if isinstance(statement, ast.Assert):
        test, wrong = statement.test, False
        said = statement.msg
    elif isinstance(statement, ast.If) and not statement.orelse and len(statement.body) == 1:
        raised = statement.body[0]
        if not isinstance(raised, ast.Raise):
            return None
        test, wrong = statement.test, True
        given = raised.exc.args if isinstance(raised.exc, ast.Call) else []
        said = given[0] if given else None
    else:
        return None
    tf = alias(spot, "tensorflow")
    condition = as_ops(test, spot, conditions=True, same=True)
    if condition is None or not symbolic_parts(test, spot):
        return None
    if wrong:
        condition = condition.removeprefix("not ") if condition.startswith("not ") else f"{tf}.logical_not({condition})"
    plain = isinstance(said, ast.Constant) and isinstance(said.value, str)
    text = ast.unparse(said) if said is not None and plain else repr(short(spot.source.text(test), 60))
    blanks = indent_of(spot.source.lines[statement.lineno - 1])
    shown = [one for one in symbolic_parts(test, spot) if one.isidentifier()][:2]
    line = f"{blanks}{tf}.debugging.Assert({condition}, [{', '.join([text, *shown])}])"
    return Edit(spot.file, statement.lineno, statement.end_lineno or statement.lineno, (line,))
