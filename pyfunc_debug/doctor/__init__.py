"""The doctor: what in a recording deserves attention, with its cause, the line, and the fix. One module a check."""

from __future__ import annotations

from pyfunc_debug.doctor import (
    changed_by_hand,
    closed_variables,
    errors,
    leaked_tapes,
    nans,
    none_gradients,
    second_order,
    wrong_tapes,
)
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.records import Finding

CHECKS = (
    errors.check,
    nans.check,
    wrong_tapes.check,
    none_gradients.check,
    closed_variables.check,
    second_order.check,
    leaked_tapes.check,
    changed_by_hand.check,
)
_ORDER = {"error": 0, "warning": 1, "note": 2}


def examine(reader: Reader) -> list[Finding]:
    """All findings of a recording, worst first."""
    found = [finding for check in CHECKS for finding in check(reader)]
    return sorted(found, key=lambda finding: (_ORDER[finding.severity], finding.rule, finding.node or 0))
