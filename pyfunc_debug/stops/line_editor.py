"""A line typed at a terminal with history, completion and colours, by prompt_toolkit, which IPython brings."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from pyfunc_debug.program.threads import hide_from_debuggers
from pyfunc_debug.stops.stop import Stop

_IGNORE = 1
"""SIG_IGN, as C has it."""
_WORD = re.compile(r"[\w.]*$")
_COLOURS = (  # of what a prompt says: a line's beginning, and how it is shown
    (re.compile(r"^--- .*$", re.MULTILINE), "1"),
    (re.compile(r"^\*\*\* .*$", re.MULTILINE), "31"),
    (re.compile(r"^(?:> |  )\S+\(\d+\)\S+\(\)(?:->.*)?$", re.MULTILINE), "36"),
    (re.compile(r"^-> .*$", re.MULTILINE), "32"),
)


class TakenBack(Exception):  # noqa: N818 - what happened, no error of anybody's
    """Ctrl-C came as this line was on its way: as a key, since the terminal sends no signal while it prompts."""


def waiting_bytes(descriptor: int) -> int:
    """How many bytes can be read from a terminal now."""
    import fcntl
    import termios

    return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)


def edits() -> bool:
    """Whether lines can be edited here: with prompt_toolkit, on a terminal that can move its cursor."""
    return os.environ.get("TERM", "dumb") not in ("", "dumb", "unknown") and bool(
        importlib.util.find_spec("prompt_toolkit")
    )


def painted(text: str) -> str:
    """What a prompt says, in colours (https://no-color.org is respected)."""
    if os.environ.get("NO_COLOR"):
        return text
    for pattern, colour in _COLOURS:
        text = pattern.sub(f"\x1b[{colour}m\\g<0>\x1b[0m", text)
    return text


class LineEditor:
    """Reads lines; one history for all."""

    def __init__(self) -> None:
        self._history: Any = None
        self._app: Any = None

    def read(self, stop: Stop, prompt: str, stdin: Any, stdout: Any) -> str:
        """The next line.

        Raises:
          KeyboardInterrupt: Ctrl-C.
          TakenBack: Ctrl-C, after the line and before the terminal was as the program had it.
          EOFError: Ctrl-D, or `wake`: the stop was aborted or released.
        """
        found: list[str | BaseException] = []

        def run() -> None:
            try:
                found.append(self._prompt(stop, prompt, stdin, stdout))
            except BaseException as error:
                found.append(error)

        # On a thread of its own: prompt_toolkit makes an event loop, which would change this thread's, and on the main
        # thread it takes the descriptor that tells us of signals.
        thread = threading.Thread(target=run, name="pyfunc_debug prompt", daemon=True)
        hide_from_debuggers(thread)
        thread.start()
        thread.join()
        line = found[0]
        if isinstance(line, BaseException):
            raise line
        return line

    def _prompt(self, stop: Stop, prompt: str, stdin: Any, stdout: Any) -> str:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import InMemoryHistory
        from prompt_toolkit.input import create_input
        from prompt_toolkit.output.vt100 import Vt100_Output
        from prompt_toolkit.shortcuts import CompleteStyle

        if self._history is None:
            self._history = InMemoryHistory()
        keyboard = create_input(stdin)
        session: PromptSession[str] = PromptSession(
            history=self._history, completer=_completer(stop.complete), complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE, key_bindings=_keys(), input=keyboard,
            # Not `from_pty`: it asks the terminal where its cursor is, and says so where no answer comes.
            output=Vt100_Output(stdout, lambda: _size(stdout), term=os.environ.get("TERM"), enable_cpr=False),
        )  # fmt: skip
        self._app = app = session.app

        def begun() -> None:
            if stop.aborted or stop.released:  # before there was anything to wake
                app.exit(exception=EOFError())

        try:
            style = "" if os.environ.get("NO_COLOR") else "ansigreen bold"
            line = session.prompt([(style, prompt)], pre_run=begun, handle_sigint=False, set_exception_handler=False)
        finally:
            self._app = None
        if _ctrl_c_came(keyboard):
            raise TakenBack(line)
        return line

    def wake(self) -> None:
        """Ends `read`, from any thread."""
        app = self._app
        loop = getattr(app, "loop", None)
        if loop is not None:
            loop.call_soon_threadsafe(_end, app)


def _ctrl_c_came(keyboard: Any) -> bool:
    """Whether Ctrl-C is among the keys that were pressed after a line; else they are those of the next one."""
    from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
    from prompt_toolkit.keys import Keys

    ahead = get_typeahead(keyboard)
    if waiting_bytes(keyboard.fileno()) == 1:
        ahead += keyboard.read_keys()
    if any(one.key == Keys.ControlC for one in ahead):
        return True
    store_typeahead(keyboard, ahead)
    return False


def _size(stdout: Any) -> Any:
    from prompt_toolkit.data_structures import Size

    columns, rows = os.get_terminal_size(stdout.fileno())
    return Size(rows or 24, columns or 80)


def _keys() -> Any:
    from prompt_toolkit.application import run_in_terminal
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("c-z")
    def suspend(event: Any) -> None:
        run_in_terminal(_suspend)

    return keys


def _suspend() -> None:
    """Stops the foreground job as Ctrl-Z does: the others in it first, then this process, in this very call.

    A signal to the process stops its main thread first. This one would go on meanwhile and draw the prompt before it
    stops, and not again after `fg` (prompt_toolkit's own Ctrl-Z does that).
    """
    set_handler = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(("PyOS_setsig", ctypes.pythonapi))
    before = set_handler(signal.SIGTSTP, _IGNORE)  # signal.signal() is the main thread's
    os.kill(0, signal.SIGTSTP)
    set_handler(signal.SIGTSTP, before)
    signal.pthread_kill(threading.get_ident(), signal.SIGTSTP)


def _end(app: Any) -> None:
    if app.is_running and not app.is_done:
        app.exit(exception=EOFError())


def _completer(complete: Callable[[str, str], Iterable[str]]) -> Any:
    from prompt_toolkit.completion import Completer, Completion

    class Words(Completer):
        def get_completions(self, document: Any, complete_event: Any) -> Iterable[Completion]:
            before = document.text_before_cursor
            found = _WORD.search(before)
            word = found[0] if found is not None else ""
            for one in complete(before, word):
                yield Completion(one, -len(word))

    return Words()
