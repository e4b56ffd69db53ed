"""What a method reads of `self` before the method has run that sets it: `call` sets it, compute_output_shape reads it.

Keras runs __init__, then build, then compute_output_shape where a layer has one, then call; get_config at any time.
"""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, dotted, indent_of, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import extends_keras

RULE = "missing-attribute"
_SAID = re.compile(r"^'(\w+)' object has no attribute '(\w+)'")
_ORDER = ("__init__", "build", "compute_output_shape", "compute_output_spec", "call")
_OF_BATCH = re.compile(
    r"(?:tf|tensorflow)\.shape\(\w+\)\[0\]|\w+\.shape\[0\]|(?:K|keras\.ops|ops|backend)\.shape\(\w+\)\[0\]"
)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if another method of the object's class sets what is read, and has not run yet."""
    said, spot, statement = _SAID.search(situation.message), situation.last, situation.statement
    if said is None or spot is None or statement is None or not isinstance(spot.function, ast.FunctionDef):
        return None
    function, name = spot.function, said[2]
    this = _this(function)
    own = spot.value(this)
    around = next((one for one in spot.source.around(function) if isinstance(one, ast.ClassDef)), None)
    if around is None or type(own).__name__ != said[1] or not extends_keras(type(own)) or name in vars(own):
        return None
    read = [
        one for one in ast.walk(statement)
        if isinstance(one, ast.Attribute) and dotted(one) == f"{this}.{name}" and isinstance(one.ctx, ast.Load)
    ]  # fmt: skip
    setters = [(one, by) for by in around.body if isinstance(by, ast.FunctionDef) for one in _sets(by, name)]
    if not read or not setters:
        return None
    at, by = setters[0]
    if by is function or not _is_later(by.name, function.name):
        return None
    cause = (
        f"{by.name} sets self.{name} (line {at.lineno}), and {function.name} reads it before {by.name} has run: "
        f"{_order(function.name)}"
    )
    edit = _of_shape(spot, function, at, read) or _moved(spot, around, at, function)
    if edit is not None:
        return Explanation(RULE, spot.file, read[0].lineno, cause, edit)
    where = "__init__" if function.name != "__init__" else f"{by.name}, below line {at.lineno}"
    advice = (
        f"Set self.{name} in __init__." if where == "__init__" else
        f"Put what line {read[0].lineno} does into {where}."
    )  # fmt: skip
    return Explanation(RULE, spot.file, read[0].lineno, cause, None, advice)


def _this(function: Function) -> str:
    """`self`, by whatever name."""
    return function.args.args[0].arg if function.args.args else ""


def _order(reader: str) -> str:
    if reader == "get_config":
        return "Keras asks for the config of a layer at any time."
    if reader.startswith("compute_output"):
        return "Keras asks for the shape of the result first."
    return "Keras runs __init__, then build, then call."


def _is_later(setter: str, reader: str) -> bool:
    if reader == "get_config":
        return setter != "__init__"
    return setter in _ORDER and reader in _ORDER and _ORDER.index(setter) > _ORDER.index(reader)


def _sets(function: Function, name: str) -> list[ast.Assign]:
    """The assignments of a method to an attribute of its object."""
    target = f"{_this(function)}.{name}"
    return [one for one in ast.walk(function) if isinstance(one, ast.Assign) and target in map(dotted, one.targets)]


def _of_shape(spot: Spot, function: ast.FunctionDef, at: ast.Assign, read: list[ast.Attribute]) -> Edit | None:
    """`input_shape[0]` for the number of rows that call counts."""
    given = parameters(function)[:1]
    text = spot.source.text(at.value)
    if function.name != "compute_output_shape" or not given or _OF_BATCH.fullmatch(text) is None:
        return None
    return edit_of(spot.file, spot.source.replaced(dict.fromkeys(read, f"{given[0]}[0]")))


def _moved(spot: Spot, around: ast.ClassDef, at: ast.Assign, function: ast.FunctionDef) -> Edit | None:
    """A constant that another method sets, in __init__ as well, where a config or a shape needs it."""
    init = next((one for one in around.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    if init is None or function is init or not isinstance(at.value, ast.Constant):
        return None
    last = init.body[-1]
    line = indent_of(spot.source.lines[last.lineno - 1]) + short(spot.source.text(at), 200)
    if last.lineno == init.lineno:
        return None
    after = (last.end_lineno or last.lineno) + 1
    return Edit(spot.file, after, after - 1, (line,))
