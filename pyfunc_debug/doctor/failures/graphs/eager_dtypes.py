"""Two dtypes in one operation of eager tensors: NumPy's float64, or whole numbers, beside TensorFlow's float32.

Also in the body of a py_function, which gets eager tensors.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.graphs.mixed_dtypes import TWO, WHOLE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import KERNELS
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, root_is

RULE = "mixed-dtypes"
_SAID = re.compile(
    r"cannot compute \w+ as input #\d+\(zero-based\) was expected to be a (\w+) tensor but is a (\w+) tensor"
)
_NUMBER = re.compile(r"(?:u?int|float)\d+|bool")
_FLOATS = ("float16", "float32", "float64")
_OF_TWO = (
    "add", "subtract", "multiply", "divide", "pow", "maximum", "minimum", "matmul", "matvec", "tensordot",
    "squared_difference",
)  # fmt: skip

_OF_PYTHON: dict[type, str] = {int: "int32", float: "float32"}
_TENSORS = ("constant", "convert_to_tensor")
"""They keep the dtype of an array."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an operation of the failing line has a side of each dtype."""
    said, spot = _SAID.search(situation.message), situation.last
    if said is None and situation.body:
        said = TWO.search(situation.message)
    statement = situation.statement
    if said is None or spot is None or statement is None or hasattr(statement, "body"):
        return None
    told = [KERNELS.get(one, one) for one in said.groups()]
    wanted = set(told)
    floats = sorted(wanted & set(_FLOATS), key=_FLOATS.index)
    whole = sorted(wanted & set(WHOLE), key=WHOLE.index) if situation.body else []
    if len(wanted) != 2 or not (floats or len(whole) == 2) or not all(_NUMBER.fullmatch(one) for one in wanted):
        return None
    keeps = floats[0] if floats else whole[1]
    odd = (wanted - {keeps}).pop()  # whole numbers, or the wider of two
    pairs = list(_pairs(statement, spot))
    for pair in pairs:
        dtypes = [_dtype(one, spot) for one in pair]
        if len(pairs) == 1 and all(one in ("", known) for one, known in zip(dtypes, told)):
            dtypes = told  # TensorFlow tells that of the left side first
        if set(dtypes) != wanted:
            continue
        side = pair[dtypes.index(odd)]
        text, tf = spot.source.text(side), alias(spot, "tensorflow")
        why = ", as NumPy makes numbers" if odd == "float64" else ""
        cause = (
            f"{short(text, 40)} is {odd}{why}, and what it meets here is {keeps}: TensorFlow's ops take two "
            "tensors of one dtype."
        )
        edit = edit_of(spot.file, spot.source.replaced({side: f"{tf}.cast({text}, {tf}.{keeps})"}))
        advice = "" if edit else f"Cast it: {tf}.cast(..., {tf}.{keeps})."
        return Explanation(RULE, spot.file, spot.line, cause, edit, advice)
    return None


def _pairs(statement: ast.stmt, spot: Spot) -> Iterator[tuple[ast.expr, ast.expr]]:
    for one in ast.walk(statement):
        if isinstance(one, ast.BinOp):
            yield one.left, one.right
    for call in calls(statement):
        if (
            len(call.args) >= 2
            and dotted(call.func).rpartition(".")[2] in _OF_TWO
            and root_is(call.func, spot, "tensorflow")
        ):
            yield call.args[0], call.args[1]


def _dtype(node: ast.expr, spot: Spot) -> str:
    """The dtype of an eager tensor or a variable; of an array of NumPy's too, which keeps its own beside a tensor."""
    known = str(getattr(getattr(computed(node, spot), "dtype", None), "name", ""))
    if isinstance(node, ast.Subscript) and not known:
        return _dtype(node.value, spot)
    if known or not isinstance(node, (ast.Call, ast.BinOp)):
        return known
    if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _TENSORS:
        if len(node.args) != 1 or node.keywords:
            return ""
        kind = type(computed(node.args[0], spot))
        return _OF_PYTHON.get(kind) or _dtype(node.args[0], spot)
    if isinstance(node, ast.BinOp):
        return _dtype(node.left, spot) or _dtype(node.right, spot)
    if not root_is(node.func, spot, "tensorflow") or dotted(node.func).rpartition(".")[2] not in _OF_TWO:
        return ""
    return next((found for one in node.args if (found := _dtype(one, spot))), "")
