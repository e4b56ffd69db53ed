"""`y - y_pred` of labels [n] and predictions [n, 1]: TensorFlow makes it [n, n], each label with each prediction."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Finding

NAMES = ("broadcast-loss",)
_OPS = ("subtract", "squared_difference")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line."""
    told: set[tuple[str, int]] = set()
    for _, _, noticed in facts.notices.get(Notice.BROADCAST, []):
        place = noticed["file"], noticed["line"]
        if place not in told and facts.source(noticed["file"]):
            told.add(place)
            yield _finding(facts, *place, noticed["shapes"])


def _finding(facts: Facts, file: str, line: int, shapes: Sequence[Sequence[int | None]]) -> Finding:
    tf = pastes.module(facts, file, "tensorflow") or "tf"
    sides = _sides(facts, file, line)
    column = 0 if len(shapes[0]) > 1 else 1
    size = shapes[column][0]
    n = "n" if size is None else f"{size:,}"
    fix, names = "", ["one side", "the other"]
    if sides is not None:
        names = [pastes.text_of(facts, file, one) for one in sides]
        fix = pastes.all_replaced(facts, file, {sides[column]: f"{tf}.squeeze({names[column]}, -1)"})
    shown = [f"{name} is [{', '.join(map(_size, shape))}]" for name, shape in zip(names, shapes)]
    return Finding(
        NAMES[0], "warning", None, (),
        f"line {line} subtracts two tensors of different ranks: {' and '.join(shown)}. TensorFlow makes that [{n}, {n}]"
        ", each number of the one with each of the other: their mean is not that of the rows",
        fix or f"{tf}.squeeze(..., -1) around the one with two axes", file, line,
        evidence=(f"line {line}: {facts.line(file, line)}",),
    )  # fmt: skip


def _size(size: int | None) -> str:
    return "n" if size is None else str(size)


def _sides(facts: Facts, file: str, line: int) -> list[ast.expr] | None:
    """Both sides of the line's only difference."""
    tree = facts.tree(file)
    found: list[list[ast.expr]] = [
        [one.left, one.right] for one in pastes.around(tree, line, ast.BinOp) if isinstance(one.op, ast.Sub)
    ]
    found += [
        list(one.args) for one in pastes.around(tree, line, ast.Call)
        if pastes.last_name(one.func) in _OPS and len(one.args) == 2
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None
