"""`if x > 0.5: return a` of a tensor of several values: each decides for itself, by tf.where."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.graphs.chosen_values import assigned
from pyfunc_debug.doctor.failures.ops.rewrites import as_ops
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.pastes.traced_text import RULE
from pyfunc_debug.doctor.failures.reading.made_values import made_shape, made_value
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_keras, symbolic_parts

_SAID = re.compile(r"as a Python `?bool`? is not allowed")
_Way = tuple[ast.expr | None, ast.expr]
"""A condition, None for what is left, and what is given then."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an `if` asked a symbolic tensor of several values: none can decide by it, eagerly either."""
    spot, statement = situation.last, situation.statement
    if spot is None or situation.body or not _SAID.search(situation.message) or not isinstance(statement, ast.If):
        return None
    parts = symbolic_parts(statement.test, spot)
    if not parts or any(map(is_keras, parts.values())) or not _has_several(statement.test, spot):
        return None
    edit, tf = _by_where(spot, statement), alias(spot, "tensorflow")
    cause = (
        f"`if {short(spot.source.text(statement.test), 40)}` asks a tensor of several values: an `if` decides once. "
        f"{tf}.where decides for each value."
    )
    advice = "" if edit is not None else f"{tf}.where(condition, a, b), with both ways computed for all values."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _has_several(value: ast.expr, spot: Spot) -> bool:
    """Whether a condition is known to be a tensor of several values, as `x > 0.5` of a batch."""
    shape = _shape(value, spot)
    return bool(shape) and shape is not None and any(size != 1 for size in shape)


def _shape(value: ast.expr, spot: Spot) -> tuple[int | None, ...] | None:
    return made_shape(lambda given: made_value(value, spot, inputs=given))


def _by_where(spot: Spot, statement: ast.stmt) -> Edit | None:
    """The `if` and what belongs to it as one line with tf.where; None where its ways do more than give a value.

    Args:
      spot: The frame that failed.
      statement: Its statement.
    """
    source, function = spot.source, spot.function
    if not isinstance(statement, ast.If) or not isinstance(function, ast.FunctionDef) or statement not in function.body:
        return None
    tf, name = alias(spot, "tensorflow"), ""
    ways, last = _returned(statement, function.body[function.body.index(statement) + 1 :])
    if ways is None:
        name, ways = _assigned(statement)
        last = statement
    if not ways or ways[-1][0] is not None:
        return None
    text = _text(source, ways[-1][1])
    for test, value in reversed(ways[:-1]):
        condition = as_ops(test, spot, conditions=True, same=True) if test is not None else None
        if condition is None or test is None:
            return None
        condition = _spread(condition, test, [one for _, one in ways], spot, tf)
        if condition is None:
            return None
        text = f"{tf}.where({condition}, {_text(source, value)}, {text})"
    blanks = indent_of(source.lines[statement.lineno - 1])
    head = f"{name} = " if name else "return "
    return Edit(spot.file, statement.lineno, last.end_lineno or last.lineno, (f"{blanks}{head}{text}",))


def _spread(condition: str, test: ast.expr, values: list[ast.expr], spot: Spot, tf: str) -> str | None:
    """A condition with a value for each example, so that it decides for all values of the example; None if unclear.

    Args:
      condition: Its text.
      test: The condition as it was written.
      values: What is given in the one case and the other.
      spot: The frame, which knows the tensors.
      tf: How the file calls TensorFlow.
    """
    asked, *given = (_shape(one, spot) for one in (test, *values))
    widest = max((one for one in given if one is not None), key=len, default=())
    if asked is None or len(asked) >= len(widest):
        return condition
    if asked == widest[: len(asked)]:
        text = condition if condition.isidentifier() else f"({condition})"
        return f"{text}[{', '.join(['...', *[f'{tf}.newaxis'] * (len(widest) - len(asked))])}]"
    fits = all(one in (1, other) for one, other in zip(asked, widest[len(widest) - len(asked) :]))
    return condition if fits else None


def _text(source: Source, node: ast.expr) -> str:
    """An expression as it is written; the name of `_assigned` stands nowhere in the file."""
    return source.text(node) if source.parent(node) is not None else ast.unparse(node)


def _returned(statement: ast.If, rest: list[ast.stmt]) -> tuple[list[_Way] | None, ast.stmt]:
    """The ways of an `if` that returns in each, with the `return` behind it, and the last statement."""
    body, other = statement.body, statement.orelse or rest[:1]
    if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None or len(other) != 1:
        return None, statement
    follows = other[0]
    end = statement if statement.orelse else follows
    if isinstance(follows, ast.Return) and follows.value is not None:
        return [(statement.test, body[0].value), (None, follows.value)], end
    if isinstance(follows, ast.If):
        ways, last = _returned(follows, [] if statement.orelse and not rest else rest if statement.orelse else rest[1:])
        end = end if statement.orelse and last in ast.walk(statement) else last
        return (None if ways is None else [(statement.test, body[0].value), *ways]), end
    return None, statement


def _assigned(statement: ast.If) -> tuple[str, list[_Way]]:
    """The name that each way of an `if` gives a value, and the ways; without an `else` it keeps its own."""
    taken = assigned(statement.body)
    if taken is None:
        return "", []
    name, value = taken
    if not statement.orelse:
        return name, [(statement.test, value), (None, ast.copy_location(ast.Name(name, ast.Load()), value))]
    follows = statement.orelse[0]
    if len(statement.orelse) == 1 and isinstance(follows, ast.If):
        other, ways = _assigned(follows)
        return (name, [(statement.test, value), *ways]) if other == name else ("", [])
    last = assigned(statement.orelse)
    return (name, [(statement.test, value), (None, last[1])]) if last is not None and last[0] == name else ("", [])
