"""Steps of an epoch that count rows, `steps_per_epoch=len(rows)`, or batches twice, `len(sequence) // batch_size`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.datasets.shuffled_flows import FLOWS
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.generators.batches import Batches
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Finding

NAMES = ("counted-steps",)
_STEPS = {"steps_per_epoch": "x", "validation_steps": "validation_data"}
"""Arguments of `fit` that count batches, and that which gives them."""
_KINDS = 2
"""Sizes of batches: the usual one, and that of the last."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a `fit`."""
    yield from _divided_twice(facts)
    told: set[tuple[str, int]] = set()
    for _, _, noticed in facts.notices.get(Notice.COUNTED_STEPS, []):
        file, line = noticed["file"], noticed["line"]
        fit = pastes.call_at(facts, file, line, "fit")
        if fit is None or (file, line) in told:
            continue
        pieces: dict[ast.expr, str] = {}
        for word in fit.keywords:
            rows = _counted(facts, file, fit, word)
            rows = rows if rows is not None else _kept_count(facts, file, fit, word)
            if rows is not None and (rows or _are_batches(facts, file, fit, word)):
                pieces[word.value] = f"-(-{pastes.text_of(facts, file, word.value)} // {rows or noticed['rows']})"
        steps = next((one.value for one in fit.keywords if one.arg == "steps_per_epoch"), None)
        if steps is None or steps not in pieces:
            continue
        told.add((file, line))
        text = pastes.text_of(facts, file, steps)
        yield Finding(
            NAMES[0], "warning", None, (),
            f"steps_per_epoch counts batches, and {text} counts rows: the generator gives {noticed['rows']} at once, "
            f"so that an epoch of {noticed['steps']:,} steps goes over them some {noticed['rows']} times",
            pastes.all_replaced(facts, file, pieces), file, line, confidence="likely",
        )  # fmt: skip


def _kept_count(facts: Facts, file: str, fit: ast.Call, word: ast.keyword) -> str | None:
    """How a call writes the rows of a batch, where an argument is an attribute that counts rows.

    `self.steps = len(keys)`, and `gen.generate()` is what gives the batches: "gen.batch_size", or "".
    """
    given = _given(fit, str(word.arg)) if word.arg in _STEPS else None
    if not isinstance(word.value, ast.Attribute) or not isinstance(word.value.value, ast.Name):
        return None
    owner = word.value.value.id
    method = given.func if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) else None
    made = pastes.assigned(facts.tree(file), owner)
    if method is None or ast.unparse(method.value) != owner or len(made) != 1 or not isinstance(made[0], ast.Call):
        return None
    for holder in pastes.walk(facts.tree(file), ast.ClassDef):
        counts = pastes.assigned(holder, f"self.{word.value.attr}")
        if holder.name != pastes.last_name(made[0].func) or len(counts) != 1:
            continue
        count = counts[0]
        plain = isinstance(count, ast.Call) and ast.unparse(count.func) == "len" and len(count.args) == 1
        if plain and "batch" not in ast.unparse(count):
            return f"{owner}.batch_size" if pastes.assigned(holder, "self.batch_size") else ""
    return None


def _divided_twice(facts: Facts) -> Iterator[Finding]:
    """`steps_per_epoch=len(sequence) // batch_size`: what is counted are batches already."""
    told: set[tuple[str, int]] = set()
    for entry in facts.meta.get("inputs") or ():
        site = entry["site"]
        fit = pastes.call_at(facts, str(site[0]), int(site[1]), "fit") if site else None
        if fit is None or (str(site[0]), fit.lineno) in told:
            continue
        file = str(site[0])
        told.add((file, fit.lineno))
        pieces: dict[ast.expr, str] = {}
        for word in fit.keywords:
            given = _given(fit, word.arg) if word.arg in _STEPS else None
            counted = _batches_counted(facts, file, word.value, given) if given is not None else ""
            if counted:
                pieces[word.value] = counted
        if pieces:
            first = next(iter(pieces))
            text, counted = pastes.text_of(facts, file, first), pieces[first]
            yield Finding(
                NAMES[0], "warning", None, (),
                f"{counted} counts batches already, and `{text}` divides it by the rows of one: each epoch takes that "
                "part of the batches only",
                pastes.all_replaced(facts, file, pieces), file, first.lineno, confidence="likely",
            )  # fmt: skip


def _batches_counted(facts: Facts, file: str, steps: ast.expr, given: ast.expr) -> str:
    """`len(data)` of steps that divide it by a batch's size, where `data` is what `fit` takes, and gives batches."""
    if not isinstance(given, ast.Name) or not _gives_batches(facts, file, given.id):
        return ""
    wanted = f"len({given.id})"
    divided = [
        one for one in pastes.walk(steps, ast.BinOp)
        if isinstance(one.op, (ast.Div, ast.FloorDiv)) and ast.unparse(one.left) == wanted
        and "batch" in ast.unparse(one.right).lower()
    ]  # fmt: skip
    return wanted if len(divided) == 1 else ""


def _gives_batches(facts: Facts, file: str, name: str) -> bool:
    """Whether a name is a PyDataset of the file, an image flow, or a dataset that is batched where it is made."""
    tree = facts.tree(file)
    kinds = {
        one.name for one in pastes.walk(tree, ast.ClassDef)
        if any(ast.unparse(base).endswith(("Sequence", "PyDataset")) for base in one.bases)
    }  # fmt: skip
    made = [one for one in pastes.assigned(tree, name) if isinstance(one, ast.Call)]
    methods = {pastes.last_name(part.func) for one in made for part in pastes.walk(one, ast.Call)}
    called = {pastes.last_name(one.func) for one in made}
    return bool(called & (kinds | {*FLOWS}) or methods & {"batch", "padded_batch"}) and "unbatch" not in methods


def _are_batches(facts: Facts, file: str, fit: ast.Call, word: ast.keyword) -> bool:
    """Whether what a generator yields are several rows of those that are counted, and not parts of one each."""
    made = pastes.behind_name(facts.tree(file), _given(fit, str(word.arg)) or fit)
    name = pastes.last_name(made.func) if isinstance(made, ast.Call) else ""
    for node, _ in facts.generators.values():
        batches = Batches.of(facts, node)
        if batches is not None and batches.function.name == name:
            return len({*batches.rows}) <= _KINDS and not _one_each(batches)
    return True


def _one_each(batches: Batches) -> bool:
    """Whether a generator yields once for each row of what it is given: in a loop over it, and under no condition."""
    given = {f"range(len({name}))": name for name in code.parameters(batches.function)}
    for loop in pastes.walk(batches.function, ast.For):
        over = ast.unparse(loop.iter)
        plain = over in given or over in given.values() or over.startswith("enumerate(")
        if plain and any(one in loop.body for one in batches.yields):
            return True
    return False


def _given(fit: ast.Call, word: str) -> Any:
    """The argument of `fit` whose batches a number of steps counts."""
    given = next((one.value for one in fit.keywords if one.arg == _STEPS[word]), None)
    return fit.args[0] if given is None and fit.args and word == "steps_per_epoch" else given


def _counted(facts: Facts, file: str, fit: ast.Call, word: ast.keyword) -> str | None:
    """How a call writes the rows of a batch ("" if not), where an argument is `len` of what a generator is given."""
    if word.arg not in _STEPS or not isinstance(word.value, ast.Call) or ast.unparse(word.value.func) != "len":
        return None
    counted = ast.unparse(word.value.args[0]) if len(word.value.args) == 1 else ""
    given = _given(fit, word.arg)
    made = pastes.assigned(facts.tree(file), given.id) if isinstance(given, ast.Name) else [given]
    calls = [one for one in made if isinstance(one, ast.Call)]
    if len(calls) != 1 or not counted:
        return None
    values = [*calls[0].args, *(one.value for one in calls[0].keywords)]
    if counted not in map(ast.unparse, values):
        return None
    size = next((one.value for one in calls[0].keywords if "batch" in str(one.arg)), None)
    named = [one for one in calls[0].args if isinstance(one, ast.Name) and "batch" in one.id.lower()]
    size = size if size is not None else named[0] if len(named) == 1 else None
    return pastes.text_of(facts, file, size) if isinstance(size, (ast.Constant, ast.Name, ast.Attribute)) else ""
