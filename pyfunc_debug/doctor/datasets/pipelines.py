"""Pipelines of tf.data as text to paste: num_parallel_calls of a `map`, and the pool of a dataset."""

from __future__ import annotations

import ast
import dataclasses
import re

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.records import Frame, Node

_HANDED = ("fit", "evaluate", "predict", "iter", "enumerate")
"""Calls that are given a dataset as their first argument."""
_BUILDS = re.compile(r"\bDataset\b|\.(?:map|batch|padded_batch|shuffle|prefetch)\(")


def with_calls(facts: Facts, node: Node, calls: int | str, why: str = "") -> Edit | None:
    """The line of the map that calls a node, with another num_parallel_calls; None where it cannot be told.

    Args:
      facts: The recording.
      node: A node in the function given to `map`.
      calls: The new number, or `tf.data.AUTOTUNE`.
      why: A comment beside it.
    """
    placed = _with_calls(facts, node, calls)
    if placed is None or not why:
        return placed
    return dataclasses.replace(placed, lines=(*placed.lines[:-1], f"{placed.lines[-1]}  # {why}"))


def _with_calls(facts: Facts, node: Node, calls: int | str) -> Edit | None:
    found = map_of(facts, node)
    if found is None:
        return None
    file, call = found
    given = [one.value for one in call.keywords if one.arg == "num_parallel_calls"]
    if len(call.args) > 1 or any(one.arg is None for one in call.keywords):
        return None
    if given:
        return pastes.replaced(facts, file, {given[0]: str(calls)})
    text = f"{pastes.text_of(facts, file, call.args[0])}, num_parallel_calls={calls}"
    return pastes.replaced(facts, file, {call.args[0]: text}) if not call.keywords else None


def in_turn(facts: Facts, node: Node) -> Edit | None:
    """The line of the map that calls a node in parallel, with one call after the other; None where it does not."""
    found = map_of(facts, node)
    given = [one.value for one in found[1].keywords if one.arg == "num_parallel_calls"] if found is not None else []
    return _with_calls(facts, node, 1) if given and ast.unparse(given[0]) not in ("1", "None") else None


def without_failing(facts: Facts, node: Node) -> Edit | None:
    """The line of the map that calls a node, leaving out the elements for which it fails; None where it has no line."""
    found = map_of(facts, node)
    if found is None:
        return None
    file, call = found
    whole = f"{pastes.text_of(facts, file, call)}.ignore_errors(log_warning=True)"
    return pastes.replaced(facts, file, {call: whole})


def map_of(facts: Facts, node: Node) -> tuple[str, ast.Call] | None:
    """The file and the call of the `map` whose function a node was made in, if it is the only one of its line."""
    for frame in reversed(node.stack):
        maps = [
            one for one in pastes.around(facts.tree(frame.file), frame.line, ast.Call)
            if isinstance(one.func, ast.Attribute) and one.func.attr == "map" and one.args
        ]  # fmt: skip
        if maps:
            return (frame.file, maps[0]) if len(maps) == 1 else None
    return None


def with_pool(facts: Facts, site: Frame, threads: int, why: str) -> Edit | None:
    """Lines above a loop that give its dataset a pool of its own; None where the dataset has no name there.

    Args:
      facts: The recording.
      site: The line that loops over the dataset, or hands it to Keras.
      threads: Size of the pool.
      why: A comment beside it.
    """
    statement = pastes.source(facts, site.file).statement(site.line)
    name = None if statement is None else _dataset(statement)
    tf = pastes.module(facts, site.file, "tensorflow")
    tree = facts.tree(site.file)
    if statement is None or name is None or tf is None or tree is None:
        return None
    taken = {one.id for one in pastes.walk(tree, ast.Name)}
    options = next(one for one in ("options", *(f"options_{number}" for number in range(2, 99))) if one not in taken)
    lines = (
        f"{options} = {tf}.data.Options()",
        f"{options}.threading.private_threadpool_size = {threads}  # {why}",
        f"{name} = {name}.with_options({options})",
    )
    return above_loop(facts, site, name, *lines)


def above_loop(facts: Facts, site: Frame, name: str, *lines: str) -> Edit | None:
    """Lines that give a dataset's variable another value: above its loop and the loops around it."""
    own = pastes.source(facts, site.file)
    place: ast.stmt | None = own.statement(site.line)
    for one in own.around(place) if place is not None else ():
        if isinstance(one, (ast.FunctionDef, ast.ClassDef)) or name in code.stored_names(one):
            break
        if isinstance(one, (ast.For, ast.While)):
            place = one
    return None if place is None else pastes.above(facts, site.file, place.lineno, *lines)


def dataset_at(facts: Facts, site: Frame) -> str | None:
    """The variable of the dataset that a line loops over, or hands to Keras; None where it has none."""
    statement = pastes.source(facts, site.file).statement(site.line)
    return None if statement is None or statement.lineno != site.line else _dataset(statement)


def built_for(facts: Facts, site: Frame) -> ast.expr | None:
    """What the function returns that builds the dataset of `for x in make_dataset():`; None where that is not known."""
    own = pastes.source(facts, site.file)
    statement = own.statement(site.line)
    asked = statement.iter if isinstance(statement, (ast.For, ast.AsyncFor)) else None
    name = ast.unparse(asked.func).rpartition(".")[2] if isinstance(asked, ast.Call) else ""
    found = [one for one in pastes.walk(own.tree, ast.FunctionDef) if one.name == name]
    values = pastes.returns(found[0]) if len(found) == 1 else []
    value = values[0] if len(values) == 1 and isinstance(values[0], (ast.Name, ast.Call)) else None
    return value if value is not None and _BUILDS.search(ast.unparse(found[0])) else None


def _dataset(statement: ast.stmt) -> str | None:
    """The variable that a statement takes its elements from."""
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        source: ast.expr | None = statement.iter
    else:
        source = next(
            (one for one in ast.walk(statement)
             if isinstance(one, ast.Call) and ast.unparse(one.func).rpartition(".")[2] in _HANDED), None,
        )  # fmt: skip
    while isinstance(source, ast.Call):
        called = source.func
        handed = source.args[:1] if ast.unparse(called).rpartition(".")[2] in _HANDED else []
        given = [one.value for one in source.keywords if one.arg == "x"]
        inner = (handed or given) if handed or given else [called.value] if isinstance(called, ast.Attribute) else []
        source = inner[0] if inner else None
    return source.id if isinstance(source, ast.Name) else None
