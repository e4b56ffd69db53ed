"""`tape.watch` of what a tape cannot watch: Keras' variables, which it watches by itself, and arrays of NumPy's."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, short, tapes_before
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, lookup

RULE = "untaped"
_SAID = re.compile(r"Passed in object .*of type '(\w+)', not tf\.Tensor", re.DOTALL)
_NO_TENSOR = "'numpy.ndarray' object has no attribute '_id'"
_NUMBERS = ("float", "int", "list")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line does nothing but give such values to `watch`."""
    spot, said = situation.last, _SAID.search(situation.message)
    statement = situation.statement
    call = statement.value if isinstance(statement, ast.Expr) else None
    if spot is None or said is None or situation.body or not isinstance(statement, ast.Expr):
        return None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "watch":
        return None
    source, given = spot.source, call.args[0] if len(call.args) == 1 else None
    tape = source.text(call.func.value)
    first, last = source.span(statement)
    blanks = indent_of(source.lines[first - 1])
    if given is None:
        return None
    text = source.text(given)
    if said[1] == "Variable" and any("watch_accessed_variables" in source.text(one) for one in _tapes(spot, tape)):
        cause = f"{short(text, 40)} are variables of Keras 3: a tape takes TensorFlow's variables, which they hold."
        edit = edit_of(spot.file, source.replaced({given: f"[one.value for one in {text}]"}))
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else "Watch the value of each.")
    if said[1] == "Variable":
        cause = (
            f"{short(text, 40)} are variables of Keras 3, which {tape}.watch does not take. A tape watches each "
            "trainable variable that is used under it by itself: the line is not needed."
        )
        alone = getattr(source.parent(statement), "body", []) == [statement]
        line = f"{blanks}{'pass  ' if alone else ''}# {tape} watches variables by itself"
        return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, first, last, (line,)))
    value = lookup(given, spot) if isinstance(given, ast.Name) else None
    if said[1] not in ("ndarray", *_NUMBERS) or type(value).__name__ != said[1]:
        return None
    tf = alias(spot, "tensorflow")
    cause = (
        f"{text} is {'an array of NumPy' if said[1] == 'ndarray' else f'a {said[1]} of Python'}'s: a tape watches "
        f"tensors. As a tensor, from here on, {text} has a gradient."
    )
    made = f"{blanks}{text} = {tf}.convert_to_tensor({text}, {tf}.float32)"
    return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, first, first - 1, (made,)))


def of_array(situation: Situation) -> Explanation | None:
    """The explanation, if a tape was asked for the gradient for an array of NumPy's."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or _NO_TENSOR not in situation.message:
        return None
    source = spot.source
    for call in calls(statement):
        tape = dotted(call.func).rpartition(".")[0]
        wanted = call.args[1] if dotted(call.func).endswith(".gradient") and len(call.args) == 2 else None
        blocks = [
            one for one in tapes_before(source, spot.line)
            if tape in {dotted(item.optional_vars) for item in one.items if item.optional_vars is not None}
        ]  # fmt: skip
        if not isinstance(wanted, ast.Name) or type(spot.value(wanted.id)).__name__ != "ndarray" or len(blocks) != 1:
            continue
        tf, block, blanks = alias(spot, "tensorflow"), blocks[0], indent_of(source.lines[blocks[0].lineno - 1])
        inside = indent_of(source.lines[block.body[0].lineno - 1])
        cause = (
            f"{wanted.id} is an array of NumPy's: a tape has gradients for tensors. As a tensor that the tape watches, "
            "it has one."
        )
        lines = (
            f"{blanks}{wanted.id} = {tf}.convert_to_tensor({wanted.id}, {tf}.float32)",
            *source.lines[block.lineno - 1 : block.body[0].lineno - 1],
            f"{inside}{tape}.watch({wanted.id})",
        )
        if block.body[0].lineno == block.lineno:
            return None
        return Explanation(
            RULE, spot.file, spot.line, cause, Edit(spot.file, block.lineno, block.body[0].lineno - 1, lines)
        )
    return None


def _tapes(spot: Spot, name: str) -> list[ast.expr]:
    """The calls that make a tape of a name."""
    return [
        one.context_expr for block in ast.walk(spot.source.tree) if isinstance(block, ast.With) for one in block.items
        if one.optional_vars is not None and ast.unparse(one.optional_vars) == name
    ]  # fmt: skip
