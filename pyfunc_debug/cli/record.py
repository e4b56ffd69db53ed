"""`pyfunc-debug record`: runs a program unchanged, and records it."""

from __future__ import annotations

import argparse
import atexit
import glob
import os
import signal
import sys
import textwrap
import types
from typing import Any

from pyfunc_debug.api.breakpoints import break_on
from pyfunc_debug.api.live import LiveRecording
from pyfunc_debug.api.record import record
from pyfunc_debug.cli import aftermath, options
from pyfunc_debug.cli.program import Program, from_module, from_script
from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.interception.failures import forget_our_frames
from pyfunc_debug.job.child import follow_forks
from pyfunc_debug.job.children import file_in, record_children
from pyfunc_debug.job.copies import Copies, is_url
from pyfunc_debug.pfrec.folders import Chosen, free_path
from pyfunc_debug.places import source_line
from pyfunc_debug.program.error_text import is_interrupt
from pyfunc_debug.records import Finding
from pyfunc_debug.stops.rules import WHENS, Breakpoint
from pyfunc_debug.stops.terminal import Answers
from pyfunc_debug.switchboard import board

_DESCRIPTION = """Runs a program as `python` would and records every call of every py_function in it. The recording is
written while the program runs; at its end the ledger is printed on stderr, with what there is to do. The exit code is
the program's."""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "record", help="run a program and record it", description=_DESCRIPTION,
        usage="pyfunc-debug record [options] (SCRIPT | -m MODULE) [ARG]...",
    )  # fmt: skip
    options.add_recording_options(parser)
    parser.add_argument(
        "--break", dest="breaks", action="append", default=[], metavar="NODE",
        help="stop calls of this node with a prompt: a glob over bodies and ops, or file.py:line; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--log", dest="logs", action="append", default=[], metavar="NODE=EXPR",
        help="write what EXPR is worth in each call of this node to stderr and into the recording; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--when", choices=WHENS, default="before", help="where the --break calls stop, or --log looks (before)"
    )
    parser.add_argument(
        "--answers", metavar="FILE",
        help="type the lines of this file (- for standard input) at the prompts; then whoever is there answers",
    )  # fmt: skip
    parser.add_argument("--if", dest="condition", metavar="EXPR", help="only where this holds")
    parser.add_argument(
        "--processes", action="store_true",
        help="record child processes too: each Python process that loads TensorFlow writes a file in the folder -o",
    )  # fmt: skip
    parser.add_argument("-q", "--quiet", action="store_true", help="print no ledger, only where the recording is")
    parser.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="run a module, as python -m"
    )
    parser.add_argument("script", nargs=argparse.REMAINDER, metavar="SCRIPT", help="the script, and its arguments")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Runs the program; does not return when it ends by an exception or a signal of its own."""
    program = program_of(arguments)
    asked = options.record_arguments(arguments)
    url = arguments.output if arguments.output and is_url(arguments.output) else None
    copies = None
    if url is not None:
        copies, arguments.output = Copies(url), None
    folder = _folder_for_all(arguments, program.name, asked, url) if arguments.processes else None
    usual = f"{program.name}.pfrec" if arguments.overwrite and copies is None else free_path(program.name)
    path = file_in(folder) if folder else arguments.output or usual
    recording = record(path, **asked)
    older = f"{program.name}.pfrec" if not folder and not arguments.output and path != f"{program.name}.pfrec" else ""
    ending = _Ending(recording, arguments.quiet, folder, older, copies)
    if folder is None and copies is None:
        aftermath.watch(recording.path, arguments.quiet)
    atexit.register(ending.finish)  # before start(): it runs last, after the program's own exit handlers and threads
    breaks: list[Breakpoint] = []
    try:
        _start(arguments, recording, breaks)
    except BaseException as error:
        for one in breaks:  # nothing ran: nobody asks why there were no hits
            one.remove()
        if isinstance(error, BadOptionError):
            raise BadOptionError(str(error).replace("(overwrite=True)", "(--overwrite)")) from None
        raise
    if copies is not None:
        copies.start(recording.path)
    try:
        program.run()
        recording.note_end(None)
    except SystemExit as end:
        recording.note_end(end)
        raise
    except BaseException as error:
        recording.note_end(error)
        ending.interrupted = isinstance(error, KeyboardInterrupt)
        report(error, program)
        ending.explained = recording.explain_failure(error) or recording.explained
        name = type(error).__name__
        ending.failed = name if isinstance(error, Exception) and not is_interrupt(name, str(error)) else ""
        return 1
    finally:
        for one in breaks:
            print(f"pyfunc-debug: {one!r}", file=sys.stderr)
            one.told = True
    return 0


def _start(arguments: argparse.Namespace, recording: LiveRecording, breaks: list[Breakpoint]) -> None:
    """Makes the breakpoints and logpoints, which go to `breaks`, and begins to record."""
    how = {"when": arguments.when, "condition": arguments.condition}
    breaks.extend(break_on(where, **how) for where in arguments.breaks)
    for text in arguments.logs:
        where, equals, log = text.partition("=")
        if not equals:
            raise BadOptionError(f"--log {text}: write NODE=EXPR, as in --log 'augment*=x.shape, x.max()'")
        breaks.append(break_on(where, log=log, **how))
    if arguments.answers is not None:
        try:
            board.broker.fronts.insert(0, Answers(arguments.answers))
        except OSError as error:
            raise BadOptionError(f"--answers {arguments.answers}: {error.strerror}") from None
    recording.start()


def program_of(arguments: argparse.Namespace) -> Program:
    """The program that the command line names.

    Raises:
      BadOptionError: it names none, or one that does not exist.
    """
    if arguments.module is not None:
        if not arguments.module:
            raise BadOptionError("-m needs the name of a module")
        return from_module(arguments.module[0], arguments.module[1:])
    if not arguments.script:
        raise BadOptionError(f"which program? pyfunc-debug {arguments.command} [options] (SCRIPT | -m MODULE) [ARG]...")
    return from_script(arguments.script[0], arguments.script[1:])


def _folder_for_all(arguments: argparse.Namespace, name: str, asked: dict[str, Any], url: str | None) -> str:
    """Makes the folder for the recordings of this process and its children, and the children record themselves."""
    folder: str = arguments.output or f"{name}-processes"
    if os.path.isfile(folder):
        raise BadOptionError(
            f"-o {folder} is a file: with --processes it is a folder, with a recording for each process"
        )
    older = glob.glob(os.path.join(glob.escape(folder), "*.pfrec*"))
    if older and not arguments.overwrite:
        raise BadOptionError(
            f"{folder} holds recordings already: choose another folder, or --overwrite to delete them first"
        )
    for one in older:
        os.remove(one)
    record_children(folder, asked, url)
    follow_forks()
    return folder


def report(error: BaseException, program: Program) -> None:
    """Prints the traceback as `python` would, through the program's own sys.excepthook, without our frames."""
    traceback: types.TracebackType | None = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code is not program.code:
        traceback = traceback.tb_next
    error.__traceback__ = traceback
    forget_our_frames(error)
    sys.excepthook(type(error), error, traceback)


class _Ending:
    """What happens after everything else: the ledger, and the signal that ended the program."""

    def __init__(
        self, recording: LiveRecording, quiet: bool, folder: str | None, older: str, copies: Copies | None
    ) -> None:
        self.recording = recording
        self.quiet = quiet
        self.copies = copies
        self.folder = folder  # of all processes' recordings
        self.older = older  # what was there already under the program's name
        self.interrupted = False
        self.explained: Finding | None = None  # said under the traceback already
        self.failed = ""  # by which exception the program ended
        self.process = os.getpid()

    def finish(self) -> None:
        """Prints the ledger; then dies of SIGINT if the program did, as `python` does."""
        if os.getpid() != self.process:  # a forked child of the program
            return
        try:
            if self.recording.state != "new":
                self.recording.stop()
                if self.copies is not None:
                    self.copies.finish()
                self._print()
        except KeyboardInterrupt:  # nobody wants to read it
            self.interrupted = True
            print(f"\nrecorded in {os.path.relpath(self.recording.path)}", file=sys.stderr)
        except Exception as error:
            print(f"pyfunc-debug: {error}", file=sys.stderr)
        if self.interrupted:
            sys.stdout.flush()
            sys.stderr.flush()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)

    def _print(self) -> None:
        width, color = options.terminal(sys.stderr)
        sys.stdout.flush()
        if self.folder is not None and len(Chosen([self.folder]).files) > 1:
            self._print_job(self.folder, width, color)
            return
        space = ""
        if not self.quiet:
            space = "\n"
            ledger, found = self.recording.ledger(), self.recording.findings(front="shell")
            findings = [one for one in found if one != self.explained]
            failed = self.explained is not None or any(one.severity == "error" for one in findings)
            unknown = self.failed if not failed else ""  # to say that no body ran would sound as if all were well
            if failed and not ledger.ran:  # there are no numbers to show: what is left to say is why it failed
                text = "\n".join(f"pyfunc-debug: {line}" for line in ledger.short)
            else:
                from pyfunc_debug.analysis.tables import ledger_text

                text = ledger_text(ledger, width, color, explained=bool(found or unknown), short=True)
            if unknown:
                later = _OF_NONE if unknown != _OF_CHILD else ("serialization",)
                warned = any(one.rule in later for one in findings)
                known = "no sure cause for this {}; what it found may be it:" if warned else "no cause for this {}."
                text = f"{text}\n\npyfunc-debug knows {known.format(unknown)}".lstrip("\n")
                text += self._failed_line(width) if not warned else ""
            if text:
                print(f"\n{text}", file=sys.stderr)
            options.print_findings(findings, width, os.path.relpath(self.recording.path))
        older = f" ({self.older} was there already: --overwrite replaces it)" if self.older else ""
        print(f"{space}recorded in {os.path.relpath(self.recording.path)}{older}", file=sys.stderr)

    def _failed_line(self, width: int) -> str:
        """What the names of the user's line held that failed."""
        line = self.recording.failed_line
        if line is None or not line["held"]:
            return ""
        from pyfunc_debug.doctor.text import held_names

        words = f"in {source_line(line['file'], line['line'])}: {held_names(line['held'])}"
        return "\n" + textwrap.fill(words, width, initial_indent="  ", subsequent_indent="    ")

    def _print_job(self, folder: str, width: int, color: bool) -> None:
        from pyfunc_debug.api.job import Job

        job, space = Job([folder]), ""
        if not self.quiet:
            from pyfunc_debug.analysis.tables import job_text

            space = "\n"
            print(f"\n{job_text(job.ledger(), width, color)}", file=sys.stderr)
            options.print_findings(job.findings(front="shell"), width, os.path.relpath(folder))
        print(f"{space}{len(job)} processes recorded in {os.path.relpath(folder)}", file=sys.stderr)


_OF_CHILD = "CalledProcessError"
"""What a program fails with whose child failed, as one that loads what was saved."""
_OF_NONE = ("cut-gradient", "none-gradient", "untaped")
"""Rules of a gradient that is None, which a program may fail on later."""
