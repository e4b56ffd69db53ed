"""Fixes of several findings that change the same line: pasted one after the other, the second would undo the first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyfunc_debug.records import Finding

_REPLACED = re.compile(r"^Replace (?:lines )?(.+?):(\d+)(?: to (\d+))? by:$", re.MULTILINE)


def marked(findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings, those with a line in their evidence whose paste changes what that of an earlier one changes.

    Args:
      findings: In the order in which they are shown.
    """
    taken: dict[tuple[str, int], Finding] = {}
    for one in findings:
        lines = list(_lines(one.fix))
        earlier = next((taken[line] for line in lines if line in taken), None)
        if earlier is not None:
            file, line = next(line for line in lines if line in taken)
            said = (
                f"{file}:{line} is also changed by the paste for {earlier.rule}, above: one of them, then record again"
            )
            if one.fix == earlier.fix:
                said = f"its paste is the one for {earlier.rule}, above"
            one = replace(one, evidence=(*one.evidence, said))
        for place in lines:
            taken.setdefault(place, one)
        yield one


def _lines(fix: str) -> Iterator[tuple[str, int]]:
    for file, first, last in _REPLACED.findall(fix):
        yield from ((file, line) for line in range(int(first), int(last or first) + 1))
