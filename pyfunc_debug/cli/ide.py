"""`pyfunc-debug ide`: runs a program so that an IDE's line breakpoints stop in bodies."""

from __future__ import annotations

import argparse
from typing import Any

from pyfunc_debug.api.ide import ide
from pyfunc_debug.cli.record import program_of, report


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "ide", help="run a program with your IDE's breakpoints in bodies",
        description="Runs a program as `python` would; line breakpoints of an IDE stop in bodies (docs/ides.md).",
        usage="pyfunc-debug ide (SCRIPT | -m MODULE) [ARG]...",
    )  # fmt: skip
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="run a module")
    parser.add_argument("script", nargs=argparse.REMAINDER, metavar="SCRIPT", help="the script, and its arguments")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Runs the program; what it raises is shown as `python` shows it."""
    program = program_of(arguments)
    ide()
    try:
        program.run()
    except SystemExit:
        raise
    except BaseException as error:
        report(error, program)
        return 130 if isinstance(error, KeyboardInterrupt) else 1  # as a shell says of Ctrl-C
    return 0
