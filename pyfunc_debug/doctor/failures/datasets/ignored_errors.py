"""Data that ended early, as `ignore_errors` left out the elements for which a body failed."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.datasets import exhausted
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import datasets
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import lookup
from pyfunc_debug.interception.names.private import iterated
from pyfunc_debug.program.frames import is_installed

RULE = "exhausted"
_FAILED = (
    "SELECT n.body, f.type, f.frames, count(*) FROM call c JOIN node n ON n.id = c.node JOIN failure f ON "
    "f.id = c.failure JOIN function o ON o.id = n.function WHERE c.kind = 'forward' AND n.origin = 'user' AND "
    "o.kind = 'tf.data' GROUP BY n.body ORDER BY min(c.id)"
)
_ITERATORS = ("make_one_shot_iterator", "make_initializable_iterator", "from_structure", "from_string_handle", "iter",
              "as_numpy_iterator")  # fmt: skip


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an iterator was at its end, and its dataset leaves out what fails."""
    spot = situation.last
    if spot is None or situation.body or situation.kind not in ("OutOfRangeError", "StopIteration"):
        return None
    known = exhausted.explain(situation)
    if "End of sequence" not in situation.message and known is None:
        return None
    files = {file: source for file, source in situation.sources() if not is_installed(file)}
    called = [
        (file, one) for file, source in files.items() for one in ast.walk(source.tree) if isinstance(one, ast.Call)
    ]
    ignoring = [(file, one) for file, one in called if _name(one) == "ignore_errors"]
    rows = situation.rows(_FAILED)
    if len(ignoring) != 1 or not rows or not _reads_it(situation, [one for _, one in called]):
        return None
    file, call = ignoring[0]
    line = (call.func.end_lineno or call.lineno) if isinstance(call.func, ast.Attribute) else call.lineno
    body, kind, at, _ = rows[0]
    count = sum(row[3] for row in rows)
    inner = [one for one in json.loads(at) if one[0] in files]
    place = f" in line {inner[-1][1]}" if inner and inner[-1][0] == file else ""
    who = "the lambda" if body.endswith("<lambda>") else body.rpartition(".")[2]
    many = f"{count:,} elements" if count > 1 else "1 element"
    cause = (
        f"ignore_errors left out {many}, for which {who} failed{' first' if len(rows) > 1 else ''} ({kind}{place}). "
        "The data ended that much earlier, and the line that failed asked for more."
    )
    edit = known.edit if known is not None else None
    advice = "" if edit else "Correct what fails, or loop until the data end."
    if edit is not None:
        cause += " The paste begins again there."
    return Explanation(RULE, file, line, cause, edit, advice)


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)


def _reads_it(situation: Situation, called: list[ast.Call]) -> bool:
    """Whether the iterator that was asked goes over the dataset that leaves something out."""
    spot, statement = situation.last, situation.statement
    asked = exhausted.iterator_of(statement) if statement is not None else None
    dataset = iterated(lookup(asked, spot)) if asked is not None and spot is not None else None
    if dataset is not None:
        return any("IgnoreErrors" in type(one).__name__ for one in datasets.with_inputs([dataset]))
    return len([*_makers(called)]) == 1


def _makers(called: list[ast.Call]) -> Iterator[ast.Call]:
    """The calls that make an iterator: where it is one, an iterator of a session is that."""
    return (one for one in called if _name(one) in _ITERATORS)
