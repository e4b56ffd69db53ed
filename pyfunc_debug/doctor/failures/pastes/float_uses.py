"""Whole numbers of a paste that meet floats of NumPy later: TensorFlow makes whole numbers of these, without a word."""

from __future__ import annotations

import ast
import dataclasses
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import Guess
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.symbols import alias, dtype_of, is_symbolic, lookup, root_is

_COMPUTES = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.FloorDiv, ast.Mod)


def as_floats(explanation: Explanation, situation: Situation) -> Explanation:
    """The explanation whose paste gives floats, where a later line computes with its whole numbers and NumPy's floats.

    `n * np.float32(0.5)` of a tensor of whole numbers is 0: the tensor's dtype is taken for both.
    """
    edit, spot = explanation.edit, situation.last
    if edit is None or spot is None or len(edit.lines) != 1 or edit.first != spot.line:
        return explanation
    statement = spot.statement
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return explanation
    target = statement.targets[0]
    line = re.fullmatch(r"(\s*(\w+) = )(.+)", edit.lines[0])
    if not isinstance(target, ast.Name) or line is None or line[2] != target.id:
        return explanation
    declared = re.search(r"\.u?int\d+\)$", line[3])  # of a py_function
    whole = declared is not None or "int" in (Guess(spot).of(statement.value) or "")
    if not whole or not _meets(spot, target.id, statement.lineno):
        return explanation
    floats = {dtype_of(one) for one in spot.variables.values() if is_symbolic(one) and "float" in dtype_of(one)}
    tf = alias(spot, "tensorflow")
    kind = floats.pop() if len(floats) == 1 else "float32"
    lines = (f"{line[1]}{tf}.cast({line[3]}, {tf}.{kind})",)
    return dataclasses.replace(explanation, edit=dataclasses.replace(edit, lines=lines))


def _meets(spot: Spot, name: str, line: int) -> bool:
    """Whether a later line of the function computes with a name and with floats of NumPy's."""
    for one in ast.walk(spot.function or spot.source.tree):
        if not isinstance(one, ast.BinOp) or not isinstance(one.op, _COMPUTES) or one.lineno <= line:
            continue
        for side, other in ((one.left, one.right), (one.right, one.left)):
            if isinstance(side, ast.Name) and side.id == name and _is_numpys(other, spot):
                return True
    return False


def _is_numpys(node: ast.expr, spot: Spot) -> bool:
    """Whether an expression is a float of NumPy's, or an array of them."""
    if isinstance(node, ast.Call):
        return (
            root_is(node.func, spot, "numpy")
            and "float" in (Guess(spot).of(node) or "")
        )  # fmt: skip
    value = lookup(node, spot)
    return type(value).__module__ == "numpy" and "float" in str(getattr(value, "dtype", ""))
