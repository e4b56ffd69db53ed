"""How a place in a program is named: `train.py:12`, and `cell [3]:4` for a notebook's cell, everywhere."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping

_TYPED_CELL = re.compile(r"<ipython-input-(\d+)-")
"""A cell of IPython in a terminal."""
_CELL = re.compile(r"cell \[(\d+)\]")
_MOST = 1000
_LONGEST = 2000
_recorded: dict[str, int] = {}
"""Numbers of cells of other processes, by file name: recordings tell them."""


def cell_number(file: str) -> int | None:
    """The number of the cell that IPython compiled under this name, here or in a recording that was read; else None."""
    typed = _TYPED_CELL.match(file)
    if typed is not None:
        return int(typed[1])
    number = _compiled().get(file)
    return _recorded.get(file) if number is None else number


def _compiled() -> Mapping[str, int]:
    """IPython's own map; private, so that it may be missing."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    numbers = getattr(getattr(shell, "compile", None), "_filename_map", None)
    return numbers if isinstance(numbers, dict) else {}


def cell_file(label: str) -> str | None:
    """The name under which IPython compiled `cell [4]`, the last cell with this number; None where none is known."""
    named = _CELL.fullmatch(label)
    files = [file for file, number in _compiled().items() if named and number == int(named[1])]
    return files[-1] if files else None


def cells_here() -> dict[str, int]:
    """The newest cells of this process by file name, for a recording, which other processes read."""
    return dict(list(_compiled().items())[-_MOST:])


def learn_cells(numbers: Mapping[str, int]) -> None:
    """Takes the numbers that a recording tells."""
    _recorded.update(numbers)


def cell_label(file: str) -> str | None:
    """`cell [4]`, or `cell` where its number is not known; None for any other file."""
    number = cell_number(file)
    if number is not None:
        return f"cell [{number}]"
    return "cell" if os.path.basename(os.path.dirname(file)).startswith("ipykernel_") else None


def file_label(file: str) -> str:
    """`train.py`, or `cell [4]`."""
    return cell_label(file) or one_line(os.path.basename(file))


def one_line(name: str) -> str:
    r"""A name as it is shown: a newline in it is `\n`, so that a table's line stays one. A hostile one is cut."""
    return (name if len(name) <= _LONGEST else f"{name[:_LONGEST]}...").replace("\n", "\\n")


def source_line(file: str | None, line: int | None, folder: bool = False) -> str:
    """`train.py:12`, or `cell [4]:12`; empty where there is no file. With `folder` it is `models/train.py:12`."""
    if file is None:
        return ""
    above = os.path.basename(os.path.dirname(file)) if folder and cell_label(file) is None else ""
    return (f"{one_line(above)}/" if above else "") + file_label(file) + ("" if line is None else f":{line}")
