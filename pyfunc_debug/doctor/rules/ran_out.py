"""Keras was asked for more steps than its data have: "Your input ran out of data"."""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.grouped import times
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.generators.endless_generators import for_ever, made_by, made_of
from pyfunc_debug.records import Finding

NAMES = ("ran-out",)
STEPS = {"one_step_on_iterator", "multi_step_on_iterator", "one_step_on_data", "train_function", "test_function",
          "predict_function"}  # fmt: skip
"""What Keras traces to take a batch (keras/src/backend/tensorflow/trainer.py) and, in tf_keras, an epoch's step."""
_WORDS = {"fit": ("steps_per_epoch", "validation_steps"), "evaluate": ("steps",), "predict": ("steps",)}


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line and kind of step: only where a number of steps was asked for, as else data may end."""
    unasked = {noticed["run"] for _, _, noticed in facts.notices.get("data-ended", []) if noticed.get("asked") is False}
    ended = ended_runs(facts) - unasked  # `steps_per_epoch=iterations`, which held None
    sites, failed = steps_of_keras(facts)
    for (file, line), traces in sites.items():
        calls = [
            one for one in pastes.around(facts.tree(file), line, ast.Call)
            if isinstance(one.func, ast.Attribute) and one.func.attr in _WORDS
        ]  # fmt: skip
        if len(calls) == 1:
            kinds = _WORDS[calls[0].func.attr]  # type: ignore[attr-defined]
            for word, runs in zip(kinds, traces.values()):  # training begins
                given = next((one.value for one in calls[0].keywords if one.arg == word), None)
                if given is None:
                    continue
                if ended & set(runs):
                    yield _finding(facts, file, calls[0], word, given, until(runs, ended))
                elif not failed & set(runs) and not _caught(facts, file, calls[0]) and _short(facts, file, given, runs):
                    passes = _passes(runs)
                    yield _finding(facts, file, calls[0], word, given, [len(one) for one in passes if len(passes) > 1])


def ended_runs(facts: Facts) -> set[int]:
    """The runs of Keras' steps that found the data at their end."""
    return {noticed["run"] for _, _, noticed in facts.notices.get("data-ended", [])}


def steps_of_keras(facts: Facts) -> tuple[dict[tuple[str, int], dict[Any, list[int]]], set[int]]:
    """The runs of Keras' steps, in order, by the user's line and the trace; and those of them that failed."""
    sites: dict[tuple[str, int], dict[Any, list[int]]] = defaultdict(lambda: defaultdict(list))
    failed: set[int] = set()
    for run, trace, function, frames, error in facts.reader.rows(
        "SELECT r.id, r.trace, r.function, s.frames, r.error FROM run r JOIN stack s ON s.id = r.site "
        "WHERE r.kind = 'forward' ORDER BY r.id"
    ):
        known = facts.functions.get(function)
        if known is not None and known.name.rpartition(".")[2] in STEPS:
            file, line, *_ = json.loads(frames)[-1]
            sites[file, line][trace].append(run)
            if error is not None:
                failed.add(run)
    return sites, failed


def files_of_keras(facts: Facts) -> list[str]:
    """The files of the lines at which Keras ran steps."""
    functions = [one.id for one in facts.functions.values() if one.name.rpartition(".")[2] in STEPS]
    return list(dict.fromkeys(file for one in functions for file, _ in pastes.run_sites(facts, one)))


def _caught(facts: Facts, file: str, call: ast.Call) -> bool:
    """Whether the program may go on after an exception that ended `fit` early: a callback's, say.

    That is so where the call, or one of the function that it stands in, is in a `try` that handles exceptions.
    """
    tree = facts.tree(file)
    tries = [(one.body[0].lineno, one.body[-1].end_lineno or 0) for one in pastes.walk(tree, ast.Try) if one.handlers]
    around = {
        one.name for one in pastes.walk(tree, ast.FunctionDef)
        if one.lineno <= call.lineno <= (one.end_lineno or 0)
    }  # fmt: skip
    named = [one for one in pastes.walk(tree, ast.Call) if ast.unparse(one.func).rpartition(".")[2] in around]
    return any(first <= one.lineno <= last for one in [call, *named] for first, last in tries)


def until(runs: list[int], ended: set[int]) -> list[int]:
    """How many batches there were until each end of the data.

    Args:
      runs: The runs of one kind of step, in order.
      ended: Those that found the data at their end.
    """
    before, counts = 0, []
    for run in runs:
        if run in ended:
            counts.append(before)
        before = 0 if run in ended else before + 1
    return counts


def _passes(runs: list[int]) -> list[list[int]]:
    """Runs of one kind, a list for each time that they were in a row: training and validation alternate."""
    found: list[list[int]] = []
    for run in runs:
        if not found or run != found[-1][-1] + 1:
            found.append([])
        found[-1].append(run)
    return found


def _short(facts: Facts, file: str, given: ast.expr, runs: list[int]) -> bool:
    """Whether the passes were shorter than asked: Keras knew the size of the data, and took no more.

    Passes in a row are one here, whose length is then no multiple of what was asked.
    """
    wanted = given.value if isinstance(given, ast.Constant) else None
    lengths = {len(one) for one in _passes(runs)}
    ended, words = facts.meta.get("ended"), ("stop_training", "steps_per_execution")
    failed = isinstance(ended, dict) and ended.get("error") is not None
    if not isinstance(wanted, int) or not wanted or len(lengths) > 1 or failed or not facts.over:
        return False
    if any(word in line for line in facts.code(file) for word in words):
        return False
    return max(lengths) < wanted if len(_passes(runs)) > 1 else len(runs) % wanted != 0


def _finding(facts: Facts, file: str, call: ast.Call, word: str, given: ast.expr, counts: list[int]) -> Finding:
    name = ast.unparse(call.func).rpartition(".")[2]
    sure = len(set(counts)) == 1 and not any("steps_per_execution" in text for text in facts.code(file))
    number = f"{word}={pastes.text_of(facts, file, given)}"
    data, often = _data(call, word), f", {times(len(counts))}" if counts else " earlier"
    used_up, also = "", [f"leave out {word}; then each epoch is one pass over the data"]
    generator = made_by(facts.tree(file), data) if data is not None else None
    if generator is not None:  # fewer steps would not do: its second pass has nothing, whatever their number
        fix = (
            for_ever(facts, file, generator)
            or f"let {generator.name} go on for ever: `while True:`, in which it begins again"
        )
        used_up, also = f". A Python generator has one pass: {generator.name} is used up then", []
    elif sure and counts[0] == 0:  # more passes over nothing give nothing
        fix = "look at what makes the data: files that are not there, a filter or drop_remainder=True leave nothing"
        used_up, also = ": they have not one batch", []
    else:
        fix = _fix(facts, file, data) or f"leave {word} out: each pass takes all that there is; or let the data repeat"
    return Finding(
        NAMES[0], "warning", None, (),
        f"{name} was asked for {number} batches each time, but the data ended"
        f"{f' after {counts[0]:,}' if sure else ''}{often}: Keras breaks the epoch off there (\"Your input "
        f"ran out of data\"){used_up}",
        fix, file, call.lineno if data is None else data.lineno, evidence=tuple(f"also: {one}" for one in also),
    )  # fmt: skip


def _data(call: ast.Call, word: str) -> ast.expr | None:
    if word == "validation_steps":
        return next((one.value for one in call.keywords if one.arg == "validation_data"), None)
    given = next((one.value for one in call.keywords if one.arg == "x"), None)
    return call.args[0] if call.args else given


def _fix(facts: Facts, file: str, data: ast.expr | None) -> str:
    """`ds.repeat()` in the call."""
    tree = facts.tree(file)
    made = None if data is None else made_of(tree, data)
    if data is None or made is None or tree is None:
        return ""
    functions = {one.name: one for one in pastes.walk(tree, ast.FunctionDef)}
    called = functions.get(ast.unparse(made.func)) if isinstance(made, ast.Call) else None
    text = ast.unparse(called if called is not None else made)
    if not any(word in text for word in ("Dataset", ".batch(", ".prefetch(", ".map(")):
        return ""
    return pastes.written(pastes.replaced(facts, file, {data: f"{pastes.text_of(facts, file, data)}.repeat()"}))
