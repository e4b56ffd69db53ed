"""The recordings that a folder or a pattern stands for: those of a job's processes. And names that are free."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable

from pyfunc_debug.errors import BadRecordingError
from pyfunc_debug.pfrec.schema import APPLICATION_ID

_MAGIC = b"SQLite format 3\0"
_APPLICATION_AT = 68


def is_many(path: str) -> bool:
    """Whether a path stands for any number of recordings: a folder, or a pattern where no file has that name."""
    return os.path.isdir(path) or (not os.path.exists(path) and any(sign in path for sign in "*?["))


def recordings_in(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """The files that paths stand for, each once, in the order given; those of a folder by name, folders in it too.

    Returns:
      The files, and a sentence for each file of a folder or pattern that is none: one bad file hides no good ones.

    Raises:
      BadRecordingError: a folder holds none, or a pattern fits none.
    """
    found: dict[str, None] = {}
    left_out: list[str] = []
    for path in paths:
        if not is_many(path):
            found[path] = None
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
        left_out += [f"left out: {why}" for why in foreign.values()]
    return list(found), left_out


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
