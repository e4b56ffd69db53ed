"""The prompt on the terminal that the program was started from."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import sys
import threading
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.program.printable import columns_of
from pyfunc_debug.stops.line_editor import LineEditor, TakenBack, edits, painted, waiting_bytes
from pyfunc_debug.stops.stop import Abort, Stop

_CTRL_C = "\x03"


@contextlib.contextmanager
def _interrupt_is_a_key(stdin: Any) -> Iterator[None]:
    """While a terminal prompts, Ctrl-C ends the line instead of sending SIGINT.

    The signal would be handled on the main thread as soon as TensorFlow returns there, and a KeyboardInterrupt at that
    place corrupts TensorFlow's error. Ctrl-Z stays what it is.
    """
    try:
        import termios

        descriptor = stdin.fileno()
        before = termios.tcgetattr(descriptor)
        if not os.isatty(descriptor):
            raise OSError
    except (ImportError, AttributeError, OSError, ValueError):  # no terminal, or no such system; termios.error too
        yield
        return
    except Exception as error:
        if type(error).__module__ != "termios":
            raise
        yield
        return
    keys = list(before[6])
    keys[termios.VINTR] = os.fpathconf(descriptor, "PC_VDISABLE").to_bytes(1, "little", signed=False)
    keys[termios.VEOL] = _CTRL_C.encode()
    termios.tcsetattr(descriptor, termios.TCSANOW, [*before[:6], keys])
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # the terminal is gone
            termios.tcsetattr(descriptor, termios.TCSANOW, before)


def _line(stdin: Any) -> str:
    """One line of a terminal, which need not end with a newline: it is what one read gives."""
    return str(os.read(stdin.fileno(), 65536).decode(stdin.encoding or "utf-8", "replace"))


def _typed_ahead(stdin: Any) -> str:
    """What was typed as a line was on its way, where that is one key: Ctrl-C sent no signal then."""
    return _line(stdin) if waiting_bytes(stdin.fileno()) == 1 else ""


class Terminal:
    """A `broker.Front` on two text streams.

    Args:
      stdin: Where lines come from; None for sys.stdin at the time of asking, if it is a terminal. A stream that is
        given needs not be one: scripted input.
      stdout: Where text goes; None for sys.stdout, or the terminal itself where that leads elsewhere (`> out.txt`).
    """

    name = "the terminal"
    pauses = True
    """Ctrl-C here stops a body that runs (`Broker.can_pause`)."""

    def __init__(self, stdin: Any = None, stdout: Any = None) -> None:
        self._given = stdin
        self._stdout = stdout
        self._screen: Any = None
        self._editor = LineEditor()
        self._plain = False
        self._ahead = ""  # what was typed before its prompt, and had to be read
        self._ended = False
        self._wake: tuple[int, int] | None = None
        self._lock = threading.Lock()

    def can_answer(self, stop: Stop) -> bool:
        """A terminal in the foreground, or scripted input that has not ended."""
        if self._ended:
            return False
        if self._given is not None:
            return True
        try:
            descriptor = sys.stdin.fileno()
            return os.isatty(descriptor) and os.tcgetpgrp(descriptor) == os.getpgrp()
        except (AttributeError, OSError, ValueError):  # closed, replaced, or not the process's terminal
            return False

    def ask(self, stop: Stop, prompt: str) -> str | None:
        """The next line. Ctrl-C that comes as the line is on its way takes it back, and it is asked for again."""
        while True:
            try:
                return self._asked(stop, prompt)
            except TakenBack as taken_back:
                self.tell(stop, f"\n*** Ctrl-C took back: {taken_back}\n")

    def _asked(self, stop: Stop, prompt: str) -> str | None:
        stdin = self._given if self._given is not None else sys.stdin
        if self._edits(stdin):
            try:
                return self._edited(stop, prompt, stdin)
            except (Abort, KeyboardInterrupt, TakenBack):
                raise
            except Exception as error:  # an older prompt_toolkit, say: it is read without
                self._plain = True
                self.tell(stop, f"*** lines are not edited ({type(error).__name__}: {error})\n")
        with _interrupt_is_a_key(stdin):
            self.tell(stop, prompt)  # not before: whoever sees the prompt may press Ctrl-C
            try:
                if not self._ahead:
                    self._wait(stop, stdin.fileno())
            except (OSError, ValueError, AttributeError):  # io.UnsupportedOperation: scripted input never blocks
                pass
            if stop.aborted:
                self.tell(stop, "\n")
                raise Abort("interrupted at a pyfunc_debug stop")
            if stop.released:
                self.tell(stop, "\n")
                return None
            terminal = self._given is None and self._is_tty(stdin)
            line, self._ahead = self._ahead or (_line(stdin) if terminal else stdin.readline()), ""
        if terminal and line.endswith("\n"):
            self._ahead = _typed_ahead(stdin)
            if self._ahead == _CTRL_C:
                self._ahead = ""
                raise TakenBack(line.strip())
        if line.endswith(_CTRL_C):
            self.tell(stop, "\n")
            raise KeyboardInterrupt
        if not line:
            if self._given is not None:
                self._ended = True
            return None
        return str(line).rstrip("\r\n")

    def _edits(self, stdin: Any) -> bool:
        return (
            not self._plain
            and self._given is None
            and self._is_tty(stdin)
            and self._is_tty(self._screen_now())
            and edits()
        )

    def _edited(self, stop: Stop, prompt: str, stdin: Any) -> str | None:
        try:
            return self._editor.read(stop, prompt, stdin, self._screen_now())
        except EOFError:
            if stop.aborted:
                raise Abort("interrupted at a pyfunc_debug stop") from None
            return None

    def _screen_now(self) -> Any:
        return self._stdout if self._stdout is not None else self._out()

    @property
    def columns(self) -> int | None:
        """The terminal's width, where there is one."""
        return columns_of(self._screen_now())

    @staticmethod
    def _is_tty(stream: Any) -> bool:
        try:
            return os.isatty(stream.fileno())
        except (AttributeError, OSError, ValueError):
            return False

    def _wait(self, stop: Stop, descriptor: int) -> None:
        """Until there is a line, or `wake`. Holds no GIL."""
        with self._lock:
            if self._wake is None:
                self._wake = os.pipe()
            reader = self._wake[0]
        while not stop.aborted and not stop.released:
            ready, _, _ = select.select([descriptor, reader], [], [])
            if reader in ready:
                os.read(reader, 64)
                continue
            return

    def tell(self, stop: Stop, text: str) -> None:
        try:
            stdout = self._screen_now()
            stdout.write(painted(text) if self._edits(sys.stdin) else text)
            stdout.flush()
        except (OSError, ValueError):  # the terminal is gone
            self._ended = True

    def _out(self) -> Any:
        """Where the person at the terminal looks: a prompt in a file would be a program that hangs."""
        if self._given is not None or self._is_tty(sys.stdout):
            return sys.stdout
        if self._screen is None:
            try:
                self._screen = open("/dev/tty", "w", encoding="utf-8", errors="replace")  # noqa: SIM115 - until `close`
            except OSError:  # no terminal of its own, or no such system
                return sys.stdout
        return self._screen

    def closed(self, stop: Stop) -> None: ...

    def wake(self, stop: Stop) -> None:
        self._editor.wake()
        with self._lock:
            if self._wake is not None:
                os.write(self._wake[1], b".")

    def close(self) -> None:
        """Closes what `wake` needs."""
        with self._lock:
            wake, self._wake = self._wake, None
            screen, self._screen = self._screen, None
        for descriptor in wake or ():
            os.close(descriptor)
        if screen is not None:
            screen.close()


class Answers(Terminal):
    """The lines of a file, or of a pipe, typed at prompts; when they have been used up others are asked.

    Args:
      file: Its path; `-` for what is piped to the program, of which only the lines for prompts are read.

    Raises:
      OSError: the file cannot be read.
    """

    name = "the prepared answers"
    prepared = True

    def __init__(self, file: str) -> None:
        # Without a buffer: `select` looks at the descriptor, and what no prompt reads is the program's.
        raw = open(0 if file == "-" else file, "rb", buffering=0, closefd=file != "-")  # noqa: SIM115 - until `close`
        super().__init__(_Unbuffered(raw))

    def ask(self, stop: Stop, prompt: str) -> str | None:
        line = super().ask(stop, prompt)
        self.tell(stop, "\n" if line is None else f"{line}\n")  # as it would have been typed
        return line

    def close(self) -> None:
        self._given.close()
        super().close()


class Piped(Terminal):
    """What is piped to a program that calls `breakpoint()`: its lines are read as pdb reads them, from sys.stdin.

    Only where there is something to read, or was at an earlier prompt: else the program would wait for it for ever.
    """

    name = "what is piped to the program"
    pauses = False

    def __init__(self) -> None:
        super().__init__()
        self._begun = False

    def can_answer(self, stop: Stop) -> bool:
        """Whether the code asked for a stop, and stdin is a pipe or a file that holds something."""
        if self._ended or stop.breakpoint is not None or stop.why != "breakpoint()":
            return False
        stdin: Any = sys.stdin
        try:
            descriptor = stdin.fileno()
            kind = os.fstat(descriptor).st_mode
            if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind)):
                return False
            return self._begun or bool(select.select([descriptor], [], [], 0)[0] and stdin.buffer.peek(1))
        except (AttributeError, OSError, ValueError):  # closed, or replaced
            return False

    def ask(self, stop: Stop, prompt: str) -> str | None:
        self._begun = True
        line = super().ask(stop, prompt)
        self._ended = self._ended or (line is None and not stop.released)
        self.tell(stop, "\n" if line is None else f"{line}\n")  # as it would have been typed
        return line

    def _wait(self, stop: Stop, descriptor: int) -> None:
        """Not for the descriptor: sys.stdin has read ahead."""

    def _out(self) -> Any:
        return sys.stdout


class _Unbuffered:
    """Lines of text of a raw stream."""

    def __init__(self, raw: Any) -> None:
        self.fileno, self.close = raw.fileno, raw.close
        self._raw = raw

    def readline(self) -> str:
        return str(self._raw.readline().decode("utf-8", "replace"))
