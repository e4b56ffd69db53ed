"""`np.squeeze(y)` without an axis in a generator: a batch of one row loses the axis of its rows, too."""

from __future__ import annotations

import ast
import itertools
import re

from pyfunc_debug.doctor.failures.datasets import generator_calls, signature_parts
from pyfunc_debug.doctor.failures.pastes.body_edits import is_generator
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "ragged-batch"
_SHAPES = re.compile(r"yielded an element of shape \(([^)]*)\) where an element of shape \(([^)]*)\) was expected")
_CONVERTS = ("astype", "copy", "asarray", "array", "float32", "float64", "int32", "int64")
"""What leaves the shape as it is."""
_MOST = 8
"""Axes of a shape whose sizes are tried."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a generator's element has fewer axes than its signature, and its code squeezes all."""
    found = _SHAPES.search(situation.message) or _SHAPES.search(situation.text)
    got, wanted = (re.findall(r"\w+", part) for part in found.groups()) if found is not None else ([], [])
    if found is None or not len(got) < len(wanted) <= _MOST:
        return None
    before = _unsqueezed(got, wanted)
    if not before:
        return None
    parts, count = signature_parts.failed_parts(situation)
    for file, source in situation.sources():
        every = [
            (one, function) for function in ast.walk(source.tree)
            if isinstance(function, ast.FunctionDef) and is_generator(function)
            for one in calls(function) if _of_all_axes(one)
        ]  # fmt: skip
        if len({one for one, _ in every}) != 1:
            continue
        call, function = every[-1]
        places = _places(source, call, function, count)
        if parts and places and not any(place is None or place in parts for place in places):
            return None  # it makes another part of the element
        text = source.text(call)
        fits = len(before) == 1 and wanted.count("None") <= 1 and bool(places)
        sizes = tuple("-1" if one == "None" else one for one in wanted)
        edit = edit_of(file, source.replaced({call: _reshaped(source, call, sizes)})) if fits else None
        declared = "its signature has" if generator_calls.calls(situation) else "those before had"
        lost = " or ".join(f"({', '.join(one)}{',' * (len(one) == 1)})" for one in before[:2])
        cause = (
            f"the generator yielded an element of shape ({found[1]}), and {declared} ({found[2]}): `{text}` drops "
            f"every axis of size 1, and makes ({found[1]}) of {lost}, too."
        )
        advice = f"Say which axis is to go: {dotted(call.func)}({'x, ' * bool(call.args)}axis=0) for the first one."
        return Explanation(RULE, file, call.lineno, cause, edit, "" if edit else advice)
    return None


def _unsqueezed(got: list[str], wanted: list[str]) -> list[tuple[str, ...]]:
    """The shapes that a signature allows and that squeezing all axes of size 1 makes the yielded one of."""
    kept = [place for place, one in enumerate(wanted) if one != "1"]
    found: list[tuple[str, ...]] = []
    for places in itertools.combinations(kept, len(got)):
        sizes = dict(zip(places, got))
        shape = tuple(sizes.get(place, "1") for place in range(len(wanted)))
        if "1" not in got and all(size in ("None", own) for size, own in zip(wanted, shape)):
            found.append(shape)
    return found


def _places(source: Source, call: ast.Call, function: ast.FunctionDef, count: int) -> list[int | None]:
    """At which places of what is yielded a call's result stands, as it is; None for the whole of it, or a key's."""
    value: ast.AST = call
    while (around := _kept_by(source, value)) is not None:
        value = around
    found: list[ast.AST] = [value]
    assigned = source.parent(value)
    if isinstance(assigned, ast.Assign) and len(assigned.targets) == 1 and isinstance(assigned.targets[0], ast.Name):
        name = assigned.targets[0].id
        read = [one for one in ast.walk(function) if isinstance(one, ast.Name) and one.id == name]
        found = [one for one in read if isinstance(one.ctx, ast.Load)]
        if len(read) - len(found) > 1:
            return []
    places: list[int | None] = []
    for one in found:
        outer = source.parent(one)
        if isinstance(outer, ast.Yield):
            places.append(None)
        elif isinstance(outer, ast.Tuple) and isinstance(source.parent(outer), ast.Yield):
            places.append(outer.elts.index(one) if isinstance(one, ast.expr) and len(outer.elts) == count else None)
        elif isinstance(outer, ast.Dict) and isinstance(source.parent(outer), ast.Yield):
            places.append(None)
        else:
            return []  # more is made of it, by the shape that it has
    return places


def _kept_by(source: Source, value: ast.AST) -> ast.AST | None:
    """The call around an expression that leaves its shape: `x.astype("float32")`, `np.float32(x)`."""
    outer = source.parent(value)
    if isinstance(outer, ast.Attribute) and outer.attr in _CONVERTS:
        around = source.parent(outer)
        return around if isinstance(around, ast.Call) and around.func is outer else None
    if isinstance(outer, ast.Call) and value in outer.args[:1] and dotted(outer.func).rpartition(".")[2] in _CONVERTS:
        return outer
    return None


def _reshaped(source: Source, call: ast.Call, sizes: tuple[str, ...]) -> str:
    """The call as one that makes the shape of the signature: of one row, too, and whatever axis was to go."""
    assert isinstance(call.func, ast.Attribute)
    owner = source.text(call.func.value)
    if not call.args:
        return f"{owner}.reshape({', '.join(sizes)})"
    shape = f"({', '.join(sizes)})" if len(sizes) > 1 else "[-1]" if sizes == ("-1",) else f"[{sizes[0]}]"
    return f"{owner}.reshape({source.text(call.args[0])}, {shape})"


def _of_all_axes(call: ast.Call) -> bool:
    """Whether it is `np.squeeze(y)` or `y.squeeze()`, without an axis."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "squeeze" or call.keywords:
        return False
    return len(call.args) == (1 if dotted(call.func.value) in ("np", "numpy", "tf") else 0)
