"""Runs programs of several files, a few in each process, and does what is printed."""

from __future__ import annotations

import os
import pickle
import re
import select
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.doctor.matrix.engine import warm
from tests.doctor.pasting import pasted, pastes, run
from tests.doctor.reshaped.shapes import MAIN, SHAPES, Files
from tests.doctor.test_failures import programs
from tests.limits import HANG_S

_TOGETHER = 20
"""Programs that one process runs."""
ROUNDS = 3
TOLD, OTHER = "told", "otherwise"
LESS = ("untold", "other rule", "no paste", "paste fails", "died")
"""What is printed with its program. Otherwise: in this shape it does not fail, or not by the same exception."""


@dataclass(frozen=True)
class Task:
    """A program in a shape.

    Attributes:
      name: The program's.
      files: Its text, by file.
      source: The program as it is.
      expected: The rule, and the words where there is nothing to paste.
    """

    name: str
    files: Files
    source: str
    expected: str


@dataclass
class Outcome:
    """The verdict, what was told in each round, and the last error."""

    verdict: str
    told: list[str] = field(default_factory=list)
    error: str = ""


def tasks(shape: str) -> list[Task]:
    """The programs that are told something, in a shape that they can have."""
    found = []
    for name, rule, (source, expected) in programs():
        if rule in ("untold", "runs"):
            continue
        files = SHAPES[shape](source)
        if files is not None:
            found.append(Task(name, files, source, expected))
    return found


def outcomes(
    chosen: list[Any], jobs: int, paste: bool = True, of: Callable[[Any, bool], Outcome] | None = None
) -> Iterator[tuple[Any, Outcome]]:
    """Runs them, several processes at once; each process ends after a few programs.

    Args:
      chosen: The programs.
      jobs: How many processes at once.
      paste: Whether what is printed is done to them, too.
      of: Runs one of them; `outcome` if there is none.
    """
    warm()
    waiting = [chosen[place : place + _TOGETHER] for place in range(0, len(chosen), _TOGETHER)]
    running: dict[int, tuple[int, list[Any], bytearray]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            some = waiting.pop(0)
            pid, end = _forked(some, paste, of or outcome)
            running[end] = (pid, some, bytearray())
        ready = select.select(list(running), [], [], HANG_S)[0]
        for end in ready or list(running):
            pid, some, received = running[end]
            data = os.read(end, 1 << 16) if ready else b""
            received += data
            while len(received) >= 8 and len(received) >= 8 + int.from_bytes(received[:8], "big"):
                size = int.from_bytes(received[:8], "big")
                yield some.pop(0), pickle.loads(received[8 : 8 + size])
                del received[: 8 + size]
            if data:
                continue
            if not ready:
                os.killpg(pid, signal.SIGKILL)
            os.close(end)
            os.waitpid(pid, 0)
            del running[end]
            if some:  # the one that it was at has ended the process
                yield some.pop(0), Outcome("died")
                waiting[:0] = [some] if some else []


def _forked(some: list[Any], paste: bool, of: Callable[[Any, bool], Outcome]) -> tuple[int, int]:
    """A process that runs them, and where it writes what became of each."""
    theirs, ours = os.pipe()
    pid = os.fork()
    if pid:
        os.close(ours)
        return pid, theirs
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    try:
        for one in some:
            data = pickle.dumps(of(one, paste))
            os.write(ours, len(data).to_bytes(8, "big") + data)
    finally:
        os._exit(0)


def outcome(task: Task, paste: bool = True) -> Outcome:
    """Runs a program, and what its pastes make of it."""
    rule, _, words = task.expected.partition(" ")
    files = task.files
    error, told, rules = _recorded(files)
    found = Outcome(TOLD, [told], _said(error))
    if error is None:
        found.verdict = OTHER
    elif not told:
        found.verdict = "untold"
    elif rule not in rules:
        found.verdict = "other rule"
    elif not words and not pastes(told):
        found.verdict = "no paste"
    if found.verdict in LESS and not _alike(error, _recorded({MAIN: task.source})[0]):
        found.verdict = OTHER
    if found.verdict != TOLD or words or not paste:
        return found
    for _ in range(ROUNDS):
        files = applied(files, told)
        error, told, _ = _recorded(files)
        if error is None:
            return found
        found.told.append(told)
        found.error = _said(error)
        if not pastes(told):
            break
    found.verdict = "paste fails"
    return found


def _said(error: BaseException | None) -> str:
    return f"{type(error).__name__}: {error}"


def _alike(one: BaseException | None, other: BaseException | None) -> bool:
    """Whether two exceptions are the same but for names and numbers at their end."""
    return type(one) is type(other) and str(one)[:20] == str(other)[:20]


def applied(files: Files, told: str) -> Files:
    """The files with what is told done to the one that it names."""
    named = re.findall(r"(?:Put above|Replace(?: lines)?) (\S+?):\d+", told)
    file = next((Path(one).name for one in named if Path(one).name in files), MAIN)
    return {**files, file: pasted(files[file], told)}


def _recorded(files: Files) -> tuple[BaseException | None, str, list[str]]:
    """Runs the files of a program in a folder of their own: the error, what is told, the rules of the findings."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, text in files.items():
            Path(name).write_text(text)
        sys.path.insert(0, folder)
        try:
            error, told, recording = run(Path(folder, MAIN))
            return error, told, [one.rule for one in recording.findings()]
        finally:
            sys.path.remove(folder)
            for name in files:
                sys.modules.pop(name.removesuffix(".py"), None)
            os.chdir("/")
