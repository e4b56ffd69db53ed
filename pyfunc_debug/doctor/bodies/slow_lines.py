"""The line that a body was in most of the time that it was looked at, and what makes such a line cost less."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.graphs.hoist import hoisted
from pyfunc_debug.events import Notice
from pyfunc_debug.gil.whatif import percent
from pyfunc_debug.records import Node

_MOST = 0.5
"""Share of a body's time from which its line is named."""
_LEAST = 8
"""Looks from which a share says something."""
_ROWS = ("iterrows", "iloc", "loc", "iat", "at")
"""What pandas makes an object of each row by."""
_LOADS = re.compile(r"read_|load|open|File$|from_pretrained|genfromtxt|imread|parse$")
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


@dataclass(frozen=True)
class SlowLine:
    """Where a body was seen.

    Attributes:
      file, line: The line, of the body or of a function of the user's that it calls.
      share: Of the body's time, how much is sure to have gone there.
      looks: How many found it there.
    """

    file: str
    line: int
    share: float
    looks: int


def _most_seen(facts: Facts, node: Node) -> SlowLine | None:
    """The line in which most looks that found a line of a body found it, at half of them at least."""
    for _, _, seen in facts.notices.get(Notice.SEEN_LINES, []):
        if (seen["file"], seen["line"]) == (node.file, node.line):
            nodes = [one for one in facts.nodes.values() if (one.file, one.line) == (node.file, node.line)]
            took_s = facts.calls_of(nodes).total_ns / 1e9
            file, line, looks, seconds, sure_s = seen["lines"][0]
            share = min(1.0, sure_s / max(seen["seconds"], took_s, 1e-9))
            return SlowLine(file, line, share, looks) if seconds >= _MOST * seen["seconds"] else None
    return None


def slowest(facts: Facts, node: Node) -> SlowLine | None:
    """The line that a body was in for half of its time or more; None where that is not sure."""
    found = _most_seen(facts, node)
    return found if found is not None and found.share >= _MOST and found.looks >= _LEAST else None


def said(facts: Facts, node: Node) -> str:
    """That, for the evidence: the line, and the share of its time."""
    found = slowest(facts, node)
    if found is None:
        return ""
    return (
        f"{facts.name(node)} was in line {found.line} for some {percent(found.share)} of its time, by {found.looks:,} "
        f"looks at it: {facts.line(found.file, found.line)}"
    )


def is_mostly_in(facts: Facts, node: Node, spans: list[tuple[int, int]]) -> bool:
    """Whether most looks that found a line of a body found it in some lines of its own file: from first to last."""
    for _, _, seen in facts.notices.get(Notice.SEEN_LINES, []):
        if (seen["file"], seen["line"]) == (node.file, node.line):
            inside = [looks for file, line, looks, *_ in seen["lines"]
                      if file == node.file and any(first <= line <= last for first, last in spans)]  # fmt: skip
            found = sum(one[2] for one in seen["lines"])
            return bool(sum(inside) >= max(_LEAST, _MOST * found))
    return False


def cure(facts: Facts, node: Node) -> str:
    """What makes its slowest line cost less: lines to paste, or words; "" where nothing is known of such a line."""
    found = _most_seen(facts, node)
    if found is None or not facts.source(found.file):
        return ""
    own = pastes.source(facts, found.file)
    statement, function = own.statement(found.line), own.function(found.line)
    if statement is None or function is None:
        return ""
    return (
        _without_search(found, own, statement)
        or _looked_up(facts, found, own, function, statement)
        or _once(facts, found, own, function, statement)
        or _of_rows(facts, found, statement)
    )


def is_in_loop(facts: Facts, node: Node) -> bool | None:
    """Whether its slowest line stands in a loop of Python's; None where that line is not known."""
    found = slowest(facts, node)
    if found is None or not facts.source(found.file):
        return None
    own = pastes.source(facts, found.file)
    return any(pastes.around(own.tree, found.line, kind) for kind in _LOOPS)


def _without_search(found: SlowLine, own: Source, statement: ast.stmt) -> str:
    """`gc.collect()` of each call."""
    if not isinstance(statement, ast.Expr) or dotted(getattr(statement.value, "func", statement)) != "gc.collect":
        return ""
    block = own.block(statement) or [statement]
    indent = " " * statement.col_offset
    kept = "pass  " if len(block) == 1 else ""
    line = f"{indent}{kept}# without gc.collect(), which goes through all objects of the program"
    return pastes.written(Edit(found.file, statement.lineno, statement.end_lineno or statement.lineno, (line,)))


def _looked_up(facts: Facts, found: SlowLine, own: Source, function: Definition, statement: ast.stmt) -> str:
    """`words.index(word)` of a list from outside: a dict of its places, made once."""
    local = code.local_names(function)
    calls = [
        one for one in pastes.walk(statement, ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "index" and len(one.args) == 1
        and isinstance(one.func.value, ast.Name) and one.func.value.id not in local
    ]  # fmt: skip
    if len(calls) != 1 or not isinstance(function, ast.FunctionDef):
        return ""
    values = ast.unparse(calls[0].func.value)  # type: ignore[attr-defined]  # it is an attribute, above
    name = own.unused_name(f"place_in_{values}")
    made = f"{name} = {{value: place for place, value in reversed(list(enumerate({values})))}}"
    edit = pastes.replaced(facts, found.file, {calls[0]: f"{name}[{own.text(calls[0].args[0])}]"})
    return pastes.written(pastes.above(facts, found.file, pastes.first_line(function), made), edit)


def _once(facts: Facts, found: SlowLine, own: Source, function: Definition, statement: ast.stmt) -> str:
    """A file that is read, or a model that is loaded, with nothing of the call's: above the function, once."""
    tree, local = facts.tree(found.file), code.local_names(function)
    calls = [
        one for one in pastes.walk(statement, ast.Call)
        if _LOADS.search(pastes.last_name(one.func))
        and not local & {name.id for name in ast.walk(one) if isinstance(name, ast.Name)}
    ]  # fmt: skip
    if not calls or tree is None or code.is_random(function, tree):
        return ""
    text = own.text(calls[0])
    if isinstance(statement, ast.Assign) and statement.value is calls[0]:
        return hoisted(facts, found.file, calls[0], "loaded") or f"line {found.line}: {text} once, above the function"
    return f"line {found.line}: {text} gives the same in each call: once, above the function"


def _of_rows(facts: Facts, found: SlowLine, statement: ast.stmt) -> str:
    """A row of a table, which pandas makes an object of."""
    loops = pastes.around(facts.tree(found.file), found.line, ast.For)
    parts = [statement, *(one.iter for one in loops)]
    names = {one.attr for part in parts for one in pastes.walk(part, ast.Attribute)} & {*_ROWS}
    if not names or pastes.module(facts, found.file, "pandas") is None:
        return ""
    if "iterrows" in names:
        line = loops[-1].lineno if loops else found.line
        return (
            f"line {line}: itertuples(index=False) in place of iterrows(), which makes a Series of each row; or the "
            "columns as NumPy arrays, by to_numpy(), before the loop"
        )
    return (
        f"line {found.line}: the columns as NumPy arrays, by to_numpy(), once above the function, and rows of these: "
        f"pandas makes an object for each {min(names)}"
    )
