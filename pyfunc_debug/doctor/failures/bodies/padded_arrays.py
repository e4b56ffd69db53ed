"""Arrays in a body that are longer than the length to which its line pads: `np.pad(x, (0, n - len(x)))`.

The length may be of any axis, and stand in names: `h, w = image.shape[:2]`, `missing = n - len(x)`. What is padded by
hand, `np.concatenate([x, np.zeros(n - len(x))])`, is the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor.code import stored_names
from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.callables import called
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, names
from pyfunc_debug.doctor.failures.reading.symbols import calls, shape_of_data

_NEGATIVE = {
    "index can't contain negative values": (("pad",), 1, "pad_width"),  # behind the array
    "negative dimensions are not allowed": (("zeros", "ones", "full", "empty"), 0, "shape"),
}
"""What NumPy says, and of which functions: where the sizes stand among their arguments."""
_DEEPEST = 3


@dataclass(frozen=True)
class _Missing:
    """A number of zeros that are missing, `limit - len(array)`.

    Attributes:
      array: Name of the array.
      axis: The axis whose length is taken from the limit.
      limit: That, as it is written.
      first: The first of the statements that it is computed in.
    """

    array: str
    axis: int
    limit: ast.expr
    first: ast.stmt


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an array in the line of a body or a generator is longer than what it is padded to."""
    spot, statement = situation.last, situation.statement
    said = next((one for text, one in _NEGATIVE.items() if text in situation.message), None)
    if not situation.data or spot is None or statement is None or said is None:
        return None
    functions, position, keyword = said
    found = [
        one for call in calls(statement) if called(call) in functions
        and (sizes := argument(call, position, keyword)) is not None for one in _missing(spot, sizes, statement)
        if position == 0 or one.array in names(argument(call, 0, "array") or call)
    ]  # fmt: skip
    for one in found:
        length, limit = _length(spot, one), evaluation.computed(one.limit, spot)
        if type(limit) is not int or length is None or not 0 < limit < length:
            continue
        together = [other for other in found if other.array == one.array]
        where = f"{length:,} rows" if one.axis == 0 else f"{length:,} values along axis {one.axis}"
        cause = (
            f"{one.array} has {where} here, more than {limit:,}: there is nothing to pad. Cut to that length, all have "
            "the same."
        )
        edit = _cut(spot, statement, together)
        advice = "" if edit else f"Cut {one.array} to that length before."
        return Explanation(RULE, spot.file, spot.line, cause, edit, advice, "likely")
    return None


def _length(spot: Spot, one: _Missing) -> int | None:
    value = spot.value(one.array)
    shape = (len(value),) if isinstance(value, (list, tuple)) else shape_of_data(value)
    return shape[one.axis] if shape is not None and len(shape) > one.axis else None


def _missing(spot: Spot, node: ast.AST, first: ast.stmt, depth: int = 0) -> Iterator[_Missing]:
    """What an expression takes lengths from, also in the names that it reads."""
    for one in ast.walk(node):
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub):
            axis = _axis_of(spot, one.right, first)
            if axis is not None:
                yield _Missing(axis[0], axis[1], one.left, axis[2])
        elif isinstance(one, ast.Name) and depth < _DEEPEST:
            made = _assigned(spot, one.id, first)
            if made is not None and isinstance(made.targets[0], ast.Name):
                yield from _missing(spot, made.value, made, depth + 1)


def _axis_of(spot: Spot, node: ast.expr, first: ast.stmt) -> tuple[str, int, ast.stmt] | None:
    """`x`, the axis, and the first statement, of `len(x)`, `x.shape[1]`, and of a name that is one of these."""
    if isinstance(node, ast.Call) and dotted(node.func) == "len" and len(node.args) == 1:
        return (node.args[0].id, 0, first) if isinstance(node.args[0], ast.Name) else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
        owner = _of_shape(node.value)
        return (owner, node.slice.value, first) if owner and node.slice.value >= 0 else None
    made = _assigned(spot, node.id, first) if isinstance(node, ast.Name) else None
    if made is None or not isinstance(node, ast.Name):
        return None
    target, value = made.targets[0], made.value
    if not isinstance(target, (ast.Tuple, ast.List)):
        return _axis_of(spot, value, made) if not isinstance(value, ast.Name) else None
    owner = _of_shape(value.value if isinstance(value, ast.Subscript) and _is_begin(value.slice) else value)
    at = [one.id if isinstance(one, ast.Name) else "" for one in target.elts]
    starred = any(isinstance(one, ast.Starred) for one in target.elts)
    return (owner, at.index(node.id), made) if owner and node.id in at and not starred else None


def _of_shape(node: ast.expr) -> str:
    is_shape = isinstance(node, ast.Attribute) and node.attr == "shape" and isinstance(node.value, ast.Name)
    return dotted(node).removesuffix(".shape") if is_shape else ""


def _is_begin(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) and node.lower is None and node.step is None


def _assigned(spot: Spot, name: str, before: ast.stmt) -> ast.Assign | None:
    """The assignment of a name, if its function has one only, above a statement."""
    function = spot.function
    if function is None or isinstance(function, ast.Lambda):
        return None
    stores = [one for one in ast.walk(function) if isinstance(one, ast.Name) and one.id == name]
    made = [one for one in ast.walk(function) if isinstance(one, ast.Assign) and name in stored_names(one)]
    if len(made) != 1 or sum(isinstance(one.ctx, ast.Store) for one in stores) != 1 or len(made[0].targets) != 1:
        return None
    return made[0] if made[0].lineno < before.lineno else None


def _cut(spot: Spot, statement: ast.stmt, missing: list[_Missing]) -> Edit | None:
    """The line that cuts an array along all axes that are padded, above the first statement that reads its length."""
    array, first = missing[0].array, min((one.first for one in missing), key=lambda one: one.lineno)
    line, function = spot.source.lines[first.lineno - 1], spot.function
    between = [
        name for one in ast.walk(function or spot.source.tree) if isinstance(one, ast.stmt)
        and first.lineno <= one.lineno < statement.lineno and not isinstance(one, (ast.FunctionDef, ast.ClassDef))
        for name in stored_names(one)
    ] if first is not statement else []  # fmt: skip
    read = {array, *(name for one in missing for name in names(one.limit))}
    if line[: first.col_offset].strip() or read & set(between):
        return None
    limits = {one.axis: spot.source.text(one.limit) for one in missing}
    index = ", ".join(f":{limits[axis]}" if axis in limits else ":" for axis in range(max(limits) + 1))
    text = f"{indent_of(line)}{array} = {array}[{index}]"
    return Edit(spot.file, first.lineno, first.lineno - 1, (text,))
