"""Kills a process just before each step in which the files of a recording are made and removed; needs no TensorFlow.

    python -m tests.pfrec.steps begin|end FOLDER

Each step has a folder of its own, N, with what the kill left there of `x.pfrec`; a line a step says what it was.
"""

from __future__ import annotations

import mmap
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyfunc_debug.pfrec import Writer
from pyfunc_debug.recorder.budget import Budget
from pyfunc_debug.recorder.recorder import Recorder
from pyfunc_debug.values import Policies

_STEPS = {"open", "close", "link", "unlink", "remove", "rename", "replace", "posix_fallocate", "flock"}


def _die_at(last: int) -> Callable[..., None]:
    """A profile function that kills the process just before a step, or tells by exit code 1 that there are no more."""
    steps = 0

    def step(frame: Any, event: str, function: Any) -> None:
        nonlocal steps
        if event != "c_call":
            return
        owner = getattr(function, "__self__", None)
        of_files = isinstance(owner, (sqlite3.Connection, sqlite3.Cursor, mmap.mmap)) or (
            function.__name__ in _STEPS and function.__module__ in ("posix", "io", "_io", "fcntl")
        )
        if of_files:
            if steps == last:
                os.write(1, function.__name__.encode())
                os.kill(os.getpid(), signal.SIGKILL)
            steps += 1

    return step


def _recorder(path: Path) -> Recorder:
    return Recorder(str(path), Policies("none"), Budget(1_000_000), {"pid": os.getpid()})


def main(what: str, folder: Path) -> None:
    Writer._prepare_statements = lambda self: None  # type: ignore[method-assign] # a hundred steps that touch no file
    for number in range(1000):
        place = folder / str(number)
        place.mkdir()
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.dup2(writing, 1)
            if what == "begin":
                sys.setprofile(_die_at(number))
                _recorder(place / "x.pfrec")
            else:
                recorder = _recorder(place / "x.pfrec")
                sys.setprofile(_die_at(number))
                recorder.close({"state": "complete"})
            sys.setprofile(None)
            os._exit(1)
        os.close(writing)
        with os.fdopen(reading) as told:
            step = told.read()
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1:
            break
        print(step, *sorted(os.listdir(place)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
