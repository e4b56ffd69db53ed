"""A pattern of names that no file has: which folder of it is there, and what that holds."""

from __future__ import annotations

import ast
import glob
import os
import re
from collections import Counter
from typing import Any

from pyfunc_debug.doctor.failures.bodies.file_names import text_of
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup

RULE = "file-read"
_SAID = re.compile(r"No files matched pattern: (.+?)'?\"?$", re.MULTILINE)
_OF_NOTHING = re.compile(
    r"float32 that does not match expected type of string|unknown (?:TensorShape|rank)|ran out of data|Empty Logs"
    r"|[Ee]nd of sequence|contains no shape|expected string|got an empty|is empty"
)
"""What is said where a list of names is empty: TensorFlow makes float32 of nothing."""
_FINDS = ("glob", "iglob", "rglob", "listdir", "scandir")
_GLOBS = ("glob", "iglob")
_WIDEST = 40
_WILD = re.compile(r"[*?\[]")
_MOST = 5000
_SHOWN = 4


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if Dataset.list_files found no file."""
    said, spot = _SAID.search(situation.message), situation.last
    if said is None or spot is None or situation.body:
        return None
    return _told(spot, spot.line, said[1].split(", ")[0])


def of_nothing(situation: Situation) -> Explanation | None:
    """The explanation, if a dataset was made of an empty list of names, which the program looked for."""
    said = situation.kind in ("StopIteration", "OutOfRangeError") or _OF_NOTHING.search(situation.message)
    for spot in reversed(situation.spots) if said and not situation.body else ():
        for call in spot.source.calls_of(frozenset({"from_tensor_slices"})):
            for one in names(call):
                value = spot.value(one)
                if type(value) is list and not value and (found := _held_by(situation, spot, one, value)) is not None:
                    return found
            if (found := _looked_for_inside(spot, call)) is not None:
                return found
    return None


def _held_by(situation: Situation, spot: Spot, name: str, value: list[Any]) -> Explanation | None:
    """What made an empty list: of an argument in the frames of the callers, by their names for it."""
    found = _looked_for(spot, name)
    outer = situation.spots[: situation.spots.index(spot)]
    for one in reversed(outer) if found is None else ():
        for known, kept in {**one.module, **one.variables}.items():
            if kept is value and (found := _looked_for(one, known)) is not None:
                return found
    return found


def _looked_for(spot: Spot, name: str) -> Explanation | None:
    """`files = sorted(glob.glob("images/*.png"))`: what the list of that name was made of."""
    for one in ast.walk(spot.source.tree):
        if not isinstance(one, ast.Assign) or name not in map(dotted, one.targets):
            continue
        for _, pattern in _finding(spot, one.value):
            return _told(spot, one.lineno, pattern, f"{name} is empty: ")
    return None


def _looked_for_inside(spot: Spot, call: ast.Call) -> Explanation | None:
    """The same of a list without a name: `from_tensor_slices(glob.glob("images/*.png"))`; none is there now, either."""
    given = call.args[0] if call.args else call.keywords[0].value if call.keywords else None
    if given is None or spot.source.function(call.lineno) not in (None, spot.function):
        return None
    found = _finding(spot, given)
    plain = all(dotted(one.func).rpartition(".")[2] in _GLOBS for one, _ in found)
    if len(found) != 1 or not plain or "**" in found[0][1] or next(glob.iglob(found[0][1]), None) is not None:
        return None
    asked = short(spot.source.text(found[0][0]), _WIDEST)
    return _told(spot, found[0][0].lineno, found[0][1], f"{asked} is empty: ")


def _finding(spot: Spot, node: ast.expr) -> list[tuple[ast.Call, str]]:
    """The calls of an expression that look for files, and the whole patterns of these."""
    every = []
    for call in calls(node):
        pattern = text_of(call.args[0], spot) if call.args else None
        if dotted(call.func).rpartition(".")[2] in _FINDS and pattern is not None:
            folder = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
            every.append((call, os.path.join(folder, pattern) if isinstance(folder, os.PathLike) else pattern))
    return every


def _told(spot: Spot, line: int, pattern: str, begin: str = "") -> Explanation:
    folder, missing = deepest(pattern)
    cause = f"{begin}no file has a name like {pattern}. "
    if missing:
        cause += f"{folder or os.getcwd()} has no {missing}{held(folder)}."
        relative = not os.path.isabs(pattern)
        advice = "Write the folder that has the files" + (f": names begin at {os.getcwd()}." if relative else ".")
        return Explanation(RULE, spot.file, line, cause, None, advice)
    ends = _ends(folder)
    wanted = os.path.splitext(pattern)[1]
    cause += f"The folder is there{held(folder)}."
    if len(ends) == 1 and wanted and next(iter(ends)) != wanted and not _WILD.search(wanted):
        edit = _other_end(spot, line, wanted, next(iter(ends)))
        if edit is not None:
            return Explanation(RULE, spot.file, line, cause, edit, "", "likely")
    return Explanation(RULE, spot.file, line, cause, None, "Write a pattern that its names have.")


def deepest(pattern: str) -> tuple[str, str]:
    """The last folder of a pattern that is there, and the part behind it that is not; "" where all are."""
    parts = pattern.split(os.sep)
    folder = os.sep if pattern.startswith(os.sep) else ""
    for part in parts[:-1]:
        if _WILD.search(part):
            return folder, ""
        if not os.path.isdir(os.path.join(folder, part)) and part:
            return folder, part
        folder = os.path.join(folder, part)
    return folder, ""


def names_in(folder: str) -> list[str]:
    """The names in a folder, sorted, without hidden ones and recordings; none of a folder that is not there."""
    try:
        with os.scandir(folder or ".") as found:
            listed = sorted(one.name for one, _ in zip(found, range(_MOST)))
    except OSError:
        return []
    return [one for one in listed if not one.startswith(".") and ".pfrec" not in one]


def held(folder: str) -> str:
    """What a folder holds, in words."""
    names = names_in(folder)
    if not names:
        return ", and it is empty"
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f", and it has {', '.join(names[:_SHOWN])}{more}"


def _ends(folder: str) -> Counter[str]:
    """How many files of a folder have each end."""
    names = names_in(folder)
    files = [one for one in names if os.path.isfile(os.path.join(folder, one))]
    return Counter(end for one in files if (end := os.path.splitext(one)[1]))


def _other_end(spot: Spot, line: int, wanted: str, end: str) -> Edit | None:
    """The line with another end in its one text that has the wrong one."""
    statement = spot.source.statement(line)
    texts = [
        one for one in (ast.walk(statement) if statement is not None else ())
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value.endswith(wanted)
    ]  # fmt: skip
    if len(texts) != 1:
        return None
    written = spot.source.text(texts[0])
    quote = written[-1]
    return edit_of(spot.file, spot.source.replaced({texts[0]: f"{written[: -1 - len(wanted)]}{end}{quote}"}))
