"""What a failing test's report says of its recording."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Sequence

from pyfunc_debug.analysis.describe import call_text
from pyfunc_debug.analysis.tables import ledger_text
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.doctor import SEVERITIES, names
from pyfunc_debug.doctor.text import findings_text
from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.stops.display import original_of

_WIDTH = 80
_FINDINGS = 3


def wanted_rules(text: str) -> tuple[str, ...]:
    """`"wrong-tape, nan-*"` as rules, globs and severities.

    Raises:
      BadOptionError: there is no such rule.
    """
    found = tuple(one.strip() for one in text.split(",") if one.strip())
    for one in found:
        known = [*SEVERITIES, *names()]
        if not fnmatch.filter(known, one):
            near = difflib.get_close_matches(one, known, 3) or known
            raise BadOptionError(f"the doctor has no rule {one!r}. There are: {', '.join(near)}")
    return found


def found_by(recording: Recording, rules: Sequence[str]) -> str:
    """The findings of these rules and severities, as a text; empty if there are none."""
    severities = [SEVERITIES.index(one) for one in rules if one in SEVERITIES]
    worst = SEVERITIES[: max(severities) + 1] if severities else ()
    found = [
        one for one in recording.findings(front="shell")
        if one.severity in worst or any(fnmatch.fnmatchcase(one.rule, rule) for rule in rules)
    ]  # fmt: skip
    return findings_text(found, _WIDTH)


def failing_call(error: BaseException, failures: Iterable[tuple[int | None, BaseException]]) -> int | None:
    """Number of the call whose exception is the origin of this one; None if it came from none."""
    original = original_of(error) or error
    return next((number for number, one in failures if one is original), None)


def report_text(recording: Recording, call: int | None, path: str, gave_way: bool) -> str:
    """The failing call with its inputs and exception, the ledger, the worst findings, and where the recording is."""
    parts = [] if call is None else [call_text(recording.call(call), recording.reader)]
    parts.append(ledger_text(recording.ledger(), _WIDTH))
    findings = recording.findings(front="shell")
    if findings:
        parts.append(findings_text(findings, _WIDTH, _FINDINGS, f"pyfunc-debug doctor {path}"))
    if gave_way:
        parts.append("The test began a recording of its own: this one ended there.")
    parts.append(f"recording: {path}")
    return "\n\n".join(parts)
