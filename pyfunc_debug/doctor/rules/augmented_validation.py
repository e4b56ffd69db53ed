"""A body that draws random numbers, in the pipeline of the validation as in that of the training.

Keras is given the former as `validation_data=`; a session of TensorFlow 1 runs it where it fetches no train op.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.draws.altering_draws import altering_draw
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.doctor.models import session_validation
from pyfunc_debug.records import Finding, Node

NAMES = ("augmented-validation",)
_STEPS = 6
"""How many statements a dataset is followed back."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body."""
    yield from session_validation.findings(facts, NAMES[0])
    told: set[tuple[str, str | None, int | None]] = set()
    for file, line in pastes.keras_sites(facts):
        call = pastes.call_at(facts, file, line, "fit")
        given = next((one.value for one in call.keywords if one.arg == "validation_data"), None) if call else None
        own = pastes.source(facts, file)
        maker = _made_alike(own, call, given) if call is not None and given is not None else None
        if not isinstance(given, ast.Name) and maker is None:
            continue
        spans = _statements(own, given.id) if isinstance(given, ast.Name) else []
        if maker is not None:
            spans.append((maker.lineno, maker.end_lineno or maker.lineno, False))
        text = own.text(given) if given is not None else ""
        for node in facts.nodes.values():
            body = (node.body, node.file, node.line)
            if node.origin != "user" or body in told or not facts.calls(node.id).count:
                continue
            if not _stands_in(node, file, spans) or not _trains_too(facts, node, file, spans):
                continue
            found = _finding(facts, node, text, file)
            if found is not None:
                told.add(body)
                yield found


def _made_alike(own: Source, fit: ast.Call, given: ast.expr) -> ast.FunctionDef | None:
    """The function that makes both datasets of a `fit`, where nothing but the data tells its two calls apart."""
    train = fit.args[0] if fit.args else next((one.value for one in fit.keywords if one.arg == "x"), None)
    made = [pastes.behind_name(own.tree, one) for one in (train, given) if one is not None]
    calls = [one for one in made if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)]
    names = {ast.unparse(one.func) for one in calls}
    if len(calls) != 2 or len(names) != 1:
        return None
    told = [one for call in calls for one in pastes.walk(call, ast.Constant) if isinstance(one.value, (bool, str))]
    named = [one for one in pastes.walk(own.tree, ast.FunctionDef) if one.name in names]
    asks = any(isinstance(one, (ast.If, ast.IfExp)) for function in named for one in ast.walk(function))
    return named[0] if len(named) == 1 and not told and not asks else None


def _statements(own: Source, name: str) -> list[tuple[int, int, bool]]:
    """The lines of the statements that make a dataset, and whether what they make is for validation alone."""
    every = [one for one in pastes.walk(own.tree, ast.Assign) if len(one.targets) == 1]
    found: list[tuple[int, int, bool]] = []
    waiting, alone = [name], True
    for _ in range(_STEPS):
        made = [one for one in every if ast.unparse(one.targets[0]) in waiting]
        found += [(one.lineno, one.end_lineno or one.lineno, alone) for one in made]
        roots = {root for one in made if (root := code.chain_root(one.value)) and root not in waiting}
        if not roots:
            break
        waiting, alone = list(roots), False  # others may be made of it
    return found


def _stands_in(node: Node, file: str, spans: list[tuple[int, int, bool]]) -> bool:
    return any(
        frame.file == file and first <= frame.line <= last for frame in node.stack for first, last, _ in spans
    )  # fmt: skip


def _trains_too(facts: Facts, node: Node, file: str, spans: list[tuple[int, int, bool]]) -> bool:
    """Whether a body runs for the training, too: by a node of its own, or before the data are split."""
    alone = [one for one in spans if one[2]]
    if not _stands_in(node, file, alone):
        return True
    others = (one for one in facts.nodes.values() if one.origin == "user" and facts.calls(one.id).count)
    body = (node.body, node.file, node.line)
    return any((one.body, one.file, one.line) == body and not _stands_in(one, file, spans) for one in others)


def _finding(facts: Facts, node: Node, name: str, file: str) -> Finding | None:
    draw = altering_draw(facts, node)
    if draw is None:
        return None
    site = next((frame for frame in reversed(node.stack) if frame.file == file), None)
    return Finding(
        NAMES[0], "note", node.id, (),
        f"{facts.name(node)} draws random numbers, and stands in the pipeline of validation_data={name}, too: the "
        "validation gets other elements in each epoch, which are harder than those that are there",
        f"leave {facts.name(node)} out of {name}: draw in a map of the training data alone",
        site.file if site is not None else node.file, site.line if site is not None else node.line,
        evidence=(f"{facts.source_line(node.file, draw.line)}: {draw.text}",), confidence="likely",
    )  # fmt: skip
