"""A PyDataset, or a Sequence, whose `__len__` returns a float: the number of its batches as `len(x) / size`."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import of_keras

RULE = "generator"
_SAID = re.compile(r"'(?:numpy\.)?float\d*' object cannot be interpreted as an integer")
_ROUNDS = ("ceil", "floor", "rint", "round", "trunc")
"""NumPy's functions that give whole numbers as floats."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if Python asked such an object for its length."""
    spot = situation.last
    if not _SAID.fullmatch(situation.message) or spot is None:
        return None
    kind = type(_asked(situation.inner))
    if not of_keras(kind, "PyDataset"):
        return None
    for holder in ast.walk(spot.source.tree):
        if not isinstance(holder, ast.ClassDef) or holder.name != kind.__name__:
            continue
        lengths = [one for one in holder.body if isinstance(one, ast.FunctionDef) and one.name == "__len__"]
        returns = [one for one in ast.walk(lengths[0]) if isinstance(one, ast.Return)] if lengths else []
        if len(returns) == 1 and returns[0].value is not None:
            return _explanation(spot, holder.name, returns[0].value)
    return None


def _asked(error: BaseException) -> object:
    """The object that a method of Keras' asked, as Python failed."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    frame = None if traceback is None else traceback.tb_frame
    of_library = frame is not None and str(frame.f_globals.get("__name__")).startswith("keras.")
    return frame.f_locals.get("self") if frame is not None and of_library else None


def _explanation(spot: Spot, name: str, value: ast.expr) -> Explanation:
    text = spot.source.text
    cause = f"{name}.__len__ returns a float, and a length is a whole number: the number of batches."
    if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] in _ROUNDS:
        edit = edit_of(spot.file, spot.source.replaced({value: f"int({text(value)})"}))
        return Explanation(RULE, spot.file, value.lineno, f"{cause} {dotted(value.func)} gives a float.", edit)
    cause += " `/` gives a float; rounded up, the last batch has what is left."
    numpy = next((one for one in spot.module if getattr(spot.module[one], "__name__", "") == "numpy"), None)
    edit = None
    if numpy is not None:
        edit = edit_of(spot.file, spot.source.replaced({value: f"int({numpy}.ceil({text(value)}))"}))
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
        left = (
            text(value.left) if isinstance(value.left, (ast.Call, ast.Name, ast.Attribute)) else f"({text(value.left)})"
        )
        edit = edit_of(spot.file, spot.source.replaced({value: f"-(-{left} // {text(value.right)})"}))
    advice = "" if edit is not None else "Return math.ceil(...) of it."
    return Explanation(RULE, spot.file, value.lineno, cause, edit, advice)
