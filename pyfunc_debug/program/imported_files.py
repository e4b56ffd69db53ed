"""The files of the user's own modules that their files import: what a class says that only Keras calls stands there."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any, TypeGuard

from pyfunc_debug.program.file_lines import current_lines
from pyfunc_debug.program.frames import is_installed, is_user

_IMPORT = re.compile(
    r"\s*(?:from\s+(?P<start>\.*)(?P<of>[\w.]*)\s+import\s+(?P<names>[\w, ()]+)|import\s+(?P<own>[\w.]+))"
)
_MOST = 40


def imported_files(files: Iterable[str]) -> list[str]:
    """The files of loaded modules that some files import, and that these import; no installed package's."""
    found: list[str] = []
    todo, seen = list(files), set(files)
    loaded = {file for file in (_file(one) for one in list(sys.modules)) if file is not None}
    while todo and len(found) < _MOST:
        for file in imports_of(todo.pop(0), loaded):
            if file not in seen:
                seen.add(file)
                found.append(file)
                todo.append(file)
    return found[:_MOST]


def imports_of(file: str, loaded: set[str]) -> Iterator[str]:
    """The loaded files that a file's lines import."""
    for line in current_lines(file):
        match = _IMPORT.match(line)
        if match is None:
            continue
        if match["start"]:
            yield from _beside(file, match["start"], match["of"], match["names"], loaded)
            continue
        module = match["own"] or match["of"]
        parts = [one.split()[0] for one in (match["names"] or "").strip(" ()").split(",") if one.split()]
        for name in (module, *(f"{module}.{one}" for one in parts)):
            known = _file(name)
            if known is not None:
                yield known


def is_module(value: object) -> TypeGuard[ModuleType]:
    """Whether a value is a module. `isinstance` would ask an object of the user's what it is, and run its code."""
    return issubclass(type(value), ModuleType)


def names_of(module: ModuleType) -> dict[str, Any]:
    """The names and values of a module as it is: one that loads itself when it is asked stays so."""
    found: dict[str, Any] = ModuleType.__getattribute__(module, "__dict__")
    return found


def _file(name: str) -> str | None:
    """The file of a loaded module, if it is the user's own. A module that loads itself when it is asked stays so."""
    module = sys.modules.get(name)
    file = names_of(module).get("__file__") if is_module(module) else None
    own = isinstance(file, str) and file.endswith(".py") and is_user(file) and not is_installed(file)
    return file if own else None


def _beside(file: str, start: str, of: str, names: str, loaded: set[str]) -> Iterator[str]:
    """`from .losses import focal`: files of the same package, or of one that it is in."""
    folder = os.path.dirname(file)
    for _ in start[1:]:
        folder = os.path.dirname(folder)
    base = os.path.join(folder, *filter(None, of.split(".")))
    inside: Sequence[str] = [one.split()[0] for one in names.strip(" ()").split(",") if one.split()]
    for path in (base, *(os.path.join(base, one) for one in inside)):
        for each in (f"{path}.py", os.path.join(path, "__init__.py")):
            if each in loaded:
                yield each
