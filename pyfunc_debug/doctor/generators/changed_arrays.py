"""A generator that changes a slice of its data in place: a slice is the array, which each pass changes again."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.generators.batches import Array, Batches, Seen

_LEAST = 3
"""Different batches in a pass, at least: else one may be taken for another."""
_CLOSE = 0.01
_SHRUNK = 0.5


@dataclass(frozen=True)
class _Write:
    made: ast.Assign
    statement: ast.stmt


def in_place(facts: Facts, batches: Batches) -> Seen | None:
    """The same rows came with other values in a later pass, and a line changes a slice of what outlives the pass."""
    writes = _writes(batches.function)
    changed = _changed(batches) if writes else ""
    if not changed:
        return None
    own, write = pastes.source(facts, batches.file), writes[0]
    pieces = {one.made.value: f"{own.text(one.made.value)}.copy()" for one in writes}
    name, whole = ast.unparse(write.made.targets[0]), code.root(write.made.value)
    base = ast.unparse(write.made.value.value) if isinstance(write.made.value, ast.Subscript) else whole
    return Seen(
        f"line {write.statement.lineno} changes {base} itself, again in each pass: {name} is a slice of it (line "
        f"{write.made.lineno}), and a slice of an array shares its memory. {changed}",
        pastes.all_replaced(facts, batches.file, pieces) or f"{own.text(write.made.value)}.copy()",
        write.statement.lineno,
        (f"line {write.statement.lineno}: {facts.line(batches.file, write.statement.lineno)}",),
    )


def _writes(function: ast.FunctionDef) -> list[_Write]:
    """Statements that change a slice in place, each with the line that takes the slice: once for a name."""
    own = list(code.own_nodes(function))
    local = {
        one.id for one in own if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    } - set(code.parameters(function))  # fmt: skip
    slices: dict[str, list[ast.Assign]] = {}
    for one in own:
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
            slices.setdefault(one.targets[0].id, []).append(one)
    found: dict[str, _Write] = {}
    for one in own:
        target: ast.AST | None = None
        if isinstance(one, ast.AugAssign):
            target = one.target
        elif isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Subscript):
            target = one.targets[0]
        name = code.root(target) if isinstance(target, (ast.Name, ast.Subscript)) else None
        made = slices.get(name or "", [])
        value = made[0].value if len(made) == 1 else None
        if name is None or name in found or not isinstance(value, ast.Subscript) or not isinstance(one, ast.stmt):
            continue
        parts = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
        if isinstance(parts[0], ast.Slice) and code.root(value) not in local:
            found[name] = _Write(made[0], one)
    return list(found.values())


def _changed(batches: Batches) -> str:
    """In words, how an array of the same batch was in a first pass and in a second; "" where nothing changed."""
    each = batches.each
    count = min(map(len, each))
    for key in range(count):
        passes: dict[bytes, list[int]] = {}
        for number, batch in enumerate(each):
            passes.setdefault(batch[key].digest or b"", []).append(number)
        again = [numbers for numbers in passes.values() if len(numbers) > 1]
        if len(passes) < _LEAST or b"" in passes or len(again) < len(passes) / 2:
            continue
        for at in range(count):
            if all(_moved(each[numbers[0]][at], each[numbers[1]][at]) for numbers in again):
                first, second, *_ = (_ends(each[number][at]) for number in again[0])
                return f"The first batch was {first} in the first pass, {second} in the second"
    ends = [[max(abs(one[at].least or 0), abs(one[at].most or 0)) for one in each] for at in range(count)]
    for one in ends:
        half = len(one) // 2
        if half > 1 and min(one[:2]) > 0 and max(one[half:]) < _SHRUNK * min(one[:2]):
            return f"The largest number of a batch was {one[0]:.4g} in the first, and {one[-1]:.4g} in the last"
    return ""


def _moved(one: Array, other: Array) -> bool:
    """Whether an array's numbers are others the second time, by more than rounding."""
    if one.least is None or one.most is None or other.least is None or other.most is None:
        return False
    close = _CLOSE * max(abs(one.least), abs(one.most))
    return abs(one.least - other.least) > close or abs(one.most - other.most) > close


def _ends(array: Array) -> str:
    return f"{array.least:.4g} to {array.most:.4g}"
