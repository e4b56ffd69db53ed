"""take() and skip() by a share of what cardinality() gave, where that is -2, "not known": they take or skip all."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.datasets.unknown_counts import counted, dataset_of, whole
from pyfunc_debug.doctor.failures.reading.source import dotted, names, short
from pyfunc_debug.records import Finding

NAMES = ("unknown-count",)
_CUTS = {"Take": "take", "Skip": "skip"}


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that asks for the number."""
    told: set[tuple[str, int]] = set()
    for loop in facts.meta.get("inputs") or []:
        below = {_CUTS[stage["kind"]]: stage["below"] for stage in loop["stages"] if stage.get("below") is not None}
        if loop["site"] is None or not below:
            continue
        file = str(loop["site"][0])
        for asked, cut in _asked(facts, file, set(below)):
            if (file, asked.lineno) in told:
                continue
            told.add((file, asked.lineno))
            yield _finding(facts, file, asked, cut, below)


def _asked(facts: Facts, file: str, cuts: set[str]) -> Iterator[tuple[ast.Call, ast.Call]]:
    """Calls of cardinality, and a take or skip by a number that is computed from it."""
    tree = facts.tree(file)
    every = [one for one in pastes.walk(tree, ast.Assign) if len(one.targets) == 1]
    compared = {name for one in pastes.walk(tree, ast.Compare) for name in names(one)}
    for one in every:
        asked = counted(one.value)
        if asked is None:
            continue
        known = {dotted(one.targets[0])}
        for other in every:
            known |= {dotted(other.targets[0])} if known & set(names(other.value)) else set()
        if known & compared:
            continue  # the program asks itself whether it is known
        for call in pastes.walk(tree, ast.Call):
            wanted = isinstance(call.func, ast.Attribute) and call.func.attr in cuts and call.args
            if wanted and known & set(names(call.args[0])):
                yield asked, call
                break


def _finding(facts: Facts, file: str, asked: ast.Call, cut: ast.Call, below: dict[str, int]) -> Finding:
    source = pastes.source(facts, file)
    dataset = dataset_of(asked)
    text = source.text(dataset) if dataset is not None else "the dataset"
    name = getattr(cut.func, "attr", "take")
    what = "takes all" if name == "take" else "skips all"
    written = pastes.written(pastes.replaced(facts, file, {whole(source, asked): f"sum(1 for _ in {text})"}))
    return Finding(
        NAMES[0], "warning", None, (),
        f"`{short(source.text(asked), 44)}` is negative where TensorFlow does not know how many elements {text} has, "
        f"as behind a generator or a filter. So `{short(source.text(cut), 40)}` (line {cut.lineno}) is "
        f"{name}({below.get(name, -1)}), which {what}",
        written or f"sum(1 for _ in {text})  # in place of cardinality: counts by one pass over the data",
        file, asked.lineno, evidence=(f"line {cut.lineno}: {facts.line(file, cut.lineno)}",),
    )  # fmt: skip
