"""`pyfunc-debug demo`: records a small real pipeline, shows the ledger and the findings."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.analysis.tables import ledger_text
from pyfunc_debug.api.live import LiveRecording
from pyfunc_debug.api.record import record
from pyfunc_debug.cli import options
from pyfunc_debug.doctor.text import findings_text


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "demo",
        help="record a small real pipeline and show what came out",
        description="Records a small real pipeline, shows the ledger and the findings.",
    )
    parser.add_argument("--steps", type=int, default=40, help="training steps (40)")
    parser.add_argument("-o", "--output", metavar="FILE", default="demo.pfrec", help="the recording (demo.pfrec)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Records the demo and prints what a user would look at."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # the demo's own process: no start-up notes from C++
    width, color = options.terminal()
    with record(arguments.output, values="summary", overwrite=True) as recording, _Progress(recording):
        with _quiet_stderr():
            from pyfunc_debug.demo import digits
        losses = digits.train(arguments.steps)
    print(f"trained {arguments.steps} steps on handwritten digits, mean loss {losses[-1]:.3f}\n")
    print(ledger_text(recording.ledger(), width, color))
    findings = recording.findings(front="shell")
    if findings:
        print(f"\n{findings_text(findings, width)}")
    name = os.path.relpath(recording.path)
    print(
        f"\nrecorded in {name}. Now try\n"
        f"  pyfunc-debug show {name} --node 'even*'\n"
        f'  pyfunc-debug query {name} "select text from value where nan > 0 limit 3"\n'
        f"  pyfunc-debug record YOUR_SCRIPT.py\n"
        f"The program that was recorded: {digits.__file__}"
    )
    return 0


@contextlib.contextmanager
def _quiet_stderr() -> Iterator[None]:
    """Holds back what C++ prints while TensorFlow is imported (TF_CPP_MIN_LOG_LEVEL comes too late for that).

    It is shown after all if the import fails.
    """
    kept = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            held.seek(0)
            os.write(kept, held.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)


class _Progress:
    """A line on stderr that follows the recording: in place on a terminal, else every few seconds."""

    def __init__(self, recording: LiveRecording) -> None:
        self._recording = recording
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._in_place = sys.stderr.isatty()
        self._out = os.fdopen(os.dup(2), "w")

    def __enter__(self) -> _Progress:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        if self._in_place:
            print("\r\x1b[2K", end="", file=self._out, flush=True)
        self._out.close()

    def _run(self) -> None:
        before = ""
        while not self._done.wait(0.2 if self._in_place else 2.0):
            calls = self._recording.progress()["calls"]
            text = f"recording: {calls:,} calls" if calls else "importing TensorFlow and building the graphs"
            if text == before:
                continue
            before = text
            start, end = ("\r\x1b[2K", "") if self._in_place else ("", "\n")
            print(f"{start}{text} ...", end=end, file=self._out, flush=True)
