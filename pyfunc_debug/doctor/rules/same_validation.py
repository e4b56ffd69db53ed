"""`validation_data=` that is made of the training's data, while nothing reads those that are there for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.records import Finding

NAMES = ("same-validation",)
_TRAIN = re.compile(r"train(?:ing)?", re.I)
_HELD_OUT = ("val", "valid", "validation", "test", "eval", "dev")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a call of `fit`."""
    told: set[tuple[str, int]] = set()
    for file, line in pastes.keras_sites(facts):
        call = pastes.call_at(facts, file, line, "fit")
        given = next((one.value for one in call.keywords if one.arg == "validation_data"), None) if call else None
        if call is None or given is None or (file, line) in told:
            continue
        told.add((file, line))
        own = pastes.source(facts, file)
        made, trained = _made(own, given), [_made(own, one) for one in _trained(call)]
        known = {one.id for part in trained for one in ast.walk(part) if isinstance(one, ast.Name)}
        names = [one for one in ast.walk(made) if isinstance(one, ast.Name) and one.id in known]
        pieces: dict[ast.expr, str] = {one: held_out for one in names if (held_out := _unread(own, one.id))}
        if pieces:
            yield _finding(facts, file, given, made, pieces)
        elif isinstance(given, ast.Name) and given.id in [dotted(one) for one in _trained(call)[:1]]:
            maker = _generator(own, made)
            if maker is not None:
                yield _one_for_both(file, given, maker)


def _trained(call: ast.Call) -> list[ast.expr]:
    """What `fit` is given to train with."""
    return [*call.args[:2], *(one.value for one in call.keywords if one.arg in ("x", "y"))]


def _made(own: Source, given: ast.expr) -> ast.expr:
    """What a variable is, where one statement makes it; else the expression itself."""
    if not isinstance(given, ast.Name):
        return given
    stores = [
        one for one in pastes.walk(own.tree, ast.Name) if one.id == given.id and isinstance(one.ctx, ast.Store)
    ]  # fmt: skip
    values = pastes.assigned(own.tree, given.id)
    return values[0] if len(stores) == len(values) == 1 else given


def _generator(own: Source, made: ast.expr) -> ast.FunctionDef | None:
    """The generator function of the file that a call calls."""
    name = dotted(made.func) if isinstance(made, ast.Call) else ""
    found = [one for one in pastes.walk(own.tree, ast.FunctionDef) if one.name == name]
    yields = len(found) == 1 and any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in code.own_nodes(found[0]))
    return found[0] if yields else None


def _one_for_both(file: str, given: ast.Name, maker: ast.FunctionDef) -> Finding:
    """`fit(gen, validation_data=gen)`."""
    return Finding(
        NAMES[0], "error", None, (),
        f"{given.id} is one generator, which fit takes its batches from and the validation, too: the validation has "
        "rows that the model is trained with, and each batch that it takes is missing in the training",
        f"give validation_data a generator of its own, {maker.name}(...), over rows that the training does not read",
        file, given.lineno, confidence="likely",
    )  # fmt: skip


def _unread(own: Source, name: str) -> str:
    """The variable for validation that is named as this one is for training, and that nothing reads."""
    every = list(pastes.walk(own.tree, ast.Name))
    for word in _HELD_OUT:
        other = _TRAIN.sub(word, name, count=1)
        uses = [one for one in every if one.id == other]
        if other != name and uses and all(isinstance(one.ctx, ast.Store) for one in uses):
            return other
    return ""


def _finding(facts: Facts, file: str, given: ast.expr, made: ast.expr, pieces: Mapping[ast.expr, str]) -> Finding:
    own = pastes.source(facts, file)
    trained = " and ".join(dict.fromkeys(map(own.text, pieces)))
    unread = " and ".join(dict.fromkeys(pieces.values()))
    lines = sorted(one.lineno for one in pastes.walk(own.tree, ast.Name) if one.id in pieces.values())
    what = f"{own.text(given)} is made of" if made is not given else "validation_data holds"
    return Finding(
        NAMES[0], "error", None, (),
        f"{what} {trained}, with which fit trains, and nothing reads {unread} (line {lines[0]}): val_loss and the "
        "other numbers of the validation say what the model learned by heart",
        pastes.written(pastes.replaced(facts, file, pieces)) or f"use {unread} there",
        file, made.lineno, confidence="likely",
    )  # fmt: skip
