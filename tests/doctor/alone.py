"""One program of a file of many, in a small file of its own, where AutoGraph and the doctor read it quickly.

AutoGraph parses the whole file for each lambda, and the doctor's rules walk through all of it.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any


@functools.cache
def _parts(file: str) -> dict[str, tuple[int, int, set[str]]]:
    """Functions, classes and constants of a file: their first and last lines, and the names that they read."""
    found = {}
    for one in ast.parse(Path(file).read_text()).body:
        names = {node.id for node in ast.walk(one) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        if isinstance(one, (ast.FunctionDef, ast.ClassDef)):
            first = one.decorator_list[0] if one.decorator_list else one
            found[one.name] = (first.lineno, one.end_lineno or one.lineno, names)
        elif isinstance(one, (ast.Assign, ast.AnnAssign)):
            target = one.targets[0] if isinstance(one, ast.Assign) else one.target
            if isinstance(target, ast.Name):
                found[target.id] = (one.lineno, one.end_lineno or one.lineno, names)
    return found


_asked: Counter[Callable[..., Any]] = Counter()


def alone(program: Callable[..., Any]) -> str:
    """The text of a program's file with this program only, and with what it reads of the rest of the file.

    AutoGraph converts equal code once, whatever its file, and code is equal only at the same line: each program's text
    begins lower by one, and lower again each time that it is asked for (a program may be a trigger and a near-miss).
    """
    file = program.__code__.co_filename
    lines = Path(file).read_text().split("\n")
    parts = _parts(file)
    kept: set[str] = set()
    todo = {program.__name__}
    while todo:
        kept |= todo
        todo = set().union(*(parts[name][2] for name in todo)) & parts.keys() - kept
    for name, (first, last, _) in parts.items():
        if name not in kept:
            lines[first - 1 : last] = [""] * (last - first + 1)
    _asked[program] += 1
    return "\n" * (len(parts) * _asked[program] + [*parts].index(program.__name__)) + "\n".join(lines)


def loaded(text: str, program: Callable[..., Any], folder: Path, monkeypatch: Any) -> Callable[..., Any]:
    """The program of this text, which is written into a file of the folder."""
    path = folder / Path(program.__code__.co_filename).name
    path.write_text(text)
    module = ModuleType(f"{folder.name}_{program.__name__}")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(text, str(path), "exec"), vars(module))
    return getattr(module, program.__name__)
