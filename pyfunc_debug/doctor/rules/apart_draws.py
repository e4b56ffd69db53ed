"""An image and its mask that a function or a body flips or crops each by a draw of its own: they match no more."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.apart_flips import apart_flips
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = ("augmented-apart",)
_MOVES = ("random_flip_left_right", "random_flip_up_down", "random_crop")
"""Ops of tf.image that move what is in a picture, and have a stateless twin."""
_MASK = re.compile(r"mask|seg|label|target|annot|truth|heatmap|^gt|_gt$|^y$", re.IGNORECASE)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a function that a dataset maps, and one a body."""
    told: set[tuple[str, int]] = set()
    for group in facts.lines:
        apart = apart_flips(facts, group) if facts.calls_of(group).count else None
        if apart is not None and group[0].file is not None:
            yield Finding(
                NAMES[0], "error", group[0].id, (), apart.message, apart.fix, group[0].file, apart.line,
                several(one.id for one in group),
                tuple(f"line {one}: {facts.line(group[0].file, one)}" for one in apart.lines),
                "measured" if apart.sure else "likely",
            )  # fmt: skip
    for function in facts.functions.values():
        file, own = function.file, facts.definition(function.file, function.line)
        if function.kind != "tf.data" or file is None or not isinstance(own, ast.FunctionDef):
            continue
        pairs = _pairs(own, pastes.module(facts, file, "tensorflow"))
        if pairs and (file, own.lineno) not in told:
            told.add((file, own.lineno))
            yield _finding(facts, file, own, pairs)


def _pairs(own: ast.FunctionDef, tf: str | None) -> list[tuple[ast.Call, ast.Call]]:
    """Calls of one op for two inputs of a function, of which one is a mask by its name."""
    given = {one.arg for one in own.args.args}
    calls = [
        one for one in pastes.walk(own, ast.Call)
        if tf is not None and ast.unparse(one.func).startswith(f"{tf}.image.") and pastes.last_name(one.func) in _MOVES
        and one.args and isinstance(one.args[0], ast.Name) and one.args[0].id in given
        and not any(word.arg == "seed" for word in one.keywords)
    ]  # fmt: skip
    found = []
    for op in _MOVES:
        same = [one for one in calls if pastes.last_name(one.func) == op]
        masks = [bool(_MASK.search(one.args[0].id)) for one in same if isinstance(one.args[0], ast.Name)]
        if len(same) == 2 and sorted(masks) == [False, True]:
            found.append((same[0], same[1]))
    return found


def _finding(facts: Facts, file: str, own: ast.FunctionDef, pairs: list[tuple[ast.Call, ast.Call]]) -> Finding:
    tf = pastes.module(facts, file, "tensorflow")
    seed = "seed" if "seed" not in {one.id for one in pastes.walk(own, ast.Name)} else "same_seed"
    pieces: dict[ast.expr, str] = {}
    for number, pair in enumerate(pairs):
        text = f"{seed} + {number}" if number else seed
        for one in pair:
            parts = [pastes.text_of(facts, file, part) for part in (*one.args, *one.keywords)]
            op = pastes.last_name(one.func)
            pieces[one] = f"{tf}.image.stateless_{op}({', '.join(parts)}, seed={text})"
    names = [pastes.text_of(facts, file, one.args[0]) for one in pairs[0]]
    lines = sorted(one.lineno for one in pairs[0])
    drawn = f"{seed} = {tf}.random.uniform([2], maxval=2**31 - 1, dtype={tf}.int32)"
    does = "crop" if pastes.last_name(pairs[0][0].func) == "random_crop" else "flip"
    return Finding(
        NAMES[0], "error", None, (),
        f"{own.name} {does}s {names[0]} and {names[1]} each by a draw of its own: where one is {does}ped and the other "
        "is not, or otherwise, they no longer belong together. With one seed both ops draw the same",
        pastes.written(
            pastes.above(facts, file, min(one.lineno for pair in pairs for one in pair), drawn),
            *pastes.each_replaced(facts, file, pieces),
        ),
        file, lines[1], evidence=tuple(f"line {one}: {facts.line(file, one)}" for one in lines),
    )  # fmt: skip
