"""What a prompt offers beyond, or other than, pdb's own commands; each docstring is the command's help text."""

from __future__ import annotations

import code as codelib
import contextlib
import inspect
import linecache
import pdb
import re
import sys
import traceback
from collections.abc import Iterator
from types import CodeType
from typing import TYPE_CHECKING, Any

from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.events import NodeFacts
from pyfunc_debug.places import cell_file, cell_label
from pyfunc_debug.program.printable import folded
from pyfunc_debug.stops.chained_tracer import settrace
from pyfunc_debug.stops.generated import UserFrame
from pyfunc_debug.stops.stop import one_line

Pdb: Any = next(kind for kind in pdb.Pdb.__mro__ if kind.__module__ == "pdb" and kind.__qualname__ == "Pdb")
"""The standard library's: an IPython kernel puts its own under the name pdb.Pdb."""


_OWN = {"node", "call", "inputs", "outputs", "others", "trace"}
_OF_A_VARIABLE = re.compile(r"\s*(\w+)(\.[^\W\d]|\[|\s*=(?!=))")
"""Python, though it begins as pdb's commands for stepping: `q.get()`, `w.shape`, `n = 3`, and `c[0]` of a variable."""


_OF_A_BREAKPOINT = re.compile(r"((?:Breakpoint \d+|Deleted breakpoint \d+|\d+ +breakpoint .*?) +at )(\S+)(?=:\d+)")
"""What pdb says of a line breakpoint."""


class Commands:
    """A part of `Tracer`."""

    if TYPE_CHECKING:  # what `Tracer` and pdb bring

        def __getattr__(self, name: str) -> Any: ...

    def parseline(self, line: str) -> Any:
        """`inputs`, `others 2` and `w` are commands; `inputs[0]`, `call.shape`, `q.get()` and `n = 3` are Python."""
        variable = _OF_A_VARIABLE.match(line)
        own = variable is not None and hasattr(self, f"do_{variable[1]}")
        if variable is not None and own and (variable[2] != "[" or self._is_variable(variable[1])):
            return None, None, line.strip()
        command, argument, line = super().parseline(line)  # type: ignore[misc]  # pdb's, behind this class
        python = command in _OWN and argument and not (command == "others" and argument.isdecimal())
        return (None, None, line) if python else (command, argument, line)

    def handle_command_def(self, line: str) -> Any:
        """A line of `commands`: a command, or Python, which pdb drops."""
        if line.strip() and self.parseline(line)[0] is None:
            self.commands[self.commands_bnum].append(line)
            return None
        return super().handle_command_def(line)  # type: ignore[misc]  # pdb's, behind this class

    def _is_variable(self, name: str) -> bool:
        return bool(self.stack) and (name in self.curframe_locals or name in self.curframe.f_globals)

    def do_quit(self, arg: str) -> int:
        """q(uit)

        End this call and all that wait: their bodies raise Abort, which TensorFlow reports as any error of a body.
        """
        self._aborting = True
        return 1

    do_q = do_exit = do_quit

    def do_EOF(self, arg: str) -> Any:  # noqa: N802 - pdb's name
        """EOF

        Nobody answers any more: the call goes on.
        """
        self.message("")
        return Pdb.do_continue(self, "")

    def do_continue(self, arg: str) -> Any:
        """c(ont(inue)) [all]

        Go on; with `all` every call that waits behind this one goes on as well.
        """
        if arg.strip() == "all":
            count = self._broker.release()
            self.message(f"{count} waiting call{'' if count == 1 else 's'} released")
        return Pdb.do_continue(self, "")

    do_c = do_cont = do_continue

    def do_detach(self, arg: str) -> Any:
        """detach

        Disable every breakpoint, let every waiting call go on, and go on.
        """
        self.host.detach()
        return self.do_continue("all")

    def do_keep(self, arg: str) -> Any:
        """keep

        Leave the breakpoint of this stop as it is, and go on.
        """
        return Pdb.do_continue(self, "")

    def do_edit(self, arg: str) -> None:
        """edit expression

        Give the breakpoint of this stop another condition, from the next call on; without an expression: none.
        """
        rule = self.stop.breakpoint
        if rule is None:
            self.error("this stop has no breakpoint: it was a breakpoint() in the code")
            return
        try:
            rule.edit(arg)
        except BadOptionError as error:
            self.error(str(error))
            return
        self.message(f"breakpoint {rule.number} is now {rule.text()}")

    def do_disable(self, arg: str) -> Any:
        """disable [bpnumber ... | node]

        Without arguments switch off the breakpoint of this stop; with a node those on it; else line breakpoints made
        at this prompt.
        """
        rules = self._rules_on(arg) or ([self.stop.breakpoint] if self.stop.breakpoint is not None and not arg else [])
        for rule in rules:
            rule.disable()
            self.message(f"breakpoint {rule.number} is disabled")
        return None if rules else Pdb.do_disable(self, arg)

    def do_enable(self, arg: str) -> Any:
        """enable bpnumber [bpnumber ...] | node

        Switch on line breakpoints made at this prompt, or those on a node.
        """
        rules = self._rules_on(arg)
        for rule in rules:
            rule.enable()
            self.message(f"breakpoint {rule.number} is enabled")
        return None if rules else Pdb.do_enable(self, arg)

    def do_break(self, arg: str, temporary: bool = False) -> Any:
        """b(reak) [ ([filename:]lineno | function | node) [, condition] ]

        Without argument, list all breaks.

        With the name of a node, stop its calls from now on, on every thread, as `pyfunc_debug.break_on` does.

        With a line number, or a function, stop there in this call. The line number may be prefixed with a filename and
        a colon. With a second argument, a condition that must hold.
        """
        where, _, condition = (part.strip() for part in arg.partition(","))
        if not arg.strip():
            for rule in self.host.rules():
                self.message(repr(rule))
        if where not in self.host.node_names():
            return Pdb.do_break(self, arg, temporary)
        try:
            rule = self.host.break_on(where, condition or None, bool(temporary))
        except BadOptionError as error:
            self.error(str(error))
            return None
        self.message(f"breakpoint {rule.number} stops {'the next call' if temporary else 'calls'} of {where}")
        known = getattr(self.curframe_locals.get(where, self.curframe.f_globals.get(where)), "__code__", None)
        if known is not None and known is not self.curframe.f_code:  # this call may call it as well
            Pdb.do_break(self, arg, temporary)
        return None

    do_b = do_break

    def lookupmodule(self, filename: str) -> Any:
        """The file that is meant by a name before a line's number; `cell [3]` is a notebook's."""
        return cell_file(filename) or super().lookupmodule(filename)  # type: ignore[misc]  # pdb's, behind this class

    def format_stack_entry(self, frame_lineno: Any, lprefix: str = ": ") -> str:
        """A line of the stack, in which a notebook's cell has its number: its file has a name that nobody knows."""
        shown: str = super().format_stack_entry(frame_lineno, lprefix)  # type: ignore[misc]
        file = self.canonic(frame_lineno[0].f_code.co_filename)
        label = cell_label(file)
        return shown.replace(file, label, 1) if label else shown

    def message(self, msg: Any, *more: Any, **named: Any) -> None:
        """Something of pdb's for whoever answers."""
        of_line = _OF_A_BREAKPOINT.match(msg) if isinstance(msg, str) else None
        label = cell_label(of_line[2]) if of_line is not None else None
        if of_line is not None and label:
            msg = f"{of_line[1]}{label}{msg[of_line.end() :]}"
        super().message(msg, *more, **named)  # type: ignore[misc]

    def _rules_on(self, node: str) -> list[Any]:
        """The breakpoints that name a node in this word."""
        return [rule for rule in self.host.rules() if rule.where == node.strip()]

    def _complete_node(self, text: str, line: str, begin: int, end: int) -> list[str]:
        """Names of nodes, and what pdb offers of the command."""
        command = self.parseline(line)[0]
        own = Pdb.complete_break if command in ("b", "break", "tbreak", "cl", "clear") else Pdb.complete_disable
        return [*(name for name in self.host.node_names() if name.startswith(text)), *own(self, text, line, begin, end)]

    complete_b = complete_break = complete_tbreak = complete_cl = complete_clear = _complete_node
    complete_disable = complete_enable = _complete_node

    def do_clear(self, arg: str) -> Any:
        """cl(ear) [filename:lineno | bpnumber ... | node]

        Without arguments clear all line breakpoints that were made at prompts of this call; with a node those on it.
        """
        rules = self._rules_on(arg)
        for rule in rules:
            rule.remove()
            self.message(f"breakpoint {rule.number} is gone")
        if arg:
            return None if rules else Pdb.do_clear(self, arg)
        self.clear_lines()  # pdb would ask at sys.stdin
        return None

    do_cl = do_clear

    def do_longlist(self, arg: str) -> None:
        """ll | longlist

        The whole function of this frame.
        """
        if not isinstance(self.curframe, UserFrame):
            Pdb.do_longlist(self, arg)
            return
        file, first = self.curframe.f_code.co_filename, self.curframe.f_code.co_firstlineno
        lines = inspect.getblock(linecache.getlines(file)[first - 1 :])
        self._print_lines(lines, first, self.get_file_breaks(file), self.curframe)

    do_ll = do_longlist

    def help_pdb(self) -> None:
        """pdb's own starts a pager."""
        self.message(pdb.__doc__)

    def do_run(self, arg: str) -> None:
        """run

        Not here: the program is TensorFlow's to run.
        """
        self.error("a call cannot be restarted from its own prompt")

    do_restart = do_run

    def do_interact(self, arg: str) -> None:
        """interact

        An interactive interpreter on a copy of the names of this frame. Ctrl-D, or exit(), comes back.
        """
        leave = {"exit": _leave, "quit": _leave}  # a notebook's own would end the kernel
        console = _Console(self, {**self.curframe.f_globals, **leave, **self.curframe_locals})
        with contextlib.suppress(EOFError):
            console.interact(banner="*interactive*", exitmsg="")

    def do_debug(self, arg: str) -> None:
        """debug code

        Step through a statement in a debugger of its own.
        """
        settrace(None)
        with readline_untouched():
            inner = Pdb(stdin=self.stdin, stdout=self.stdout, nosigint=True, readrc=False)
        inner.prompt = f"({self.prompt.strip()}) "
        self.message("ENTERING RECURSIVE DEBUGGER")
        try:
            sys.call_tracing(inner.run, (arg, self.curframe.f_globals, self.curframe_locals))
        except Exception as error:
            self.error("".join(traceback.format_exception_only(type(error), error)).strip())
        self.message("LEAVING RECURSIVE DEBUGGER")
        settrace(self.trace_dispatch)

    def do_node(self, arg: str) -> None:
        """node

        The node: its body, op, graph and types.
        """
        node = self.stop.node
        if node is None:
            self.message("not known")
            return
        forward = self.host.forward or node
        file = forward.body.file
        where = f" ({cell_label(file) or file}:{forward.body.line})" if file else ""
        self.message(f"{'body  ' if forward is node else 'gradient of'} {forward.body.name}{where}")
        self.message(f"kind   tf.{node.kind}, token {node.token}")
        self.message(f"op     {node.name or 'not known'} in {node.graph or 'no graph'}")
        self.message(f"types  {', '.join(node.tout) or 'none'}")

    def do_call(self, arg: str) -> None:
        """call

        This call: number, thread, why it stopped.
        """
        self.message(f"{self.stop.title} on {self.stop.thread}: {self.stop.why}")
        if self.stop.breakpoint is not None:
            self.message(f"{self.stop.breakpoint!r}")

    def do_inputs(self, arg: str) -> None:
        """inputs

        What TensorFlow passed to the body, one line each.
        """
        if not len(self.stop.inputs):
            self.message("none")
        for name, value in zip(self.stop.names, self.stop.inputs):
            self.message(f"{name} = {one_line(value)}")

    def do_outputs(self, arg: str) -> None:
        """outputs

        What the body returned, if it has.
        """
        value = self.curframe_locals.get("__return__", self.stop.outputs)
        self.message(one_line(value) if value is not None else "the body has not returned yet")

    def do_others(self, arg: str) -> Any:
        """others [number]

        Calls that wait behind this one, with their inputs. With a number of that list go to this call's prompt, on its
        thread; when it goes on, this prompt comes back.
        """
        if arg:
            return self._go_to(int(arg))
        waiting = self._listed = self._broker.waiting()
        if not waiting:
            self.message("no other call waits")
        for number, stop in enumerate(waiting, 1):
            self.message(f"{number}  {stop.title} on {stop.thread}: {stop.why}")
            for name, value in zip(stop.names, stop.inputs):
                self.message(f"     {name} = {one_line(value)}")
        if self._broker.starving():
            self.message(folded(self._broker.starving(), getattr(self.stop.front, "columns", None)))
        return None

    def complete_others(self, text: str, line: str, begin: int, end: int) -> list[str]:
        """The numbers of those that wait."""
        numbers = (str(number) for number in range(1, len(self._broker.waiting()) + 1))
        return [number for number in numbers if number.startswith(text)]

    def _go_to(self, number: int) -> Any:
        waiting = self._listed or self._broker.waiting()
        if not 0 < number <= len(waiting):
            self.error(f"there is no call {number} in `others`")
            return None
        other = waiting[number - 1]
        if other not in self._broker.waiting():
            self.error(f"{other.title} does not wait any more")
            return None
        if self._broker.switch(self.stop, other):
            return Pdb.do_continue(self, "")
        self.message(f"--- back: {self.stop.title} on {self.stop.thread}")
        if other.front is not None and not other.open:
            self.message(f"*** {other.title} runs on after a step, and may be waiting for this call")
        self.print_stack_entry(self.stack[self.curindex])
        return None

    def do_trace(self, arg: str) -> None:
        """trace

        Where the node was put into its graph: your lines when the graph was traced. Of a call that has no graph, an
        eager one: your lines that called it.
        """
        node = self.stop.node
        if node is None:
            self.message("not known: this stop is in no call of a node that is known")
            return
        frames = [(frame.file, frame.line, frame.function, frame.text) for frame in node.stack]
        if not frames and (why := _without_graph(node)):
            called = [(one.f_code.co_filename, line, one.f_code.co_name, "") for one, line in self.callers]
            if not called and node.site is not None:
                file, line = self.host.user_line(*node.site[:2])
                called = [(file, line, node.site[2].removeprefix("tf__"), "")]
            frames = [(*frame[:3], linecache.getline(*frame[:2]).strip()) for frame in called]
            self.message(f"{why}; {'called by' if frames else 'no line of yours called it on this thread'}")
        elif not frames and node.name is None:
            self.message("not known: the node was made before recording or breakpoints were switched on")
        elif not frames:
            self.message("not known: no line of yours made the node")
        for file, line, function, text in frames:
            self.message(f'  File "{file}", line {line}, in {function}\n    {text}')


def _without_graph(node: NodeFacts) -> str:
    """Why a node is in no graph; empty of one that is in one."""
    if node.function is not None and node.function.kind == "eager":
        return "it runs eagerly, in no graph"
    return "Keras takes the elements itself, in no graph" if node.token.startswith("keras_") else ""


def _leave(code: Any = None) -> None:
    raise SystemExit(code)


class _Console(codelib.InteractiveConsole):
    """`interact` over a front."""

    def __init__(self, tracer: Any, names: dict[str, Any]) -> None:
        super().__init__(names)
        self._tracer = tracer

    def raw_input(self, prompt: str = "") -> str:
        self._tracer.stdout.write(prompt)
        line = self._tracer.read()
        if not line:
            raise EOFError
        return str(line).rstrip("\n")

    def write(self, data: str) -> None:
        self._tracer.stdout.write(data)

    def showtraceback(self) -> None:
        """To whoever answers, and not through sys.excepthook to the program's stderr."""
        kind, error, trace = sys.exc_info()
        trace = trace.tb_next if trace is not None else None  # `runcode`
        self.write("".join(traceback.format_exception(kind, error, trace)))

    def showsyntaxerror(self, *args: Any, **named: Any) -> None:
        """The same."""
        self.write("".join(traceback.format_exception_only(*sys.exc_info()[:2])))

    def runcode(self, code: CodeType) -> None:
        hook, sys.displayhook = sys.displayhook, self._tracer.displayhook
        try:
            with self._tracer.evaluating():  # not while the person types: calls that arrive then wait
                super().runcode(code)
        except SystemExit:
            raise EOFError from None
        finally:
            sys.displayhook = hook


@contextlib.contextmanager
def readline_untouched() -> Iterator[None]:
    """Pdb's constructor sets readline's delimiters for the whole process."""
    readline = sys.modules.get("readline")
    delimiters = readline.get_completer_delims() if readline is not None else None
    try:
        yield
    finally:
        if readline is not None and delimiters is not None:
            readline.set_completer_delims(delimiters)
