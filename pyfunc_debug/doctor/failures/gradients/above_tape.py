"""No gradient, because what the model computed stands above the tape: a tape sees what runs in its block."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pyfunc_debug.doctor.failures.gradients.below_tape import all_none
from pyfunc_debug.doctor.failures.gradients.left_behind import Liveness
from pyfunc_debug.doctor.failures.gradients.moved_tapes import begins_late
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import (
    Source,
    asked_of_tape,
    dotted,
    gradients_of_tape,
    indent_of,
    names,
    short,
    tapes,
)

RULE = "cut-gradient"
_SAID = "No gradients provided for any variable"
_NEAR = 10
"""Lines from the first statement that is moved to the tape."""
_LISTS = ("Variable", "trainable_variables", "trainable_weights", "variables", "weights")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if nothing in the only tape's block reads a variable, and lines above it do."""
    if situation.body:
        return None
    for spot in reversed(situation.spots):
        if _SAID not in situation.message and not ("None" in situation.message and all_none(spot)):
            continue
        source = spot.source
        holder = source.function(spot.line)
        blocks = [one for one in tapes(source) if source.function(one.lineno) is holder]
        if blocks:
            found = _of_block(spot, source, blocks[0]) or _of_lines(spot, source, blocks[0])
            return found if len(blocks) == 1 else None
    return None


def _of_lines(spot: Spot, source: Source, block: ast.With) -> Explanation | None:
    """The same by the source alone, where loops above the tape keep in lists what the block adds up."""
    asked = [one for one in gradients_of_tape(source, block) if len(one.args) > 1]
    inside = Liveness(spot)
    if inside.after(block.body) and any(inside.of(one.args[0]) for one in asked):
        return None  # it reads variables: others than are asked for
    found = begins_late(spot.file, source, block, asked[0].args[1]) if len(asked) == 1 else None
    if found is None:
        return None
    first, edit = found
    advice = "" if edit else f"Begin the block of the tape above line {first.lineno}."
    return Explanation(RULE, spot.file, first.lineno, _cause(source, block, first), edit, advice, "likely")


def _cause(source: Source, block: ast.With, first: ast.stmt) -> str:
    code = short(source.text(first).split("\n")[0], 40)
    return (
        f"`{code}` (line {first.lineno}) runs above the tape of line {block.lineno}, and a GradientTape sees what runs "
        "in its block only. Nothing in the block reads a variable: none has a gradient."
    )


def _of_block(spot: Spot, source: Source, block: ast.With) -> Explanation | None:
    asked = asked_of_tape(source, block)
    inside = Liveness(spot)
    if len(asked) != 1 or not inside.after(block.body) or inside.of(asked[0]):
        return None
    read = {name for one in block.body for name in names_of(one)} | set(names(asked[0]))
    for siblings in _levels(source, block):
        found = _live(spot, siblings, read)
        if found:
            return _explanation(spot, source, block, siblings, found)
    return None


def _levels(source: Source, block: ast.With) -> list[list[ast.stmt]]:
    """The statements before the block, then those before the statement around it, up to the function."""
    found: list[list[ast.stmt]] = []
    for node in (block, *source.around(block)):
        if isinstance(node, (*_DEFINITIONS, ast.Module)):
            break
        own = source.block(node) if isinstance(node, ast.stmt) else None
        found.append(own[: own.index(node)] if own is not None and isinstance(node, ast.stmt) else [])
    return found


def _live(spot: Spot, statements: Sequence[ast.stmt], read: set[str]) -> list[ast.stmt]:
    """Those statements that compute with variables what the block reads, and what they read of each other."""
    states = Liveness(spot)
    live: list[ast.stmt] = []
    for one in statements:
        if isinstance(one, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and one.value is not None:
            if _makes(one.value):
                continue
            if states.of(one.value):
                live.append(one)
            if not states.after([one]):
                return []
    needed, found = set(read), list[ast.stmt]()
    for one in reversed(statements):
        targets = _targets(one)
        value = getattr(one, "value", None)
        if not targets & needed or not isinstance(value, ast.expr):
            continue
        if one in live:
            found.append(one)
            needed |= set(names(value))
        elif isinstance(value, ast.Lambda):
            needed |= set(names(value.body))
    return found[::-1]


def _makes(value: ast.expr) -> bool:
    """Whether an expression makes a variable or a model, or lists variables: nothing that has a gradient."""
    call = value.func if isinstance(value, ast.Call) else None
    last = dotted(call if call is not None else value).rpartition(".")[2]
    return last in _LISTS or last[:1].isupper()


def _targets(statement: ast.stmt) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return {
        part.id for one in targets if one is not None for part in ast.walk(one) if isinstance(part, ast.Name)
    }  # fmt: skip


def names_of(statement: ast.stmt) -> set[str]:
    """Names that a statement reads."""
    return {one.id for one in ast.walk(statement) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


def _explanation(
    spot: Spot, source: Source, block: ast.With, siblings: list[ast.stmt], found: list[ast.stmt]
) -> Explanation:
    first = found[0]
    cause = _cause(source, block, first)
    inner = indent_of(source.lines[block.body[0].lineno - 1])
    moved = [
        f"{inner}{line[len(indent_of(source.lines[one.lineno - 1])) :]}"
        for one in found for line in source.lines[one.lineno - 1 : one.end_lineno]
    ]  # fmt: skip
    again = Edit(spot.file, block.body[0].lineno, block.body[0].lineno - 1, tuple(moved))
    own = source.parent(block)
    near = block.lineno - first.lineno <= _NEAR and siblings and source.parent(siblings[-1]) is own
    near = near and source.together(first.lineno, block.lineno)
    between = [one for one in siblings if one.lineno > first.lineno and one not in found]
    made = {name for one in found for name in _targets(one)}
    if not near or any(made & names_of(one) for one in between):
        return Explanation(RULE, spot.file, first.lineno, cause, again, "", "likely")
    gone = {line for one in found for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)}
    head = [
        source.lines[line - 1] for line in range(first.lineno, block.body[0].lineno) if line not in gone
    ]  # fmt: skip
    while head and not head[0].strip():
        head = head[1:]
    edit = Edit(spot.file, first.lineno, block.body[0].lineno - 1, (*head, *moved))
    return Explanation(RULE, spot.file, first.lineno, cause, edit, "", "likely")
