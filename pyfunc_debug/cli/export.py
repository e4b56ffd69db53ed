"""`pyfunc-debug export`: recordings for other tools, and a call as a test."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from pyfunc_debug.api.recording import Recording
from pyfunc_debug.cli import options
from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.pfrec.folders import Chosen
from pyfunc_debug.pfrec.redaction import KINDS, redact
from pyfunc_debug.report.exports import FORMATS, export
from pyfunc_debug.report.pytest_file import test_name

_DESCRIPTION = """Writes recordings for other tools (docs/export.md): parquet (a folder, a table each), chrome (JSON for
chrome://tracing and ui.perfetto.dev), perfetto (the same, smaller), one call as a test for pytest, or pfrec: a copy
of one recording without what --redact names."""
_ENDS = {"parquet": "-parquet", "chrome": ".trace.json", "perfetto": ".perfetto-trace"}


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("export", help="recordings for other tools", description=_DESCRIPTION)
    parser.add_argument("file", metavar="FILE", nargs="+", help="recordings, and folders of them")
    parser.add_argument("--format", required=True, choices=[*FORMATS, "pytest", "pfrec"], help="what to write")
    parser.add_argument("--call", type=int, metavar="N", help="the call, for pytest")
    parser.add_argument(
        "--redact", action="append", metavar="WHAT",
        help=f"for pfrec, what to leave out: {', '.join(KINDS)}, or all; several with commas",
    )  # fmt: skip
    parser.add_argument("-o", "--output", metavar="OUT", help="where (named after the first file, or the call)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Writes it, and says where."""
    chosen = Chosen(arguments.file)
    out = chosen.read(lambda files: _write(arguments, [Recording(file) for file in files]))
    options.show(os.path.relpath(out))
    return options.say_left_out(chosen)


def _write(arguments: argparse.Namespace, recordings: Sequence[Recording]) -> str:
    if (arguments.format == "pytest") != (arguments.call is not None) or (arguments.call and len(recordings) > 1):
        raise BadOptionError("--format pytest writes one call of one recording: export FILE --call 17 --format pytest")
    if (arguments.format == "pfrec") != (arguments.redact is not None) or (arguments.redact and len(recordings) > 1):
        raise BadOptionError("--format pfrec copies one recording: export FILE --format pfrec --redact values,paths")
    if arguments.redact is not None:
        kinds = [kind.strip() for text in arguments.redact for kind in text.split(",")]
        out = arguments.output or os.path.splitext(os.path.basename(arguments.file[0]))[0] + "-redacted.pfrec"
        return redact(recordings[0].reader, out, KINDS if "all" in kinds else kinds)
    if arguments.call is not None:
        call = recordings[0].call(arguments.call)
        node = next(node for node in recordings[0].nodes() if node.id == call.node)
        return call.to_pytest(arguments.output or f"{test_name(call, node)}.py")
    stem = os.path.splitext(os.path.basename(os.path.normpath(arguments.file[0])))[0]
    out = arguments.output or stem + _ENDS[arguments.format]
    return export([one.reader for one in recordings], out, arguments.format)
