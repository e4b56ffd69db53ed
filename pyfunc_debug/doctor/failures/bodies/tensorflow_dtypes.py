"""`array.astype(tf.float64)`: NumPy and pandas take dtypes of their own, and not TensorFlow's."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.made_values import DTYPES
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, lookup, of_package, root_is

RULE = "structure"
_SAID = re.compile(r"(?:Cannot interpret|dtype) '?(?:tf\.(\w+)|<dtype: '(\w+)'>)'? (?:as a data type|not understood)")
_PLACES = {
    "array": 1, "asarray": 1, "asanyarray": 1, "ascontiguousarray": 1, "zeros": 1, "ones": 1, "empty": 1,
    "zeros_like": 1, "ones_like": 1, "empty_like": 1, "full": 2, "full_like": 2, "identity": 1, "fromstring": 1,
    "frombuffer": 1, "fromfile": 1, "dtype": 0, "astype": 0, "view": 0,
}  # fmt: skip
"""Where NumPy's functions, and methods of arrays and tables, take a dtype by position."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a dtype of TensorFlow's was given where NumPy or pandas takes one."""
    found, spot, statement = _SAID.search(situation.message), situation.last, situation.statement
    if found is None or spot is None or statement is None:
        return None
    name, text = found[1] or found[2], spot.source.text
    every = list(_given(statement, spot))
    known = [one for one in every if _is_dtype(_value(one, spot))]
    wrong = known or [one for one in every if _value(one, spot) is None]
    if not wrong or len({text(one) for one in wrong}) != 1:
        return None
    tf, np = alias(spot, "tensorflow"), alias(spot, "numpy")
    first, value = wrong[0], of_package(wrong[0], spot)
    if _is_dtype(value) and name in DTYPES and root_is(first, spot, "tensorflow"):
        new = f"{np}.{'bool_' if name == 'bool' else name}"
        cause = f"{text(first)} is a dtype of TensorFlow's, and NumPy takes its own."
    else:
        new = f"{tf}.as_dtype({text(first)}).as_numpy_dtype"
        cause = (
            f"{text(first)} is {tf}.{name} here, a dtype of TensorFlow's, and NumPy takes its own. Below it is made "
            "one of NumPy's, whichever it is."
        )
    edit = edit_of(spot.file, spot.source.replaced(dict.fromkeys(wrong, new)))
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Write {new}.")


def _given(statement: ast.stmt, spot: Spot) -> Iterator[ast.expr]:
    """What stands for a dtype in calls of NumPy's, and of methods."""
    for call in calls(statement):
        name = dotted(call.func).rpartition(".")[2] or getattr(call.func, "attr", "")
        if root_is(call.func, spot, "tensorflow") or root_is(call.func, spot, "keras"):
            continue
        yield from (one.value for one in call.keywords if one.arg == "dtype")
        place = _PLACES.get(name)
        if place is not None and len(call.args) > place:
            yield call.args[place]


def _value(node: ast.expr, spot: Spot) -> Any:
    """What is known of it; None of a call, whose result is not."""
    if isinstance(node, ast.Constant):
        return node.value
    found = of_package(node, spot)
    return lookup(node, spot) if found is None else found


def _is_dtype(value: Any) -> bool:
    return type(value).__name__ == "DType" and type(value).__module__.startswith("tensorflow.")
