"""What a body was given in its recorded calls, by the names of its parameters, and what its source says of these."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from dataclasses import dataclass

from pyfunc_debug.doctor import code
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.records import Node

_ROWS = 5000
"""How many calls of a body are looked at."""
_KEEP = ("numpy", "copy")
"""Methods that give the same numbers."""


@dataclass(frozen=True)
class Given:
    """A tensor of one call: its shape, its dtype, and its ends; `inside` says whether it has numbers between these."""

    call: int
    shape: tuple[int, ...]
    dtype: str
    low: float | None
    high: float | None
    inside: bool
    mean: float | None = None


def given(facts: Facts, nodes: Iterable[Node], name: str) -> list[Given]:
    """What a parameter was in the recorded calls that passed; of calls whose numbers were not kept, without ends.

    Args:
      facts: The recording.
      nodes: The nodes of the body.
      name: The parameter.
    """
    return _values(facts, nodes, "v.role = 'input' AND v.path = ?", name)


def returned(facts: Facts, nodes: Iterable[Node], position: int = 0) -> list[Given]:
    """The same of what the calls returned first, or at another place."""
    return _values(facts, nodes, "v.role = 'output' AND v.position = ?", position)


def _values(facts: Facts, nodes: Iterable[Node], which: str, of: str | int) -> list[Given]:
    ids = [one.id for one in nodes]
    rows = facts.reader.rows(
        "SELECT v.call, v.shape, v.dtype, v.min, v.max, v.histogram, v.mean FROM value v JOIN call c ON c.id = v.call "
        f"WHERE c.node IN ({', '.join('?' * len(ids))}) AND c.kind = 'forward' AND c.status = 'ok' AND {which} "
        f"ORDER BY v.call LIMIT {_ROWS}",
        [*ids, of],
    )
    return [
        Given(call, tuple(json.loads(shape)), dtype, low, high, any(json.loads(counts or "[]")[1:-1]), mean)
        for call, shape, dtype, low, high, counts, mean in rows if shape is not None
    ]  # fmt: skip


def as_given(function: Definition, node: ast.expr) -> str:
    """The parameter that an expression is, with the numbers and the shape that the body got; "" for others.

    `x`, `x.numpy()`, and `img` behind `img = x.numpy()`.
    """
    for _ in range(3):
        node = _plain(node)
        if not isinstance(node, ast.Name):
            return ""
        before = [
            one for one in code.own_nodes(function)
            if isinstance(one, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.With, ast.NamedExpr))
            and node.id in code.stored_names(one) and one.lineno < node.lineno
        ]  # fmt: skip
        if not before:
            return node.id if node.id in code.parameters(function) else ""
        made = before[0]
        if len(before) > 1 or not isinstance(made, ast.Assign) or len(made.targets) > 1 or made not in _body(function):
            return ""
        if not isinstance(made.targets[0], ast.Name):
            return ""
        node = made.value
    return ""


def _plain(node: ast.expr) -> ast.expr:
    """What `x.numpy()` is made of."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not (node.args or node.keywords):
        if node.func.attr not in _KEEP:
            break
        node = node.func.value
    return node


def _body(function: Definition) -> list[ast.stmt]:
    return [] if isinstance(function, ast.Lambda) else function.body
