"""The recordings that a folder or a pattern stands for: those of a job's processes. And names that are free."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable

from pyfunc_debug.errors import BadRecordingError


def is_many(path: str) -> bool:
    """Whether a path stands for any number of recordings: a folder, or a pattern where no file has that name."""
    return os.path.isdir(path) or (not os.path.exists(path) and any(sign in path for sign in "*?["))


def recordings_in(paths: Iterable[str]) -> list[str]:
    """The files that paths stand for, each once, in the order given; those of a folder by name, folders in it too.

    Raises:
      BadRecordingError: a folder holds none, or a pattern fits none.
    """
    found: dict[str, None] = {}
    for path in paths:
        if not is_many(path):
            found[path] = None
            continue
        inside = os.path.join(glob.escape(path), "**", "*.pfrec") if os.path.isdir(path) else path
        files = sorted(glob.glob(inside, recursive=True))
        if not files:
            folder = f"the folder {path} holds no recording (*.pfrec)"
            raise BadRecordingError(folder if os.path.isdir(path) else f"nothing fits {path}")
        found.update(dict.fromkeys(files))
    return list(found)


def free_path(stem: str) -> str:
    """A file that is not there yet: `train.pfrec`, `train-2.pfrec`, ..."""
    path, number = f"{stem}.pfrec", 1
    while os.path.exists(path):
        number += 1
        path = f"{stem}-{number}.pfrec"
    return path
