"""`pyfunc-debug report`: a recording as one HTML file that needs nothing else."""

from __future__ import annotations

import argparse
import os
from typing import Any

from pyfunc_debug.recordings import Recording


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("report", help="a recording as one HTML file", description=__doc__)
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("-o", "--output", metavar="HTML", default="report.html", help="where to write (report.html)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Writes the report."""
    Recording(arguments.file).to_html(arguments.output)
    print(f"wrote {arguments.output} ({os.path.getsize(arguments.output) / 1e6:.2g} MB)")
    return 0
