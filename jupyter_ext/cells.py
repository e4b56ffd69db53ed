"""Turns a cell that begins with `%%pyfunc_trace` into the same cell with recording switched on in its first line.

The cell itself stays an ordinary cell: IPython compiles it, awaits it, shows its last value, keeps its history and its
line numbers. Recording ends when IPython says that the cell has ended.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable

from IPython.core.inputtransformer2 import cell_magic

CELL = "%%pyfunc_trace"
LINE = "%pyfunc_trace"
CELL_WORD = "--cell"
"""What `%pyfunc_trace` is given for a whole cell; not for people."""
_COMMENT = "  # "
_WORDS = ("on", "off", "status")


def transform(lines: list[str], statement_of: Callable[[str], tuple[list[str], str]]) -> list[str]:
    """An input transformer for `shell.input_transformers_cleanup`.

    Args:
      lines: A cell.
      statement_of: Splits a line into options and a statement.

    Returns:
      The cell to run; unchanged if it does not begin with our magic, or asks for help.
    """
    if not lines:
        return lines
    first = lines[0].rstrip("\n")
    if _is(first, CELL):
        body = lines[1:]
        if body and body[0].startswith("%%"):
            # Cell magics below ours: `%%time` and others take the rest as they always do.
            body = cell_magic(body)
        return [_begin(first[len(CELL) :], CELL), *body]
    if _is(first, LINE) and not "".join(lines[1:]).strip():
        words, statement = statement_of(first[len(LINE) :])
        if statement and statement not in _WORDS:
            return [_begin(" ".join(words), LINE), statement + "\n"]
    return lines


def _is(line: str, magic: str) -> bool:
    rest = line[len(magic) :]
    return line.startswith(magic) and (not rest or rest[0].isspace()) and not line.rstrip().endswith("?")


def _begin(options: str, magic: str) -> str:
    said = f"{CELL_WORD} {options.strip()}".rstrip()
    typed = f"{magic} {options.strip()}".rstrip()
    return f"get_ipython().run_line_magic('pyfunc_trace', {said!r}){_COMMENT}{typed}\n"


def show_as_typed() -> None:
    """Lets tracebacks and sources of the running cell show its first line as the person typed it, as a comment.

    IPython keeps a cell's text in `linecache` (compilerop.py). The number of lines stays.
    """
    frame = sys._getframe(1)
    while frame is not None:
        entry = linecache.cache.get(frame.f_code.co_filename)
        lines = entry[2] if entry is not None and len(entry) == 4 else []
        if lines and lines[0].startswith("get_ipython().run_line_magic('pyfunc_trace'") and _COMMENT in lines[0]:
            lines[0] = f"# {lines[0].split(_COMMENT, 1)[1]}"
            return
        frame = frame.f_back  # type: ignore[assignment]  # None at the end
