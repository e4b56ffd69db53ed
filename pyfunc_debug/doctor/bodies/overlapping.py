"""Calls of a body that failed while others of it ran: what their threads share may be the cause, not the data."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.datasets import pipelines
from pyfunc_debug.doctor.facts import Facts

_COMPARED = 10_000
"""How many calls of a body are compared."""
_OF_DATA = ("Unicode", "JSONDecode", "FileNotFound", "UnidentifiedImage", "BadZip", "IsADirectory")
"""How the names of exceptions begin that tell of what a call was given, whatever other calls do."""
_QUOTED = re.compile(r"'([^']+)'")
_MUCH = 3
"""Where one call in this number fails, or more, it is not for odd elements that may be left out."""


@dataclass(frozen=True)
class Overlapping:
    """What is said of it.

    Attributes:
      words: That the calls overlapped, and what follows, as a sentence.
      fix: The map with one call after the other; "" where that cannot be pasted.
      evidence: What else can be done.
    """

    words: str
    fix: str
    evidence: str


def much_failed(facts: Facts, nodes: Collection[int]) -> bool:
    """Whether several calls failed, and these are a large share: then leaving out such elements loses the data."""
    failed, passed = _counts(facts, nodes)
    return failed > 1 and failed * _MUCH >= failed + passed


def beside_others(
    facts: Facts, nodes: Sequence[int], kind: str, message: str, place: tuple[str | None, int | None]
) -> Overlapping | None:
    """What to say where each failed call of a body ran beside another one; None where its input may well be the cause.

    Args:
      facts: The recording.
      nodes: Those of the body.
      kind: Type of the exception.
      message: Its text.
      place: The file and line where it was raised.
    """
    line = place[1]
    node = facts.nodes[nodes[0]]
    if kind.rpartition(".")[2].startswith(_OF_DATA) or _is_checked(facts, *place):
        return None
    rows = facts.reader.rows(
        f"SELECT id, start_ns, end_ns, failure FROM call WHERE node IN ({', '.join('?' * len(nodes))}) "
        f"AND kind = 'forward' ORDER BY start_ns, id LIMIT {_COMPARED}",
        tuple(nodes),
    )
    failed = [row for row in rows if row[3] is not None]
    if not failed or not all(_has_beside(row, rows) for row in failed):
        return None
    if any(_names_input(facts, row[0], message) for row in failed[:1]):
        return None
    fix = pastes.written(pipelines.in_turn(facts, node))
    where = f"what line {line} uses" if line is not None else "what it uses"
    if len(failed) == 1:
        words = (
            f"It ran while other calls of {node.body} did: {where} may not stand several threads, or its element is odd"
        )
    else:
        words = (
            f"Each of the {len(failed):,} ran while other calls of {node.body} did: {where} may not stand several "
            "threads at once"
        )
    tells = ". One call after the other tells: what fails then fails by its element" if fix else ""
    return Overlapping(words + tells, fix, "to stay parallel: hold a lock round what they share (`with lock:`)")


def _counts(facts: Facts, nodes: Collection[int]) -> tuple[int, int]:
    row = facts.reader.rows(
        "SELECT sum(failure IS NOT NULL), sum(failure IS NULL AND end_ns IS NOT NULL) FROM call "
        f"WHERE node IN ({', '.join('?' * len(nodes))}) AND kind = 'forward'",
        tuple(nodes),
    )[0]
    return int(row[0] or 0), int(row[1] or 0)


def _has_beside(call: Sequence[int | None], rows: Sequence[Sequence[int | None]]) -> bool:
    """Whether another call was inside of the body when this one began."""
    number, start = call[0], call[1]
    assert start is not None
    for other, began, ended, _ in rows:
        if began is not None and began > start:
            return False
        if other != number and (ended is None or ended > start):
            return True
    return False


def _names_input(facts: Facts, call: int | None, message: str) -> bool:
    """Whether an exception's text tells of a text that its call was given, as of a file's name."""
    rows = facts.reader.rows(
        "SELECT text FROM value WHERE call = ? AND role = 'input' AND dtype = 'string' AND shape = '[]'", (call,)
    )
    texts = [part.rpartition("/")[2] for (text,) in rows for part in _QUOTED.findall(str(text))]
    return any(len(one) > 1 and one in message for one in texts)


def _is_checked(facts: Facts, file: str | None, line: int | None) -> bool:
    """Whether a line raises in a branch on what its function was given or has made of it."""
    functions = pastes.around(facts.tree(file), line, ast.FunctionDef) if line is not None else []
    if not functions or line is None:
        return False
    function = functions[-1]
    given = {*code.local_names(function), *code.parameters(function)} - {"self", "cls"}
    tests = [
        branch.test for branch in pastes.walk(function, ast.If)
        if any(_covers(one, line) for part in branch.body + branch.orelse for one in pastes.walk(part, ast.Raise))
    ] + [one.test for one in pastes.walk(function, ast.Assert) if _covers(one, line)]  # fmt: skip
    return any(one.id in given for test in tests for one in pastes.walk(test, ast.Name))


def _covers(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or statement.lineno)
