"""The command `pyfunc-debug`. One module a command; errors of ours are one line on stderr, without a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from pyfunc_debug.cli import check, demo, diff, doctor, export, ide, learn, pack, query, record, report, show
from pyfunc_debug.cli.bounds import bounded
from pyfunc_debug.cli.defaults import set_defaults
from pyfunc_debug.cli.options import newest
from pyfunc_debug.cli.output import use_nearest_signs
from pyfunc_debug.cli.parser import Parser
from pyfunc_debug.errors import BadOptionError, BadRecordingError, PyfuncDebugError
from pyfunc_debug.places import one_line
from pyfunc_debug.program.printable import printable

_COMMANDS = (record, ide, show, doctor, check, report, query, diff, export, pack, demo, learn)
_READING = ("show", "doctor", "report", "query", "diff", "export", "pack")
_EPILOG = """exit codes: 0 done, 1 an error (one line on stderr), 2 bad usage; `record` exits as the program does"""


def make_parser() -> Parser:
    """The parser of all commands."""
    parser = Parser(
        prog="pyfunc-debug",
        description="Debugger for Python inside TensorFlow graphs: tf.py_function, tf.numpy_function, py_func.",
        epilog=_EPILOG,
    )
    from pyfunc_debug.api.meta import version

    parser.add_argument("--version", action="version", version=f"pyfunc-debug {version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in _COMMANDS:
        module.add_parser(commands)
    parser.commands.update(commands.choices)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; the result is the process's exit code."""
    parser = make_parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what may come next
        from pyfunc_debug.cli.completion import complete

        complete(parser)
    words = sys.argv[1:] if argv is None else argv
    try:
        set_defaults(parser.commands, words)
    except BadOptionError as error:
        print(f"pyfunc-debug: {printable(str(error))}", file=sys.stderr)
        return 2
    arguments, rest = parser.parse_known_args(words)
    if rest and arguments.command == "query" and not any(one.startswith("-") for one in rest):
        arguments.sql += rest  # what stands behind an option that stands behind a file
    elif rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
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
    except BadRecordingError as error:  # one line, whatever the file is called
        print(f"pyfunc-debug: {printable(one_line(str(error)))}", file=sys.stderr)
        return 1
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
