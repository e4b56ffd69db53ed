"""Texts that bodies are given: as bytes, or as tensors of them."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Node


def texts_given(facts: Facts, nodes: list[int]) -> dict[int, tuple[dict[str, bool], int]]:
    """Of nodes that were given strings, each of these and whether it is an array; and the first call."""
    rows = facts.reader.rows(
        "SELECT c.node, v.path, max(v.shape <> '[]'), min(c.id) FROM value v JOIN call c ON c.id = v.call WHERE c.node "
        f"IN ({', '.join(map(str, nodes))}) AND c.kind = 'forward' AND v.role = 'input' AND v.dtype = 'string' "
        "GROUP BY c.node, v.path ORDER BY c.node, v.position"
    ) if nodes else []  # fmt: skip
    found: dict[int, tuple[dict[str, bool], int]] = {}
    for node, path, array, call in rows:
        found.setdefault(node, ({}, call))[0][path] = bool(array)
    return found


def helper_of(node: ast.AST, tree: ast.Module | None) -> ast.FunctionDef | None:
    """The one function of the file that a call is of."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    found = [one for one in pastes.walk(tree, ast.FunctionDef) if one.name == ast.unparse(node.func)]
    return found[0] if len(found) == 1 else None


def is_eager(node: Node) -> bool:
    """Whether a body gets tensors; a generator never does, whatever its node is."""
    return node.kind == "py_function" and node.origin == "user"
