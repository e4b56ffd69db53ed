"""Whether the elements that a map is given are batches, by the calls that make its dataset."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets.pipelines import map_of
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.records import Node

_BATCHES = ("batch", "padded_batch", "ragged_batch")
_ENDS = ("unbatch", "flat_map", "interleave", "concatenate", "zip", "group_by_window", "rejection_resample")
"""Behind these, an element is another one."""
_DEEPEST = 12


def batch_before(facts: Facts, node: Node) -> tuple[ast.Call, str] | None:
    """The call that makes batches of the rows which the map of a node gets one by one, and its size as it is written.

    Args:
      facts: The recording.
      node: A node in the function given to `map`.

    Returns:
      None where the elements are rows, or where the calls of the dataset are not known.
    """
    found = map_of(facts, node)
    if found is None or not isinstance(found[1].func, ast.Attribute):
        return None
    own = pastes.source(facts, found[0])
    value: ast.expr | None = found[1].func.value
    for _ in range(_DEEPEST):
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            name = value.func.attr
            if name in _BATCHES:
                size = next((one.value for one in value.keywords if one.arg == "batch_size"), None)
                size = value.args[0] if value.args else size
                one = isinstance(size, ast.Constant) and size.value == 1
                return None if one else (value, own.text(size) if size is not None else "")
            if name in _ENDS:
                return None
            value = value.func.value
        if not isinstance(value, (ast.Name, ast.Attribute)):
            return None
        value = _assigned(own, value)
    return None


def _assigned(own: Source, name: ast.expr) -> ast.expr | None:
    """What the nearest statement above assigns to a name, in its function or else in the module."""
    place = own.statement(name.lineno)
    around = [*own.around(place)] if place is not None else []
    scopes = [one for one in around if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))][:1]
    for scope in (*scopes, own.tree):
        found = [
            one for one in pastes.walk(scope, ast.Assign)
            if dotted(name) in map(dotted, one.targets) and one.lineno < (place.lineno if place is not None else 0)
        ]  # fmt: skip
        if found:
            return max(found, key=lambda one: one.lineno).value
    return None
