"""What a terminal with another encoding than UTF-8 gets: the nearest signs that it has, and never an error."""

from __future__ import annotations

import codecs
import re
import sys

_NEAREST = {
    "─": "-", "│": "|", "━": "=", "…": "...", "→": "->", "←": "<-", "↑": "^", "↓": "v", "×": "x", "·": ".", "•": "*",
    "∈": " in ", "μ": "mean ", "σ": "std ", "∇": "grad", "∞": "inf", "≥": ">=", "≤": "<=", "–": "-", "—": "-", "“": '"',
    "”": '"', "’": "'", "▁": "_", "▂": ".", "▃": ":", "▄": "-", "▅": "=", "▆": "+", "▇": "*",
    "█": "#",
}  # fmt: skip
_NAME = "pyfunc_debug.nearest"


def _nearest(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    signs = "".join(_NEAREST.get(one) or one.encode("ascii", "backslashreplace").decode() for one in text)
    # The columns of a table stay below each other: what the signs take more is taken from the next gap of the line.
    more = len(signs) - len(text)
    gap = re.compile(rf"([ -~]*?) {{{more}}}(?= )").match(error.object, error.end) if more else None
    return (signs, error.end) if gap is None else (signs + gap[1], gap.end())


def use_nearest_signs() -> None:
    """For this process's stdout and stderr."""
    codecs.register_error(_NAME, _nearest)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_NAME)
