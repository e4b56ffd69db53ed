"""`tape.watch(model.inputs)`: these describe the model. A tape watches what the model was called with."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, is_tape
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "cut-gradient"
_SAID = "of type 'KerasTensor', not tf.Tensor"
_INPUTS = ("input", "inputs")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a tape was asked to watch the symbols of a model's inputs."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or _SAID not in situation.message:
        return None
    source = spot.source
    watches = [one for one in calls(statement) if isinstance(one.func, ast.Attribute) and one.func.attr == "watch"]
    block = next((one for one in source.around(statement) if isinstance(one, ast.With) and is_tape(one)), None)
    symbol = watches[0].args[0] if len(watches) == 1 and len(watches[0].args) == 1 else None
    listed = symbol.value if isinstance(symbol, ast.Subscript) else symbol
    if block is None or symbol is None or not isinstance(listed, ast.Attribute) or listed.attr not in _INPUTS:
        return None
    model, text = dotted(listed.value), source.text(symbol)
    called = [one for one in calls(block) if dotted(one.func) == model and one.args]
    given = source.text(called[0].args[0]) if len(called) == 1 and dotted(called[0].args[0]) else ""
    cause = (
        f"{text} describes the inputs of {model} and has no value: a tape watches a tensor that {model} is called with."
    )
    scope = source.function(statement.lineno) or source.tree
    asked: list[ast.expr] = [
        one for one in ast.walk(scope)
        if isinstance(one, type(symbol)) and source.text(one) == text and one.lineno >= block.lineno
    ]  # fmt: skip
    last = max((one.end_lineno or one.lineno for one in asked), default=0)
    call = source.statement(called[0].lineno) if given else None
    if (
        call is None
        or call not in block.body
        or statement not in block.body
        or statement.lineno != statement.end_lineno
    ):
        advice = f"Watch that tensor above the call of {model}, and ask the gradient for it."
        return Explanation(RULE, spot.file, statement.lineno, cause, None, advice)
    first = min(call.lineno, statement.lineno)
    last = max(last, call.end_lineno or call.lineno)
    lines = list(source.spliced(dict.fromkeys(asked, given), first, last))
    if statement.lineno > call.lineno:
        del lines[statement.lineno - first]
        lines.insert(0, f"{indent_of(source.lines[call.lineno - 1])}{dotted(watches[0].func)}({given})")
    return Explanation(RULE, spot.file, statement.lineno, cause, Edit(spot.file, first, last, tuple(lines)))
