"""`class_weight` with other keys than the labels: those rows have none, in silence, and count 1."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Finding

NAMES = ("missed-weight",)
_SHOWN = 4


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line of `fit`."""
    told: set[tuple[str, int]] = set()
    for _, _, noticed in facts.notices.get(Notice.MISSED_WEIGHTS, []):
        place = noticed["file"], noticed["line"]
        if place not in told and facts.source(noticed["file"]):
            told.add(place)
            yield Finding(
                NAMES[0], "warning", None, (),
                f"class_weight has weights for {_listed(noticed['unused'])}, which no row has for its label, and none "
                f"for {_listed(noticed['missed'])}: {noticed['missed_rows']:,} of {noticed['rows']:,} rows count 1",
                _fix(facts, *place, noticed), *place,
            )  # fmt: skip


def _listed(classes: list[Any]) -> str:
    return ", ".join(map(repr, classes[:_SHOWN])) + ", ..." * (len(classes) > _SHOWN)


def _fix(facts: Facts, file: str, line: int, noticed: Mapping[str, Any]) -> str:
    """The dict with the labels for keys, where one step leads from the one to the other."""
    fit = pastes.call_at(facts, file, line, "fit")
    given = next((one.value for one in fit.keywords if one.arg == "class_weight"), None) if fit is not None else None
    words = f"a dict whose keys are the labels: {_listed(noticed['labels'])}"
    key = _key(noticed)
    if given is None or not key:
        return words
    text = pastes.text_of(facts, file, given)
    text = f"({text})" if not isinstance(given, (ast.Name, ast.Dict, ast.Call, ast.Attribute)) else text
    new = f"{{{key}: weight for key, weight in {text}.items()}}"
    return pastes.written(pastes.replaced(facts, file, {given: new})) or words


def _key(noticed: Mapping[str, Any]) -> str:
    """What makes a label of each key: `int(key)`, `key - 1`; "" where nothing that is known here does."""
    labels, unused, missed = noticed["labels"], noticed["unused"], noticed["missed"]
    if all(type(one) is str for one in unused):
        return "int(key)" if {*unused} == {*map(str, labels)} and missed == labels else ""
    if any(type(one) is str for one in unused):
        return ""
    keys = sorted({*labels, *unused} - {*missed})
    apart = {key - label for key, label in zip(keys, sorted(labels))}
    step = apart.pop() if len(apart) == 1 and len(keys) == len(labels) else 0
    return "" if not step else f"key - {step}" if step > 0 else f"key + {-step}"
