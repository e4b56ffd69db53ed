"""Functions of NumPy's that were given other axes, sizes or counts than they take: `np.pad`, `np.split`, `interp`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_ndarray, lookup

_PAD = re.compile(r"could not be broadcast together with remapped shapes \[original->remapped\]: \(\d+,2\)")
_AXIS = re.compile(r"(source|destination|axis1|axis2): axis (-?\d+) is out of bounds for array of dimension (\d+)")
_SQUEEZE = "cannot select an axis to squeeze out which has size not equal to one"
_SPLIT = "array split does not result in an equal division"
_TUPLE = re.compile(r"'tuple' object has no attribute '(\w+)'")
_NOTHING = re.compile(r"index -?\d+ is out of bounds for axis 0 with size 0")
_UNCALLED = re.compile(r"unsupported operand type\(s\) for .*'(?:builtin_function_or_method|method)'")
_LENGTHS = "fp and xp are not of the same length"
_CHANCES = "'a' and 'p' must have same size"
_SEED = "Seed must be between 0 and 2**32 - 1"
_FINDS = ("where", "nonzero", "flatnonzero", "argwhere")
_JOINS = ("stack", "array", "vstack", "asarray")
_Told = tuple[dict[ast.expr, str], str, str]
"""The paste, the cause, and what to do where nothing can be pasted."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line of a body or a generator has such a call."""
    spot, statement, text = situation.last, situation.statement, situation.message
    if spot is None or statement is None or not situation.data:
        return None
    for said, look in (
        (_PAD.search(text), _pad), (_AXIS.search(text), _axis), (_SQUEEZE in text, _squeeze), (_SPLIT in text, _split),
        (_TUPLE.search(text), _tuple), (_NOTHING.search(text), _nothing), (_UNCALLED.search(text), _uncalled),
        (_LENGTHS in text, _lengths), (_CHANCES in text, _chances), (_SEED in text, _seed),
    ):  # fmt: skip
        found = next(look(spot, statement), None) if said else None
        if found is not None:
            edit = in_place(spot, found[0])
            return Explanation(RULE, spot.file, spot.line, found[1], edit, "" if edit else found[2], "likely")
    return None


def _given(statement: ast.stmt, *names: str) -> Iterator[ast.Call]:
    """The calls of functions of these names that have arguments."""
    for call in calls(statement):
        if dotted(call.func).rpartition(".")[2] in names and call.args:
            yield call


def _array(node: ast.expr, spot: Spot) -> Any:
    value = origins.valued(node, spot)
    return value if is_ndarray(value) else None


def _pad(spot: Spot, statement: ast.stmt) -> Iterator[_Told]:
    """`np.pad(img, ((2, 2), (2, 2)))` of an image with channels."""
    for call in _given(statement, "pad"):
        array = _array(call.args[0], spot)
        widths = call.args[1] if len(call.args) > 1 else None
        if array is None or not isinstance(widths, (ast.Tuple, ast.List)):
            continue
        name, count = short(spot.source.text(call.args[0]), 30), len(widths.elts)
        cause = f"{name} has {array.ndim} axes, {list(array.shape)}, and the call says how wide to pad {count}."
        if count == array.ndim - 1 and array.shape[-1] <= 4:
            last = widths.elts[-1]
            cause += " The channels are not padded: (0, 0)."
            yield {last: f"{spot.source.text(last)}, (0, 0)"}, cause, ""
        else:
            yield {}, cause, "Give a pair for each axis, (0, 0) for one that stays as it is."


def _axis(spot: Spot, statement: ast.stmt) -> Iterator[_Told]:
    """`np.moveaxis(x, 0, 3)` of three axes."""
    for call in _given(statement, "moveaxis", "swapaxes"):
        method = isinstance(call.func, ast.Attribute) and is_ndarray(lookup(call.func.value, spot))
        given = call.func.value if method and isinstance(call.func, ast.Attribute) else call.args[0]
        array = _array(given, spot)
        for one in call.args if method else call.args[1:]:
            place = one.value if isinstance(one, ast.Constant) else None
            if array is not None and type(place) is int and place >= array.ndim:
                name = short(spot.source.text(given), 30)
                cause = f"{name} has {array.ndim} axes, {list(array.shape)}, and they are counted from 0: it has no "
                cause += f"{place}. "
                yield {one: "-1"}, f"{cause}-1 is its last.", ""


def _squeeze(spot: Spot, statement: ast.stmt) -> Iterator[_Told]:
    """`np.squeeze(x, axis=-1)` of three channels."""
    for call in calls(statement):
        if dotted(call.func).rpartition(".")[2] != "squeeze":
            continue
        inner = call.func.value if isinstance(call.func, ast.Attribute) else None
        given = inner if inner is not None and is_ndarray(lookup(inner, spot)) else call.args[0] if call.args else None
        array = _array(given, spot) if given is not None else None
        if array is None or given is None:
            continue
        name = spot.source.text(given)
        cause = f"{short(name, 30)} is {list(array.shape)}, and squeeze takes off axes of one only."
        yield {}, cause, f"Take one of its channels, {name}[..., 0], or their mean, {name}.mean(axis=-1)."


def _split(spot: Spot, statement: ast.stmt) -> Iterator[_Told]:
    """`np.split(x, 3)` of ten rows."""
    for call in _given(statement, "split", "hsplit", "vsplit"):
        array = _array(call.args[0], spot)
        count = origins.number(origins.valued(call.args[1], spot)) if len(call.args) > 1 else None
        if array is None or type(count) is not int or count < 1 or call.keywords:
            continue
        name, parts = spot.source.text(call.args[0]), spot.source.text(call.args[1])
        cause = f"{short(name, 30)} has {len(array)} rows, and {count} does not divide {len(array)}."
        around = spot.source.parent(call)
        if (
            isinstance(around, ast.Call)
            and dotted(around.func).rpartition(".")[2] in _JOINS
            and isinstance(call.args[0], ast.Name)
        ):
            yield {call.args[0]: f"{name}[:len({name}) // {parts} * {parts}]"}, f"{cause} This leaves the rest out.", ""
        else:
            held = spot.source.text(call.func).rpartition(".")[0]
            cause += " array_split gives parts that differ by one."
            yield {call.func: f"{held}.array_split"}, cause, ""


def _tuple(spot: Spot, statement: ast.stmt) -> Iterator[_Told]:
    """`np.where(x > 0).astype(...)` and `np.meshgrid(...).reshape(...)`, of which each gives a tuple of arrays."""
    np = alias(spot, "numpy")
    for one in ast.walk(statement):
        if not isinstance(one, ast.Attribute):
            continue
        node = one.value
        made = origins.origin(node, spot)
        call = made.made if made is not None else node
        value = lookup(node, spot) if isinstance(node, ast.Name) else origins.valued(node, spot)
        if not isinstance(call, ast.Call) and isinstance(node, ast.Name):
            given = [each for each in spot.source.given_to(node.id) if isinstance(each, ast.Call)]
            call = given[0] if len(given) == 1 else call
        last = dotted(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""
        text = short(spot.source.text(node), 40)
        if last in _FINDS[:2] and isinstance(call, ast.Call) and len(call.args) == 1:
            asked = _array(call.args[0], spot)
            cause = f"{last} gives a tuple, with an array of places for each axis"
            if asked is not None and asked.ndim == 1:
                yield {node: f"{spot.source.text(node)}[0]"}, f"{cause}: [0] is that of the first.", ""
            elif isinstance(node, ast.Call):
                cause += ". argwhere gives one array, with a row for each place."
                yield {node.func: f"{np}.argwhere"}, cause, ""
        elif last == "meshgrid" or (type(value) is tuple and value and all(map(is_ndarray, value))):
            shapes = {each.shape for each in value} if type(value) is tuple else {()}
            if len(shapes) == 1:
                cause = f"{text} is a tuple of arrays: stack makes one of them."
                yield {node: f"{np}.stack({spot.source.text(node)})"}, cause, ""


def _nothing(spot: Spot, statement: ast.stmt) -> Iterator[_Told]:
    """`np.where(x > 10)[0][0]` where no number is."""
    for call in _given(statement, *_FINDS):
        around = spot.source.parent(call)
        if len(call.args) == 1 and isinstance(around, ast.Subscript):
            asked = short(spot.source.text(call.args[0]), 40)
            cause = f"`{asked}` is True nowhere, so {dotted(call.func)} found no place, and the line takes the first."
            yield {}, cause, f"Ask before: `if not ({asked}).any(): return ...`, with what stands for none."


def _uncalled(spot: Spot, statement: ast.stmt) -> Iterator[_Told]:
    """`x - x.mean` of an array."""
    pieces: dict[ast.expr, str] = {}
    for one in ast.walk(statement):
        if isinstance(one, ast.Attribute) and not isinstance(spot.source.parent(one), (ast.Call, ast.Attribute)):
            owner = lookup(one.value, spot)
            if is_ndarray(owner) and callable(getattr(owner, one.attr, None)):
                pieces[one] = f"{spot.source.text(one)}()"
    if pieces:
        names = " and ".join(dict.fromkeys(short(spot.source.text(one), 30) for one in pieces))
        what = "names a method and does not call it" if len(pieces) == 1 else "name methods and do not call them"
        yield pieces, f"{names} {what}: `()` is missing.", ""


def _lengths(spot: Spot, statement: ast.stmt) -> Iterator[_Told]:
    """`np.interp(at, np.linspace(0, 1, 10), x)` of eight values."""
    for call in _given(statement, "interp"):
        if len(call.args) < 3:
            continue
        places, values = (origins.valued(one, spot) for one in call.args[1:3])
        if not is_ndarray(places) or not is_ndarray(values):
            continue
        text, made = spot.source.text(call.args[2]), call.args[1]
        cause = f"interp takes a place for each value: there are {len(places)} places, and {short(text, 30)} has "
        cause += f"{len(values)} values."
        count = (
            made.args[2]
            if isinstance(made, ast.Call) and len(made.args) == 3 and dotted(made.func).endswith("linspace")
            else None
        )
        yield (
            ({count: f"len({text})"} if count is not None else {}),
            cause,
            f"Make as many places as {short(text, 30)} has values.",
        )


def _chances(spot: Spot, statement: ast.stmt) -> Iterator[_Told]:
    """`np.random.choice(x, 3, p=[0.5, 0.5])` of four values."""
    for call in _given(statement, "choice"):
        chances = [word.value for word in call.keywords if word.arg == "p"] or call.args[3:4]
        values: Any = origins.valued(call.args[0], spot)
        count = len(values) if is_ndarray(values) or type(values) in (list, tuple) else origins.number(values)
        known: Any = origins.valued(chances[0], spot) if chances else None
        if count is not None and (is_ndarray(known) or type(known) in (list, tuple)):
            cause = f"{short(spot.source.text(call.args[0]), 30)} has {count} values, and p has {len(known)}: one "
            cause += "for each is taken."
            yield {}, cause, "Give p as many numbers as there are values; their sum is 1."


def _seed(spot: Spot, statement: ast.stmt) -> Iterator[_Told]:
    """`np.random.RandomState(i * 10**10)`."""
    for call in _given(statement, "RandomState", "seed", "default_rng"):
        text = short(spot.source.text(call.args[0]), 40)
        cause = f"a seed is a number from 0 to 4,294,967,295, and {text} is another one. % keeps it in there."
        yield {call.args[0]: f"({spot.source.text(call.args[0])}) % 2**32"}, cause, ""
