"""`pyfunc-debug diff`: two recordings, their values and their times."""

from __future__ import annotations

import argparse
from typing import Any

from pyfunc_debug.analysis.differences import difference_text
from pyfunc_debug.analysis.speeds import speeds
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.cli import options

_DESCRIPTION = """What differs between two recordings: values, call by call, then the time that calls of each body took
(median, and the middle half of the calls in brackets; slower or faster is said only where these do not overlap). Exit
code 1: a value is different, or a call is missing."""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("diff", help="compare two recordings", description=_DESCRIPTION)
    parser.add_argument("file", metavar="A")
    parser.add_argument("other", metavar="B")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the differences."""
    left, right = Recording(arguments.file), Recording(arguments.other)
    found = left.diff(right)
    options.show(difference_text(found, *options.terminal()))
    lines = [str(speed) for speed in speeds(left.reader, right.reader)]
    if lines:
        options.show("\n" + "\n".join(lines))
    return int(bool(found))
