"""Statements that share their line with the one that a paste replaces: they stay."""

from __future__ import annotations

import ast
import dataclasses

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.source import indent_of, is_inline, read


def kept(explanation: Explanation) -> Explanation:
    """The explanation, whose paste has the other statements of its line as lines of their own.

    `a(x); b(x)` is one line, and what was made for `b(x)` would replace both. A paste that holds the others, as one
    that only puts another text into the line, is left alone.
    """
    edit = explanation.edit
    if edit is None or edit.first != edit.last:
        return explanation
    source = read(edit.file)
    here = [
        one for one in ast.walk(source.tree)
        if isinstance(one, ast.stmt) and not hasattr(one, "body") and one.lineno == edit.first == one.end_lineno
        and not is_inline(one)
    ]  # fmt: skip
    here.sort(key=lambda one: one.col_offset)
    if len(here) < 2:
        return explanation
    pasted = "\n".join(edit.lines)
    texts = [source.text(one) for one in here]
    if any(text in pasted for text in texts):
        return explanation
    first = source.lines[edit.first - 1]
    if first[: here[0].col_offset].strip():  # `if a: b(x); c(x)`
        return dataclasses.replace(explanation, edit=None, advice=explanation.advice or "Change this statement only.")
    blanks = indent_of(first)
    before = tuple(f"{blanks}{text}" for text in texts[:-1])  # a line is explained by its last statement
    return dataclasses.replace(explanation, edit=Edit(edit.file, edit.first, edit.last, (*before, *edit.lines)))


__all__ = ["kept"]
