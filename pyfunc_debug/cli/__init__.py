"""The command `pyfunc-debug`. One module a command; errors of ours are one line on stderr, without a traceback."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pyfunc_debug.cli import check, demo, diff, doctor, export, ide, learn, pack, query, record, report, show
from pyfunc_debug.cli.bounds import bounded
from pyfunc_debug.cli.defaults import set_defaults
from pyfunc_debug.cli.options import newest
from pyfunc_debug.cli.output import use_nearest_signs
from pyfunc_debug.errors import BadOptionError, PyfuncDebugError
from pyfunc_debug.program.printable import printable

_COMMANDS = (record, ide, show, doctor, check, report, query, diff, export, pack, demo, learn)
_READING = ("show", "doctor", "report", "query", "diff", "export", "pack")
_EPILOG = """exit codes: 0 done, 1 an error (one line on stderr), 2 bad usage; `record` exits as the program does"""


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="pyfunc-debug",
        description="Debugger for Python inside TensorFlow graphs: tf.py_function, tf.numpy_function, py_func.",
        epilog=_EPILOG,
    )
    from pyfunc_debug.api.meta import version

    parser.add_argument("--version", action="version", version=f"pyfunc-debug {version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in _COMMANDS:
        module.add_parser(commands)
    return parser


def parsers_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of the commands, by name."""
    (commands,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))  # noqa: SLF001
    return dict(commands.choices)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; the result is the process's exit code."""
    parser = make_parser()
    words = sys.argv[1:] if argv is None else argv
    try:
        set_defaults(parsers_of(parser), words)
    except BadOptionError as error:
        print(f"pyfunc-debug: {printable(str(error))}", file=sys.stderr)
        return 2
    arguments = parser.parse_args(words)
    try:
        if arguments.command not in _READING:
            return int(arguments.run(arguments))
        if argv is None:  # not for a program that runs in this process: its output is its own
            use_nearest_signs()
        if arguments.file == []:
            arguments.file = [newest()]
        with bounded(arguments.file[0] if isinstance(arguments.file, list) else arguments.file or "", argv is None):
            return int(arguments.run(arguments))
    except BadOptionError as error:
        print(f"pyfunc-debug: {printable(str(error))}", file=sys.stderr)
        return 2
    except PyfuncDebugError as error:
        print(f"pyfunc-debug: {printable(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        if arguments.command not in _READING:
            raise
        return 130  # as a shell says of Ctrl-C
    except BrokenPipeError:  # `pyfunc-debug show ... | head`
        sys.stderr.close()
        return 0
