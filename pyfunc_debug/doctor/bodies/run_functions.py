"""The user's functions that ran: bodies, generators, traced functions, and those of their file that these call."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyfunc_debug.doctor import code
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.records import Node

_CALLED = ("__init__", "on_epoch_end", "on_epoch_begin")
"""Methods of a PyDataset that run with its batches."""


@dataclass(frozen=True)
class Ran:
    """A function that ran.

    Attributes:
      file: Its file.
      function: Its tree.
      group: The nodes whose body it is; empty for other functions.
    """

    file: str
    function: Definition
    group: tuple[Node, ...] = ()


def functions_that_ran(facts: Facts) -> list[Ran]:
    """Each function once, with those of the same file that it names."""
    found: dict[tuple[str, int, int], Ran] = {}
    todo = [*_recorded(facts)]
    names: dict[str, dict[str, ast.FunctionDef]] = {}
    while todo:
        one = todo.pop(0)
        key = (one.file, one.function.lineno, one.function.col_offset)
        if key in found:
            continue
        found[key] = one
        if one.file not in names:
            names[one.file] = functions_by_name(facts.tree(one.file))
        todo += [Ran(one.file, each) for each in _called(names[one.file], one.function)]
    return list(found.values())


def called_by(tree: ast.AST | None, function: Definition) -> list[ast.FunctionDef]:
    """The functions and methods of its file that a function calls by their names: those that one has alone."""
    return [one for one in _called(functions_by_name(tree), function) if one is not function]


def _called(named: Mapping[str, ast.FunctionDef], function: Definition) -> list[ast.FunctionDef]:
    called = {code.called_name(part.func) for part in ast.walk(function) if isinstance(part, ast.Call)}
    return [each for name, each in named.items() if name in called]


def _recorded(facts: Facts) -> Iterator[Ran]:
    for group in facts.lines:
        function = facts.function(group[0])
        if function is not None and group[0].file is not None and facts.calls_of(group).count:
            yield Ran(group[0].file, function, tuple(group))
    for node, _ in facts.generators.values():
        function = facts.function(node)
        if function is not None and node.file is not None and facts.calls(node.id).count:
            yield Ran(node.file, function)
            yield from _of_sequences(facts, node.file, function)
    traced = {trace.function for trace in facts.traces}
    for number, one in facts.functions.items():
        definition = facts.definition(one.file, one.line) if number in traced and one.origin == "user" else None
        if definition is not None and one.file is not None:
            yield Ran(one.file, definition)


def _of_sequences(facts: Facts, file: str, function: Definition) -> Iterator[Ran]:
    """The other methods of a PyDataset that Keras calls, where it asked for a batch."""
    if not isinstance(function, ast.FunctionDef) or function.name != "__getitem__":
        return
    tree = facts.tree(file)
    every = code.all_nodes(tree) if tree is not None else ()
    for kind in (one for one in every if isinstance(one, ast.ClassDef) and function in one.body):
        if any(ast.unparse(base).endswith(("Sequence", "PyDataset")) for base in kind.bases):
            called = [one for one in kind.body if isinstance(one, ast.FunctionDef) and one.name in _CALLED]
            yield from (Ran(file, one) for one in called)


def functions_by_name(tree: ast.AST | None) -> dict[str, ast.FunctionDef]:
    """Functions and methods of a file by name, where one has it alone."""
    every = [one for one in code.all_nodes(tree) if isinstance(one, ast.FunctionDef)] if tree is not None else []
    counts = Counter(one.name for one in every)
    return {one.name: one for one in every if counts[one.name] == 1}
