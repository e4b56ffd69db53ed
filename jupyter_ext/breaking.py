"""Whether code of the user's calls `breakpoint()`: then bodies stop in the notebook without a breakpoint of ours."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tokenize
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from pyfunc_debug.program.frames import is_installed, is_user

_CALLS = re.compile(r"\b(breakpoint|set_trace)\s*\(|^\s*%run\b", re.MULTILINE)
"""Also in a comment or a text, where it means that calls are watched for nothing. What %run runs is not looked into."""
_IMPORT = re.compile(
    r"""(?:\bfrom[ \t]+([\w.]+)[ \t]+)?\bimport[ \t]*(\([^)]*\)|[ \t][^\n;#]*)|import\w*\(\s*["']([\w.]+)["']"""
)


class Breaking:
    """What the user's cells and modules say of it; once one calls it, so may every later cell.

    Args:
      shell: IPython's; the cells that it ran count.
    """

    def __init__(self, shell: Any) -> None:
        self._loaded: set[str] = set()
        self._read: dict[str, int] = {}  # the user's files, with the time of the text that was looked at
        self._found = any(map(_CALLS.search, getattr(shell.history_manager, "input_hist_raw", ())))

    def may_call(self, cell: str) -> bool:
        """Whether code in this cell, a cell before it or a module of the user's may call `breakpoint()`.

        Args:
          cell: The text of the cell that begins. The modules that it is going to import count.
        """
        self._found = self._found or _CALLS.search(cell) is not None or self._in_a_file(cell)
        return self._found

    def _in_a_file(self, cell: str) -> bool:
        waiting = [*self._read, *self._newly_loaded(), *_imported(cell, sys.path)]
        while waiting:
            file = waiting.pop()
            text = self._new_text(file)
            if _CALLS.search(text):
                return True
            waiting += _imported(text, [*sys.path, os.path.dirname(file)])
        return False

    def _newly_loaded(self) -> Iterator[str]:
        names = sys.modules.keys() - self._loaded
        self._loaded |= names
        for name in names:
            file = _file_of(name)
            if file.endswith(".py") and _is_the_users(file):
                yield file

    def _new_text(self, file: str) -> str:
        """The file's text; empty where it is as it was when it was last looked at."""
        with contextlib.suppress(OSError, SyntaxError, UnicodeDecodeError):
            changed_ns = os.stat(file).st_mtime_ns
            if self._read.get(file) != changed_ns:
                self._read[file] = changed_ns
                with tokenize.open(file) as source:
                    return source.read()
        return ""


def _imported(text: str, folders: list[str]) -> Iterator[str]:
    """The user's files that a text imports and that are not loaded. Python's finders are not asked: they remember."""
    for name in set(_imported_names(text)) - sys.modules.keys():
        around = _file_of(name.partition(".")[0])
        if around and not _is_the_users(around):  # what it imports of NumPy is a module or not, but none of the user's
            continue
        for folder in folders:
            path = os.path.join(folder, *name.split("."))
            for file in (path + ".py", os.path.join(path, "__init__.py")):
                if os.path.isfile(file) and _is_the_users(file):
                    yield os.path.abspath(file)


def _imported_names(text: str) -> Iterator[str]:
    """Modules that a text imports, those of its own package without it; some are functions and classes."""
    for package, names, called in _IMPORT.findall(text):
        package = package.strip(".")
        words = [one.split()[0] for one in names.strip("()").split(",") if one.split()]  # without `as x`
        yield from (f"{package}.{one}" if package else one for one in words)
        yield from filter(None, (package, called.strip(".")))


def _file_of(module: str) -> str:
    """The file of a module that is loaded; empty where there is none."""
    found = sys.modules.get(module)
    if not isinstance(found, ModuleType):
        return ""
    file = object.__getattribute__(found, "__dict__").get("__file__")  # asking a lazy one would load it
    return file if isinstance(file, str) else ""


def _is_the_users(file: str) -> bool:
    return not is_installed(file) and is_user(file)
