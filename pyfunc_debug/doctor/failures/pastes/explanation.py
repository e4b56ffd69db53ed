"""What is said under a traceback: cause, line and a text to paste, in at most six lines of 80 columns."""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pyfunc_debug.places import source_line

WIDTH = 80
_LINES = 6
"""Without the user's own lines that a paste only indents."""
_HEAD = 4
"""Lines of the cause that are kept above a longer paste."""
_SENTENCES = re.compile(r"(?<=[a-z`)\]]\.) (?=[A-Z`])")
"""Between two sentences of a cause."""
_INSTRUCTION = re.compile(r"(Replace .+ by|Put above .+):")
_PLACE = re.compile(r"^(?:Replace (?:lines )?|Put above )(.+?):(\d+)(?: to (\d+))?(?: by)?:$", re.MULTILINE)
_REPLACED = re.compile(r"^Replace (?:lines )?(.+?):(\d+)(?: to (\d+))? by:$", re.MULTILINE)


@dataclass(frozen=True)
class Edit:
    """Lines to paste.

    Attributes:
      file: The user's file.
      first, last: The lines that they replace; `last` is `first` - 1 where they go before line `first`.
      lines: What to paste, with its indentation.
    """

    file: str
    first: int
    last: int
    lines: tuple[str, ...]

    def instruction(self, folder: bool = False) -> str:
        """Where the lines go, as a sentence; with the file's folder if asked."""
        first = source_line(self.file, self.first, folder)
        if self.last < self.first:
            return f"Put above {first}:"
        return f"Replace {first if self.first == self.last else f'lines {first} to {self.last}'} by:"


def edit_of(file: str, placed: tuple[int, int, str] | None) -> Edit | None:
    """The paste for what `Source.replaced` gives: a first and a last line, and the text in their place."""
    if placed is None:
        return None
    first, last, text = placed
    return Edit(file, first, last, tuple(text.split("\n")))


def is_instruction(line: str) -> bool:
    """Whether a line of a fix says where the lines below it go: those are printed from the first column, to copy."""
    return _INSTRUCTION.fullmatch(line) is not None


def replaced_lines(fix: str) -> Iterator[tuple[str, int]]:
    """Files and lines that a fix of these instructions replaces."""
    for file, first, last in _REPLACED.findall(fix):
        yield from ((file, line) for line in range(int(first), int(last or first) + 1))


def places(fix: str) -> Iterator[tuple[str, int, int]]:
    """Where the instructions of a fix change a file: its name, the first line, and how far the lines below move."""
    parts = _PLACE.split(fix)[1:]
    for file, first, last, new in zip(parts[::4], parts[1::4], parts[2::4], parts[3::4]):
        added = new.rstrip("\n").count("\n")
        above = f"Put above {file}:{first}:" in fix.split("\n")
        yield file, int(first), added - (0 if above else int(last or first) + 1 - int(first))


def pasted_lines(fix: str, file: str) -> dict[int, list[str]]:
    """What the instructions of a fix put into a file, by the line that it goes to."""
    parts = _PLACE.split(fix)[1:]
    return {
        int(first): new.strip("\n").split("\n")
        for named, first, _, new in zip(*(parts[place::4] for place in range(4)))
        if source_line(file, int(first)) == f"{named}:{first}"
    }


def with_lines(fix: str, file: str, make: Callable[[Edit], Sequence[str]]) -> str:
    """A fix whose instructions put other lines into a file: what `make` gives for each."""
    parts = _PLACE.split(fix)
    places = list(_PLACE.finditer(fix))
    text = parts[0]
    for found, named, first, last, new in zip(places, *(parts[1 + place :: 4] for place in range(4))):
        if source_line(file, int(first)) == f"{named}:{first}":
            end = int(first) - 1 if found[0].startswith("Put above") else int(last or first)
            edit = Edit(file, int(first), end, tuple(new.removeprefix("\n").split("\n")))
            new = "\n".join(("", *make(edit)))
        text += found[0] + new
    return text


def applied(edits: Iterable[Edit], lines: Sequence[str]) -> list[str]:
    """Lines of a file with its edits made."""
    after = list(lines)
    for one in sorted(edits, key=lambda one: -one.first):
        after[one.first - 1 : one.last] = one.lines
    return after


def together(edits: Sequence[Edit], lines: Sequence[str]) -> Edit:
    """Edits of one file, none in another's lines, as one: with the lines between them."""
    first, last = min(one.first for one in edits), max(one.last for one in edits)
    added = sum(len(one.lines) - (one.last + 1 - one.first) for one in edits)
    return Edit(edits[0].file, first, last, tuple(applied(edits, lines)[first - 1 : last + added]))


@dataclass(frozen=True)
class Explanation:
    """Why a program failed, and what to do.

    Attributes:
      rule: The doctor's rule.
      file, line: The user's line that it is about.
      cause: What ran at trace and what at run, in one or two sentences.
      edit: What to paste; None where only words can be given, which `advice` holds.
      advice: What to do, where there is nothing to paste.
      confidence: How sure it is: measured (read from the failure itself) or likely (a guess is in it).
      folders: Whether files are named with their folders: another one of the program's has the same name.
    """

    rule: str
    file: str
    line: int
    cause: str
    edit: Edit | None = None
    advice: str = ""
    confidence: Literal["measured", "likely"] = "measured"
    folders: bool = False

    def text(self) -> str:
        """What is printed."""
        tail = textwrap.wrap(
            self.advice, WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
        )  # fmt: skip
        above = len(tail) + (self.edit is not None)  # of the paste itself
        tail += [] if self.edit is None else [f"  {self.edit.instruction(self.folders)}", *self.edit.lines]
        first, *others = _SENTENCES.split(self.cause)
        lines = [*self._head(first), *(line for one in others for line in _wrapped(one))]
        whole = len(lines) + len(tail) <= _LINES or len(lines) <= _HEAD
        if whole and len(lines) + above <= _LINES:  # each sentence on a line of its own
            return "\n".join([*lines, *tail])
        room = max(_LINES - len(tail), _HEAD)
        cause = self.cause
        head = self._head(cause)
        while len(head) > room and (shorter := _SENTENCES.split(cause)[:-1]):  # whole sentences, as long as there are
            cause = " ".join(shorter)
            head = self._head(cause)
        if len(head) > room:
            rest = textwrap.shorten(f"{head[room - 1]} {head[room]}", WIDTH - 4, placeholder=" ...")
            head = [*head[: room - 1], f"  {rest}"]
        return "\n".join([*head, *tail])

    def _head(self, cause: str) -> list[str]:
        return textwrap.wrap(
            f"pyfunc-debug: {source_line(self.file, self.line, self.folders)}: {cause}", WIDTH, subsequent_indent="  ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip

    def facts(self) -> dict[str, Any]:
        """What is stored of it in a recording."""
        return dataclasses.asdict(self)


def _wrapped(sentence: str) -> list[str]:
    return textwrap.wrap(
        sentence, WIDTH, initial_indent="  ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )  # fmt: skip


def from_facts(facts: dict[str, Any]) -> Explanation:
    """The explanation that `facts` came from."""
    edit = facts.get("edit")
    kept = Edit(**{**edit, "lines": tuple(edit["lines"])}) if edit else None
    return Explanation(**{**facts, "edit": kept})
