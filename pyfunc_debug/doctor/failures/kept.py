"""Explanations in a recording: what was said under a traceback is what the doctor says later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, from_facts
from pyfunc_debug.program.error_text import error_text
from pyfunc_debug.records import Finding


def recorded_facts(explanation: Explanation, error: BaseException) -> dict[str, Any]:
    """What the recording's notice `failure` holds."""
    return noted(explanation, error_text(error)[0])


def noted(explanation: Explanation, error: str) -> dict[str, Any]:
    """The same, where the failure is in words: a program that goes on and on raises nothing."""
    return {"explanation": explanation.facts(), "error": error}


def finding_of(facts: dict[str, Any]) -> Finding:
    """The finding of one failure."""
    explanation = from_facts(facts["explanation"])
    fix = explanation.advice
    if explanation.edit is not None:
        fix = "\n".join((explanation.edit.instruction(), *explanation.edit.lines))
    return Finding(
        explanation.rule, "error", None, (), explanation.cause, fix, explanation.file, explanation.line,
        evidence=(f"the program failed with {facts['error']}",), confidence=explanation.confidence,
    )  # fmt: skip


def failures(facts: Facts, rules: tuple[str, ...]) -> Iterator[Finding]:
    """Findings of the recorded failures that these rules explain."""
    for _, _, noticed in facts.notices["failure"]:
        if noticed["explanation"]["rule"] in rules:
            yield finding_of(noticed)


def edited_lines(facts: Facts) -> set[tuple[str, int]]:
    """Lines that the explanations of recorded failures replace: what else is found there has been said."""
    edits = [from_facts(noticed["explanation"]).edit for _, _, noticed in facts.notices["failure"]]
    return {(one.file, line) for one in edits if one is not None for line in range(one.first, one.last + 1)}
