"""`pyfunc-debug pack`: a recording and what stands beside it as one whole file."""

from __future__ import annotations

import argparse
import os
from typing import Any

from pyfunc_debug.cli import options
from pyfunc_debug.pfrec.packing import pack
from pyfunc_debug.pfrec.recovery import missing_text
from pyfunc_debug.program.printable import tell

_DESCRIPTION = """Makes one file of a recording and the parts that stand beside it (FILE-wal, FILE-ring) when its
program was killed or still records. Without -o the parts go into FILE itself."""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("pack", help="a recording and its parts as one file", description=_DESCRIPTION)
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("-o", "--output", metavar="FILE", help="write a copy there, and leave FILE as it is")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Packs it."""
    path, calls, missing = pack(arguments.file, arguments.output)
    options.show(f"{path} is one file: {calls:,} calls, {os.path.getsize(path) / 1e6:.2g} MB")
    if missing:
        tell(f"pyfunc-debug: {missing_text(missing)}")
    return 0
