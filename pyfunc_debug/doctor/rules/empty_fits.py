"""`fit` or `evaluate` of an array without a row: no step runs, and nothing is said."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.symbols import sizes_of
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Finding

NAMES = ("empty-fit",)
_LONGEST = 50


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line of `fit` or `evaluate`."""
    told: set[tuple[str, int, bool]] = set()
    for _, _, noticed in facts.notices.get(Notice.EMPTY_FIT, []):
        file, line, validates = noticed["file"], noticed["line"], noticed["validates"]
        if (file, line, validates) in told or not facts.source(file):
            continue
        told.add((file, line, validates))
        text = _given(facts, noticed)
        shape = sizes_of(noticed["shape"])
        what = f"the x of validation_data has no row, {shape}" if validates else f"{text} has no row, {shape}"
        epochs = f" in {noticed['epochs']} epochs" if noticed["epochs"] > 1 else ""
        then = "nothing is trained" if noticed["method"] == "fit" else "what it gives is of no row"
        then = "no epoch is validated" if validates else f"{noticed['method']} ran no step{epochs}, and {then}"
        made = None if validates else _made(facts, file, line, text)
        yield Finding(
            NAMES[0], "error", None, (), f"{what}: {then}",
            "look at the lines that make it: a slice, a filter, or a count of whole batches leaves no row",
            file, line, evidence=(made,) if made else (),
        )  # fmt: skip


def _given(facts: Facts, noticed: Mapping[str, Any]) -> str:
    """How the array is written in the call."""
    call = pastes.call_at(facts, noticed["file"], noticed["line"], noticed["method"])
    named = next((one.value for one in call.keywords if one.arg == "x"), None) if call is not None else None
    node = named if named is not None else call.args[0] if call is not None and call.args else None
    text = pastes.text_of(facts, noticed["file"], node) if node is not None else ""
    return text if 0 < len(text) <= _LONGEST and "\n" not in text else f"the x of {noticed['method']}"


def _made(facts: Facts, file: str, line: int, text: str) -> str:
    """The last line above that makes the array, or the one that sets the attribute; "" where none is known."""
    own, owner = pastes.source(facts, file), text.rpartition(".")[0]
    found: list[tuple[int, str]] = []
    for one in ast.walk(own.tree):
        if not isinstance(one, ast.Assign):
            continue
        for target in one.targets:
            parts, values = [target], [one.value]
            if isinstance(target, ast.Tuple):
                same = isinstance(one.value, ast.Tuple) and len(one.value.elts) == len(target.elts)
                parts = target.elts
                values = one.value.elts if same and isinstance(one.value, ast.Tuple) else [one.value] * len(parts)
            for part, value in zip(parts, values):
                if owner and isinstance(part, ast.Attribute) and part.attr == text.rpartition(".")[2]:
                    found.append((one.lineno, own.text(value)))
                elif isinstance(part, ast.Name) and part.id == text and own.function(one.lineno) is own.function(line):
                    found += [(one.lineno, own.text(value))] if one.lineno < line else []
    if not found or (owner and len(found) > 1):
        return ""
    at, made = max(found)
    return f"{facts.source_line(file, at)} makes it{f': {made}' if len(made) <= _LONGEST else ''}"
