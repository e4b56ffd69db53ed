"""What a terminal with another encoding than UTF-8 gets: the nearest signs that it has, and never an error."""

from __future__ import annotations

import codecs
import sys

_NEAREST = {
    "─": "-", "│": "|", "━": "=", "…": "...", "→": "->", "←": "<-", "↑": "^", "↓": "v", "×": "x", "·": ".", "•": "*",
    "∈": " in ", "μ": "mean ", "σ": "std ", "∇": "grad", "∞": "inf", "≥": ">=", "≤": "<=", "–": "-", "—": "-", "“": '"',
    "”": '"', "’": "'", "█": "#", "▁": "_",
}  # fmt: skip
_NAME = "pyfunc_debug.nearest"


def _nearest(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_NEAREST.get(one) or one.encode("ascii", "backslashreplace").decode() for one in text), error.end


def use_nearest_signs() -> None:
    """For this process's stdout and stderr."""
    codecs.register_error(_NAME, _nearest)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_NAME)
