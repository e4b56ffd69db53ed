"""`self.x[index * size : size + (index + 1)]`: slices of a `__getitem__` that do not follow each other.

Those that all have one length may overlap, or leave rows out, on purpose: windows of a series.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.generators.batches import Batches, Seen

_SIZES = (13, 57)
"""Two sizes of a batch to compute with: what follows for both follows for all."""
_FIRST = 4


@dataclass(frozen=True)
class Uneven:
    """A slice whose end is not where the next one begins.

    Attributes:
      part: The slice.
      index: The parameter that counts the batches.
      end: What its end should be.
      size: The expression of the size of a batch.
    """

    part: ast.Slice
    index: str
    end: str
    size: ast.expr


def uneven(function: ast.FunctionDef, own: Source) -> list[Uneven]:
    """The slices of a `__getitem__` that begin at a batch's first row, and do not end at that of the next."""
    given = code.parameters(function)
    if function.name != "__getitem__" or len(given) != 2:
        return []
    found = []
    for one in code.own_nodes(function):
        if not isinstance(one, ast.Slice) or one.lower is None or one.upper is None or one.step is not None:
            continue
        size = _size(one.lower, given[1])
        if size is None or not _is_of(one.upper, given[1], own.text(size)):
            continue
        sizes = (size.value,) if isinstance(size, ast.Constant) and type(size.value) is int else _SIZES
        lengths = {_value(one.upper, given[1], index, sizes[0]) - index * sizes[0] for index in range(_FIRST)}
        if len(lengths) > 1 and not all(
            _value(one.upper, given[1], index, of) == (index + 1) * of for index in range(_FIRST) for of in sizes
        ):
            found.append(Uneven(one, given[1], f"({given[1]} + 1) * {own.text(size)}", size))
    return found


def of_slices(facts: Facts, batches: Batches) -> Seen | None:
    """Batches of other sizes than the first, as the slices do not follow each other."""
    own = pastes.source(facts, batches.file)
    found = uneven(batches.function, own)
    rows = batches.rows
    if not found or len(set(rows[:-1])) < 2:
        return None
    first = found[0]
    shown = ", ".join(str(one) for one in rows[:4])
    return Seen(
        f"the batches that __getitem__ gave had {shown} rows: its slice ends at "
        f"{own.text(first.part.upper) if first.part.upper is not None else ''}, and the next one begins at {first.end}",
        pastes.all_replaced(facts, batches.file, dict(ends(found))),
        first.part.lineno,
    )


def ends(found: list[Uneven]) -> Iterator[tuple[ast.expr, str]]:
    """What stands at the end of slices, and what should."""
    return ((one.part.upper, one.end) for one in found if one.part.upper is not None)


def _size(lower: ast.expr, index: str) -> ast.expr | None:
    """The size in `index * size`."""
    if not isinstance(lower, ast.BinOp) or not isinstance(lower.op, ast.Mult):
        return None
    both = lower.left, lower.right
    other = [one for one in both if not (isinstance(one, ast.Name) and one.id == index)]
    return other[0] if len(other) == 1 and (dotted(other[0]) or isinstance(other[0], ast.Constant)) else None


def _is_of(node: ast.expr, index: str, size: str) -> bool:
    """Whether an expression is one of sums and products of the index, the size and numbers."""
    if isinstance(node, ast.BinOp):
        simple = isinstance(node.op, (ast.Add, ast.Sub, ast.Mult))
        return simple and _is_of(node.left, index, size) and _is_of(node.right, index, size)
    return (isinstance(node, ast.Constant) and type(node.value) is int) or dotted(node) in (index, size)


def _value(node: ast.expr, index: str, at: int, size: int) -> int:
    """What such an expression is worth."""
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, index, at, size), _value(node.right, index, at, size)
        if isinstance(node.op, ast.Mult):
            return left * right
        return left + right if isinstance(node.op, ast.Add) else left - right
    if isinstance(node, ast.Constant):
        return int(node.value)  # type: ignore[arg-type]
    return at if dotted(node) == index else size
