"""The rules. A module has the names of what it finds, and a function that looks for it in a recording's facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding


class Rule(Protocol):
    """What a module of this package offers.

    `check` asks with SQL aggregates where it asks about calls or values: a recording may hold millions.
    """

    @property
    def NAMES(self) -> tuple[str, ...]:  # noqa: N802 - a module's constant
        """Names of what it finds; each has its section in docs/doctor.md."""

    def check(self, facts: Facts) -> Iterator[Finding]:
        """What it finds."""
