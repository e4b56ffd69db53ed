"""Functions that Keras got: in `fit` one that makes a generator, in a Lambda one without a return."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup

RULE = "generator"
_FUNCTION = re.compile(r"^Unrecognized data type: x=<function (?:\w+\.<locals>\.)*(\w+) at ")
_TAKES = ("fit", "evaluate", "predict")
_OF_NONE = re.compile(r"'NoneType' object has no attribute '(?:shape|dtype|_keras_\w+)'")
_NO_OUTPUT = re.compile(r"could not automatically infer the shape of the Lambda's output|No output|NoneType")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if Keras was given the function that makes a generator, and not what it makes."""
    found, spot = _FUNCTION.search(situation.message), situation.last
    statement = situation.statement
    if found is None or spot is None or statement is None or situation.kind != "ValueError":
        return None
    own = [
        one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == found[1]
    ]  # fmt: skip
    makes = [
        one for one in own if any(isinstance(part, (ast.Yield, ast.YieldFrom, ast.Return)) for part in ast.walk(one))
    ]
    if len(own) != 1 or not makes or len(own[0].args.args) > len(own[0].args.defaults):
        return None
    for call in calls(statement):
        given = argument(call, 0, "x") if dotted(call.func).rpartition(".")[2] in _TAKES else None
        if given is None:
            continue
        text = spot.source.text(given)
        placed = spot.source.replaced({given: f"{text}()"})
        method = dotted(call.func).rpartition(".")[2]
        cause = (
            f"`{short(text, 40)}` is the function {found[1]}: {method} takes the generator that it makes when it is "
            "called."
        )
        edit = edit_of(spot.file, placed)
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Pass {text}().")
    return None


def without_return(situation: Situation) -> Explanation | None:
    """The explanation, if a Lambda's function returns nothing: its last line gives a name of its own another value."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not _NO_OUTPUT.search(situation.message):
        return None
    late = _OF_NONE.search(situation.message) is not None  # with an output_shape it fails where the model is called
    for call in calls(spot.source.tree if late else statement):
        if dotted(call.func).rpartition(".")[2] != "Lambda" or not call.args:
            continue
        function = _defined(call.args[0], spot)
        if function is None or any(isinstance(one, (ast.Return, ast.Yield)) for one in ast.walk(function)):
            continue
        last = function.body[-1]
        target = last.target if isinstance(last, ast.AugAssign) else getattr(last, "targets", [None])[0]
        if not isinstance(last, (ast.Assign, ast.AugAssign)) or not isinstance(target, ast.Name):
            return None
        cause = (
            f"{function.name} has no return: the Lambda gets None from it. Its last line gives {target.id} another "
            "value, which is a name of its own."
        )
        line = (last.end_lineno or last.lineno) + 1
        text = f"{indent_of(spot.source.lines[last.lineno - 1])}return {target.id}"
        return Explanation("structure", spot.file, function.lineno, cause, Edit(spot.file, line, line - 1, (text,)))
    return None


def _defined(node: ast.expr, spot: Spot) -> ast.FunctionDef | None:
    """The function of the file that a name stands for."""
    code: Any = getattr(lookup(node, spot), "__code__", None)
    first = spot.first_line(code) if code is not None else None
    own = [
        one for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.FunctionDef) and first is not None and one.name == code.co_name
        and one.lineno <= first + len(one.decorator_list) <= (one.end_lineno or one.lineno)
    ]  # fmt: skip
    named = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == dotted(node)]
    own = own or (named if code is None else [])  # of a function that has returned
    return own[0] if len(own) == 1 else None


__all__ = ["explain", "without_return"]
