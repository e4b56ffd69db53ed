"""One program of a file of many, in a small file of its own, where AutoGraph and the doctor read it quickly.

AutoGraph parses the whole file for each lambda, and the doctor's rules walk through all of it.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any


@functools.cache
def _programs(file: str) -> dict[str, tuple[int, int, set[str]]]:
    """The programs, which have a decorator: their first and last lines, and the names that they read."""
    return {
        one.name: (
            one.decorator_list[0].lineno,
            one.end_lineno or one.lineno,
            {node.id for node in ast.walk(one) if isinstance(node, ast.Name)},
        )
        for one in ast.parse(Path(file).read_text()).body
        if isinstance(one, ast.FunctionDef) and one.decorator_list
    }


def alone(program: Callable[..., Any]) -> str:
    """The text of a program's file with this program only, and those that it calls.

    AutoGraph converts equal code once, whatever its file, and code is equal only at the same line: each program's text
    begins lower by one.
    """
    file = program.__code__.co_filename
    lines = Path(file).read_text().split("\n")
    programs = _programs(file)
    kept = {program.__name__} | programs[program.__name__][2]
    for name, (first, last, _) in programs.items():
        if name not in kept:
            lines[first - 1 : last] = [""] * (last - first + 1)
    return "\n" * [*programs].index(program.__name__) + "\n".join(lines)


def loaded(text: str, program: Callable[..., Any], folder: Path, monkeypatch: Any) -> Callable[..., Any]:
    """The program of this text, which is written into a file of the folder."""
    path = folder / Path(program.__code__.co_filename).name
    path.write_text(text)
    module = ModuleType(f"{folder.name}_{program.__name__}")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(text, str(path), "exec"), vars(module))
    return getattr(module, program.__name__)
