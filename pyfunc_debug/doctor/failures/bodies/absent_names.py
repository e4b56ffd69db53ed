"""A name that a dict, an HDF5 file or a MATLAB file does not have: what it has, and the one that is like it."""

from __future__ import annotations

import ast
import difflib
import importlib
import os
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import lookup

_HDF5 = "object '{}' doesn't exist"
_SHOWN = 6
_MOST = 200
"""Names that are looked at."""
_ALIKE = 0.75


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a body or a generator asks such a thing for a name that is written in its line."""
    spot, statement = situation.last, situation.statement
    if situation.kind != "KeyError" or spot is None or statement is None or not situation.data:
        return None
    for part, owner, names in _asked(situation, spot, statement):
        wanted = part.value if isinstance(part, ast.Constant) else None
        if not isinstance(wanted, str):
            continue
        near, how = _near(wanted, names)
        listed = ", ".join(map(repr, names[:_SHOWN])) + ", ..." * (len(names) > _SHOWN)
        cause = f"{short(owner, 40)} has no {wanted!r}{how}. It has {listed}."
        pieces = {part: repr(near)} if near is not None else {}
        if isinstance(near, bytes):
            pieces |= _as_bytes(statement, owner, names, spot)
        edit = in_place(spot, pieces)
        advice = "" if edit else "Ask for one of these."
        return Explanation(RULE, spot.file, spot.line, cause, edit, advice, "likely" if edit else "measured")
    return None


def _asked(situation: Situation, spot: Spot, statement: ast.stmt) -> Iterator[tuple[ast.expr, str, list[Any]]]:
    """The keys in the failing line that what they are asked of lacks: with its text, and the names that it has."""
    for one in ast.walk(statement):
        if not isinstance(one, ast.Subscript) or not isinstance(one.slice, ast.Constant):
            continue
        key = one.slice.value
        names = _names(lookup(one.value, spot)) or _of_file(one.value, spot)
        said = key == (situation.inner.args or ("",))[0] or _HDF5.format(key) in situation.message
        if names and said and key not in names:
            yield one.slice, spot.source.text(one.value), names


def _as_bytes(statement: ast.stmt, owner: str, names: list[Any], spot: Spot) -> dict[ast.expr, str]:
    """All keys of a line that what they are asked of has as bytes."""
    return {
        one.slice: repr(one.slice.value.encode()) for one in ast.walk(statement)
        if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Constant) and isinstance(one.slice.value, str)
        and spot.source.text(one.value) == owner and one.slice.value.encode() in names
    }  # fmt: skip


def _names(value: Any) -> list[Any]:
    """The names that a dict, or a group of an HDF5 file, has; none where it is another, or the file is closed."""
    if type(value) is dict:
        keys = list(value)[:_MOST]
        plain = [one for one in keys if type(one) in (str, bytes) and not str(one).startswith("__")]
        return plain if len(plain) == len([one for one in keys if not str(one).startswith("__")]) else []
    if type(value).__module__.startswith("h5py.") and type(value).__name__ in ("File", "Group"):
        try:
            return [str(one) for one in list(value)[:_MOST]]
        except (ValueError, RuntimeError, OSError):
            return []
    return []


def _of_file(node: ast.expr, spot: Spot) -> list[Any]:
    """The names of an HDF5 file that `with` has closed by now: `h5py.File("d.h5")` of a file that is there."""
    name = dotted(node)
    for one in spot.source.around(node):
        for item in one.items if isinstance(one, ast.With) else ():
            call = item.context_expr
            if item.optional_vars is None or dotted(item.optional_vars) != name or not isinstance(call, ast.Call):
                continue
            if dotted(call.func) != "h5py.File" or not call.args:
                continue
            first = call.args[0]
            path = first.value if isinstance(first, ast.Constant) else lookup(first, spot)
            if isinstance(path, str) and os.path.isfile(path):
                return _in_file(path)
    return []


def _in_file(path: str) -> list[Any]:
    try:
        h5py = importlib.import_module("h5py")
        with h5py.File(path, "r") as file:
            return [str(one) for one in list(file)[:_MOST]]
    except (ImportError, OSError):
        return []


def _near(wanted: str, names: list[Any]) -> tuple[Any, str]:
    """The one name that is meant, and what is said of it: as bytes, in other letters, with or without an s."""
    if wanted.encode() in names:
        return wanted.encode(), ": its names are bytes"
    texts = [one for one in names if isinstance(one, str)]
    same = [one for one in texts if one.strip().lower().rstrip("s") == wanted.strip().lower().rstrip("s")]
    close = same or difflib.get_close_matches(wanted, texts, 2, _ALIKE)
    return (close[0], f", but {close[0]!r}") if len(close) == 1 else (None, "")
