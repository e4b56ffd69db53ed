"""Python source in colours: what each piece of a line is, by Pygments, which IPython and Keras bring along.

Without Pygments every line is one piece without a kind.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

Pieces = list[tuple[str, str]]
"""Kind and text: k keyword, s string, n number, c comment, m decorator; empty for the rest."""


@functools.lru_cache(maxsize=32)
def coloured(text: str) -> tuple[Pieces, ...]:
    """The pieces of each line of a Python source. Their texts make the line again, to the last character."""
    lines: list[Pieces] = [[]]
    for kind, part in _tokens(text):
        for i, piece in enumerate(part.split("\n")):
            if i:
                lines.append([])
            if piece and lines[-1] and lines[-1][-1][0] == kind:
                lines[-1][-1] = (kind, lines[-1][-1][1] + piece)
            elif piece:
                lines[-1].append((kind, piece))
    wanted = text.splitlines()
    return tuple(_same(pieces, line) for pieces, line in zip([*lines, *([[]] * len(wanted))], wanted))


def coloured_lines(lines: Sequence[str]) -> list[Pieces]:
    """The same for lines without their ends."""
    return list(coloured("\n".join(lines))) if lines else []


def _same(pieces: Pieces, line: str) -> Pieces:
    # Whatever a lexer does with a form feed or a lone \r: colours never change a text.
    return pieces if "".join(text for _, text in pieces) == line else [("", line)] if line else []


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    try:
        from pygments import lex
        from pygments.lexers.python import PythonLexer
        from pygments.token import Comment, Keyword, Name, Number, Operator, String
    except ImportError:
        yield "", text
        return
    kinds = (
        (Comment, "c"), (String, "s"), (Number, "n"), (Keyword, "k"), (Operator.Word, "k"), (Name.Decorator, "m"),
    )  # fmt: skip
    for token, part in lex(text, PythonLexer(stripnl=False, ensurenl=False)):
        yield next((kind for wanted, kind in kinds if token in wanted), ""), part
