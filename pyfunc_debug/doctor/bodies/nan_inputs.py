"""NaN that came into a body which fails on it: the ops in front of the body that can make it, with bounds."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.models import guarded_ops
from pyfunc_debug.doctor.text import listed

_OF_VALUES = re.compile(
    r"\b(?:NaNs?|inf|infs|infinity)\b|infinite|non-?finite|not finite|invalid numeric", re.IGNORECASE
)
"""What exceptions say of such values: NumPy's, SciPy's, and assertions of users'."""
_MOST = 4
"""More places than these are not a paste."""


@dataclass(frozen=True)
class CameIn:
    """What is said of it.

    Attributes:
      words: What came in, and where it may have been made, as a sentence.
      fix: What to paste.
      likely: Whether a guess is in it.
    """

    words: str
    fix: str
    likely: bool


def came_in(facts: Facts, node: int, call: int, message: str) -> CameIn | None:
    """What to say of a call that failed on such a value; None where none came in, or the failure is of another kind.

    Args:
      facts: The recording.
      node: Its node.
      call: Its number.
      message: Its exception's text.
    """
    rows = facts.reader.rows(
        "SELECT path, nan, inf FROM value WHERE call = ? AND role = 'input' AND (nan > 0 OR inf > 0) ORDER BY position",
        (call,),
    )
    site = facts.site(node)
    if not rows or site is None or not _OF_VALUES.search(message):
        return None
    held = [
        f"{path} with {f'NaN in {nan:,}' if nan else f'infinity in {inf:,}'} of its numbers" for path, nan, inf in rows
    ]
    words = f"The body was given {listed(held)}"
    pieces: dict[ast.expr, str] = {}
    scopes = _around(facts, node)
    for scope, _ in scopes:
        found = guarded_ops.guarded(facts, site.file, [scope], False)
        pieces |= {one: text for one, text in found.items() if _ran_before(one, scope, scopes)}
    step = ""
    if not pieces and (trained := _trained(facts, node, call, site.file)):
        pieces = guarded_ops.guarded(facts, site.file, trained, False)
        step = ", which no call before had. In the training step before it" if pieces else ""
    fix = pastes.all_replaced(facts, site.file, pieces) if 0 < len(pieces) <= _MOST else ""
    if fix:
        lines = sorted({one.lineno for one in pieces})
        why = guarded_ops.reasons([*pieces.values()])
        where = f"line{'s' * (len(lines) > 1)} {listed(lines)}"
        told = f"{step}, {where} can make NaN, and with it NaN in the weights" if step else f", which {where} can make"
        return CameIn(f"{words}{told}: {why}", fix, True)
    words += ", made in front of it: by an op, or in the data"
    return CameIn(words, guarded_ops.checked(facts, site.file), False)


def _trained(facts: Facts, node: int, call: int, file: str) -> list[ast.AST]:
    """What a file trains with: the weights may have it, where calls of a node before one were given nothing of it."""
    before = facts.reader.rows(
        "SELECT count(DISTINCT c.id), sum(v.nan > 0 OR v.inf > 0) FROM call c JOIN value v ON v.call = c.id "
        "WHERE c.node = ? AND c.kind = 'forward' AND c.id < ? AND v.role = 'input'", (node, call),
    )  # fmt: skip
    tree = facts.tree(file)
    if tree is None or not before or not before[0][0] or before[0][1]:
        return []
    return guarded_ops.steps(tree)


def _ran_before(node: ast.expr, scope: ast.FunctionDef, scopes: list[tuple[ast.FunctionDef, int]]) -> bool:
    """Whether an expression of a function ran before the lines that the functions around had reached."""
    reached = {one.lineno: line for one, line in scopes}
    inner = pastes.around(scope, node.lineno, ast.FunctionDef)[-1]
    if inner.lineno in reached:
        return node.lineno <= reached[inner.lineno]
    asked = [one for one in pastes.walk(scope, ast.Call) if dotted(one.func).rpartition(".")[2] == inner.name]
    within = ((one, pastes.around(scope, one.lineno, ast.FunctionDef)[-1]) for one in asked)
    return any(one.lineno <= reached.get(function.lineno, 0) for one, function in within)


def _around(facts: Facts, node: int) -> list[tuple[ast.FunctionDef, int]]:
    """The functions on whose lines a node was made, in the file of its line, and the lines."""
    stack = facts.nodes[node].stack
    file = stack[-1].file
    found: dict[int, tuple[ast.FunctionDef, int]] = {}
    for frame in stack:
        for function in pastes.around(facts.tree(file), frame.line, ast.FunctionDef)[-1:] if frame.file == file else ():
            found[function.lineno] = (function, frame.line)
    return list(found.values())
