"""A metric's own `update_state` that compares a class for each row with a model's outputs, which are a number a class.

The op that refuses them says two shapes, and not that the argmax of the one is what the other holds.
"""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.refused_ops import Refused, Shape, each, numbers_of, sizes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, parameters
from pyfunc_debug.doctor.failures.reading.symbols import alias, lookup, root_is, shape_of_data, sizes_of

_OP = r"(?:Not)?Equal|Logical(?:And|Or)"
_SAID = (
    re.compile(rf"__wrapped__(?:{_OP})_.*Incompatible shapes: (\[[\d,]+\]) vs\. (\[[\d,]+\])", re.DOTALL),
    re.compile(
        rf"Incompatible shapes: (\[[\d,]+\]) vs\. (\[[\d,]+\]).*\{{\{{node (?:[\w.-]+/)*(?:{_OP})\w*\}}\}}", re.DOTALL
    ),
    re.compile(
        rf"Dimensions must be equal, but are .*?= (?:{_OP})\[.*?with input shapes: (\[[\d,?]+\]), (\[[\d,?]+\])\.",
        re.DOTALL,
    ),
)
_COMPARE = {"equal", "not_equal"}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if such a method compares [rows] with [rows, classes]."""
    for pattern in _SAID:
        if not situation.body and (said := pattern.search(situation.message)) is not None:
            part, whole = sorted((sizes(said[1]), sizes(said[2])), key=len)
            if (len(part), len(whole)) != (1, 2) or part[0] != whole[0] or (whole[1] or 0) < 2:
                return None
            return each(situation, _told, part, whole)
    return None


def _told(place: Refused, part: Shape, whole: Shape) -> Explanation | None:
    function, text = place.spot.function, place.text
    if not isinstance(function, ast.FunctionDef) or function.name != "update_state":
        return None
    given = parameters(function)[:2]
    if len(given) != 2 or not _fit(place, given, part, whole):
        return None
    labels, outputs = given
    cause = (
        f"{labels} has a class for each row, {sizes_of(part)}, and {outputs} {whole[1]} numbers, {sizes_of(whole)}. "
        "Their argmax is the class."
    )
    tf = alias(place.spot, "tensorflow")
    argmax = f"{tf}.argmax({outputs}, axis=-1)"
    node = _first(function, outputs)
    pieces: dict[ast.expr, str] = {}
    if node is not None:
        source = place.spot.source
        around = source.parent(node)
        if _calls(place, around, {"round"}) and isinstance(around, ast.Call):
            node, around = around, source.parent(around)
        if _calls(place, around, {"cast"}) and isinstance(around, ast.Call) and around.args[:1] == [node]:
            pieces = {node: argmax}
            kind = [*around.args[1:], *(one.value for one in around.keywords if one.arg == "dtype")]
            if len(kind) == 1 and dotted(kind[0]).rpartition(".")[2] in ("bool", "bool_"):
                cause += " As a bool, class 0 is False and each other class True."
        elif _calls(place, around, _COMPARE) and isinstance(around, ast.Call) and len(around.args) == 2:
            other = around.args[1 - around.args.index(node)]
            if _calls(place, other, {"cast"}) and isinstance(other, ast.Call) and len(other.args) == 2:
                pieces = {node: f"{tf}.cast({argmax}, {text(other.args[1])})"}
            elif isinstance(other, ast.Name):
                pieces = {node: f"{tf}.cast({argmax}, {other.id}.dtype)"}
    return place.told(cause, pieces, f"Compare the classes: {argmax} in the place of {outputs}.")


def _fit(place: Refused, given: list[str], part: Shape, whole: Shape) -> bool:
    """Whether the method's arguments, as far as they are known, are such labels and such outputs."""
    for name, said in zip(given, (part, whole)):
        value = lookup(ast.Name(name, ast.Load()), place.spot)
        shape = shape_of_data(value) if value is not None else None
        if shape is not None and len(shape) != len(said):
            return False
        numbers = numbers_of(value) if said is part else None
        if numbers is not None and ((numbers != numbers.round()).any() or numbers.min() < 0):
            return False
        if numbers is not None and numbers.max() >= (whole[1] or 0):
            return False
    return True


def _first(function: ast.FunctionDef, name: str) -> ast.expr | None:
    """The one place that reads a parameter: the others read what is made of it, of the same name."""
    read = [one for one in ast.walk(function) if isinstance(one, ast.Name) and one.id == name]
    read.sort(key=lambda one: (one.lineno, one.col_offset))
    loads = [one for one in read if isinstance(one.ctx, ast.Load)]
    stores = [one for one in read if isinstance(one.ctx, ast.Store)]
    if len(loads) == 1:
        return loads[0]
    alone = [one for one in function.body if isinstance(one, ast.Assign) and stores and stores[0] in one.targets]
    if not alone or not isinstance(alone[0].value, ast.expr):
        return None
    inside = [one for one in loads if alone[0].lineno <= one.lineno <= (alone[0].end_lineno or 0)]
    return inside[0] if len(inside) == 1 and inside[0] is loads[0] else None


def _calls(place: Refused, node: ast.AST | None, wanted: set[str]) -> bool:
    """Whether a node is a call of one of these functions of TensorFlow's."""
    return (
        isinstance(node, ast.Call)
        and dotted(node.func).rpartition(".")[2] in wanted
        and root_is(node.func, place.spot, "tensorflow")
    )
