"""Modules of a program that are called as one of Python's that we import: `code.py` beside it is the program's."""

from __future__ import annotations

import os
import sys

from pyfunc_debug.program import LOADED_BEFORE

TYPE_CHECKING = False
if TYPE_CHECKING:  # types is imported where it is needed, too
    from types import ModuleType

_ENDINGS = (".py", ".pyc", ".so", ".pyd")
_PACKAGE = "pyfunc_debug"
_WITH_TENSORFLOW = ("demo",)
"""Folders of ours that import TensorFlow at once."""


def give_way(folder: str) -> dict[str, ModuleType]:
    """Takes out of sys.modules what a program's first import would find in its own folder.

    Those of our modules that import one of that name are loaded before, so that they have Python's.

    Args:
      folder: The folder that the program's imports look into first.

    Returns:
      What was taken out, by name, for `sys.modules.update` when the program has ended.
    """
    names = {
        name for name in _modules_in(folder)
        if name not in LOADED_BEFORE and name not in sys.builtin_module_names and name != _PACKAGE
    }  # fmt: skip
    for name in names & sys.stdlib_module_names:
        _load_ours(name, folder)
    loaded = {name for name in names if name in sys.modules and _is_elsewhere(sys.modules[name], folder)}
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in loaded}


def _modules_in(folder: str) -> set[str]:
    """Names of the modules and packages in a folder."""
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return set()
    files = {name.partition(".")[0] for name in names if name.endswith(_ENDINGS)}
    return files | {name for name in names if os.path.isfile(os.path.join(folder, name, "__init__.py"))}


def _load_ours(name: str, folder: str) -> None:
    """Loads our modules that import a module of Python's, with that module, as if the folder were not there."""
    import importlib
    import re
    from contextlib import suppress

    imports = re.compile(rf"^ *(?:import|from) (?:.*, *)?{name}\b", re.MULTILINE)
    path = list(sys.path)
    sys.path[:] = [one for one in path if os.path.realpath(one or os.getcwd()) != os.path.realpath(folder)]
    try:
        for module, file in _our_files():
            with open(file, encoding="utf-8") as text:
                found = imports.search(text.read())
            if found is not None:
                with suppress(Exception):
                    importlib.import_module(name)
                    importlib.import_module(module)
    finally:
        sys.path[:] = path


def _our_files() -> list[tuple[str, str]]:
    """Our modules and their files."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = []
    for folder, _, files in os.walk(root):
        parts = [_PACKAGE, *os.path.relpath(folder, root).split(os.sep)]
        parts = [one for one in parts if one != os.curdir]
        if parts[1:2] and parts[1] in _WITH_TENSORFLOW:
            continue
        for one in files:
            if one.endswith(".py") and one != "__main__.py":
                module = ".".join(parts if one == "__init__.py" else [*parts, one.removesuffix(".py")])
                found.append((module, os.path.join(folder, one)))
    return found


def _is_elsewhere(module: ModuleType, folder: str) -> bool:
    """Whether a module was loaded from a file that is not in this folder."""
    file = getattr(module, "__file__", None)
    if file is None:
        return False
    return not os.path.realpath(file).startswith(os.path.join(os.path.realpath(folder), ""))
