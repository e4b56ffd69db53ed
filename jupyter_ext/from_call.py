"""What a panel does with a recorded call: runs it again, with other inputs, under the debugger; and keeps its values.

A body runs on a thread of its own, so that one that hangs or is stopped blocks neither the kernel nor the panels.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

import numpy as np

from pyfunc_debug.api.replay import same_as_recorded
from pyfunc_debug.errors import BadOptionError, PyfuncDebugError
from pyfunc_debug.program.frames import is_user
from pyfunc_debug.program.threads import hide_from_debuggers
from pyfunc_debug.report.pictures import Elements, difference, picture
from pyfunc_debug.stops import Abort, Stop
from pyfunc_debug.stops.host import TracerHost
from pyfunc_debug.stops.stop import one_line
from pyfunc_debug.stops.tracer import Tracer
from pyfunc_debug.switchboard import board

Json = dict[str, Any]
_MOST_TEXT = 4000


class Replay:
    """A body that runs again; one at a time for a panel.

    Args:
      recording: The recording of the call, of this process.
      number: The call.
      edits: Python expressions for inputs, by name; they know the recorded inputs, `np` and `tf`.
      debugger: Around the body when it is to stop at its first line; None to run it through.

    Raises:
      PyfuncDebugError: it cannot run again, or an expression fails; the message says why.
    """

    def __init__(
        self, recording: Any, number: int, edits: Mapping[str, str],
        debugger: contextlib.AbstractContextManager[None] | None = None,
    ) -> None:  # fmt: skip
        if getattr(recording, "state", None) != "stopped":
            raise BadOptionError("a call can run again once its recording has ended, in the kernel that made it")
        self._recording = recording
        self._call = recording.call(number)
        self._inputs = _evaluated(self._call, edits)
        self._debugger = debugger
        self._outcome: Json = {"running": True}
        self._thread = threading.Thread(target=self._run, name=f"pyfunc_debug replay of #{number}", daemon=True)
        if debugger is None:
            hide_from_debuggers(self._thread)

    def start(self) -> Json:
        """Runs it.

        Returns:
          What `outcome` says.
        """
        self._thread.start()
        self._thread.join(0.5)
        return self.outcome()

    def outcome(self) -> Json:
        """`running`; or `same` (None: not known), `rows` of outputs beside those recorded, or the `error`."""
        return self._outcome

    def _run(self) -> None:
        try:
            if self._debugger is None:
                outputs = self._call.replay(inputs=self._inputs)
            else:
                with self._debugger:
                    outputs = self._call.replay(self._under_debugger, self._inputs)
            self._outcome = self._outcome_of(outputs)
        except Abort:
            self._outcome = {"running": False, "error": "ended at its stop"}
        except BaseException as error:  # whatever the body raises is what the person wants to see
            known = isinstance(error, PyfuncDebugError)
            text = str(error) if known else "".join(traceback.format_exception_only(type(error), error)).strip()
            self._outcome = {"running": False, "error": text[:_MOST_TEXT]}

    def _outcome_of(self, outputs: list[Any]) -> Json:
        recorded = self._call.outputs
        rows = []
        for position, output in enumerate(outputs):
            before = recorded[position] if position < len(recorded) else None
            kept = Elements(before.array()) if before is not None and before.kept == "full" else None
            array = np.asarray(output)
            plain = array.dtype.kind in "biufc"
            rows.append(
                {
                    "path": before.path if before is not None else f"out[{position}]",
                    "texts": [one_line(array), before.text if before is not None else None],
                    "pictures": [picture(Elements(array)) if plain else None, picture(kept) if kept else None],
                    "largest": difference(Elements(array), kept) if plain and kept is not None else None,
                }
            )
        same = None if self._inputs else same_as_recorded(self._call, outputs)
        return {"running": False, "same": same, "edited": sorted(self._inputs), "rows": rows}

    def _under_debugger(self, function: Callable[..., Any], *args: Any) -> Any:
        """Calls a body and stops at its first line: in the panel, as at any breakpoint."""
        call = self._call
        node = next((one for one in self._recording.nodes() if one.id == call.node), None)
        names = tuple(value.path for value in call.inputs)
        why = "it runs again on its recorded inputs" + (
            f", {', '.join(sorted(self._inputs))} edited" if self._inputs else ""
        )
        stop = Stop(None, call.id, None, why, args, names, node.body if node is not None else None)
        before = sys.gettrace()
        tracer = Tracer(stop, board.broker, TracerHost(), before)

        def first(frame: FrameType, event: str, arg: Any) -> Any:
            return tracer.from_call(frame) if event == "call" and is_user(frame.f_code.co_filename) else None

        sys.settrace(first)
        try:
            return function(*args)
        finally:
            tracer.finish()
            sys.settrace(before)


def _evaluated(call: Any, edits: Mapping[str, str]) -> dict[str, Any]:
    """Values of the expressions that somebody typed."""
    recorded = {value.path: value for value in call.inputs}
    known: dict[str, Any] = {"np": np}
    if "tensorflow" in sys.modules:
        known["tf"] = sys.modules["tensorflow"]
    for name, value in recorded.items():
        if name.isidentifier() and value.kept == "full":
            known[name] = value.array()
    found = {}
    for name, text in edits.items():
        if not str(text).strip():
            continue
        try:
            found[name] = eval(str(text), dict(known))  # the person's own expression
        except Exception as error:
            raise BadOptionError(f"{name}: {type(error).__name__}: {error}") from error
    return found
