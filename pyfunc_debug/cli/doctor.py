"""`pyfunc-debug doctor`: what deserves attention in a recording."""

from __future__ import annotations

import argparse
from typing import Any

from pyfunc_debug.api.job import Job
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.cli import options
from pyfunc_debug.doctor import SEVERITIES
from pyfunc_debug.doctor.settings import settings
from pyfunc_debug.doctor.text import findings_text
from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.pfrec.folders import is_many

_DESCRIPTION = """What deserves attention in a recording: the cause, the line, and the fix. docs/doctor.md has a section
for each rule. A comment `# pyfunc: ignore[RULE]` on a line silences it there. Exit code 1: there is an error, or
whatever --fail-on says."""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("doctor", help="what deserves attention in a recording", description=_DESCRIPTION)
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="*",
        help="several, a folder, a pattern: a job's processes; none: the newest here",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--select", action="append", metavar="RULE", help="only this rule, or glob; may be repeated")
    parser.add_argument("--ignore", action="append", metavar="RULE", help="not this rule; may be repeated")
    parser.add_argument(
        "--fail-on", choices=[*SEVERITIES, "never"], metavar="SEVERITY",
        help="exit with 1 if there is a finding of this severity or a worse one: error (default), warning, note; never",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the findings; 1 if one of them is severe enough."""
    severity = arguments.fail_on or settings().fail_on
    if severity not in (*SEVERITIES, "never"):
        raise BadOptionError(f"fail-on = {severity!r} in pyproject.toml is none of {', '.join(SEVERITIES)}, never")
    many = len(arguments.file) > 1 or is_many(arguments.file[0])
    recorded = Job(arguments.file) if many else Recording(arguments.file[0])
    findings = recorded.findings(arguments.select, arguments.ignore, front="shell")
    damaged = options.say_left_out(recorded.chosen) if isinstance(recorded, Job) else 0
    if arguments.json:
        options.show_json([finding.as_dict() for finding in findings])
    else:
        options.show(findings_text(findings, options.terminal()[0]) or "No findings.")
    bad = () if severity == "never" else SEVERITIES[: SEVERITIES.index(severity) + 1]
    return max(damaged, int(any(finding.severity in bad for finding in findings)))
