"""Stops in a notebook: the input box of the right cell, the panel's buttons, Interrupt, and the magics for breakpoints.

A stopped body's thread asks for itself: the broker lets one ask at a time, and the kernel's own `input()` shares our
lock. The panel is asked first (see `panel_front`).
"""

from __future__ import annotations

import contextlib
import contextvars
import difflib
import fnmatch
import shlex
import sys
import threading
from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class, no_var_expand

from jupyter_ext.breaking import Breaking
from jupyter_ext.panel_front import Json, PanelFront
from pyfunc_debug.errors import PyfuncDebugError
from pyfunc_debug.places import cell_label
from pyfunc_debug.stops import Abort, Stop
from pyfunc_debug.stops.rules import line_of_cell
from pyfunc_debug.switchboard import board

LAST = "_pyfunc"
"""The variable that holds the last recording."""

_CONTEXT = ("parent_header", "shell_parent", "shell_parent_ident")
"""Context variables of ipykernel that say which cell output belongs to."""
_POLL_MS = 50


class Cell:
    """What the cell that runs offers: its context, its right to ask, and its Interrupt."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.running = False
        self.allow_stdin = False
        self.parent: Any = {}
        self.ident: Any = b""
        self.key: Any = None
        self._depth = 0
        self._breaking = Breaking(shell)

    def begins(self, info: Any = None) -> None:
        """IPython's `pre_run_cell`. Cells nest: `%%capture` and `run_cell` run one inside another."""
        if threading.current_thread() is not threading.main_thread():
            return  # a cell on a subshell is not ours
        kernel = getattr(self._shell, "kernel", None)
        if kernel is None:
            self._begins("" if info is None else info.raw_cell)
            return
        self.parent = kernel.get_parent("shell") or {}
        self.ident = kernel._parent_ident["shell"]  # noqa: SLF001 - ipykernel has no public way
        key = self.parent.get("header", {}).get("msg_id")
        if key != self.key:
            self._depth = 0
        self.key = key
        self.allow_stdin = bool(self.parent.get("content", {}).get("allow_stdin"))
        board.cell_context = [
            (variable, value) for variable, value in contextvars.copy_context().items() if variable.name in _CONTEXT
        ]
        self._begins(str(self.parent.get("content", {}).get("code", "")))

    def _begins(self, text: str) -> None:
        self._depth += 1
        self.running = True
        board.cell_begins(self._breaking.may_call(text))

    def ends(self, result: Any = None) -> None:
        """IPython's `post_run_cell`."""
        if threading.current_thread() is threading.main_thread():
            self._depth -= 1
            if self._depth <= 0:
                self.close()

    def close(self) -> None:
        """No cell is running."""
        self._depth, self.running = 0, False
        self.allow_stdin = False
        board.cell_ends()


class InputBox:
    """A `broker.Front`: the input box under the running cell."""

    name = "the notebook's input box"

    def __init__(self, shell: Any, cell: Cell) -> None:
        self._kernel = shell.kernel
        self._cell = cell
        self._lock = threading.RLock()
        self._original: Any = None
        if hasattr(self._kernel, "_input_request"):  # private; without it a cell's own input() may take our answer
            self._original = original = self._kernel._input_request  # noqa: SLF001

            def locked(*args: Any, **named: Any) -> Any:
                with self._lock:
                    return original(*args, **named)

            self._kernel._input_request = locked  # noqa: SLF001

    def close(self) -> None:
        """Gives the kernel its own method back."""
        if self._original is not None:
            self._kernel.__dict__.pop("_input_request", None)

    def can_answer(self, stop: Stop) -> bool:
        """While a cell runs whose front end answers questions: not under nbconvert or papermill."""
        return self._cell.running and self._cell.allow_stdin

    def ask(self, stop: Stop, prompt: str) -> str | None:
        import zmq

        socket, session = self._kernel.stdin_socket, self._kernel.session
        sys.stdout.flush()
        with self._lock:
            while True:
                try:
                    socket.recv_multipart(zmq.NOBLOCK)  # answers that nobody waited for
                except zmq.ZMQError:
                    break
            content = {"prompt": f"[{stop.thread}] {prompt}", "password": False}
            session.send(socket, "input_request", content, self._cell.parent, ident=self._cell.ident)
            while not stop.aborted and not stop.released and self._cell.running:
                if socket.poll(_POLL_MS):
                    _, reply = session.recv(socket)
                    if reply is not None:
                        line = str(reply["content"].get("value", ""))
                        return None if line == "\x04" else line
        if stop.aborted:
            raise Abort("interrupted at a pyfunc_debug stop")
        return None

    def tell(self, stop: Stop, text: str) -> None:
        print(text, end="", flush=True)

    def closed(self, stop: Stop) -> None: ...

    def wake(self, stop: Stop) -> None: ...


@magics_class
class StopMagics(Magics):  # type: ignore[misc]  # IPython is not typed here
    """`%pyfunc_break` and `%pyfunc_debug`."""

    @no_var_expand  # type: ignore[untyped-decorator]
    @line_magic  # type: ignore[untyped-decorator]
    def pyfunc_break(self, line: str) -> Any:
        """Stop calls of a node.

        %pyfunc_break NODE [--when before|after|error|gradient] [--if EXPR] [--hits N] [--once] [--log EXPR]
        %pyfunc_break list
        %pyfunc_break clear [N]
        """
        try:
            return self._break(shlex.split(line))
        except (PyfuncDebugError, ValueError) as error:
            raise UsageError(str(error)) from None

    def _break(self, words: list[str]) -> Any:
        if not words or words == ["list"]:
            for one in board.rules.all():
                print(one)
            if not board.rules.all():
                print("no breakpoints")
            return None
        if words[0] == "clear":
            known = {one.number: one for one in board.rules.all()}
            wanted = [_whole(word, "clear") for word in words[1:]] or list(known)
            for number in wanted:
                if number not in known:
                    raise UsageError(f"there is no breakpoint {number}: see %pyfunc_break list")
            for number in wanted:
                known[number].remove()
            return None
        named = 2 if line_of_cell(" ".join(words[:2])) else 1
        where, rest = " ".join(words[:named]), words[named:]
        options: dict[str, Any] = {}
        while rest:
            word = rest.pop(0)
            if word == "--once":
                options["once"] = True
                continue
            name = {"--when": "when", "--if": "condition", "--hits": "hits", "--log": "log"}.get(word)
            if name is None or not rest:
                quote = '. Put a condition with spaces in quotes: --if "x.max() > 1"' if "condition" in options else ""
                raise UsageError(f"cannot understand {word!r}: see %pyfunc_break?{quote}")
            value = rest.pop(0)
            options[name] = _whole(value, word) if name == "hits" else value
        made = board.rules.add(where, **options)
        if made.file is None:
            self._warn_of_unknown(where)
        return made

    def _warn_of_unknown(self, where: str) -> None:
        """Says at once when nothing has this name: no node of the last recording, no function in the notebook."""
        names = self.shell.user_ns
        recording = names.get(LAST)
        seen: set[str] = set()
        if recording is not None:
            with contextlib.suppress(PyfuncDebugError):
                for node in recording.nodes():
                    if node.token == where:
                        return
                    seen |= {
                        part for name in (node.body, node.name) if name for part in (name, name.rpartition(".")[2])
                    }
        seen |= {
            name
            for name, value in list(names.items())
            if callable(value) and not name.startswith("_") and hasattr(value, "__code__")
        }
        if not fnmatch.filter(seen, where):
            near = difflib.get_close_matches(where, seen, 3, 0.5)
            there = f" The nearest: {', '.join(near)}." if near else ""
            print(
                f"pyfunc_debug: nothing has the name {where!r} yet.{there} The breakpoint waits for it.",
                file=sys.stderr,
            )

    @line_magic  # type: ignore[untyped-decorator]
    def pyfunc_debug(self, line: str) -> None:
        """Open the debugger at the user's frame of the last failed call, or in call N of the last recording.

        %pyfunc_debug [N]

        A call that did not fail runs again, with all its effects, on its recorded inputs: record them with
        `%%pyfunc_trace --values full`.
        """
        from pyfunc_debug.api.breakpoints import debug, post_mortem

        try:
            if not line.strip():
                post_mortem()
                return
            number = _whole(line.strip().lstrip("#"), "%pyfunc_debug")
            recording = self.shell.user_ns.get(LAST)
            if recording is None:  # with breakpoints alone there is no recording, but what failed is kept
                post_mortem(number)
            else:
                debug(recording.call(number))
        except PyfuncDebugError as error:
            raise UsageError(str(error)) from None


def _whole(word: str, after: str) -> int:
    if not word.isdigit():
        raise UsageError(f"{after} takes a whole number, not {word!r}")
    return int(word)


class Stops:
    """All that is installed in a shell for stops; `close` takes it away."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.cell = Cell(shell)
        self.panel: PanelFront | None = None
        self._box: InputBox | None = None
        self._magics = StopMagics(shell)
        shell.register_magics(self._magics)
        shell.events.register("pre_run_cell", self.cell.begins)
        shell.events.register("post_run_cell", self.cell.ends)
        if getattr(shell, "kernel", None) is not None:
            self._box = InputBox(shell, self.cell)
            board.broker.fronts.insert(0, self._box)
            self.cell.begins()  # the cell that loads the extension

    def connect(self, send: Callable[[Json], bool], home: Callable[[], str | None]) -> PanelFront:
        """Plugs the panels in: they are asked before the input box.

        Args:
          send: See `PanelFront`.
          home: The name of the running cell's own panel, or None.
        """
        if self.panel is None:
            self.panel = PanelFront(self.cell, send, home, cell_label)
            board.broker.fronts.insert(0, self.panel)
        return self.panel

    def close(self) -> None:
        """Takes everything away again."""
        for name in self._magics.magics["line"]:
            self._shell.magics_manager.magics["line"].pop(name, None)
        for front in (self.panel, self._box):
            if front is not None:
                front.close()
                with contextlib.suppress(ValueError):
                    board.broker.fronts.remove(front)
        self._shell.events.unregister("pre_run_cell", self.cell.begins)
        self._shell.events.unregister("post_run_cell", self.cell.ends)
        self.cell.close()
        board.cell_context = []


def install(shell: Any) -> Stops:
    """Makes stops work in a shell."""
    return Stops(shell)
