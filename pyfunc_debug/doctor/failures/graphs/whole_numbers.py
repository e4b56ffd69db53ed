"""An op that takes whole numbers gets floats, as `tf.one_hot` may, or one that takes floats gets whole numbers."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import KERNELS
from pyfunc_debug.doctor.failures.reading.made_values import made_value
from pyfunc_debug.doctor.failures.reading.refused_ops import value_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, dtype_of, root_is

RULE = "mixed-dtypes"
_SAID = re.compile(
    r"(?:Value passed to parameter '\w+' has DataType (\w+) not in list of allowed values: (.*)"
    r"|Value for attr '\w+' of (\w+) is not in the list of allowed values: (.*))"
)

_WHOLE = re.compile(r"u?int\d+|bool|string")
_OP = re.compile(r"Value for attr '(\w+)' of .*?Op<name=(\w+?)(?:V\d)?; signature=(.*?) ->", re.DOTALL)
_SIZES = re.compile(r"Value passed to parameter '(?:shape|dims|multiples|size|begin|paddings|axis)' has DataType")
_OF_FLOATS = frozenset((
    "sqrt", "rsqrt", "exp", "log", "log1p", "sin", "cos", "tan", "sigmoid", "tanh", "det", "inv", "softmax", "erf",
    "log_softmax", "reciprocal", "cholesky", "svd", "solve", "qr", "asin", "acos", "atan", "floor", "ceil", "expm1",
    "softplus", "is_nan", "is_inf", "is_finite", "lgamma", "normalize", "l2_normalize", "slogdet", "atan2",
))  # fmt: skip
"""Functions of TensorFlow that take floats only."""
_OF_NUMBERS = _OF_FLOATS | {
    "reduce_mean", "reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "cumsum", "square", "abs", "multiply",
    "add", "subtract", "argmax", "argmin", "reduce_std", "reduce_variance", "count_nonzero",
}  # fmt: skip
"""Those that take numbers, and no bools."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if one argument of an op is of floats where whole numbers belong."""
    found, spot = _SAID.search(situation.message), situation.last
    statement = situation.statement
    if found is None or spot is None or statement is None:
        return None
    spelled = found[1] or found[3]
    if _WHOLE.fullmatch(spelled) and "float" in (found[2] or found[4]):
        return _fractions(spot, statement, spelled)
    got, allowed = KERNELS.get(found[1] or found[3], found[1] or found[3]), found[2] or found[4]
    if not got.startswith("float") or "float" in allowed or not re.search(r"\bint(32|64)\b", allowed):
        return None
    if _SIZES.search(situation.message):
        return None
    every = [
        (one, _places(one, situation.message)) for one in calls(statement) if root_is(one.func, spot, "tensorflow")
    ]
    named = [(call, places) for call, places in every if places is not None]
    for call, places in named or every:
        floats = [
            one for at, one in enumerate(call.args) if (places is None or at in places) and _dtype(one, spot) == got
        ]  # fmt: skip
        if len(floats) == 1:
            return _explanation(spot, call, floats[0], got, "int32" if re.search(r"\bint32\b", allowed) else "int64")
    return None


def _places(call: ast.Call, message: str) -> list[int] | None:
    """Which arguments the refused attribute is of, as the op's signature says; None where another op refused."""
    found = _OP.search(message)
    if found is None or dotted(call.func).rpartition(".")[2].replace("_", "") != found[2].lower():
        return None
    return [at for at, part in enumerate(found[3].split(", ")) if part.partition(":")[2] == found[1]]


def _fractions(spot: Spot, statement: ast.stmt, got: str) -> Explanation | None:
    """`tf.sqrt(x)` of whole numbers, which NumPy makes floats of; `tf.reduce_mean(a == b)` of bools."""
    wanted = _OF_NUMBERS if got in ("bool", "string") else _OF_FLOATS
    found = [
        (call, call.args[0]) for call in calls(statement)
        if root_is(call.func, spot, "tensorflow") and call.args and dotted(call.func).rpartition(".")[2] in wanted
        and _dtype(call.args[0], spot) == got
    ]  # fmt: skip
    if len(found) != 1:
        return None
    (call, given), tf = found[0], alias(spot, "tensorflow")
    text, name = spot.source.text(given), dotted(call.func)
    kind, why = "floats", "TensorFlow does not convert between them, as NumPy does"
    if got == "bool":
        kind, why = "numbers", "as float32 True is 1"
    new = f"{tf}.cast({text}, {tf}.float32)"
    if got == "string":
        kind, why, new = "numbers", "to_number reads them in text", f"{tf}.strings.to_number({text})"
    cause = f"{short(text, 30)} is {got}, and {name} takes {kind}: {why}."
    edit = edit_of(spot.file, spot.source.replaced({given: new}))
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else f"Write {new}.")


def _dtype(node: ast.expr, spot: Spot) -> str:
    value = value_of(node, spot)
    value = made_value(node, spot) if value is None else value
    return dtype_of(value) if hasattr(value, "dtype") else ""


def _explanation(spot: Spot, call: ast.Call, given: ast.expr, got: str, wanted: str) -> Explanation:
    text, name, tf = spot.source.text(given), dotted(call.func), alias(spot, "tensorflow")
    placed = spot.source.replaced({given: f"{tf}.cast({text}, {tf}.{wanted})"})
    edit = edit_of(spot.file, placed)
    cause = f"{text} is {got}, and {name} takes whole numbers: TensorFlow does not convert between them by itself."
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Cast {text} to {tf}.{wanted}.")
