"""An iterator that was asked for more elements than it has: `next(it)` in a loop that counts by itself."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import assignments
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_dataset, lookup
from pyfunc_debug.interception.names.private import iterated

RULE = "exhausted"
_END = re.compile(r"End of sequence")
_ITERATORS = ("NumpyIterator", "_NumpyIterator", "OwnedIterator")
_METHODS = ("get_next", "next", "__next__")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the program took more elements from a dataset than there are."""
    spot = situation.last
    ended = situation.kind == "OutOfRangeError" and _END.search(situation.message)
    if spot is None or situation.body or not (ended or situation.kind == "StopIteration"):
        return None
    statement = spot.statement
    asked = iterator_of(statement) if statement is not None else None
    made = _made(asked, spot) if asked is not None else None
    if statement is None or asked is None or made is None:
        return None
    data = _dataset(made)
    if isinstance(asked, ast.Attribute):
        kept = type(lookup(asked, spot)).__name__ in _ITERATORS
        return _of_object(spot, statement, data) if data is not None and kept else None
    value = _value(data, asked, spot) if data is not None else None
    if data is None or not is_dataset(value):
        return None
    text = spot.source.text(data)
    count = _count(value)
    has = f"which has {count:,} element{'s' if count != 1 else ''}" if count is not None else "which has no more"
    cause = (
        f"`{short(spot.source.text(statement), 40)}` asked for another element of {short(text, 30)}, {has}: an "
        f"iterator goes through its dataset once."
    )
    found = spot.source.replaced({data: f"{spot.source.atom(data)}.repeat()"})
    loop = next((one for one in spot.source.around(statement) if isinstance(one, (ast.For, ast.While))), None)
    if found is None or not isinstance(loop, ast.For):
        return Explanation(RULE, spot.file, spot.line, cause, None, f"`for x in {text}:` ends where the data end.")
    edit = Edit(spot.file, found[0], found[1], (found[2],))
    return Explanation(RULE, spot.file, spot.line, cause, edit)


def _of_object(spot: Spot, statement: ast.stmt, data: ast.expr) -> Explanation:
    """`self.samples.next()`, of what another method made: each call of this one takes an element."""
    text = spot.source.text(data)
    cause = (
        f"`{short(spot.source.text(statement), 40)}` asked for another element, and {text} (line {data.lineno}) has no "
        "more: an iterator goes through its dataset once, and each call of this method takes from it."
    )
    edit = edit_of(spot.file, spot.source.replaced({data: f"{spot.source.atom(data)}.repeat()"}))
    return Explanation(RULE, spot.file, data.lineno, cause, edit, "" if edit else f"Take it of {text}.repeat().")


def iterator_of(statement: ast.stmt) -> ast.Name | ast.Attribute | None:
    """`it`, of `next(it)` or `it.get_next()` in a statement; `self.it`, too."""
    for call in calls(statement):
        one = call.args[0] if dotted(call.func) == "next" and len(call.args) == 1 else None
        if isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS and not call.args:
            one = call.func.value
        if isinstance(one, ast.Name) or (isinstance(one, ast.Attribute) and dotted(one).startswith("self.")):
            return one
    return None


def _made(name: ast.Name | ast.Attribute, spot: Spot) -> ast.Call | None:
    """`iter(ds)`, where the function, the class or the module of a line assigns it to the name."""
    if isinstance(name, ast.Attribute):
        holder = next((one for one in spot.source.around(name) if isinstance(one, ast.ClassDef)), None)
        given = [
            one.value for one in ast.walk(holder or spot.source.tree) if isinstance(one, ast.Assign)
            and [dotted(target) for target in one.targets] == [dotted(name)]
        ]  # fmt: skip
        return given[0] if len(given) == 1 and isinstance(given[0], ast.Call) else None
    for place in (spot.function, spot.source.tree):
        found = assignments(place).get(name.id) if place is not None else None
        if isinstance(found, ast.Call):
            return found
    return None


def _dataset(made: ast.Call) -> ast.expr | None:
    """`ds`, of `iter(ds)`, `ds.as_numpy_iterator()` or `ds.make_one_shot_iterator()`."""
    if dotted(made.func) == "iter" and len(made.args) == 1:
        return made.args[0]
    if isinstance(made.func, ast.Attribute) and made.func.attr in ("as_numpy_iterator", "__iter__"):
        return made.func.value
    return None


def _value(data: ast.expr, asked: ast.Name, spot: Spot) -> object:
    """The dataset; one that has no name, of the iterator that was asked."""
    return spot.value(data.id) if isinstance(data, ast.Name) else iterated(spot.value(asked.id))


def _count(value: object) -> int | None:
    """The number of elements, where TensorFlow knows it without running the dataset."""
    found = getattr(value, "cardinality", None)
    count = int(found()) if found is not None else -1
    return count if count >= 0 else None
