"""`pyfunc-debug diff`: two recordings, their values and their times."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from pyfunc_debug.analysis.differences import difference_text
from pyfunc_debug.analysis.speeds import speeds
from pyfunc_debug.api.job import Job
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.cli import options
from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.pfrec.folders import is_many

_DESCRIPTION = """What differs between two recordings: values, call by call, then the time that calls of each body took
(median, and the middle half of the calls in brackets; slower or faster is said only where these do not overlap). Of a
folder, or of one recording with replicas (MirroredStrategy): which values of the same node in the same step are equal
in all processes or replicas, and who differs since when. Exit code 1: a value is different, or a call is missing; of a
folder, a value was equal in all and then was not."""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("diff", help="compare two recordings", description=_DESCRIPTION)
    parser.add_argument(
        "file", metavar="FILE", nargs="+",
        help="two recordings; or the folder of a job, or more files: then its processes are compared step by step",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the differences."""
    if len(arguments.file) != 2 or any(map(is_many, arguments.file)):
        return _job(arguments.file)
    left, right = map(Recording, arguments.file)
    found = left.diff(right)
    options.show(difference_text(found, *options.terminal()))
    lines = [str(speed) for speed in speeds(left.reader, right.reader)]
    if lines:
        options.show("\n" + "\n".join(lines))
    return int(bool(found))


def _job(files: Sequence[str]) -> int:
    job = Job(files)
    found = job.differences()
    damaged = options.say_left_out(job.chosen)
    if len(job) < 2 and not found.values:
        raise BadOptionError(
            f"diff compares two recordings or more: {job.paths[0]} is one, without replicas to compare"
        )
    options.show(str(found))
    return max(damaged, int(bool(found)))
