"""The first row of a table of text, with the names of its columns, or an empty field, taken for numbers."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import calls

_SAID = re.compile(r"(?:could not convert string to float|invalid literal for int\(\) with base 10): (['\"])(.*)\1$")
_LOADED = re.compile(r"could not convert string '(.*)' to \w+ at row 0, column \d+")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a body or a generator made a number of such a text."""
    if not situation.data:
        return None
    loaded = _LOADED.search(situation.message)
    if loaded is not None:
        return _of_loadtxt(situation, loaded[1])
    said = _SAID.search(situation.message)
    if said is None:
        return None
    for spot in reversed(situation.spots):
        found = _row(spot, said[2])
        if found is not None:
            return _told(situation, spot, said[2], *found)
        listed = _listed(spot, said[2])
        if listed is not None:
            return listed
    return None


def _listed(spot: Spot, field: str) -> Explanation | None:
    """`path, label = rows[i]` of a list that was read with its header."""
    source, function = spot.source, spot.function
    for one in ast.walk(function) if function is not None else ():
        name = dotted(one.value) if isinstance(one, ast.Subscript) else ""
        rows = spot.value(name) if name.isidentifier() else None
        first = rows[0] if type(rows) is list and rows else None
        if type(first) is not list or field not in first or not all(type(part) is str for part in first):
            continue
        made = [
            each for each in ast.walk(source.tree)
            if isinstance(each, ast.Assign) and [dotted(target) for target in each.targets] == [name]
        ]  # fmt: skip
        if len(made) != 1 or any(_is_number(part) for part in first):
            continue
        shown = short(", ".join(map(repr, first)), 60)
        cause = (
            f"the first row of {name}, {shown}, has the names of the columns, and line {spot.line} makes numbers of it."
        )
        value = made[0].value
        edit = edit_of(spot.file, source.replaced({value: f"{source.atom(value)}[1:]"}))
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Take {name}[1:].", "likely")
    return None


def _of_loadtxt(situation: Situation, text: str) -> Explanation | None:
    """`np.loadtxt(path, delimiter=",")` of a file with a header."""
    for spot in reversed(situation.spots):
        found = [
            one for one in calls(spot.statement or ast.Pass())
            if dotted(one.func).endswith("loadtxt") and all(word.arg not in ("skiprows", None) for word in one.keywords)
        ]  # fmt: skip
        if len(found) == 1:
            cause = f"the first row of the file has names of columns, {text!r}, and loadtxt reads numbers."
            edit = in_place(spot, {found[0]: spot.source.with_argument(found[0], "skiprows=1")})
            return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else "Pass skiprows=1.")
    return None


def _row(spot: Spot, field: str) -> tuple[ast.For, list[str]] | None:
    """The loop over rows whose row, a list of texts, has a field; also one over lines."""
    statement = spot.source.statement(spot.line)
    if statement is None:
        return None
    for loop in (statement, *spot.source.around(statement)):
        if not isinstance(loop, ast.For):
            continue
        for name in (one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)):
            value = spot.variables.get(name)
            if type(value) is list and value and all(type(one) is str for one in value) and field in value:
                return loop, value
            if type(value) is str and field in value and _splits(loop, name):
                parts = [one.strip() for one in re.split(r"[,;\t]", value)]
                if len(parts) > 1 and field.strip() in parts:
                    return loop, parts
    return None


def _splits(loop: ast.For, name: str) -> bool:
    return any(
        isinstance(one.func, ast.Attribute) and one.func.attr == "split" and name in ast.unparse(one.func)
        for one in calls(loop)
    )


def _told(situation: Situation, spot: Spot, field: str, loop: ast.For, row: list[str]) -> Explanation | None:
    source, shown = spot.source, short(", ".join(map(repr, row)), 60)
    if any(_is_number(one) for one in row) or not field.strip():
        if field.strip():
            return None
        cause = f"a row is {shown}, and its empty field is made a number. NaN can stand for it."
        last, floats = situation.last, list[ast.Call]()
        if last is not None:
            every = calls(last.statement or ast.Pass())
            floats = [one for one in every if dotted(one.func) == "float" and len(one.args) == 1]
        if last is None or not floats:
            return Explanation(RULE, spot.file, spot.line, cause, None, "Say what stands for it: `int(v or 0)`.")
        pieces = {given: f'{source.text(given)} or "nan"' for call in floats for given in call.args}
        return Explanation(RULE, last.file, last.line, cause, in_place(last, pieces))
    cause = f"the first row, {shown}, has the names of the columns, and line {spot.line} makes numbers of it."
    edit = _skipped(spot, loop)
    advice = "" if edit else "Leave it out: `next(reader)` above the loop."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice, "likely")


def _skipped(spot: Spot, loop: ast.For) -> Edit | None:
    """The loop without its first row."""
    source, rows = spot.source, loop.iter
    name = dotted(rows)
    if isinstance(rows, ast.Call) and dotted(rows.func) == "enumerate" and rows.args:
        name = dotted(rows.args[0])
        rows = rows.args[0]
    if name:
        value = spot.value(name) if isinstance(rows, ast.Name) else None
        if type(value) is list:
            return edit_of(spot.file, source.replaced({rows: f"{name}[1:]"}))
        if value is None or hasattr(value, "__next__"):
            indent = indent_of(source.lines[loop.lineno - 1])
            return Edit(spot.file, loop.lineno, loop.lineno - 1, (f"{indent}next({name})",))
        return None
    if isinstance(rows, ast.Call):
        text = source.text(rows)
        listed = dotted(rows.func).rpartition(".")[2] in ("readlines", "splitlines", "list")
        return edit_of(spot.file, source.replaced({rows: f"{text}[1:]" if listed else f"list({text})[1:]"}))
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
