"""How many batches a PyDataset of the user's has: its `__len__` counts rows, or one batch too many, or is not there."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import indent_of, parameters
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup, of_keras
from pyfunc_debug.doctor.failures.reading.tables import is_array

RULE = "generator"
_NOTHING = re.compile(r"need at least one array to (?:stack|concatenate)|zero-size array|list index out of range")
_NO_LENGTH = "You need to implement the `num_batches` property"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if `__getitem__` was asked for a batch behind the last row, or `__len__` is missing."""
    if situation.message.startswith(_NO_LENGTH):
        return _without(situation)
    if not _NOTHING.search(situation.message):
        return None
    for spot in reversed(situation.spots):
        function, owner = spot.function, spot.variables.get("self")
        if getattr(function, "name", "") != "__getitem__" or not of_keras(type(owner), "PyDataset"):
            continue
        assert isinstance(function, ast.FunctionDef)
        asked = spot.variables.get(parameters(function)[0]) if parameters(function) else None
        if asked is None:
            return None
        return _beyond(spot, function, int(asked))
    return None


def _beyond(spot: Spot, function: ast.FunctionDef, asked: int) -> Explanation | None:
    holder = spot.source.parent(function)
    lengths = [
        one for one in (holder.body if isinstance(holder, ast.ClassDef) else ())
        if isinstance(one, ast.FunctionDef) and one.name == "__len__"
    ]  # fmt: skip
    last = lengths[0].body[-1] if len(lengths) == 1 else None
    if not isinstance(last, ast.Return) or last.value is None:
        return None
    counted = [one for one in calls(last.value) if ast.unparse(one.func) == "len" and len(one.args) == 1]
    rows: Any = lookup(counted[0].args[0], spot) if len(counted) == 1 else None
    text = spot.source.text
    value = last.value
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and isinstance(value.right, ast.Constant):
        part = value.left
        divides = isinstance(part, ast.BinOp) and isinstance(part.op, ast.FloorDiv) and part.left in counted
        written = text(part.right) if isinstance(part, ast.BinOp) and divides else ""
    else:
        sizes = [f"self.{name}" for name in vars(spot.variables["self"]) if "batch" in name]
        written = sizes[0] if value in counted and len(sizes) == 1 else ""
    batch = evaluation.computed(ast.parse(written, mode="eval").body, spot) if written else None
    if type(batch) is not int or not (type(rows) in (list, tuple) or is_array(rows)):
        return None
    if batch < 2 or asked * batch < len(rows):
        return None
    most = -(-len(rows) // batch)
    cause = (
        f"Keras asks for as many batches as `__len__` says, {text(value)}, and {len(rows)} rows are {most} batches of "
        f"{batch}: batch {asked} has no row."
    )
    new = f"({text(counted[0])} + {written} - 1) // {written}"
    edit = edit_of(spot.file, spot.source.replaced({value: new}))
    return Explanation(RULE, spot.file, last.lineno, cause, edit, "" if edit else "Count the batches.", "likely")


def _without(situation: Situation) -> Explanation | None:
    """The lines of a `__len__`, for a class that has none."""
    for spot, call in failed_fits(situation):
        given = call.args[0] if call.args else None
        kind = lookup(given.func, spot) if isinstance(given, ast.Call) else type(lookup(given, spot)) if given else None
        holders = [
            one for one in ast.walk(spot.source.tree)
            if isinstance(one, ast.ClassDef) and one.name == getattr(kind, "__name__", "")
        ]  # fmt: skip
        if len(holders) != 1 or not isinstance(kind, type) or not of_keras(kind, "PyDataset"):
            continue
        asks = [one for one in holders[0].body if isinstance(one, ast.FunctionDef) and one.name == "__getitem__"]
        if not asks:
            return None
        cause = f"{kind.__name__} has no `__len__`, by which Keras knows how many batches there are."
        sizes = {ast.unparse(one) for one in ast.walk(holders[0]) if _is_own(one) and "batch" in ast.unparse(one)}
        rows = [
            ast.unparse(one.value) for one in ast.walk(asks[0]) if isinstance(one, ast.Subscript) and _is_own(one.value)
        ]
        if len(sizes) != 1 or not rows:
            return Explanation(RULE, spot.file, holders[0].lineno, cause, None, "Write one that returns their number.")
        size, line = sizes.pop(), asks[0].lineno
        blanks = indent_of(spot.source.lines[line - 1])
        lines = (f"{blanks}def __len__(self):", f"{blanks}    return (len({rows[0]}) + {size} - 1) // {size}")
        return Explanation(RULE, spot.file, holders[0].lineno, cause, Edit(spot.file, line, line - 1, lines))
    return None


def _is_own(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"
