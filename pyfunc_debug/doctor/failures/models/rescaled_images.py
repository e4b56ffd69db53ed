"""A preprocessing_function whose result Keras cannot rescale in place: it is only read, or holds whole numbers."""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import return_value
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import begins
from pyfunc_debug.doctor.failures.reading.symbols import alias, dtype_of, is_ndarray

RULE = "structure"
_CHANGES = "standardize"
"""The function of Keras' ImageDataGenerator that changes an image in place."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if what such a function gave is what Keras could not change."""
    inner = list(frames(situation.inner.__traceback__))
    last = inner[-1] if inner else None
    if last is None or last.f_code.co_name != _CHANGES or "preprocessing" not in last.f_code.co_filename:
        return None
    function = getattr(last.f_locals.get("self"), "preprocessing_function", None)
    value, why = last.f_locals.get("x"), _refused(last)
    code = getattr(function, "__code__", None)
    if not why or code is None:
        return None
    file, first = begins(code)
    spot = Spot(file, first, {}, getattr(function, "__globals__", {}), code.co_name)
    name = "the lambda" if code.co_name == "<lambda>" else code.co_name
    cause = f"{name}, the preprocessing_function, gives {why} ({dtype_of(value)}), and Keras changes it in place, as "
    cause += "rescale asks for. It should give floats of its own."
    result = _result(spot, first, code.co_name)
    numpy = alias(spot, "numpy")
    if result is None:
        return Explanation(RULE, spot.file, spot.line, cause, None, f"Return {numpy}.array(x, dtype='float32').")
    new = f'{numpy}.array({spot.source.text(result)}, dtype="float32")'
    return Explanation(RULE, spot.file, result.lineno, cause, edit_of(spot.file, spot.source.replaced({result: new})))


def _refused(frame: FrameType) -> str:
    """What is wrong with the image; "" for nothing."""
    value: Any = frame.f_locals.get("x")
    if not is_ndarray(value):
        return ""
    if not value.flags.writeable:
        return "an array that may only be read"
    return "" if value.dtype.kind == "f" else "whole numbers"


def _result(spot: Spot, line: int, name: str) -> ast.expr | None:
    """What a function returns, where it says so once."""
    for one in ast.walk(spot.source.tree):
        if isinstance(one, ast.Lambda) and name == "<lambda>" and one.lineno == line:
            return one.body
        if isinstance(one, ast.FunctionDef) and one.name == name and line in (one.lineno, *_decorated(one)):
            return return_value(one)
    return None


def _decorated(function: ast.FunctionDef) -> list[int]:
    return [one.lineno for one in function.decorator_list]
