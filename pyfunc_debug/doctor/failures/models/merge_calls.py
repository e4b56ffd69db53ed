"""Gradients are applied inside of a `tf.cond`, or an `if` of AutoGraph's, under a distribution strategy.

All replicas meet where an optimizer adds up their gradients (`merge_call`), and none can from a graph of its own.
"""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "structure"
_SAID = "`merge_call` called while defining a new graph or a tf.function"
_BRANCHES = ("cond", "while_loop", "switch_case", "case")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the replicas of a strategy had to meet inside of a graph of its own."""
    last = situation.last
    if _SAID not in situation.message or last is None or situation.body:
        return None
    for spot in reversed(situation.spots):
        statement = spot.statement
        if statement is None:
            continue
        branch = next((one for one in calls(statement) if dotted(one.func).rpartition(".")[2] in _BRANCHES), None)
        blocks = [one for one in spot.source.around(statement) if isinstance(one, (ast.If, ast.While, ast.For))]
        if branch is not None:
            own = f"line {spot.line} runs it in a graph of its own, that of {dotted(branch.func)}"
        elif spot.generated and blocks:
            word = "the `if`" if isinstance(blocks[0], ast.If) else "the loop"
            own = f"{word} of line {blocks[0].lineno} is a graph of its own"
        else:
            continue
        cause = f"`{_code(last)}` brings the replicas of the strategy together, and {own}: there they cannot meet."
        advice = (
            "Apply gradients in each step, outside of it. Several batches for a step: add up the gradients of parts of "
            "one larger batch in Python's loop first."
        )
        return Explanation(RULE, last.file, last.line, cause, None, advice)
    return None


def _code(spot: Spot) -> str:
    statement = spot.statement
    return short(spot.source.text(statement).split("\n")[0], 40) if statement is not None else "this line"
