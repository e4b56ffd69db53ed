"""What is switched on around a recorder: interception, exact gradients, counts of lines, the GIL probe, hang watch."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

from pyfunc_debug.api.exact_gradients import ExactGradients
from pyfunc_debug.api.kept import kept_by
from pyfunc_debug.api.meta import Options
from pyfunc_debug.events import Notice
from pyfunc_debug.recorder import Recorder
from pyfunc_debug.recorder.seen_lines import SeenLines
from pyfunc_debug.switchboard import board

_MANY_ENTRIES, _MANY_BYTES = 100, 1_000_000
"""Entries of a body in TensorFlow's registry, or bytes in their closures, from which they are noted."""


class Instruments:
    """Those of one recording.

    Attributes:
      interception: The one that is on, or was; None before `on`.
      limits: What cannot be recorded, in words; empty when all can.
    """

    def __init__(self, options: Options, recorder: Recorder) -> None:
        self._options = options
        self._recorder = recorder
        self._exact = ExactGradients(options.order)
        self._hang: Any = None
        self._lines: SeenLines | None = None
        self._probe: Any = None
        self._tapes_before: frozenset[str] = frozenset()
        self._entries_before: int | None = None
        self.interception: Any = None
        self.limits = ""

    def watch_for_hangs(self, advise: Callable[[str], str], endless: Callable[[FrameType], str]) -> None:
        """Reports calls in which nothing moves, if that was asked for.

        Args:
          advise: What to do about what a rule of the doctor's finds, as text.
          endless: Why the graph trace that a thread is in, in this frame, does not end, as text; empty where it may.
        """
        if self._options.hang_after:
            self._hang = self._recorder.watch_for_hangs(self._options.hang_after, advise, endless)

    def on(self) -> None:
        """Switches on. TensorFlow has been imported.

        Raises:
          UnsupportedTensorFlowError: calls cannot be seen on this TensorFlow, or gradients not be exact.
        """
        if self._options.random_state:
            self._recorder.keep_random_states()
        self.interception = self._plug_in()
        self._tapes_before = frozenset(self.interception.stock_tapes())
        self._entries_before = self.interception.next_entry()
        self._recorder.count_growth(self.interception.counts)
        if self._options.sampling is None:
            self._lines = SeenLines(self._recorder.notice, self._recorder.trouble)
            self._lines.start()
        if self._options.gil:
            self._measure_gil()
        self.limits = self.interception.limits

    def off(self) -> tuple[str, ...]:
        """Puts TensorFlow back as it was.

        Returns:
          Names of attributes that somebody else had replaced meanwhile and that were left as they are.
        """
        if self._hang is not None:
            self._hang.stop()
        if self._lines is not None:
            self._lines.stop()
        try:
            return board.unplug_recorder(self._recorder)
        finally:
            self._exact.off()
            if self._probe is not None:
                self._probe.stop()

    def note_lines(self) -> str:
        """Hands the counts of lines so far to the recorder.

        Returns:
          What limited them, if it was not reported yet.
        """
        counted = self.interception.lines if self._options.lines and self.interception is not None else None
        if counted is None:
            return ""
        try:
            self._recorder.lines(*counted.facts())
        except Exception as error:
            self._recorder.trouble("recording the counts of lines", error)
        limits = str(counted.limits)
        if not limits or limits in self.limits:
            return ""
        self.limits = f"{self.limits}; {limits}".lstrip("; ")
        return limits

    def note_leaks(self) -> None:
        """Records tapes that TensorFlow still keeps now and did not before."""
        if self.interception is None or self._options.gradients == "exact":
            return
        try:
            tapes = self.interception.stock_tapes()
            left = {token: size for token, size in tapes.items() if token not in self._tapes_before}
            if left:
                self._recorder.gradient_notice(
                    Notice.LEAKED_TAPES, max(left, key=left.__getitem__), None, tapes=len(left),
                    nbytes=sum(left.values()),
                )  # fmt: skip
        except Exception as error:
            self._recorder.trouble("counting tapes", error)

    def note_sessions(self) -> None:
        """Records what was not recorded yet of the lines that run sessions of TensorFlow 1."""
        if self.interception is not None:
            try:
                self.interception.tell_sessions()
            except Exception as error:
                self._recorder.trouble("looking at sessions", error)

    def note_entries(self) -> None:
        """Records what TensorFlow's registry, and the user's containers, kept of each body: more than a few entries."""
        if self.interception is None or self._entries_before is None:
            return
        try:
            for one in self.interception.entries_since(self._entries_before):
                if one.count >= _MANY_ENTRIES or one.nbytes >= _MANY_BYTES:
                    self._recorder.notice(
                        Notice.MEMORY, one.token, None, name=one.token, file=one.body.file, line=one.body.line,
                        entries=one.count, nbytes=one.nbytes, old_nbytes=one.old_nbytes,
                    )  # fmt: skip
            self._note_kept(self._entries_before)
        except Exception as error:
            self._recorder.trouble("counting what TensorFlow keeps", error)

    def _note_kept(self, number: int) -> None:
        """Records containers of the user's that bodies fill, where what is in them weighs much."""
        weigh = self.interception.array_bytes
        for token, body, own, module in self.interception.bodies_since(number):
            for one in kept_by(body.file, body.line, own, module, weigh):
                if one.nbytes >= _MANY_BYTES:
                    self._recorder.notice(
                        Notice.KEPT, token, None, name=one.name, line=one.line, entries=one.count, nbytes=one.nbytes,
                    )  # fmt: skip

    def _plug_in(self) -> Any:
        if self._options.gradients == "exact":
            self._exact.on()
        try:
            return board.plug_recorder(self._recorder, self._options.lines)
        except BaseException:
            self._exact.off()
            raise

    def _measure_gil(self) -> None:
        from pyfunc_debug.gil import open_probe

        probe = open_probe()
        try:
            probe.start()
        except Exception as error:  # the recording goes on without
            self._recorder.trouble("measuring the GIL", error)
            return
        self._probe = probe
        self._recorder.measure_gil(probe)
