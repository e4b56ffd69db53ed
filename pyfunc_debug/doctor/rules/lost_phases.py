"""Complex numbers of a Fourier transform that are cast to real ones: their magnitude is lost."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.bodies.run_functions import functions_that_ran
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.records import Finding

NAMES = ("lost-phase",)
_TRANSFORMS = re.compile(
    r"(?:\w+\.)?fft\.r?fft(?:2|n)?|(?:tf|tensorflow)\.signal\.(?:stft|r?fft(?:[23]d)?)|librosa\.(?:core\.)?(?:stft|cqt)"
)
"""What gives complex numbers of real ones; not the inverse of a transform, whose imaginary part is rounding."""
_SAME = ("fftshift", "transpose", "squeeze", "copy", "numpy", "reshape")
_REAL = re.compile(r"(?:\w+\.)*(?:float(?:16|32|64)?|double|single)")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a cast."""
    for ran in functions_that_ran(facts):
        own = pastes.source(facts, ran.file)
        for call in (one for one in code.own_nodes(ran.function) if isinstance(one, ast.Call)):
            value = _cast(call)
            made = _transform(ran.function, value) if value is not None else None
            module = made and pastes.module(facts, ran.file, "tensorflow" if _is_op(call) else "numpy")
            if value is None or made is None or not module:
                continue
            text = own.text(value)
            new = own.text_with(call, {value: f"{module}.abs({text})"})
            yield Finding(
                NAMES[0], "warning", ran.group[0].id if ran.group else None, (),
                f"{own.text(call)} keeps the real parts only, and {own.text(made.func)} (line {made.lineno}) gives "
                "complex numbers: the real part goes up and down with the phase. The magnitude is what abs gives "
                "(for both parts: a stack of real and imag)",
                pastes.written(pastes.replaced(facts, ran.file, {call: new})) or new, ran.file, call.lineno,
                several(one.id for one in ran.group),
                tuple(f"line {one}: {facts.line(ran.file, one)}" for one in dict.fromkeys([made.lineno, call.lineno])),
            )  # fmt: skip


def _is_op(call: ast.Call) -> bool:
    return dotted(call.func).partition(".")[0] in ("tf", "tensorflow")


def _cast(call: ast.Call) -> ast.expr | None:
    """What a call casts to real numbers."""
    name = pastes.last_name(call.func)
    if name == "astype" and isinstance(call.func, ast.Attribute):
        value, dtype = call.func.value, argument(call, 0, "dtype")
    elif name in ("cast", "array", "asarray") and call.args:
        value, dtype = call.args[0], argument(call, 1, "dtype")
    elif name in ("float32", "float64") and len(call.args) == 1:
        return call.args[0]
    else:
        return None
    text = "" if dtype is None else ast.unparse(dtype).strip("'\"")
    return value if _REAL.fullmatch(text) else None


def _transform(function: Definition, node: ast.expr, deep: int = 5) -> ast.Call | None:
    """The transform that an expression is the result of, with its numbers as they were, or some of them."""
    if not deep:
        return None
    if isinstance(node, ast.Call):
        if _TRANSFORMS.fullmatch(dotted(node.func)):
            return node
        if pastes.last_name(node.func) not in _SAME:
            return None
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        inside = _transform(function, owner, deep - 1) if owner is not None else None
        return inside or (_transform(function, node.args[0], deep - 1) if node.args else None)
    if isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "T"):
        return _transform(function, node.value, deep - 1)
    if (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, (ast.Div, ast.Mult))
        and isinstance(node.right, ast.Constant)
    ):
        return _transform(function, node.left, deep - 1)
    if not isinstance(node, ast.Name):
        return None
    stores = [
        one for one in code.own_nodes(function)
        if isinstance(one, (ast.Assign, ast.AugAssign, ast.For, ast.NamedExpr)) and node.id in code.stored_names(one)
    ]  # fmt: skip
    before = [one for one in stores if one.lineno < node.lineno]
    last = before[-1] if before else None
    if not isinstance(last, ast.Assign) or len(last.targets) != 1 or not isinstance(last.targets[0], ast.Name):
        return None
    return _transform(function, last.value, deep - 1)
