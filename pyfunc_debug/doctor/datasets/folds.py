"""Datasets that each pass of a loop builds and drops, as one of cross validation does for its fold."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.datasets.built_once import CHANGES
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, names
from pyfunc_debug.records import Node

Loop = ast.For | ast.While
_Place = ast.FunctionDef | ast.Module
_CLEARED = re.compile(r"clear_session|reset_default_graph")
_JOINS = {"concatenate", "zip", "sample_from_datasets", "choose_from_datasets"}
_RESULTS = {"evaluate", "predict", "fit", "list", "sum", "len", "float", "max", "min", "next"}
"""Calls whose result does not hold the dataset that they are given."""


def dropped_by(facts: Facts, node: Node, call: ast.Call) -> tuple[str, Loop] | None:
    """The file and the loop whose passes build a dataset of a generator that holds something made in each pass.

    Args:
      facts: The recording.
      node: The node that takes the dataset's elements.
      call: The call of `from_generator`.

    Returns:
      None where the text does not say that no pass keeps the dataset, or that what the generator reads is a new one.
    """
    handed_on, new, read = True, False, _read(facts, node, call)
    called: ast.FunctionDef | None = None
    for frame in reversed(node.stack):
        own = pastes.source(facts, frame.file)
        statement = own.statement(frame.line)
        if frame.file is None or statement is None:
            return None
        loop = _loop(own, statement)
        function = next((one for one in own.around(statement) if isinstance(one, ast.FunctionDef)), None)
        place: _Place = function or own.tree
        if called is not None:
            given = list(_given(statement, called, read))
            new = new or any(isinstance(one, (ast.Call, ast.Subscript)) for one in given)
            read = {one.id for one in given if isinstance(one, ast.Name)}
        new = new or any(_is_made(one, read, loop, function) for one in code.own_nodes(place))
        held = _held(statement, place) if handed_on else set()
        if held is None or any(_keeps(one, held) for one in code.own_nodes(place)):
            return None
        handed_on = handed_on and any(_returns(one, held, statement) for one in code.own_nodes(place))
        if _CLEARED.search(own.code_of(loop or place)) and (loop or function) is not None:
            return None
        if loop is not None:
            return (frame.file, loop) if new and not handed_on else None
        if function is None:
            return None
        called = function
    return None


def _read(facts: Facts, node: Node, call: ast.Call) -> set[str]:
    """Names that a generator reads."""
    own = pastes.source(facts, node.stack[-1].file)
    given = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "generator"), None)
    found: list[ast.AST] = [given] if given is not None else []
    found += [
        one for one in code.all_nodes(own.tree)
        if isinstance(one, ast.FunctionDef) and isinstance(given, ast.Name) and one.name == given.id
    ]  # fmt: skip
    return {one.id for each in found for one in ast.walk(each) if isinstance(one, ast.Name)}


def _given(statement: ast.stmt, called: ast.FunctionDef, read: set[str]) -> Iterator[ast.expr]:
    """What a call of a function in a statement gives for those of its parameters that are read."""
    wanted = [one.arg for one in (*called.args.posonlyargs, *called.args.args)]
    for one in ast.walk(statement):
        if not isinstance(one, ast.Call) or dotted(one.func).rpartition(".")[2] != called.name:
            continue
        method = wanted[:1] == ["self"] and isinstance(one.func, ast.Attribute)
        values = [one.func.value, *one.args] if method and isinstance(one.func, ast.Attribute) else one.args
        yield from (value for name, value in zip(wanted, values) if name in read)
        yield from (word.value for word in one.keywords if word.arg in read)


def _is_made(node: ast.AST, read: set[str], loop: Loop | None, function: ast.FunctionDef | None) -> bool:
    """Whether an assignment makes something that the generator reads: in the loop, or in a function that it calls."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, (ast.Call, ast.Subscript, ast.BinOp)):
        return False
    inside = loop is None or loop.lineno <= node.lineno <= (loop.end_lineno or loop.lineno)
    return inside and (loop is not None or function is not None) and bool(set(_targets(node)) & read)


def _loop(own: Source, statement: ast.stmt) -> Loop | None:
    """The innermost loop around a statement in its function."""
    for one in own.around(statement):
        if isinstance(one, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            return None
        if isinstance(one, (ast.For, ast.While)):
            return one
    return None


def _held(statement: ast.stmt, place: _Place) -> set[str] | None:
    """Names of a function that hold the dataset of a statement, or what is made of it; None where they are unknown."""
    if isinstance(statement, (ast.For, ast.Expr, ast.Return, ast.With)):
        return set()
    if not isinstance(statement, ast.Assign):
        return None
    held = set(_targets(statement))
    if held & set(names(statement.value)):
        return None  # of that of the pass before
    for one in code.own_nodes(place):
        if isinstance(one, ast.Assign) and held & set(names(one.value)) and not _is_result(one.value):
            held |= set(_targets(one))
    return held if all(isinstance(one, (ast.Name, ast.Tuple)) for one in statement.targets) else None


def _targets(statement: ast.Assign) -> Iterator[str]:
    for target in statement.targets:
        for one in ast.walk(target):
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                yield one.id


def _is_result(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] in _RESULTS


def _keeps(node: ast.AST, held: set[str]) -> bool:
    """Whether a node puts the dataset where a later pass finds it."""
    if isinstance(node, ast.Assign) and held & set(names(node.value)) and not _is_result(node.value):
        return any(isinstance(one, (ast.Attribute, ast.Subscript)) for one in node.targets)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES | _JOINS:
        return any(held & set(names(one)) and not _is_result(one) for one in node.args)
    return isinstance(node, (ast.Yield, ast.Global, ast.Nonlocal))


def _returns(node: ast.AST, held: set[str], statement: ast.stmt) -> bool:
    if not isinstance(node, ast.Return) or node.value is None or _is_result(node.value):
        return False
    return node is statement or bool(held & set(names(node.value)))
