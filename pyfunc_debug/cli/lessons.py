"""The lessons: where they are installed, and copies of them in a folder of the user's."""

from __future__ import annotations

import json
import os
from importlib import metadata
from pathlib import Path

from pyfunc_debug.errors import CannotWriteError, NotInstalledError

_SHARE = "share/pyfunc_debug/notebooks/"


def lessons() -> list[Path]:
    """The installed lessons, in order.

    Raises:
      NotInstalledError: this installation has none.
    """
    found = _installed() or sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("0*.ipynb"))
    if not found:
        raise NotInstalledError("this installation has no lessons: reinstall pyfunc-debug from a wheel")
    return found


def _installed() -> list[Path]:
    """From the wheel's list of files: the data folder differs between virtual environments, --user and Debian."""
    try:
        files = metadata.files("pyfunc-debug") or []
    except metadata.PackageNotFoundError:  # used from a source tree
        return []
    named = [file for file in files if _SHARE in file.as_posix() and file.suffix == ".ipynb"]
    paths = [Path(os.path.normpath(str(file.locate()))) for file in named]
    return sorted(path for path in paths if path.exists())


def copy_lessons(folder: str | os.PathLike[str], overwrite: bool = False) -> tuple[list[Path], list[Path]]:
    """Copies the lessons, without their saved outputs, to a folder, which is made if need be.

    Args:
      folder: Where to.
      overwrite: Whether lessons that are there already, perhaps with your answers in them, may be replaced.

    Returns:
      The lessons in the folder, and those of them that were there and have been kept.

    Raises:
      CannotWriteError: the folder cannot be made or written to.
      NotInstalledError: this installation has no lessons.
    """
    target = Path(folder)
    copies, kept = [], []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for lesson in lessons():
            copy = target / lesson.name
            copies.append(copy)
            if copy.exists() and not overwrite:
                kept.append(copy)
            else:
                copy.write_text(_fresh(lesson.read_text(encoding="utf-8")), encoding="utf-8")
    except OSError as error:
        raise CannotWriteError(f"cannot write lessons to {target}: {error.strerror or error}") from error
    return copies, kept


def _fresh(text: str) -> str:
    """A lesson that nobody has run: who guesses before running a cell must not see what it gives."""
    lesson = json.loads(text)
    for cell in lesson["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    return json.dumps(lesson, indent=1, ensure_ascii=False) + "\n"
