"""A key that is written out and that an element has not, but nearly the same: `d["image"]`, where it is "img"."""

from __future__ import annotations

import ast
import difflib
from typing import Any

from pyfunc_debug.doctor.failures.pastes.as_python import element_spec
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.symbols import lookup

RULE = "structure"
_MOST, _NEAR = 20, 0.55
"""Keys that are listed, and how much of two keys is the same where one is meant for the other."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line asks a dict of tensors or arrays for a key that it lacks."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.kind != "KeyError" or not situation.inner.args:
        return None
    missing = situation.inner.args[0]
    asked = [
        one for one in ast.walk(statement)
        if isinstance(one, ast.Subscript) and isinstance(one.value, ast.Name) and isinstance(one.slice, ast.Constant)
        and isinstance(missing, str) and one.slice.value == missing
    ]  # fmt: skip
    owners = {one.value.id for one in asked if isinstance(one.value, ast.Name)}
    if len(owners) != 1:
        return None
    name = owners.pop()
    keys = _keys(name, situation, spot)
    if not keys or missing in keys:
        return None
    pieces = _pieces(name, spot, keys)
    listed = ", ".join(f'"{one}"' for one in keys[:_MOST])
    cause = f'{name} has no key "{missing}": it has {listed}.'
    here = any(one.lineno == asked[0].lineno for one in pieces)
    edit = Edit(spot.file, *spot.source.kept_lines(pieces)) if here else None
    advice = "" if edit is not None else "Write one of these."
    return Explanation(RULE, spot.file, asked[0].lineno, cause, edit, advice, "likely")


def _keys(name: str, situation: Situation, spot: Spot) -> list[str]:
    """The keys of a dict by its name: the function's own, or the element that a mapped function got."""
    value: Any = lookup(ast.Name(name, ast.Load()), spot)
    if value is None and spot.function is not None:
        given = [*spot.function.args.posonlyargs, *spot.function.args.args]
        if len(given) == 1 and given[0].arg == name:
            value = element_spec(situation, spot)
    if type(value) is not dict or len(value) > _MOST or not all(type(one) is str for one in value):
        return []
    parts = all(hasattr(one, "dtype") or type(one).__name__.endswith("Spec") for one in value.values())
    return list(value) if parts else []


def _pieces(name: str, spot: Spot, keys: list[str]) -> dict[ast.expr, str]:
    """The keys that the function reads of that dict and that it lacks, and the nearest of those that it has."""
    within = spot.function if spot.function is not None else spot.source.tree
    reads = [
        one for one in ast.walk(within)
        if isinstance(one, ast.Subscript) and isinstance(one.value, ast.Name) and one.value.id == name
        and isinstance(one.slice, ast.Constant) and isinstance(one.slice.value, str) and isinstance(one.ctx, ast.Load)
    ]  # fmt: skip
    written = {one.slice.value for one in ast.walk(within) if _is_write(one, name)}  # type: ignore[attr-defined]
    taken = {str(one.slice.value) for one in reads if isinstance(one.slice, ast.Constant)}
    free = [one for one in keys if one not in taken]
    found: dict[ast.expr, str] = {}
    for one in reads:
        assert isinstance(one.slice, ast.Constant)
        if one.slice.value in keys or one.slice.value in written:
            continue
        near = _nearest(str(one.slice.value), free)
        if near is None:
            return {}
        found[one.slice] = f'"{near}"'
    return found


def _is_write(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.slice, ast.Constant)
        and isinstance(node.value, ast.Name) and node.value.id == name
    )  # fmt: skip


def _nearest(key: str, keys: list[str]) -> str | None:
    """The one key that is surely meant; None where there are several, or none."""
    same = [one for one in keys if one.lower().replace("_", "") == key.lower().replace("_", "")]
    inside = [one for one in keys if one.lower() in key.lower() or key.lower() in one.lower()]
    near = difflib.get_close_matches(key.lower(), [one.lower() for one in keys], 2, _NEAR)
    alike = [one for one in keys if one.lower() in near]
    for found in (same, inside, alike):
        if found:
            return found[0] if len(found) == 1 else None
    return None
