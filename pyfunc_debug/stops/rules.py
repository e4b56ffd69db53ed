"""Breakpoints as a user states them: which calls, when, under which condition; and how often each was hit."""

from __future__ import annotations

import difflib
import fnmatch
import functools
import inspect
import linecache
import os
import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Literal

from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.events import NodeFacts
from pyfunc_debug.places import cell_file, cell_label, source_line
from pyfunc_debug.program.file_lines import absolute
from pyfunc_debug.program.frames import is_user
from pyfunc_debug.stops.conditions import Condition, expressions

When = Literal["before", "after", "error", "gradient"]
WHENS = ("before", "after", "error", "gradient")
_LINE = re.compile(r"(.+\.(?:py|ipynb)|<.+>|cell \[\d+\]):(\d+)")
_IN_CELL = re.compile(r"(?:cell ?)?(?:in ?)?(?<=[ln ])\[(\d+)\]:(\d+)", re.IGNORECASE)
"""A line of a cell as IPython's tracebacks and prompts name cells, too."""

STOPPED = "stopped"
SKIPPED = "skipped"
EXPIRED = "waited too long"
RELEASED = "released"
EVALUATION = "during an evaluation"
STEPPING = "while another was stepping"
UNANSWERED = "nobody to answer"
TOO_EARLY = "before the wanted hit"
LOGGED = "logged"
BUCKETS = (STOPPED, LOGGED, SKIPPED, EXPIRED, RELEASED, EVALUATION, STEPPING, UNANSWERED, TOO_EARLY)
"""What became of a hit; each is counted in exactly one of these."""


class Breakpoint:
    """A rule that may stop calls. Made by `pyfunc_debug.break_on`.

    Attributes:
      number: Its number, from 1.
      where: The node glob, body name, `file.py:line` or token it was given.
      when: "before", "after", "error" or "gradient".
      condition: Python expression, or None.
      first_hit: The first hit that stops.
      once: Whether it is disabled by its first stop.
      policy: What a call does while another is stopped: "wait", "skip", or how many seconds to wait.
      prompt: None (an attached IDE, else whoever can answer) or "debugger" (the IDE, before prepared answers too).
      log: Expressions to write down in the place of a stop, or None.
      keep: "locals" to write down the variables in the place of a stop, or None.
      enabled: Whether it stops calls now.
      hits: How many calls fulfilled it; `outcomes` says what became of them.
      error: Why its condition could not be evaluated the last time, or empty.
      condition_errors: How many calls its condition could not be evaluated for.
      came_false: Whether its condition was false for a call.
      told: Whether its hits were shown at the end of the program.
      unjudged: How many calls passed because its condition was being evaluated, and had run them or may have.
    """

    def __init__(
        self, number: int, where: str, when: When, condition: str | None, first_hit: int, once: bool,
        policy: str | float, prompt: str | None, remove: Callable[[Breakpoint], None], log: str | None = None,
        keep: str | None = None,
    ) -> None:  # fmt: skip
        self.number = number
        self.where = where
        self.when: When = when
        self.condition = condition
        self.first_hit = first_hit
        self.once = once
        self.policy = policy
        self.prompt = prompt
        self.log = log
        self.logged = expressions(log, "log") if log is not None else []
        self.keep = keep
        self.enabled = True
        self.hits = 0
        self.outcomes: Counter[str] = Counter()
        self.error = ""
        self._failed = ""  # when its condition failed, where `error` was forgotten since
        line = _LINE.fullmatch(where)
        self._file = line.group(1) if line else None
        self.line = int(line.group(2)) if line else None
        self.test = Condition(condition) if condition is not None else None
        self.condition_errors = 0
        self.unjudged = 0
        self.came_false = False
        self.told = False
        self.removed = False
        self._remove = remove
        self.why_not_hit: Callable[[Breakpoint], str] = lambda rule: ""
        self._lock = threading.Lock()  # calls hit on many threads; never held while user code runs
        self._taken = False

    @property
    def file(self) -> str | None:
        """The file of a line. A cell that has run is meant as it was: run again, unchanged, it gets another number."""
        if self._file is not None and self._file.startswith("cell ["):
            self._file = cell_file(self._file) or self._file
        return self._file

    def hit(self) -> bool:
        """Counts a hit; whether it is to stop. A breakpoint for one stop is given to one call only."""
        with self._lock:
            if self.once and self._taken:
                return False
            self.hits += 1
            if self.hits < self.first_hit:
                self.outcomes[TOO_EARLY] += 1
                return False
            self._taken = True
            return True

    def tally(self, outcome: str) -> None:
        """What became of a hit that was to stop."""
        with self._lock:
            self.outcomes[outcome] += 1
            if self.once:
                if outcome in (STOPPED, UNANSWERED, LOGGED):
                    self.enabled = False
                else:
                    self._taken = False

    def count_error(self, text: str) -> None:
        """Its condition raised; that is neither a hit nor a miss."""
        with self._lock:
            self.error = text
            self.condition_errors += 1

    def count_unjudged(self) -> None:
        """A call passed whose condition was not evaluated, since that would never have ended."""
        with self._lock:
            self.unjudged += 1

    def edit(self, condition: str | None) -> None:
        """Changes the condition, from the next call on; None or empty text for none.

        Raises:
          BadOptionError: it is not a Python expression. The old one stays.
        """
        condition = condition.strip() if condition is not None else None
        self.test = Condition(condition) if condition else None
        self.condition = condition or None
        self._forget_error("before it was edited")
        self.came_false = False

    def _forget_error(self, when: str) -> None:
        self.error, self._failed = "", when

    def enable(self) -> None:
        """Stops calls again, unless it was removed.

        Example:
          stop = pfd.break_on("augment*")
          stop.disable()
          stop.enable()  # and on again at any time
        """
        self.enabled = not self.removed
        self._forget_error("before it was enabled")
        self._taken = False

    def disable(self) -> None:
        """Stops no more calls until it is enabled."""
        self.enabled = False

    def remove(self) -> None:
        """Forgets it. Calls it has stopped stay stopped.

        Example:
          for stop in pfd.breakpoints():
              stop.remove()
        """
        self._remove(self)

    def fits(self, node: NodeFacts) -> bool:
        """Whether it names this node: by token, body or op name, for a glob only the user's nodes."""
        if self.where == node.token:
            return True
        users = not node.internal or (node.body.elements and node.body.file is not None and is_user(node.body.file))
        if not users and self.where not in (node.body.name, node.name):
            return False
        return self.fits_name(*(name for name in (node.body.name, node.name) if name))

    def fits_name(self, *names: str) -> bool:
        """Whether it names one of these, or the last part of one."""
        parts = [*names, *(name.rpartition(".")[2] for name in names), *(name.rpartition("/")[2] for name in names)]
        return any(fnmatch.fnmatchcase(name, self.where) for name in parts)

    def text(self) -> str:
        """`augment* if x.max() > 1`; a line of a cell is `cell [3]:7`."""
        in_cell = self.file is not None and cell_label(self.file) is not None
        where = source_line(self.file, self.line) if in_cell else self.where
        return f"{where} if {self.condition}" if self.condition else where

    def __repr__(self) -> str:
        state = "" if self.enabled else ", disabled"
        what = ", ".join(f"{self.outcomes[bucket]} {bucket}" for bucket in BUCKETS if self.outcomes[bucket])
        times = f"{self.hits} hit{'' if self.hits == 1 else 's'}"
        counts = f"{times}{f' ({what})' if what else ''}"
        if self.condition_errors:
            counts += f", condition failed {self.condition_errors}x ({self.error or self._failed})"
        if self.unjudged:
            counts += f", {self.unjudged} passed during an evaluation of its condition"
        if self.removed:
            state = ", removed"
        elif not self.hits and not state:
            why = self.why_not_hit(self)
            state = f" because {why}" if why else ""
        return f"<breakpoint {self.number}: {self.when} {self.text()}, {counts}{state}>"


def line_of_cell(text: str) -> str:
    """`cell [3]:7` for what means that; else empty."""
    named = _IN_CELL.fullmatch(text)
    return f"cell [{named[1]}]:{named[2]}" if named is not None else ""


def same_file(shown: str, file: str) -> bool:
    """Whether `train.py` or `lib/train.py` means this file."""
    if shown.startswith("<") or file.startswith("<"):
        return shown == file
    if shown.startswith("cell ["):
        return cell_label(file) == shown
    return _same_path(shown, file)


@functools.lru_cache(maxsize=4096)
def _same_path(shown: str, file: str) -> bool:
    """Code that was started by a relative name has one; links may lead to either."""
    wanted, path = os.path.normpath(shown), absolute(file)
    real = os.path.realpath(path)
    if os.path.realpath(absolute(wanted)) == real:
        return True
    return not os.path.isabs(wanted) and any(name.endswith(os.sep + wanted) for name in (path, real))


class Rules:
    """The breakpoints of this process.

    Attributes:
      listeners: Called in this order after every change of the list.
      why_not_hit: What to say of a breakpoint that no node fits so far.
    """

    def __init__(self) -> None:
        self.listeners: list[Callable[[], None]] = []
        self.why_not_hit: Callable[[Breakpoint], str] = lambda rule: ""
        self._all: tuple[Breakpoint, ...] = ()
        self._last = 0

    def add(
        self, where: str, when: str = "before", condition: str | None = None, hits: int = 1, once: bool = False,
        policy: str | float = "wait", prompt: str | None = None, log: str | None = None, keep: str | None = None,
    ) -> Breakpoint:  # fmt: skip
        """Adds a breakpoint; see `pyfunc_debug.break_on`.

        Raises:
          BadOptionError: an option makes no sense.
        """
        if not isinstance(where, str) or not where.strip():
            raise BadOptionError(f"where={where!r}: name a node by glob, body, file.py:line or token")
        if when not in WHENS:
            near = difflib.get_close_matches(str(when), WHENS, 1)
            raise BadOptionError(
                f"when={when!r} is not one of {', '.join(WHENS)}{f'. Did you mean {near[0]!r}?' if near else ''}"
            )
        if condition is not None and not isinstance(condition, str):
            raise BadOptionError(f"condition={condition!r}: give a Python expression as text")
        if policy not in ("wait", "skip") and (isinstance(policy, bool) or not isinstance(policy, (int, float))):
            raise BadOptionError(f"policy={policy!r}: say 'wait', 'skip', or a number of seconds")
        if isinstance(policy, (int, float)) and not policy >= 0:
            raise BadOptionError(f"policy={policy!r}: must be at least 0 seconds")
        if prompt not in (None, "debugger"):
            raise BadOptionError(f"prompt={prompt!r}: leave it out, or say 'debugger' for the attached IDE")
        if log is not None and (not isinstance(log, str) or not log.strip()):
            raise BadOptionError(f"log={log!r}: give Python expressions as text, with commas between them")
        if keep not in (None, "locals"):
            raise BadOptionError(f"keep={keep!r}: leave it out, or say 'locals'")
        if isinstance(hits, bool) or not isinstance(hits, int) or hits < 1:
            raise BadOptionError(f"hits={hits!r}: say the number of the first hit that stops, from 1")
        if not isinstance(once, bool):
            raise BadOptionError(f"once={once!r}: say True or False")
        where = line_of_cell(where.strip()) or where.strip()
        _check_line(where)
        self._last += 1
        breakpoint_ = Breakpoint(
            self._last, where, when, condition, hits, once, policy, prompt, self.remove, log, keep  # type: ignore[arg-type]  # checked above
        )  # fmt: skip
        breakpoint_.why_not_hit = self.why_not_hit
        self._all = (*self._all, breakpoint_)
        self._tell_listeners()
        return breakpoint_

    def remove(self, breakpoint_: Breakpoint) -> None:
        """Forgets a breakpoint; one that is gone already is not an error."""
        breakpoint_.enabled, breakpoint_.removed = False, True
        self._all = tuple(one for one in self._all if one is not breakpoint_)
        self._tell_listeners()

    def clear(self) -> None:
        """Forgets all of them."""
        for one in self._all:
            one.enabled, one.removed = False, True
        self._all = ()
        self._tell_listeners()

    def _tell_listeners(self) -> None:
        for listener in list(self.listeners):
            listener()

    def all(self) -> tuple[Breakpoint, ...]:
        """The breakpoints, oldest first."""
        return self._all

    def __len__(self) -> int:
        return len(self._all)


def _check_line(where: str) -> None:
    """Raises BadOptionError where a file that can be found has no code at a line."""
    line = _LINE.fullmatch(where)
    cell = cell_file(line.group(1)) if line is not None else None
    if line is None or not (cell or os.path.isfile(line.group(1))):
        return
    lines, number = linecache.getlines(cell or os.path.abspath(line.group(1))), int(line.group(2))
    text = lines[number - 1].strip() if 0 < number <= len(lines) else None
    if lines and text is None:
        raise BadOptionError(f"where={where!r}: the {'cell' if cell else 'file'} has lines 1 to {len(lines)}")
    if text is not None and (not text or text.startswith("#")):
        raise BadOptionError(f"where={where!r}: there is no code in this line, so no call ever stops there")


@functools.lru_cache(maxsize=256)
def length(file: str, line: int) -> int:
    """How many lines a function has that begins at a line of a file; 1 where the source cannot be read."""
    lines = linecache.getlines(file)[line - 1 :]
    return len(inspect.getblock(lines)) if lines else 1
