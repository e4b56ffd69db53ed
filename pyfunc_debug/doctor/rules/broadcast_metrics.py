"""`y - model.predict(x)` of labels [n] and predictions [n, 1]: that makes [n, n], each with each."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Finding

NAMES = ("broadcast-metric",)
_PAIRS = ("subtract", "equal", "not_equal")
_FUNCTIONS = {
    "abs", "absolute", "array", "asarray", "ceil", "clip", "exp", "expm1", "floor", "float32", "float64",
    "inverse_transform", "log", "log1p", "rint", "round", "sign", "sqrt", "where",
}  # fmt: skip
"""Functions, and methods with an argument, whose result has the shape of their first one."""
_METHODS = {"astype", "clip", "copy", "numpy", "round"}
_AS_ARRAYS = ("array", "asarray")
_PREDICTS = "predict"


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that predicts."""
    told: set[tuple[str, int]] = set()
    for _, _, noticed in facts.notices.get(Notice.PREDICTED_COLUMN, []):
        place = noticed["file"], noticed["line"]
        if place not in told and noticed["flat"] and facts.source(noticed["file"]):
            told.add(place)
            yield from _findings(facts, *place, noticed)


def _findings(facts: Facts, file: str, line: int, noticed: Mapping[str, Any]) -> Iterator[Finding]:
    own = pastes.source(facts, file)
    predicts, scope = predictions(own, line)
    if not predicts:
        return
    columns = columns_of(scope, predicts)
    stored: dict[str, int] = {}
    for one in scope:
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            stored[one.id] = max(stored.get(one.id, 0), one.lineno)
    flat = {name: kind for name, kind in noticed["flat"].items() if stored.get(name, 0) < line}
    found = [pair for one in scope if (pair := _pair(one, columns, predicts, flat)) is not None]
    if not found:
        return
    text = {node: pastes.text_of(facts, file, node) for pair in found for node in pair}
    pieces = dict[ast.expr, str]()
    for column, row in found:
        listed = isinstance(row, ast.Name) and flat[row.id] == "list"
        by_row = not listed and _has_axes(own, column, scope)
        node, axes = (row, "[:, None]") if by_row else (column, "[:, 0]")
        pieces[node] = f"{own.atom(node)}{axes}"
    (column, labels), n = found[0], f"{noticed['rows']:,}"
    yield Finding(
        NAMES[0], "warning", None, (),
        f"line {column.lineno} takes {text[labels]} [{n}] and {text[column]} [{n}, 1] together, which makes "
        f"[{n}, {n}]: each number of the one with each of the other. What is computed of it is not that of the rows",
        pastes.all_replaced(facts, file, pieces), file, column.lineno,
        evidence=(f"predict gave [{n}, 1] at {facts.source_line(file, line)}",),
    )  # fmt: skip


def predictions(own: Source, line: int) -> tuple[list[ast.Call], list[ast.AST]]:
    """The calls of `predict` on a line, and the nodes of the function or file that they stand in."""
    calls = [one for one in pastes.around(own.tree, line, ast.Call) if pastes.last_name(one.func) == _PREDICTS]
    function = next((one for one in own.around(calls[0]) if isinstance(one, ast.FunctionDef)), None) if calls else None
    return calls, own_nodes(function or own.tree)


def columns_of(scope: list[ast.AST], predicts: list[ast.Call]) -> set[str]:
    """The names that stand for predictions in a column, and for nothing else."""
    values: dict[str, list[ast.expr]] = {}
    bound: dict[str, int] = {}
    for one in scope:
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            bound[one.id] = bound.get(one.id, 0) + 1
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
            values.setdefault(one.targets[0].id, []).append(one.value)
    found: set[str] = set()
    for _ in values:
        found |= {
            name for name, given in values.items()
            if bound[name] == len(given) and all(keeps(one, found, predicts) for one in given)
        }  # fmt: skip
    return found


def keeps(node: ast.expr, columns: set[str], predicts: list[ast.Call]) -> bool:
    """Whether an expression has the shape of the predictions."""
    if isinstance(node, ast.Name):
        return node.id in columns
    if isinstance(node, ast.Call):
        if any(node is one for one in predicts):
            return True
        name = pastes.last_name(node.func)
        if isinstance(node.func, ast.Attribute) and name in _METHODS and keeps(node.func.value, columns, predicts):
            return True
        plain = name != "where" or not any(map(_open, node.args[1:]))
        return name in _FUNCTIONS and bool(node.args) and plain and keeps(node.args[0], columns, predicts)
    if isinstance(node, ast.Compare) and len(node.comparators) == 1:
        return keeps(node.left, columns, predicts) and not _open(node.comparators[0])
    if isinstance(node, ast.BinOp):
        left, right = (keeps(one, columns, predicts) for one in (node.left, node.right))
        return (left and not _open(node.right)) or (right and not _open(node.left))
    return isinstance(node, ast.UnaryOp) and keeps(node.operand, columns, predicts)


def _open(node: ast.expr) -> bool:
    """Whether an expression is more than a number."""
    return not isinstance(node, ast.Constant) and not (
        isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)
    )


def _is_flat(node: ast.expr, flat: Mapping[str, str]) -> bool:
    """Whether an expression is a row of numbers."""
    if isinstance(node, ast.Name):
        return flat.get(node.id) in ("array", "list")
    if isinstance(node, ast.Attribute) and node.attr == "values" and isinstance(node.value, ast.Name):
        return flat.get(node.value.id) == "series"
    if not isinstance(node, ast.Call):
        return False
    name = pastes.last_name(node.func)
    if name in _AS_ARRAYS and len(node.args) == 1 and isinstance(node.args[0], ast.Name):
        return node.args[0].id in flat
    if not isinstance(node.func, ast.Attribute) or name not in (*_METHODS, "to_numpy"):
        return False
    owner = node.func.value
    series = isinstance(owner, ast.Name) and flat.get(owner.id) == "series"
    return series if name == "to_numpy" else _is_flat(owner, flat)


def _pair(
    node: ast.AST, columns: set[str], predicts: list[ast.Call], flat: Mapping[str, str]
) -> tuple[ast.expr, ast.expr] | None:
    """The column and the row that an expression takes together."""
    sides: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        sides = [node.left, node.right]
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
        sides = [node.left, node.comparators[0]]
    elif isinstance(node, ast.Call) and pastes.last_name(node.func) in _PAIRS and len(node.args) == 2:
        sides = list(node.args)
    for column, labels in (sides, sides[::-1]) if sides else ():
        if keeps(column, columns, predicts) and _is_flat(labels, flat):
            return column, labels
    return None


def _has_axes(own: Source, column: ast.expr, scope: list[ast.AST]) -> bool:
    """Whether what a line makes of the predictions is asked for its axes: `axis=1`, `errors[:, 0]`."""
    statement = own.statement(column.lineno)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = {one.id for one in targets if isinstance(one, ast.Name)}
    for one in scope:
        inside = {id(part) for part in ast.walk(one)}
        uses = id(column) in inside or any(
            isinstance(part, ast.Name) and part.id in names and isinstance(part.ctx, ast.Load) for part in ast.walk(one)
        )
        if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Tuple) and uses:
            return True
        if isinstance(one, ast.Call) and any(word.arg == "axis" for word in one.keywords) and uses:
            return True
    return False
