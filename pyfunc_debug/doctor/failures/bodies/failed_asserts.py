"""An `assert` without a text in a generator or a body: what its sides were, and where the value came from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import calls

_MOST = 3


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if such an assert compares what is known."""
    spot, statement = situation.last, situation.statement
    if situation.kind != "AssertionError" or situation.message or spot is None or not situation.data:
        return None
    if not isinstance(statement, ast.Assert):
        return None
    test = next((one for one in _parts(statement.test) if _fails(one, spot)), None)
    sides = [test.left, *test.comparators] if isinstance(test, ast.Compare) else []
    known = [
        (spot.source.text(one), value) for one in sides
        if not isinstance(one, ast.Constant) and (value := origins.shown(origins.valued(one, spot)))
    ]  # fmt: skip
    known += [one for side in sides for one in origins.parts(side, spot)]
    said = origins.listed(list(dict(known).items())[:_MOST])
    if test is None or not said:
        return None
    cause = f"`assert {short(spot.source.text(test), 50)}` does not hold: {said}."
    found = _given(spot, sides)
    if found is None:
        return Explanation(RULE, spot.file, spot.line, cause, None, "Correct what it is given, or leave such ones out.")
    node, where = found
    cause += where
    edit = _ended(spot, test, node) if isinstance(test, ast.Compare) else None
    if edit is not None:
        return Explanation(RULE, spot.file, node.lineno, cause, edit)
    return Explanation(RULE, spot.file, spot.line, cause, None, f"Correct line {node.lineno}.")


def _parts(test: ast.expr) -> list[ast.expr]:
    return [part for one in test.values for part in _parts(one)] if isinstance(test, ast.BoolOp) else [test]


def _fails(test: ast.expr, spot: Spot) -> bool:
    """Whether a comparison of known values is false."""
    if not isinstance(test, ast.Compare):
        return False
    value = origins.valued(test, spot)
    return type(value) is bool and not value


def _given(spot: Spot, sides: list[ast.expr]) -> tuple[ast.expr, str] | None:
    """The constant that the program gives for a parameter in the comparison, and its place in words."""
    function = spot.function
    names = {one.id for side in sides for one in ast.walk(side) if isinstance(one, ast.Name)}
    if not isinstance(function, ast.FunctionDef):
        return None
    given = parameters(function)
    for name in sorted(names & set(given)):
        for value in _arguments(spot, function, given, name):
            node: Any = value
            if isinstance(value, ast.Name):
                made = [
                    one.value for one in ast.walk(spot.source.tree)
                    if isinstance(one, ast.Assign) and [dotted(each) for each in one.targets] == [value.id]
                ]  # fmt: skip
                node = made[0] if len(made) == 1 else None
            same = isinstance(node, ast.Constant) and type(node.value) is type(spot.variables.get(name))
            if same and node.value == spot.variables[name]:
                return node, f" It was given in line {node.lineno}."
    return None


def _arguments(spot: Spot, function: ast.FunctionDef, given: list[str], name: str) -> Iterator[ast.expr]:
    """What the calls of a function give for a parameter."""
    for call in calls(spot.source.tree):
        if dotted(call.func).rpartition(".")[2] != function.name:
            continue
        yield from (word.value for word in call.keywords if word.arg == name)
        place = given.index(name) - (given[:1] == ["self"])
        if 0 <= place < len(call.args):
            yield call.args[place]


def _ended(spot: Spot, test: ast.Compare, node: ast.expr) -> Edit | None:
    """A text with the end that `path[-1] == "/"` asks for."""
    right = test.comparators[0] if len(test.comparators) == 1 and isinstance(test.ops[0], ast.Eq) else None
    left = test.left
    last = isinstance(left, ast.Subscript) and ast.unparse(left.slice) == "-1"
    if not last or not isinstance(right, ast.Constant) or not isinstance(right.value, str):
        return None
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return None
    return edit_of(spot.file, spot.source.replaced({node: repr(node.value + right.value)}))
