"""A line of a text file with fewer parts than the map asks for: "slice index 1 of dimension 0 out of bounds".

TensorFlow names the slice, and not the line of the file, which is read here.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from contextlib import suppress

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls

RULE = "structure"
_SAID = re.compile(r"slice index (\d+) of dimension 0 out of bounds")
_MOST = 200_000
_SHOWN = 40


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line of the one file that is read has too few parts."""
    found, last = _SAID.search(situation.message), situation.last
    if found is None or last is None or situation.body:
        return None
    for file, source in situation.sources():
        read = [one for one in calls(source.tree) if dotted(one.func).endswith("TextLineDataset") and one.args]
        splits = [one for one in calls(source.tree) if _is_split(one)]
        spot = next((one for one in situation.spots if one.file == file), last)
        if len(read) == 1 and len(splits) == 1:
            return _told(spot, file, source, read[0], splits[0], int(found[1]))
    return None


def _is_split(call: ast.Call) -> bool:
    return dotted(call.func).endswith(("strings.split", "string_split"))


def _told(spot: Spot, file: str, source: Source, read: ast.Call, split: ast.Call, place: int) -> Explanation | None:
    old = dotted(split.func).endswith("string_split")
    given = argument(split, 1, "delimiter" if old else "sep")
    sep = evaluation.computed(given, spot) if given is not None else None
    if given is not None and (not isinstance(sep, str) or len(sep) > 1):
        return None
    sep = sep or (" " if old else None)
    whole, skipped = _skipped(source, read)
    for name, number, line in _lines(evaluation.computed(read.args[0], spot), skipped):
        parts = [one for one in line.split(sep) if one or not old]
        if len(parts) > place:
            continue
        at = f"line {number} of {os.path.basename(name)}"
        what = "is empty" if not line.strip() else f'("{short(line, _SHOWN)}") has {len(parts)} of them'
        cause = (
            f"`{short(source.text(split), 40)}` gives the parts of a line, and {at} {what}: there is no part "
            f"[{place}]. The filter leaves out such lines."
        )
        pattern = _pattern(sep, place, old)
        matches = f'{alias(spot, "tensorflow")}.strings.regex_full_match(line, r"{pattern}")'
        edit = edit_of(file, source.replaced({whole: f"{source.text(whole)}.filter(lambda line: {matches})"}))
        return Explanation(RULE, file, split.lineno, cause, edit)
    return None


def _skipped(source: Source, read: ast.Call) -> tuple[ast.expr, int]:
    """The call that makes the dataset with its `skip`, and how many lines that leaves out."""
    method = source.parent(read)
    call = source.parent(method) if isinstance(method, ast.Attribute) and method.attr == "skip" else None
    if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Constant):
        return call, int(call.args[0].value) if isinstance(call.args[0].value, int) else 0
    return read, 0


def _lines(paths: object, skipped: int) -> Iterator[tuple[str, int, str]]:
    """The lines of some files behind the first ones, with the names of the files and their numbers."""
    names = paths if isinstance(paths, (list, tuple)) else [paths]
    count = 0
    for name in names:
        if not isinstance(name, str) or not os.path.isfile(name):
            return
        with suppress(UnicodeDecodeError), open(name, encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                count += 1
                if count > _MOST:
                    return
                if count > skipped:
                    yield name, number, line.rstrip("\r\n")


def _pattern(sep: str | None, place: int, old: bool) -> str:
    """What a line with enough parts looks like, for regex_full_match."""
    if sep is None:
        return rf"\s*\S+(\s+\S+){{{place},}}\s*"
    part, mark = ".+" if old else ".*", re.escape(sep).replace("\\\t", r"\t")
    return f"{part}{mark}" * place + part
