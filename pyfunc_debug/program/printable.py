"""Text of a program's (names, values, messages, queries) made safe for a terminal."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from typing import Any

# C0 but for tab and newline, DEL, C1, what turns the direction of text or hides (such text can show as
# another), and halves of characters, as in names of files that are not UTF-8.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def printable(text: str) -> str:
    r"""The text with control characters as Python writes them (ESC is `\x1b`): shown by a terminal, not obeyed."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def tell(text: str) -> None:
    """Says something to the user of a running program: on stderr, at once, with nothing that a terminal obeys."""
    print(printable(text), file=sys.stderr, flush=True)


def folded(text: str, width: int | None) -> str:
    """Sentences broken between words, what follows the first line indented; as they are where `width` is None."""
    if width is None:
        return text
    wrapped = textwrap.wrap(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(wrapped)


def columns_of(stream: Any) -> int | None:
    """How many columns the terminal has that a stream writes to; None for a file, a pipe, or where it does not say."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (AttributeError, OSError, ValueError):  # closed, or replaced by something else
        return None
