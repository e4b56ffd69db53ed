"""Fixes of several findings in one file: pasted one after the other, a second may undo the first, or miss its line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyfunc_debug.doctor.failures.pastes.explanation import places, replaced_lines
from pyfunc_debug.records import Finding


def marked(findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings, those with a line in their evidence whose paste an earlier one's changes, or moves.

    Args:
      findings: In the order in which they are shown.
    """
    taken: dict[tuple[str, int], Finding] = {}
    moving: list[tuple[str, int, Finding]] = []
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
        own = list(places(one.fix))
        above = next((of for file, line, of in moving for at, first, _ in own if at == file and first > line), None)
        if shared is None and above is not None:
            said = f"the paste for {above.rule}, above, moves its lines: paste this one first"
            one = replace(one, evidence=(*one.evidence, said))
        moving += [(file, first, one) for file, first, by in own if by and shared is None]
        for place in lines:
            taken.setdefault(place, one)
        yield one
