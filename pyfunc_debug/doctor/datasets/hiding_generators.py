"""Generators that caught exceptions themselves, and of which no element came: `except Exception: continue`."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyfunc_debug.doctor.datasets.hidden_errors import Hidden
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short
from pyfunc_debug.places import source_line
from pyfunc_debug.records import FROM_GENERATOR

_NODES = """
    SELECT n.id, n.token, n.body, n.file, n.line FROM node n JOIN function f ON f.id = n.function
    WHERE f.name = ? AND n.file IS NOT NULL ORDER BY n.id
"""
_CALLS = """
    SELECT count(*), count(DISTINCT i.min), min(c.id), count(o.call), total(c.status != 'ok' OR c.end_ns IS NULL)
    FROM call c
    LEFT JOIN value i ON i.call = c.id AND i.role = 'input' AND i.position = 0
    LEFT JOIN value o ON o.call = c.id AND o.role = 'output' AND o.position = 0
    WHERE c.node = ? AND c.kind = 'forward'
"""
"""The first call of a pass has a number of its own, and gives an element, if there is one."""
_DROPPED = "SELECT 1 FROM dropped WHERE node = ?"
_HAS = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'dropped'"
_ENDS = {"StopIteration", "StopAsyncIteration", "GeneratorExit", "EOFError", "IndexError", "Empty", "OutOfRangeError"}
"""What may say that there is no more."""
_LOOPS = (ast.For, ast.While, ast.With)


def hidden(rows: Callable[..., Any], sources: Mapping[str, Source]) -> Iterator[Hidden]:
    """Such generators of a recording.

    Args:
      rows: Asks the recording.
      sources: The user's files.
    """
    for node, token, body, file, line in rows(_NODES, (FROM_GENERATOR,)):
        source = sources.get(file)
        function = _function(source, line) if source is not None else None
        caught = _catching(function) if function is not None else None
        if source is None or function is None or caught is None:
            continue
        calls, passes, first, gave, other = rows(_CALLS, (node,))[0]
        if not calls or calls != passes or gave or other or (rows(_HAS) and rows(_DROPPED, (node,))):
            continue
        block, handler = caught
        name = body.rpartition(".")[2]
        what = short(source.text(handler.type), 30) if handler.type is not None else ""
        last = max(one.end_lineno or one.lineno for one in block.body)
        tried = f"line {last}" if last == block.body[0].lineno else f"lines {block.body[0].lineno} to {last}"
        such = "" if what in ("", "Exception", "BaseException") else " such"
        in_passes = f", in {passes:,} passes" if passes > 1 else ""
        at = f"`except{' ' * bool(what)}{what}` at {source_line(file, handler.lineno)}"
        cause = f"{name} yielded nothing{in_passes}, and its {at} hides every{such} exception of {tried}."
        cause += _missing(source, function, block)
        advice = f"Write `raise` as the first line of that except: then the program says what {name} could not do."
        loop = _unsure(source, function, block)
        if loop is not None:
            advice = f"{advice.rstrip('.')}; if it says nothing, the loop in line {loop.lineno} had no round."
        yield Hidden(node, token, first, file, handler.lineno, cause, advice)


def _function(source: Source, line: int) -> ast.FunctionDef | None:
    for one in ast.walk(source.tree):
        if isinstance(one, ast.FunctionDef) and line in (one.lineno, *(part.lineno for part in one.decorator_list)):
            return one
    return None


def _catching(function: ast.FunctionDef) -> tuple[ast.Try, ast.ExceptHandler] | None:
    """A generator's one `try`, behind whose exceptions nothing is yielded: no other way leads past its yields."""
    inside = own_nodes(function)
    tries = [one for one in inside if isinstance(one, ast.Try)]
    yields = [one for one in inside if isinstance(one, (ast.Yield, ast.YieldFrom))]
    if len(tries) != 1 or len(tries[0].handlers) != 1 or len(yields) != 1 or tries[0].finalbody:
        return None
    block, handler = tries[0], tries[0].handlers[0]
    caught = {id(one) for part in handler.body for one in (part, *own_nodes(part))}
    leaves = (ast.Continue, ast.Break, ast.Return, ast.Raise)
    if any(isinstance(one, leaves) and id(one) not in caught for one in inside) or id(yields[0]) in caught:
        return None
    if any(isinstance(one, (ast.Raise, ast.Assert)) or _ends_all(one) for one in inside if id(one) in caught):
        return None
    if handler.type is not None and _ENDS & {
        dotted(one).rpartition(".")[2] for one in ast.walk(handler.type) if isinstance(one, (ast.Name, ast.Attribute))
    }:
        return None
    steps = _path(function.body, block)
    stops = isinstance(handler.body[-1], (ast.Break, ast.Return))
    if steps is None or (stops and any(_may_end(one) for part in block.body for one in ast.walk(part))):
        return None
    tried = [*block.body, *block.orelse]
    if _path(tried, yields[0]) is not None:
        return block, handler
    around = steps[-1]
    behind = around[around.index(block) + 1 :]
    skips = isinstance(handler.body[-1], ast.Continue) or stops
    return (block, handler) if skips and _path(behind, yields[0]) is not None else None


def _path(statements: list[ast.stmt], wanted: ast.AST) -> list[list[ast.stmt]] | None:
    """The blocks around what runs for certain, if its loops have a round: it stands below no `if`."""
    for one in statements:
        if one is wanted:
            return [statements]
        if isinstance(one, _LOOPS):
            below = _path(one.body, wanted)
            if below is not None:
                return [statements, *below]
        elif not isinstance(one, (ast.If, ast.Try, ast.Match, ast.FunctionDef)) and wanted in ast.walk(one):
            return [statements]
    return None


def _ends_all(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in ("exit", "_exit", "abort")


def _may_end(node: ast.AST) -> bool:
    """Whether a call may raise at the end of what it takes from."""
    return isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _TAKES


def _unsure(source: Source, function: ast.FunctionDef, block: ast.Try) -> ast.For | ast.While | None:
    """The outermost loop around a `try` of which the source does not say that it has a round."""
    known = _texts(source, function, block)
    for one in own_nodes(function):
        if isinstance(one, (ast.For, ast.While)) and block in ast.walk(one):
            given = one.iter if isinstance(one, ast.For) else one.test
            always = isinstance(one, ast.While) and isinstance(given, ast.Constant) and bool(given.value)
            if not (always or _written(given, known) or _counts(given)):
                return one
    return None


def _counts(node: ast.expr) -> bool:
    """`range(3)`."""
    last = node.args[0] if isinstance(node, ast.Call) and dotted(node.func) == "range" and len(node.args) == 1 else None
    return isinstance(last, ast.Constant) and isinstance(last.value, int) and last.value > 0


def _missing(source: Source, function: ast.FunctionDef, block: ast.Try) -> str:
    """The first file that the `try` is to read, where the source says its name, and it is not there."""
    known = _texts(source, function, block)
    for part in block.body:
        for one in ast.walk(part):
            if isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] in _READS and one.args:
                file = _written(one.args[0], known)
                if isinstance(file, str) and file and not os.path.exists(file):
                    return f" {short(repr(file), 60)}, the first that it is to read, is not there."
    return ""


def _bound(function: ast.FunctionDef) -> set[str]:
    """The names that a function is given or sets itself."""
    own = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
    return own | {one.id for one in own_nodes(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


_TAKES = ("next", "__next__", "get", "get_nowait", "pop", "popleft", "recv", "readline", "get_next")
_READS = ("load", "open", "imread", "loadtxt", "genfromtxt", "read_csv", "read_parquet", "File", "fromfile", "loadmat")


def _texts(source: Source, function: ast.FunctionDef, block: ast.Try) -> dict[str, Any]:
    """Texts, and lists of them, that names of a generator stand for in the first round of its loops."""
    known: dict[str, Any] = {}
    for made in source.tree.body:
        target = made.targets[0] if isinstance(made, ast.Assign) and len(made.targets) == 1 else None
        if isinstance(made, ast.Assign) and isinstance(target, ast.Name):
            known[target.id] = None if target.id in known else _written(made.value, {})
    for name in _bound(function):
        known.pop(name, None)
    for loop in own_nodes(function):
        if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) and block in ast.walk(loop):
            entries = _written(loop.iter, known)
            known[loop.target.id] = entries[0] if isinstance(entries, list) and entries else None
    return known


def _written(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """A text, or a list of texts, as the source says it; None where it does not."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, (ast.List, ast.Tuple)):
        parts = [_written(one, known) for one in node.elts]
        return parts if all(isinstance(one, str) for one in parts) else None
    pieces: list[Any] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        pieces = [_written(one, known) for one in (node.left, node.right)]
    elif isinstance(node, ast.JoinedStr):
        for one in node.values:
            plain = isinstance(one, ast.FormattedValue) and one.format_spec is None and one.conversion == -1
            pieces.append(_written(one.value if plain and isinstance(one, ast.FormattedValue) else one, known))
    elif isinstance(node, ast.Call) and dotted(node.func) == "os.path.join":
        pieces = [_written(one, known) for one in node.args]
        return os.path.join(*pieces) if pieces and all(isinstance(one, str) for one in pieces) else None
    return "".join(pieces) if pieces and all(isinstance(one, str) for one in pieces) else None
