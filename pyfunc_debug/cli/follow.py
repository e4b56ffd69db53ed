"""`pyfunc-debug show FILE --follow`: findings of a recording that is being made, as they appear."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyfunc_debug.api.recording import Recording
from pyfunc_debug.cli import options
from pyfunc_debug.doctor.text import findings_text
from pyfunc_debug.records import Finding

_EVERY_S = 1.0
_REST = 5
"""Rests are this many times as long as looking took: the program shares the machine."""


def follow(recording: Recording, width: int, rest: Callable[[float], None] = time.sleep) -> int:
    """Prints each finding once, until the recording is complete or the user interrupts.

    Args:
      recording: From a file; it may be complete already.
      width: Columns of the terminal.
      rest: Waits for some seconds.

    Returns:
      The exit code.
    """
    shown: set[object] = set()
    seen: tuple[int, int] | None = None
    try:
        while True:
            state = recording.reader.state()
            begin = time.monotonic()
            now = recording.reader.rows("SELECT coalesce(max(id), 0) FROM call")[0][0]
            notices = recording.reader.rows("SELECT count(*) FROM notice")[0][0]
            if (now, notices) != seen or state != "recording":
                seen = (now, notices)
                new = [one for one in recording.findings(front="shell") if _key(one) not in shown]
                shown.update(map(_key, new))
                if new:
                    options.show(f"after {now:,} call{'' if now == 1 else 's'}:\n{findings_text(new, width)}")
            if state != "recording":
                options.show(f"{state}, {now:,} calls, {len(shown):,} findings")
                return 0
            rest(max(_EVERY_S, _REST * (time.monotonic() - begin)))
    except KeyboardInterrupt:
        return 0


def _key(finding: Finding) -> object:
    """What a finding is about: its numbers grow with the recording."""
    return finding.rule, finding.file, finding.line, finding.node if finding.file is None else None
