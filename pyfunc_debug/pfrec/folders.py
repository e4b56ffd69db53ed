"""The recordings that a folder or a pattern stands for: those of a job's processes. And names that are free."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from pyfunc_debug.errors import BadRecordingError
from pyfunc_debug.pfrec.ring import SUFFIX
from pyfunc_debug.pfrec.schema import APPLICATION_ID

_MAGIC = b"SQLite format 3\0"
_APPLICATION_AT = 68
_TOLD = 5
_AT_ONCE = 16
_Answer = TypeVar("_Answer")


def is_many(path: str) -> bool:
    """Whether a path stands for any number of recordings: a folder, or a pattern where no file has that name."""
    return os.path.isdir(path) or (not os.path.exists(path) and any(sign in path for sign in "*?["))


class Chosen:
    """The files that paths stand for, each once, in the order given; those of a folder by name, folders in it too.

    Args:
      paths: Files, folders and patterns.

    Attributes:
      files: The recordings, without those that could not be read so far.
      left_out: A sentence for each file of a folder or pattern that is none: one bad file hides no good ones.
      damaged: How many of these are damaged recordings: what is missing then is the job's.

    Raises:
      BadRecordingError: a folder holds none, or a pattern fits none.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        found: dict[str, None] = {}
        self._named: set[str] = set()
        self.left_out: list[str] = []
        self.damaged = 0
        for path in paths:
            if not is_many(path):
                found[path] = None
                self._named.add(os.path.abspath(path))
                continue
            inside = os.path.join(glob.escape(path), "**", "*.pfrec") if os.path.isdir(path) else path
            files = sorted(glob.glob(inside, recursive=True))
            if not files:
                folder = f"the folder {path} holds no recording (*.pfrec)"
                raise BadRecordingError(folder if os.path.isdir(path) else f"nothing fits {path}")
            foreign = {file: why for file in files for why in (_foreign(file),) if why}
            if len(foreign) == len(files):
                raise BadRecordingError(f"{path} holds no recording: {next(iter(foreign.values()))}")
            found.update(dict.fromkeys(file for file in files if file not in foreign))
            self.left_out += [f"left out: {why}" for why in foreign.values()]
        self.files = list(found)
        _complete(self.files)

    def read(self, ask: Callable[[list[str]], _Answer]) -> _Answer:
        """What a question to the files gives; asked again without a damaged one of a folder.

        Args:
          ask: Is given the files.

        Raises:
          BadRecordingError: a file that was named itself cannot be read, or none can.
        """
        while True:
            try:
                return ask(self.files)
            except BadRecordingError as error:
                rest = [file for file in self.files if os.path.abspath(file) != error.path]
                if error.path in self._named or not rest or len(rest) == len(self.files):
                    raise
                self.files = rest
                self.damaged += 1
                self.left_out.append(f"left out: {error}")

    def told(self) -> list[str]:
        """`left_out`, in a few lines."""
        more = len(self.left_out) - _TOLD
        return self.left_out if more <= 1 else [*self.left_out[:_TOLD], f"left out: {more} more files"]


def _complete(files: Sequence[str]) -> None:
    """Completes recordings whose processes died, together: each alone waits for the disk several times."""
    killed = [file for file in files if os.path.exists(file + SUFFIX)]
    if len(killed) < 2:
        return
    from concurrent.futures import ThreadPoolExecutor

    from pyfunc_debug.pfrec.reader import Reader  # what only asks for names does without

    def open_once(file: str) -> None:
        with contextlib.suppress(BadRecordingError):  # whoever asks it anything learns why
            Reader(file).close()

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        list(threads.map(open_once, killed))


def _foreign(file: str) -> str | None:
    """Why a file cannot be a recording, in words. What its log may hold, and what is damaged, the reader judges."""
    if os.path.exists(file) and not os.path.isfile(file):  # to open a pipe would wait for whoever fills it
        return f"{file} is not a file"
    try:
        if os.path.exists(f"{file}-wal"):
            return None
        with open(file, "rb") as opened:
            head = opened.read(100)
    except OSError:
        return None
    if not head:
        return f"{file} is empty"
    application = int.from_bytes(head[_APPLICATION_AT : _APPLICATION_AT + 4], "big")
    if head.startswith(_MAGIC) and application == APPLICATION_ID:
        return None
    return f"{file} is not a recording of pyfunc_debug"


def free_path(stem: str) -> str:
    """A file that is not there yet: `train.pfrec`, `train-2.pfrec`, ..."""
    path, number = f"{stem}.pfrec", 1
    while os.path.exists(path):
        number += 1
        path = f"{stem}-{number}.pfrec"
    return path
