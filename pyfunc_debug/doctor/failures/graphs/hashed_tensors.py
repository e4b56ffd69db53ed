"""An eager tensor as a key of a dict or a set, in code that has values: it has one, and is none itself.

`tf.Tensor.__hash__` refuses (tensorflow/python/framework/tensor.py), as `==` of two tensors is an op, and no answer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.graphs.known_sizes import as_python_range
from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place, value_of
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import described, dtype_of, is_symbolic, lookup, shape_of

_SAID = "Tensor is unhashable"
_BY_KEY = {"get", "pop", "setdefault", "add", "discard", "remove"}
"""Methods of dicts and sets that take a key."""
_FARTHEST = 20
"""Lines from the first to the last that one paste changes."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line asks a dict or a set for an eager tensor of one value."""
    spot = situation.last
    if spot is None or situation.body or not situation.message.startswith(_SAID):
        return None
    source, around = spot.source, spot.function or spot.source.tree
    if (traced := _traced(spot, around)) is not None:
        return traced
    keys = [one for one in _keys(around, spot) if _one_value(spot.value(one.id))]
    statement = source.statement(spot.line)
    here = {part for part in ast.walk(statement) if isinstance(part, ast.Name)} if statement is not None else set()
    failed = [one for one in keys if one in here]
    if not failed:
        return None
    name = failed[0].id
    found = [one for one in keys if one.id == name]
    if max(one.lineno for one in found) - min(one.lineno for one in found) >= _FARTHEST:
        found = failed
    first, last = min(one.lineno for one in found), max(one.end_lineno or one.lineno for one in found)
    of_bytes = any(isinstance(one, bytes) for held in _holders(around, name, spot) for one in held)
    value = f"{name}.numpy()" if of_bytes or name not in spot.variables else value_of(spot, name)
    edit = Edit(spot.file, first, last, source.spliced(dict.fromkeys(found, value), first, last))
    text = ", and `.decode()` makes text of its bytes" if value.endswith(".decode()") else ""
    cause = (
        f"a tensor cannot be a key of a dict or a set, and {name} is one ({dtype_of(spot.value(name))}). `.numpy()` "
        f"gives its value{text}."
    )
    return Explanation(RULE, spot.file, spot.line, cause, edit)


def _traced(spot: Spot, around: ast.AST) -> Explanation | None:
    """A key that has no value yet: the number of a loop in the graph, which Python can count where its end is known."""
    statement = spot.statement
    here = {*ast.walk(statement)} if statement is not None else set()
    found = [
        one.slice for one in ast.walk(around)
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store) and one in here
        and isinstance(one.slice, ast.Name) and is_symbolic(spot.value(one.slice.id))
        and dotted(one.value) and isinstance(lookup(one.value, spot), dict)
    ]  # fmt: skip
    if not found:
        return None
    name = found[0].id
    loops = (one for one in spot.source.around(found[0]) if isinstance(one, ast.For) and dotted(one.target) == name)
    loop = next(loops, None)
    counted = as_python_range(spot, loop.iter) if loop is not None else None
    cause = f"a tensor cannot be a key of a dict, and {name} is one ({described(spot.value(name))}), without "
    cause += "a value while the graph is built."
    if loop is None or counted is None:
        return Explanation(RULE, spot.file, spot.line, cause, None, "A TensorArray takes a tensor for a place.")
    edit = in_place(spot, {loop.iter: counted})
    return Explanation(RULE, spot.file, spot.line, f"{cause} Python's range counts in whole numbers.", edit)


def _keys(around: ast.AST, spot: Spot) -> Iterator[ast.Name]:
    """The names that dicts and sets are asked for."""
    for owner, key in _asked(around):
        if _takes_keys(owner, key, spot):
            yield key


def _holders(around: ast.AST, name: str, spot: Spot) -> Iterator[Any]:
    """The dicts and sets that are asked for one name."""
    for owner, key in _asked(around):
        if key.id == name and _takes_keys(owner, key, spot):
            yield lookup(owner, spot)


def _asked(around: ast.AST) -> Iterator[tuple[ast.expr, ast.Name]]:
    """What may be a dict or a set, and the name that it is asked for."""
    for one in ast.walk(around):
        key: ast.expr | None = None
        owner: ast.expr | None = None
        if isinstance(one, ast.Subscript):
            owner, key = one.value, one.slice
        elif isinstance(one, ast.Compare) and len(one.ops) == 1 and isinstance(one.ops[0], (ast.In, ast.NotIn)):
            owner, key = one.comparators[0], one.left
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.args:
            owner, key = (one.func.value, one.args[0]) if one.func.attr in _BY_KEY else (None, None)
        if isinstance(key, ast.Name) and owner is not None:
            yield owner, key


def _takes_keys(owner: ast.expr, key: ast.Name, spot: Spot) -> bool:
    """Whether it is a dict or a set, and one of numbers of Python's is not asked for a rounded one: 0.1 as float32."""
    held: Any = lookup(owner, spot) if dotted(owner) else None
    if not isinstance(held, (dict, set, frozenset)):
        return False
    return not held or "float" not in dtype_of(spot.value(key.id))


def _one_value(value: object) -> bool:
    """Whether it is an eager tensor of no dimension."""
    return type(value).__name__ == "EagerTensor" and shape_of(value) == ()
