"""The files of a program, or the cells of a notebook, as one text: causes look for what a line needs in one file.

A loss in losses.py, the model in a cell above, the pipeline in data.py: the line that failed stands beside none of
them. The joined text has all of them, in a file of a name that only this module knows; what is found there is said and
pasted in the user's own files and lines. Its calls may be read in another form as well (`Rewrite`): the text stays.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import types
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, parsed, put
from pyfunc_debug.places import cell_number, cells_here, source_line
from pyfunc_debug.program.file_lines import current_lines
from pyfunc_debug.program.frames import is_installed, is_user

NAME = "joined by pyfunc-debug.py"
Rewrite = Callable[[Source, Situation], Situation]
"""Changes the tree of the joined source, whose nodes keep their places; gives the situation that belongs to it."""
_MOST_FILES = 40
_MOST_LINES = 20_000
_NUMBERED = re.compile(rf"(?:{re.escape(NAME)}:|\blines? |(?<=\d to )|(?<=\d and ))(\d+)\b")


@dataclasses.dataclass(frozen=True)
class _Part:
    """A file in the joined text: it begins behind line `above`."""

    file: str
    above: int
    count: int


class Joined:
    """A failure with the user's files as one.

    Args:
      situation: The failure.
      files: The user's files, each with the names and values of its module; those of its frames first.
    """

    def __init__(self, situation: Situation, files: Mapping[str, Mapping[str, Any]]) -> None:
        self._lines: list[str] = []
        self._parts: list[_Part] = []
        for file in files:
            own = [line.rstrip("\n") for line in current_lines(file)]
            if not parsed("\n".join(own)).tree.body or len(self._lines) + len(own) > _MOST_LINES:
                continue  # one that is empty or no Python would make nothing of all of them
            self._parts.append(_Part(file, len(self._lines), len(own)))
            self._lines += [*own, ""]
        above = {one.file: one.above for one in self._parts}
        modules = [dict(files[one.file]) for one in self._parts]
        spots = tuple(
            dataclasses.replace(
                spot, file=NAME, line=above[spot.file] + spot.line, module=ChainMap(dict(spot.module), *modules)
            ) if spot.file in above else spot
            for spot in situation.spots
        )  # fmt: skip
        self._situation = dataclasses.replace(situation, spots=spots, joined=frozenset(above))
        self.several = len(self._parts) > 1
        """Whether there is more than one file."""

    @contextmanager
    def read(self, *rewrites: Rewrite) -> Iterator[Situation]:
        """The failure as it is read while the files are one, with their calls in another form."""
        source, found = Source(self._lines), self._situation
        for rewrite in rewrites if not source.mapped else ():
            source = source.renewed()
            with put(NAME, source):
                found = rewrite(source, self._anew(found))
        with put(NAME, source.renewed() if rewrites and not source.mapped else source):
            yield self._anew(found)

    @staticmethod
    def _anew(situation: Situation) -> Situation:
        """The same, for which no statement has been looked up."""
        return dataclasses.replace(situation, spots=tuple(map(dataclasses.replace, situation.spots)))

    def apart(self, found: Explanation) -> Explanation | None:
        """An explanation in the user's files and lines; None where one paste would go into two files."""
        if found.file != NAME:
            return found
        part = self._part(found.line)
        edit = found.edit
        if part is None:
            return None
        if edit is not None and edit.file == NAME:
            of_edit = self._part(edit.first)
            if of_edit is None or (edit.last >= edit.first and self._part(edit.last) is not of_edit):
                return None
            edit = dataclasses.replace(
                edit, file=of_edit.file, first=edit.first - of_edit.above, last=edit.last - of_edit.above
            )
        return dataclasses.replace(
            found, file=part.file, line=found.line - part.above, edit=edit, cause=self._in_files(found.cause, part),
            advice=self._in_files(found.advice, part),
        )  # fmt: skip

    def _part(self, line: int) -> _Part | None:
        return next((one for one in self._parts if one.above < line <= one.above + one.count + 1), None)

    def _in_files(self, text: str, about: _Part) -> str:
        """A text whose lines are those of the joined one, with the user's: `line 4`, or `losses.py:4` of another."""

        def own(match: re.Match[str]) -> str:
            number = int(match[1])
            part = self._part(number)
            if part is None:
                return match[0]
            if NAME in match[0] or part is not about:
                return source_line(part.file, number - part.above)
            return f"{match[0].removesuffix(match[1])}{number - part.above}"

        return _NUMBERED.sub(own, text)


def joined(situation: Situation) -> Joined | None:
    """The same failure with the user's files as one; None where no file of theirs is known."""
    files: dict[str, Mapping[str, Any]] = {spot.file: spot.module for spot in reversed(situation.spots)}
    for file, module in _reached(list(files.items())):
        files.setdefault(file, module)
        if len(files) == _MOST_FILES:
            break
    return Joined(situation, files) if files else None


def _reached(files: list[tuple[str, Mapping[str, Any]]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The user's modules that those of some files import, and the cells of their notebook, newest first."""
    seen = set()
    while files:
        file, module = files.pop(0)
        if file in seen:
            continue
        seen.add(file)
        yield file, module
        if cell_number(file) is not None:
            files += [(cell, module) for cell, _ in sorted(cells_here().items(), key=lambda one: -one[1])]
        for value in list(module.values()):
            found = _of(value)
            if found is not None and is_user(found[0]) and not is_installed(found[0]):
                files.append(found)


def _of(value: object) -> tuple[str, Mapping[str, Any]] | None:
    """The file of a module, or of the module in which a function, a class or an object's class was made."""
    if isinstance(value, types.FunctionType):
        return value.__code__.co_filename, value.__globals__
    if not isinstance(value, types.ModuleType):
        name = (value if isinstance(value, type) else type(value)).__module__
        value = sys.modules.get(name) if isinstance(name, str) else None
    file = getattr(value, "__file__", None)
    return (file, vars(value)) if isinstance(file, str) and isinstance(value, types.ModuleType) else None
