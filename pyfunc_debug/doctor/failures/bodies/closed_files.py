"""A file that its `with` closed before a generator or a body reads it: these run later, when the dataset is read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.pastes.body_edits import first_statement
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, names, short

RULE = "file-read"
_SAID = re.compile(
    r"(?:operation on|read of|seek of|on a) closed (?:file|database)|already closed|is closed\b|file is closed"
    r"|'NoneType' object has no attribute 'open'|[Nn]ot a (?:location|dataset|file)"
    r"|identifier is not of specified type|Invalid (?:dataset|file|location)"
)
_PASSES = ("generator", "reader", "DictReader", "map", "filter", "zip", "enumerate", "TextIOWrapper")
"""Kinds of values that read the file as somebody goes through them."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing function reads what a `with` of its file gave, which has ended."""
    if not _SAID.search(situation.message):
        return None
    for spot in reversed(situation.spots):
        for block, name in _blocks(spot):
            found = _read_later(spot, block, name) or _opened_there(spot, block, name)
            if found is not None:
                return found
    return None


def _blocks(spot: Spot) -> Iterator[tuple[ast.With, str]]:
    """The `with ... as name` of the file that have ended."""
    for one in ast.walk(spot.source.tree):
        if isinstance(one, ast.With) and len(one.items) == 1 and isinstance(one.items[0].optional_vars, ast.Name):
            function = spot.function
            if function is not None and one not in ast.walk(function):
                yield one, one.items[0].optional_vars.id


def _cause(spot: Spot, block: ast.With, name: str) -> str:
    function = getattr(spot.function, "name", "the lambda")
    opened = short(spot.source.text(block.items[0].context_expr), 30)
    return (
        f"`with {opened} as {name}` (line {block.lineno}) closes {name} where its block ends, and {function} runs "
        "later, when the dataset is read."
    )


def _read_later(spot: Spot, block: ast.With, name: str) -> Explanation | None:
    """What the block made of the file and the function reads: all of it, read inside of the block."""
    asked = names(spot.function) if spot.function is not None else []
    for one in block.body:
        if not isinstance(one, ast.Assign) or name not in names(one.value) or len(one.targets) != 1:
            continue
        made = dotted(one.targets[0])
        value, text = spot.value(made), spot.source.text(one.value)
        if made not in asked:
            continue
        kind = type(value)
        if kind.__module__.startswith("h5py") and kind.__name__ == "Dataset":
            new, what = f"{text}[:]", "Read into memory there, it stays."
        elif kind.__name__ in _PASSES:
            new, what = f"list({text})", "As a list, its rows stay, also for a second pass."
        else:
            continue
        edit = edit_of(spot.file, spot.source.replaced({one.value: new}))
        if edit is not None:
            return Explanation(RULE, spot.file, spot.line, f"{_cause(spot, block, name)} {what}", edit, "", "likely")
    return None


def _opened_there(spot: Spot, block: ast.With, name: str) -> Explanation | None:
    """The function with its lines in a `with` of its own."""
    function = spot.function
    if not isinstance(function, ast.FunctionDef) or name not in names(function):
        return None
    cause = f"{_cause(spot, block, name)} Opened there, it is open for each pass."
    source, first, last = spot.source, first_statement(function), function.end_lineno or function.lineno
    long_text = any(
        isinstance(one, (ast.Constant, ast.JoinedStr)) and (one.end_lineno or one.lineno) > one.lineno
        for one in ast.walk(function)
    )
    if long_text or first == function.lineno:
        return Explanation(RULE, spot.file, spot.line, cause, None, f"Open it in {function.name}.")
    blanks = indent_of(source.lines[first - 1])
    inside = [f"    {line}" if line.strip() else line for line in source.lines[first - 1 : last]]
    opened = source.text(block.items[0].context_expr)
    edit = Edit(spot.file, first, last, (f"{blanks}with {opened} as {name}:", *inside))
    return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")
