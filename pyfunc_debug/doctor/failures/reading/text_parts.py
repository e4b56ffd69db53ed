"""Several files as one text, in a file of a name that nobody else knows; and what is said of it in the user's lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from pyfunc_debug.places import source_line

NAME = "joined by pyfunc-debug.py"
MOST_LINES = 12_000
"""The text has no more of them: those of the files that are nearest to what failed, or was recorded."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_NUMBERED = re.compile(rf"(?:{re.escape(NAME)}:|\blines? |(?<=\d to )|(?<=\d and ))(\d+)\b")


@dataclass(frozen=True)
class Part:
    """A file in the joined text: it begins behind line `above`."""

    file: str
    above: int
    count: int


class Parts:
    """The text, and which of its lines are which file's.

    Attributes:
      lines: The text.
      files: Its files, in their order.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.files: list[Part] = []

    def add(self, file: str, lines: Sequence[str]) -> None:
        """Puts a file below the others, and an empty line."""
        self.files.append(Part(file, len(self.lines), len(lines)))
        self.lines += [*lines, ""]

    @property
    def above(self) -> dict[str, int]:
        """How many lines are above each file."""
        return {one.file: one.above for one in self.files}

    def at(self, line: int | None) -> Part | None:
        """The file that a line of the text is of."""
        if line is None:
            return None
        return next((one for one in self.files if one.above < line <= one.above + one.count + 1), None)

    def has_namesake(self, file: str) -> bool:
        """Whether another of the files, in another folder, has the same name."""
        return any(one.file != file and source_line(one.file, None) == source_line(file, None) for one in self.files)

    def in_files(self, text: str, about: Part) -> str:
        """A text whose lines are those of the joined one, with the user's: `line 4`, or `losses.py:4` of another."""

        def own(match: re.Match[str]) -> str:
            number = int(match[1])
            part = self.at(number)
            if part is None:
                return match[0]
            if NAME in match[0] or part is not about:
                return source_line(part.file, number - part.above, self.has_namesake(part.file))
            return f"{match[0].removesuffix(match[1])}{number - part.above}"

        return _NUMBERED.sub(own, text)


def used(tree: ast.Module, wanted: Set[str]) -> Iterator[ast.stmt]:
    """The statements of an imported file that ran as it was imported, and the functions and classes that are used.

    Args:
      tree: The file.
      wanted: The names that other files read.
    """
    names, left = set(wanted), [one for one in tree.body if not _is_guarded(one)]
    while True:
        some = [one for one in left if not isinstance(one, _DEFINITIONS) or one.name in names]
        if not some:
            return
        for one in some:
            left.remove(one)
            names |= set(all_names(one))
        yield from some


def _is_guarded(statement: ast.stmt) -> bool:
    """Whether it is `if __name__ == "__main__":`, which does not run in an imported file."""
    return isinstance(statement, ast.If) and any(
        isinstance(one, ast.Name) and one.id == "__name__" for one in ast.walk(statement.test)
    )


def all_names(statement: ast.AST) -> Iterator[str]:
    """All names in a statement: those of imports, and texts that may be one, as `getattr(losses, "focal")` has."""
    for one in ast.walk(statement):
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.Attribute):
            yield one.attr
        elif isinstance(one, ast.alias):
            yield one.name.rpartition(".")[2]
        elif isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value.isidentifier():
            yield one.value
