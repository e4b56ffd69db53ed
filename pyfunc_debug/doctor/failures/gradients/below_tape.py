"""No gradient, because the loss is computed below the tape's block: a tape sees what runs in its block."""

from __future__ import annotations

import ast
import textwrap

from pyfunc_debug.doctor.code import stored_names
from pyfunc_debug.doctor.failures.gradients.left_behind import live_statements
from pyfunc_debug.doctor.failures.gradients.taped_losses import gradients_named
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import asked_of_tape, dotted, indent_of, names, short, tapes

RULE = "cut-gradient"
_SAID = "No gradients provided for any variable"
_LONGEST = 12
"""Lines that a paste may move."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a tape was asked for the gradient of what is computed below its block."""
    if situation.body:
        return None
    for spot in reversed(situation.spots):
        if _SAID not in situation.message and not ("None" in situation.message and all_none(spot)):
            continue
        source = spot.source
        blocks = [one for one in tapes(source) if source.function(one.lineno) is spot.function]
        if len(blocks) == 1:
            return _below(spot, blocks[0])
    return None


def all_none(spot: Spot) -> bool:
    """Whether what the tape gave is None, or a list of None."""
    known = [spot.variables[name] for name in gradients_named(spot.source) if name in spot.variables]
    return bool(known) and all(
        one is None or (isinstance(one, (list, tuple)) and bool(one) and all(part is None for part in one))
        for one in known
    )


def _siblings(spot: Spot, block: ast.With) -> tuple[list[ast.stmt], int, int] | None:
    """The statements around a block, its place in them, and that of what asks its tape; None if it is not clear."""
    parent = spot.source.parent(block)
    body = spot.source.block(block)
    asked = asked_of_tape(spot.source, block)
    if body is None or len(asked) != 1:
        return None
    tapes = {dotted(item.optional_vars) for item in block.items if item.optional_vars is not None}
    again = [
        one for one in ast.walk(parent or block) if isinstance(one, ast.withitem) and not isinstance(one, ast.Call)
    ]
    if any(dotted(one.context_expr) in tapes for one in again):
        return None
    asks = [place for place, one in enumerate(body) if asked[0] in ast.walk(one)]
    return (body, body.index(block), asks[0]) if asks else None


def _needed(body: list[ast.stmt], place: int, asks: int, asked: ast.expr) -> list[int]:
    """Places of the statements, besides the block, that what is asked for is computed in."""
    wanted, found = set(names(asked)), []
    for number in range(asks - 1, -1, -1):
        if number == place:
            wanted |= set(names(body[number]))
        elif stored_names(body[number]) & wanted:
            found.append(number)
            wanted |= set(names(body[number]))
    return found[::-1]


def _below(spot: Spot, block: ast.With) -> Explanation | None:
    """The loss is computed below the block."""
    known = _siblings(spot, block)
    if known is None:
        return None
    body, place, asks = known
    asked = asked_of_tape(spot.source, block)[0]
    needed = [one for one in _needed(body, place, asks, asked) if one > place]
    live = live_statements(spot, block)
    if not needed or live is None or not all(body[one] in live for one in needed):
        return None
    first, last = (block.end_lineno or block.lineno) + 1, body[needed[-1]].end_lineno or 0
    lines = _indented(spot, block, body[place + 1 : needed[-1] + 1], first, last)
    if lines is None:
        return None
    text = short(spot.source.text(body[needed[0]]), 40)
    cause = (
        f"`{text}` stands below the tape's block: a tape sees only what runs inside it, and nothing of this line, so "
        "that no variable has a gradient. It belongs into the block."
    )
    return Explanation(RULE, spot.file, body[needed[0]].lineno, cause, Edit(spot.file, first, last, lines))


def _indented(spot: Spot, block: ast.With, moved: list[ast.stmt], first: int, last: int) -> tuple[str, ...] | None:
    """Lines as they stand in the block; None where they cannot be moved as they are."""
    source = spot.source
    inside, outside = (indent_of(source.lines[one.lineno - 1]) for one in (block.body[0], block))
    whole = any(
        isinstance(one, ast.Constant) and isinstance(one.value, (str, bytes)) and one.lineno != one.end_lineno
        for statement in moved for one in ast.walk(statement)
    )  # fmt: skip
    leaves = any(isinstance(one, (ast.Return, ast.FunctionDef, ast.ClassDef)) for one in moved)
    if block.body[0].lineno == block.lineno or whole or leaves or not 0 <= last - first < _LONGEST:
        return None
    lines = source.lines[first - 1 : last]
    return tuple(textwrap.indent("\n".join(lines), inside.removeprefix(outside)).split("\n"))
