"""`pyfunc-debug doctor`: what deserves attention in a recording."""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import Any

from pyfunc_debug.api.recording import Recording
from pyfunc_debug.cli import options
from pyfunc_debug.doctor.text import findings_text


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
