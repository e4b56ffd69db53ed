"""`pyfunc-debug doctor`: what deserves attention in a recording."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import textwrap
from typing import Any

from pyfunc_debug.cli import options
from pyfunc_debug.recordings import Recording
from pyfunc_debug.records import Finding


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("doctor", help="what deserves attention in a recording", description=__doc__)
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the findings."""
    findings = Recording(arguments.file).findings()
    if arguments.json:
        print(json.dumps([dataclasses.asdict(finding) for finding in findings], indent=1))
    else:
        print(findings_text(findings, options.terminal()[0]) or "No findings.")
    return 0


def findings_text(findings: list[Finding], width: int = 80) -> str:
    """Findings as paragraphs, worst first."""
    return "\n".join(_paragraph(finding, width) for finding in findings)


def _paragraph(finding: Finding, width: int) -> str:
    where = "" if finding.file is None else f"{os.path.basename(finding.file)}:{finding.line}: "
    head = textwrap.wrap(f"{finding.severity}: {where}{finding.message}", width, subsequent_indent="  ")
    fix = textwrap.wrap(finding.fix, width, initial_indent="  -> ", subsequent_indent="     ")
    return "\n".join([*head, *fix])
