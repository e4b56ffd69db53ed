"""Names that are more or fewer than the values they are given: `h, w = img.shape`, `for i, x in rows`."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.callables import code_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import definition_of, dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import is_ndarray, lookup

_MANY = re.compile(r"too many values to unpack \(expected (\d+)(?:, got \d+)?\)")
_FEW = re.compile(r"not enough values to unpack \(expected (\d+), got (\d+)\)")
_NONE = re.compile(r"cannot unpack non-iterable ([\w.]+) object")
_COUNTERS = {"i", "j", "k", "n", "idx", "index", "step", "ind", "num", "count", "batch_idx", "ix", "no", "number"}
_CHANNELS = 3
_WIDTH = 44


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line of a body or a generator takes a known value apart."""
    spot, statement, text = situation.last, situation.statement, situation.message
    many, few, none = _MANY.match(text), _FEW.match(text), _NONE.match(text)
    if spot is None or statement is None or not situation.data or not (many or few or none):
        return None
    if isinstance(statement, ast.For):
        return _loop(spot, statement.target, statement.iter)
    for one in ast.walk(statement):
        if isinstance(one, ast.comprehension) and isinstance(one.target, ast.Tuple):
            found = _loop(spot, one.target, one.iter)
            if found is not None:
                return found
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(statement, ast.Assign) or none:
        return None
    wanted = len(target.elts)
    said = many or few
    if said is None or int(said[1]) != wanted or any(isinstance(one, ast.Starred) for one in target.elts):
        return None
    for look in (_shape, _value, _result):
        found = look(spot, statement.value, target, wanted)
        if found is not None:
            return found
    return None


def _shape(spot: Spot, value: ast.expr, target: ast.Tuple | ast.List, wanted: int) -> Explanation | None:
    """`h, w = img.shape` of three axes, and `h, w, c = img.shape` of two."""
    array: Any = origins.kept(value.value, spot) if isinstance(value, ast.Attribute) and value.attr == "shape" else None
    if not is_ndarray(array) or not isinstance(value, ast.Attribute):
        return None
    name = spot.source.text(value.value)
    cause = f"{name} has {array.ndim} {'axis' if array.ndim == 1 else 'axes'}, {list(array.shape)}, and "
    cause += f"line {spot.line} takes its shape for {wanted}."
    if array.ndim > wanted == _CHANNELS - 1 and array.shape[-1] <= _CHANNELS + 1:
        edit = in_place(spot, {value: f"{spot.source.text(value)}[:{wanted}]"})
        return Explanation(RULE, spot.file, spot.line, f"{cause} Its last axis is the channels.", edit)
    if array.ndim == wanted - 1 == _CHANNELS - 1:
        last = spot.source.text(target.elts[-1])
        cause += " An image of one channel has no axis for it."
        edit = in_place(spot, {value: f"(*{spot.source.text(value)}, 1)"})
        return Explanation(RULE, spot.file, spot.line, f"{cause} With the 1, {last} is 1.", edit, "", "likely")
    if array.ndim == wanted + 1:
        cause += " Is it a batch? Then its first axis is the rows."
    advice = f"Take as many as it has: {', '.join(['_'] * array.ndim)} = {name}.shape, or an index of it."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _value(spot: Spot, value: ast.expr, target: ast.Tuple | ast.List, wanted: int) -> Explanation | None:
    """A list, tuple or array of another length than there are names."""
    if isinstance(value, ast.Call) and dotted(value.func) == "map" and len(value.args) == 2:
        value = value.args[1]
    held = origins.valued(value, spot)
    if type(held) not in (list, tuple, str, bytes) and not (is_ndarray(held) and held.ndim):
        return None
    made = origins.origin(value, spot)
    name = short(spot.source.text(value), _WIDTH)
    some = held.tolist() if is_ndarray(held) else held
    shown = short(repr(some), 50) if _is_plain(some) else origins.shown(held)
    cause = f"{name} has {len(held)} value{'s' * (len(held) != 1)}, {shown}, and line {spot.line} has {wanted} names."
    if made is not None and made.line != spot.line:
        cause += f" It is `{short(spot.source.text(made.made), _WIDTH)}` of line {made.line}."
    if len(held) < wanted:
        advice = f"Give it {wanted} values, or leave out what has fewer."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    last = target.elts[-1]
    edit = in_place(spot, {last: f"{spot.source.text(last)}, *_"})
    cause += " `*_` takes the rest."
    return Explanation(
        RULE, spot.file, spot.line, cause, edit, "" if edit else "Put `, *_` behind the names.", "likely"
    )


def _result(spot: Spot, value: ast.expr, target: ast.Tuple | ast.List, wanted: int) -> Explanation | None:
    """What a function of the user's returns: a tuple of another length."""
    defined = definition_of(code_of(value, spot)) if isinstance(value, ast.Call) else None
    if defined is None or not isinstance(value, ast.Call):
        return None
    results = [one.value for one in own_nodes(defined[1]) if isinstance(one, ast.Return)]
    tuples = [one for one in results if isinstance(one, ast.Tuple)]
    if not tuples or len({len(one.elts) for one in tuples}) != 1 or len(tuples) != len(results):
        return None
    gives = [short(ast.unparse(one), 20) for one in tuples[0].elts]
    name = short(spot.source.text(value.func), 30)
    cause = (
        f"{name} gives {len(gives)} values (line {tuples[0].lineno}): {short(', '.join(gives), 60)}. Line {spot.line} "
    )
    cause += f"has {wanted} name{'s' * (wanted != 1)}."
    if len(gives) < wanted:
        return Explanation(RULE, spot.file, spot.line, cause, None, f"Take {len(gives)}, or return what is missing.")
    last = target.elts[-1]
    edit = in_place(spot, {last: f"{spot.source.text(last)}, *_"})
    return Explanation(RULE, spot.file, spot.line, f"{cause} `*_` takes the rest.", edit, "", "likely")


def _is_plain(some: Any) -> bool:
    return isinstance(some, (str, bytes)) or all(map(origins.is_plain, some))


def _loop(spot: Spot, target: ast.expr, given: ast.expr) -> Explanation | None:
    """`for i, row in rows` without `enumerate`, and `for name, box in boxes` of a dict without `items()`."""
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return None
    held, text = lookup(given, spot), spot.source.text(given)
    names = [spot.source.text(one) for one in target.elts]
    if type(held) is dict:
        cause = f"a loop over the dict {short(text, 30)} gives its keys alone: items() gives keys and values."
        edit = in_place(spot, {given: f"{spot.source.atom(given)}.items()"})
        return Explanation(RULE, spot.file, spot.line, cause, edit)
    rows = type(held) in (list, tuple) or (is_ndarray(held) and held.ndim > 0)
    if rows and len(held) and (names[0] in _COUNTERS or names[0].endswith(("_idx", "_index"))):
        first = held[0]
        what = origins.shown(first) or f"a {type(first).__name__}"
        cause = (
            f"a loop over {short(text, 30)} gives its values alone, such as {what}, and "
            f"`for {', '.join(names)}` takes a number beside each: enumerate gives both."
        )
        return Explanation(
            RULE, spot.file, spot.line, cause, in_place(spot, {given: f"enumerate({text})"}), "", "likely"
        )
    return None
