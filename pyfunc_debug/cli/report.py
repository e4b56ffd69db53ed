"""`pyfunc-debug report`: a recording, or several processes' together, as one HTML file that needs nothing else."""

from __future__ import annotations

import argparse
import os
from typing import Any

from pyfunc_debug.api.recording import Recording
from pyfunc_debug.cli import options
from pyfunc_debug.pfrec.folders import Chosen
from pyfunc_debug.pfrec.redaction import holds
from pyfunc_debug.records import Finding
from pyfunc_debug.report import html


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "report",
        help="recordings as one HTML file",
        description="Writes a recording, or several processes' together, as one HTML file that needs nothing else.",
    )
    parser.add_argument("file", metavar="FILE", nargs="+", help="several, or a folder's, are shown as one")
    parser.add_argument("-o", "--output", metavar="HTML", default="report.html", help="where to write (report.html)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Writes the report."""
    chosen = Chosen(arguments.file)
    chosen.read(lambda paths: html.write_together(paths, arguments.output, _findings))
    paths, damaged = chosen.files, options.say_left_out(chosen)
    print(f"wrote {arguments.output} ({os.path.getsize(arguments.output) / 1e6:.2g} MB)")
    if len(paths) == 1:
        print(f"it {holds(Recording(paths[0]).meta)} (docs/export.md: sharing)")
    return damaged


def _findings(path: str) -> list[Finding]:
    recording = Recording(path)
    try:
        return recording.findings(front="shell")
    finally:
        recording.close()
