"""Doing something when the program imports TensorFlow: not before, as the program may set its environment first."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one module as Python would have, and calls back when it has been executed."""

    def __init__(self, name: str, callback: Callable[[], None]) -> None:
        self.name = name
        self.callback = callback
        self._busy = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name or self._busy:
            return None
        self._busy = True
        try:
            for finder in list(sys.meta_path):
                if finder is self:
                    continue
                find = getattr(finder, "find_spec", None)
                spec: importlib.machinery.ModuleSpec | None = find(fullname, path, target) if find else None
                if spec is not None:
                    break
            else:
                return None
        finally:
            self._busy = False
        if spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, self)
        return spec

    def found(self) -> None:
        """Calls back, unless that was called off."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            self.callback()


class _Loader(importlib.abc.Loader):
    """The real loader, with a call at the end; the module keeps the real one."""

    def __init__(self, real: importlib.abc.Loader, finder: _Finder) -> None:
        self._real = real
        self._finder = finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)  # a program may ask importlib.util.find_spec(...).loader for its file, say

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        self._real.exec_module(module)
        self._finder.found()

    # Python leaves the frames of imports out of a traceback where all between two files are its own (import.c).
    exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")


def when_imported(name: str, callback: Callable[[], None]) -> Callable[[], None]:
    """Calls back once `name` has been imported: at once if it was.

    Returns:
      A function that calls it off.
    """
    if name in sys.modules:
        callback()
        return lambda: None
    finder = _Finder(name, callback)
    sys.meta_path.insert(0, finder)

    def cancel() -> None:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)

    return cancel
