"""Arrays of different numbers of rows that `fit` or `from_tensor_slices` pairs row by row: where the rows were lost.

Windows over a series are fewer than its steps, `dropna` and a slice take rows of one of the two, and the four names of
`train_test_split` stand in another order.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, is_inline, short
from pyfunc_debug.doctor.failures.reading.symbols import lookup, method_calls, of_keras
from pyfunc_debug.doctor.failures.reading.tables import is_array, is_table, valued

RULE = "structure"
_AMBIGUOUS = re.compile(r"^Data cardinality is ambiguous")
_LENGTHS = re.compile(r"Dimensions (\d+) and (\d+) are not compatible")
_WINDOWS = re.compile(
    r"\[\s*(\w+)\s*:\s*\1\b|\[\s*(\w+)\s*-\s*\w+\s*:\s*\2\s*[],]|window|look_?back|time_?steps?", re.I
)
_SAME_ROWS = ("to_numpy", "astype")
_TAKE_ROWS = ("dict", "array", "asarray")
"""Methods of a table, and functions of it, whose result has its rows."""
_INDEXERS = ("iloc", "loc")


@dataclass(frozen=True)
class _Rows:
    """What is given, and how many rows it has.

    Attributes:
      node: The expression.
      text: As it is written.
      value: Its value; that of `table` for `table.values`.
      table: The expression of the table itself, or the same as `node`.
      count: Its rows.
    """

    node: ast.expr
    text: str
    value: Any
    table: ast.expr
    count: int


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if arrays of different lengths are why the program failed."""
    spot, text = situation.last, situation.message
    statement = situation.statement
    if spot is None or statement is None or situation.body:
        return None
    groups: list[list[ast.expr]] = []
    if _AMBIGUOUS.search(text):
        for _, call in failed_fits(situation):
            if _is_one_for_each_input(call, spot):
                continue
            named = {one.arg: one.value for one in call.keywords}
            main = [argument(call, 0, "x"), argument(call, 1, "y"), named.get("sample_weight")]
            groups.append([one for one in main if one is not None])
            checked = named.get("validation_data")
            groups += [list(checked.elts)] if isinstance(checked, (ast.Tuple, ast.List)) else []
    elif _LENGTHS.search(text):
        groups += [[call.args[0]] for call in method_calls(statement, "from_tensor_slices") if call.args]
    for given in groups:
        rows = [one for each in given for one in _parts(each, spot)]
        if len({one.count for one in rows}) > 1:
            return _explained(spot, rows, "from_tensor_slices" if _LENGTHS.search(text) else "Keras")
    return None


def _is_one_for_each_input(call: ast.Call, spot: Spot) -> bool:
    """Whether a model of several inputs is given one array of as many: `keras_structures` tells of it."""
    x = argument(call, 0, "x")
    model: Any = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
    inputs = getattr(model, "inputs", None) if of_keras(type(model), "Functional") else None
    rows = _parts(x, spot) if x is not None and inputs is not None and len(inputs) > 1 else []
    return len(rows) == 1 and inputs is not None and rows[0].count == len(inputs)


def _parts(node: ast.expr, spot: Spot) -> list[_Rows]:
    """The arrays, lists and tables in an argument; none where one of them is not known."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Dict)):
        inside = node.values if isinstance(node, ast.Dict) else node.elts
        found = [_parts(one, spot) for one in inside]
        return [one for each in found for one in each] if all(found) else []
    table: ast.expr = node
    if isinstance(node, ast.Attribute) and node.attr == "values":
        table = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_ROWS:
        table = node.func.value
    elif isinstance(node, ast.Call) and len(node.args) == 1 and dotted(node.func).rpartition(".")[2] in _TAKE_ROWS:
        table = node.args[0]
    value = valued(table, spot)
    if isinstance(value, dict):
        value = next(iter(value.values()), None)
    shape = value.shape if is_array(value) and hasattr(value, "shape") else None
    count = len(value) if type(value) in (list, tuple) else int(shape[0]) if shape is not None and len(shape) else None
    return [] if count is None else [_Rows(node, spot.source.text(node), value, table, count)]


def _explained(spot: Spot, rows: list[_Rows], who: str) -> Explanation:
    """What to say of some, of which the first two that differ are looked at."""
    first = rows[0]
    other = next(one for one in rows if one.count != first.count)
    fewer, more = sorted((first, other), key=lambda one: one.count)
    made = _bindings(spot)
    said = [_said(one, made) for one in (first, other)]
    cause = f"{who} takes one row of each, and {said[0]} has {first.count:,}, {said[1]} {other.count:,}."
    found = _swapped(spot, first, other, made) or _sliced(spot, fewer, more, made) or _indexed(spot, fewer, more)
    found = found or _windows(spot, fewer, more) or _turned(spot, first, other)
    if found is None:
        advice = "What takes rows away from one, as a slice, a filter or a window, is to be done to the other, too."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    why, pieces, line = found
    edit = edit_of(spot.file, spot.source.replaced(pieces))
    return Explanation(RULE, spot.file, line, f"{cause} {why}", edit, "", "likely")


_Found = tuple[str, dict[ast.expr, str], int]
_Made = dict[str, tuple[ast.expr | None, ast.Assign, ast.Tuple | None]]


def _said(one: _Rows, made: _Made) -> str:
    """A name, and the line that it is made in."""
    place = made.get(dotted(one.table))
    text = short(one.text, 30)
    return f"{text} (line {place[1].lineno})" if place is not None and not is_inline(place[1]) else text


def _bindings(spot: Spot) -> _Made:
    """The last assignment of each name above the line: its value, the statement, and the names beside it."""
    nodes = own_nodes(spot.function) if spot.function is not None else ast.walk(spot.source.tree)
    found: _Made = {}
    above = [one for one in nodes if isinstance(one, ast.Assign) and (one.lineno < spot.line or is_inline(one))]
    for one in sorted(above, key=lambda each: each.lineno):
        for target in one.targets:
            if not isinstance(target, ast.Tuple):
                found[dotted(target)] = (one.value, one, None)
                continue
            values = one.value.elts if isinstance(one.value, ast.Tuple) else []
            fit = len(values) == len(target.elts)
            for place, part in enumerate(target.elts):
                found[dotted(part)] = (values[place] if fit else None, one, target)
    return found


def _swapped(spot: Spot, first: _Rows, other: _Rows, made: _Made) -> _Found | None:
    """`x_train, y_train, x_test, y_test = train_test_split(x, y)`, which gives both parts of x before those of y."""
    one, two = made.get(dotted(first.table)), made.get(dotted(other.table))
    if one is None or two is None or one[1] is not two[1] or one[2] is None or len(one[2].elts) != 4:
        return None
    targets = one[2].elts
    named = [dotted(part) for part in targets]
    counts = [_count(lookup(part, spot)) for part in targets]
    pair = {named.index(dotted(first.table)), named.index(dotted(other.table))}
    if pair not in ({0, 1}, {2, 3}) or None in counts or counts[0] != counts[2] or counts[1] != counts[3]:
        return None
    by = dotted(one[1].value.func).rpartition(".")[2] if isinstance(one[1].value, ast.Call) else "The right side"
    why = f"{by} gives both parts of the first array before those of the second: the names in the middle change places."
    return why, {targets[1]: named[2], targets[2]: named[1]}, one[1].lineno


def _count(value: Any) -> int | None:
    shape = value.shape if is_array(value) and hasattr(value, "shape") else None
    return int(shape[0]) if shape is not None and len(shape) else len(value) if type(value) is list else None


def _sliced(spot: Spot, fewer: _Rows, more: _Rows, made: _Made) -> _Found | None:
    """`x_train = x[:80]` beside the whole y: the same rows of it."""
    place = made.get(dotted(fewer.table))
    value = place[0] if place is not None else None
    if not isinstance(value, ast.Subscript):
        return None
    base = value.value
    if isinstance(base, ast.Attribute) and base.attr in _INDEXERS:
        base = base.value
    if _count(lookup(base, spot)) != more.count:
        return None
    own = dotted(fewer.table)
    for half in ("train", "test", "val", "valid"):  # y_train is there, and y was given
        for name in (f"{dotted(more.table)}_{half}", f"{half}_{dotted(more.table)}"):
            if half in own and _count(spot.value(name)) == fewer.count:
                why = f"{own} are some rows of {spot.source.text(base)}; {name} has as many."
                return why, {more.table: name}, spot.line
    index = value.slice.elts[0] if isinstance(value.slice, ast.Tuple) else value.slice
    if isinstance(index, (ast.Constant, ast.List)):
        return None
    indexer = f".{value.value.attr}" if isinstance(value.value, ast.Attribute) and base is not value.value else ""
    attribute = (indexer or ".iloc") if is_table(more.value) else ""
    whole = isinstance(index, ast.Slice)
    if not whole and (type(more.value) is list or indexer == ".loc" or (is_table(more.value) and not indexer)):
        return None
    new = f"{spot.source.text(more.table)}{attribute}[{spot.source.text(index)}]"
    why = f"{own} are some rows of {spot.source.text(base)}; these are the same of {spot.source.text(more.table)}."
    return why, {more.table: new}, spot.line


def _indexed(spot: Spot, fewer: _Rows, more: _Rows) -> _Found | None:
    """Tables of pandas, of which one has lost rows: the index of the other says which."""
    if not (is_table(fewer.value) and is_table(more.value)):
        return None
    left, whole = fewer.value.index, more.value.index
    if not left.is_unique or not whole.is_unique or not left.isin(whole).all():
        return None
    gone = [str(one) for one in whole.difference(left, sort=False)[:3]]
    others = ", ..." if more.count - fewer.count > len(gone) else ""
    text = spot.source.text
    new = f"{text(more.table)}.loc[{text(fewer.table)}.index]"
    why = f"Of {text(fewer.table)} the rows {', '.join(gone)}{others} are gone: its index says which are left."
    return why, {more.table: new}, spot.line


def _windows(spot: Spot, fewer: _Rows, more: _Rows) -> _Found | None:
    """Windows over a series, which are fewer than its steps by the length of one."""
    lost = more.count - fewer.count
    shape: Any = getattr(fewer.value, "shape", ())
    if len(shape) < 2 or int(shape[1]) not in (lost - 1, lost, lost + 1):
        return None
    if not _WINDOWS.search("\n".join(spot.source.code)):
        return None
    text, steps = spot.source.text(more.table), int(shape[1])
    first, end = (steps - 1, "") if steps == lost + 1 else (steps, "-1" if steps == lost - 1 else "")
    begins = "the last one of the first window" if steps == lost + 1 else "the one after the first window"
    why = f"Windows of {steps} steps are {lost} fewer than the steps. {text}[{first}:{end}] begins with {begins}."
    return why, {more.table: f"{text}{'.iloc' if is_table(more.value) else ''}[{first}:{end}]"}, spot.line


def _turned(spot: Spot, first: _Rows, other: _Rows) -> _Found | None:
    """An array whose rows are columns."""
    shape: Any = getattr(first.value, "shape", ())
    if len(shape) != 2 or int(shape[1]) != other.count or type(first.value).__name__ not in ("ndarray", "DataFrame"):
        return None
    text = spot.source.text(first.table)
    return f"{text} is [{shape[0]}, {shape[1]}]: its columns are the rows.", {first.table: f"{text}.T"}, spot.line
