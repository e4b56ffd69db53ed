"""Fixes of several findings that change the same line: pasted one after the other, the second would undo the first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyfunc_debug.doctor.failures.pastes.explanation import replaced_lines
from pyfunc_debug.records import Finding


def marked(findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings, those with a line in their evidence whose paste changes what that of an earlier one changes.

    Args:
      findings: In the order in which they are shown.
    """
    taken: dict[tuple[str, int], Finding] = {}
    for one in findings:
        lines = list(replaced_lines(one.fix))
        shared = next((place for place in lines if place in taken), None)
        if shared is not None:
            (file, line), earlier = shared, taken[shared]
            said = (
                f"{file}:{line} is also changed by the paste for {earlier.rule}, above: one of them, then record again"
            )
            if one.fix == earlier.fix:
                said = f"its paste is the one for {earlier.rule}, above"
            one = replace(one, evidence=(*one.evidence, said))
        for place in lines:
            taken.setdefault(place, one)
        yield one
