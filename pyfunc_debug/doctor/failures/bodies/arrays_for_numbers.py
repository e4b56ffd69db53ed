"""An array where Python takes one number: an index of a list, a key, `float(...)`, a format, an `if`.

What `predict` gives has an axis for the rows, and NumPy 2.4 makes no number of `[0.7]` any more.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, names, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, lookup

RULE = "array-for-number"
_INDEX = re.compile(r"only integer scalar arrays can be converted to a scalar index|unhashable type: 'numpy\.ndarray'")
_NUMBER = re.compile(
    r"only (?:0-dimensional|length-1|size-1) arrays can be converted to Python scalars"
    r"|unsupported format string passed to numpy\.ndarray\.__format__|type numpy\.ndarray doesn't define __round__"
)
_TRUTH = re.compile(r"The truth value of an array with more than one element is ambiguous")
_TAKE_ONE = ("int", "float", "round", "complex", "bool")
_Shape = tuple[int, ...]


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line gives an array for a number."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.kind not in ("TypeError", "ValueError"):
        return None
    if _INDEX.search(situation.message):
        found = list(_indices(statement, spot))
    elif _NUMBER.search(situation.message):
        found = [(one, None) for one in _numbers(statement)]
    else:
        asked_if = _TRUTH.search(situation.message) and not situation.body
        return _truth(spot, statement) if asked_if else None
    arrays = [(one, asked, shape) for one, asked in found if (shape := _shape(one, spot))]
    if len({ast.unparse(one) for one, *_ in arrays}) != 1:
        return None
    one, asked, shape = arrays[0]
    text = spot.source.text(one)
    said = f"`{short(text, 40)}` is an array of the shape {list(shape)}"
    if math.prod(shape) == 1:
        pieces = {each: f"{spot.source.atom(each)}.item()" for each, *_ in arrays}
        cause = f"{said}, and Python takes a number here. `.item()` is the one that it has."
    elif asked is not None and type(lookup(asked.value, spot)) is dict:
        return _key(spot, one, text, said)
    elif asked is not None:
        name = next(name for name in ("one", "each", "number") if name not in names(statement))
        rows = text if len(shape) == 1 else f"{spot.source.atom(one)}.ravel()"
        if len(shape) > 1 and math.prod(shape) != shape[0]:
            return None
        pieces = {asked: f"[{spot.source.text(asked.value)}[{name}] for {name} in {rows}]"}
        cause = f"{said}, and {spot.source.text(asked.value)} takes one of its numbers at a time."
        value = evaluation.computed(one, spot)
        if len(shape) == 1 and getattr(getattr(value, "dtype", None), "name", "") == "bool":  # a mask
            owner = spot.source.text(asked.value)
            pieces = {asked: f"[{name} for {name}, chosen in zip({owner}, {text}) if chosen]"}
            cause = f"{said} of True and False, and a list takes no mask: zip puts them side by side."
    else:
        return Explanation(
            RULE, spot.file, spot.line, f"{said}, and Python takes one number here.", None,
            "Choose one of its numbers by an index, or the place of the largest by np.argmax.",
        )  # fmt: skip
    edit = edit_of(spot.file, spot.source.replaced(pieces))
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else "Give it one number.")


def _key(spot: Spot, one: ast.expr, text: str, said: str) -> Explanation:
    """An array that is a key: tuples of numbers are keys, arrays are not."""
    cause = f"{said}, and a dict takes no array for a key. A tuple of its numbers is one."
    statement = spot.statement
    first = spot.source.span(statement)[0] if statement is not None else spot.line
    edit: Edit | None = None
    if isinstance(one, ast.Name):
        line = f"{indent_of(spot.source.lines[first - 1])}{text} = tuple({text}.ravel().tolist())"
        edit = Edit(spot.file, first, first - 1, (line,))
    else:
        edit = edit_of(spot.file, spot.source.replaced({one: f"tuple({spot.source.atom(one)}.ravel().tolist())"}))
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else "Write tuple(...) of it.", "likely")


def _indices(statement: ast.stmt, spot: Spot) -> Iterator[tuple[ast.expr, ast.Subscript | None]]:
    """What lists, tuples and dicts are asked for."""
    for one in ast.walk(statement):
        asked = lookup(one.value, spot) if isinstance(one, ast.Subscript) else None
        if isinstance(one, ast.Subscript) and type(asked) in (list, tuple, dict):
            yield one.slice, one


def _numbers(statement: ast.stmt) -> Iterator[ast.expr]:
    """What is given to `float` and the like, and what a format is asked of."""
    for one in ast.walk(statement):
        if isinstance(one, ast.Call) and one.args and dotted(one.func) in _TAKE_ONE:
            yield one.args[0]
        elif isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mod) and isinstance(one.left, ast.Constant):
            yield from one.right.elts if isinstance(one.right, ast.Tuple) else (one.right,)
        elif isinstance(one, ast.FormattedValue) and one.format_spec is not None:
            yield one.value
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "format":
            yield from (*one.args, *(word.value for word in one.keywords))


def _shape(node: ast.expr, spot: Spot) -> _Shape | None:
    """The shape of an array that has axes; None of all else, and where it is not known."""
    value = evaluation.computed(node, spot)
    if value is None:
        return _of_prediction(node, spot)
    return tuple(value.shape) if type(value).__module__ == "numpy" and hasattr(value, "shape") else None


def _of_prediction(node: ast.expr, spot: Spot) -> _Shape | None:
    """The shape of `model.predict(x)[0]`."""
    row = node.value if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) else None
    asked = row.func if isinstance(row, ast.Call) and isinstance(row.func, ast.Attribute) else None
    if asked is None or asked.attr not in ("predict", "predict_on_batch"):
        return None
    outputs = getattr(lookup(asked.value, spot), "outputs", None) or []
    sizes = list(outputs[0].shape)[1:] if len(outputs) == 1 else []
    return tuple(sizes) if sizes and all(type(size) is int for size in sizes) else None


def _truth(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """An `if` that asks an array: a choice for each of its numbers is `np.where`."""
    for one in ast.walk(statement):
        test = one.test if isinstance(one, (ast.If, ast.While, ast.IfExp)) else None
        shape = _shape(test, spot) if test is not None else None
        if test is None or not shape or math.prod(shape) < 2:
            continue
        cause = (
            f"`{short(spot.source.text(test), 40)}` is an array of the shape {list(shape)}, and `if` takes one answer."
        )
        if isinstance(one, ast.IfExp) and isinstance(test, ast.Compare):
            text = spot.source.text
            new = f"{alias(spot, 'numpy')}.where({text(test)}, {text(one.body)}, {text(one.orelse)})"
            edit = edit_of(spot.file, spot.source.replaced({one: new}))
            if edit is not None:
                return Explanation(RULE, spot.file, spot.line, f"{cause} where chooses for each.", edit, "", "likely")
        advice = "Ask one of its numbers (an index, max()), or all of them in a loop; any() and all() make one answer."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    return None
