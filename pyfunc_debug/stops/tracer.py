"""The debugger of one call: the standard library's pdb on the body's own thread, with its text sent to a front.

Nothing that it raises may reach the body, except Abort. Only the user's files are shown and stepped through. The
thread's own trace function (coverage's, debugpy's, a user's) is put back when the stop ends.
"""

from __future__ import annotations

import ast
import bdb
import codeop
import contextlib
import functools
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from types import CodeType, FrameType, TracebackType
from typing import Any

from pyfunc_debug.program import syntax
from pyfunc_debug.program.file_lines import absolute, is_dropped
from pyfunc_debug.program.frames import is_installed, is_user
from pyfunc_debug.program.printable import folded
from pyfunc_debug.stops.broker import Broker
from pyfunc_debug.stops.chained_tracer import settrace
from pyfunc_debug.stops.commands import Commands, Pdb, readline_untouched
from pyfunc_debug.stops.generated import UserFrame, store
from pyfunc_debug.stops.generators import is_generator, is_left
from pyfunc_debug.stops.host import TracerHost
from pyfunc_debug.stops.judge import LOG
from pyfunc_debug.stops.rules import STOPPED
from pyfunc_debug.stops.stop import Abort, Stop, one_line, snapshot, user_stack, variable

_CONSOLE_LINES = 200
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_KEPT = ("breaks", "_made", "commands", "commands_silent", "commands_doprompt", "displaying", "aliases")
"""What a call's next stop has of the one before: pdb's attributes for `b`, `commands`, `display`, `alias`."""


class _Lines:
    """What pdb reads: lines from the front. The text since the last newline is the prompt."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def readline(self) -> str:
        return self._tracer.read()


class _Text:
    """What pdb writes."""

    encoding = "utf-8"

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self.partial = ""

    def write(self, text: str) -> int:
        whole, newline, self.partial = (self.partial + text).rpartition("\n")
        if newline:
            self._tracer.say(whole + newline)
        return len(text)

    def flush(self) -> None: ...

    def take_prompt(self) -> str:
        prompt, self.partial = self.partial, ""
        return prompt


class _Printing(MutableMapping[str, Any]):
    """A frame's names for a statement that is typed, and a `print` besides, which the frame does not get.

    Args:
      names: The frame's own; Python 3.13 cannot take away what was added to them.
      modules: Those of its module.
      prints: What `print` is, unless either has one.
    """

    def __init__(self, names: MutableMapping[str, Any], modules: Mapping[str, Any], prints: Any) -> None:
        self._names = names
        self._more = {} if "print" in modules else {"print": prints}

    def __getitem__(self, name: str) -> Any:
        return self._names[name] if name in self._names else self._more[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._names[name] = value

    def __delitem__(self, name: str) -> None:
        del self._names[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Tracer(Commands, Pdb):  # type: ignore[misc]  # found at run time
    """Debugs one call.

    Args:
      stop: What is stopped.
      broker: Who gives the turn.
      host: What the tracer needs of the call around it.
      previous: The thread's trace function, to be put back.

    Attributes:
      ended: Whether this stop is over: the call goes on without it.
    """

    def __init__(self, stop: Stop, broker: Broker, host: TracerHost, previous: Any) -> None:
        self.stop = stop
        self._broker = broker
        self.host = host
        self._previous = previous
        self.ended = False
        self._made: list[Any] = []
        self._aborting = False
        self._counted = False
        self._commands_run = False
        self._touched: list[tuple[FrameType, Any, bool]] = []
        self._event = ""
        self._yielded = False
        self._raised: tuple[int, FrameType | None] | None = None
        self._outermost: FrameType | None = None
        self._bottom: FrameType | None = None
        self.header: str | None = None
        """What `pdb.set_trace(header=...)` wants to be said first."""
        self.resume = False
        """Whether other breakpoints still watch the call once this stop has ended: its host looks at events then."""
        self._console: list[str] = []
        self._listed: list[Stop] = []  # what `others` showed last
        self.callers: list[tuple[Any, int]] = []
        """The user's frames around the call, an eager one."""
        self.changed: list[str] = []
        self.result: tuple[Any] | None = None  # a return value replaced by hand
        with readline_untouched():
            super().__init__(stdin=_Lines(self), stdout=_Text(self), nosigint=True, readrc=False)
        self.prompt = f"({stop.title}) "
        self.reset()
        stop.describe = self._describe
        stop.complete = self._completed

    def reset(self) -> None:
        """Begins again. bdb looks at every file that linecache has, and other stops may do the same meanwhile."""
        while True:
            try:
                super().reset()
                return
            except KeyError as error:
                if not is_dropped(error):
                    raise

    def canonic(self, filename: str) -> str:
        """A file's path, also where its name was relative and the program is in another folder now."""
        return str(super().canonic(filename if filename[:1] == "<" else absolute(filename)))

    def defaultFile(self) -> str:  # noqa: N802 - pdb's name
        """The file that a line number means."""
        return self.canonic(super().defaultFile())

    # -- starting -----------------------------------------------------------------------------------------------------

    def from_call(self, frame: FrameType) -> Callable[..., Any]:
        """Stops at the first line of a frame that is just being entered; the result is its trace function."""
        self.botframe = frame.f_back
        self._set_stopinfo(frame, None)
        settrace(self.trace_dispatch)
        return self.trace_dispatch

    def from_line(self, frame: FrameType) -> Any:
        """Stops here, at a line event of a frame."""
        self.botframe = self._below(frame)
        self._take(frame.f_back, self.botframe)
        self._set_stopinfo(None, None)
        settrace(self.trace_dispatch)
        return self._dispatch(frame, "line", None)

    def from_return(self, frame: FrameType, value: Any) -> None:
        """Stops here, at the return event of a frame."""
        self.botframe = self._below(frame)
        self._set_stopinfo(None, None)
        self._guard(lambda: self.user_return(frame, value))

    def from_stand_in(self, frame: FrameType) -> None:
        """Stops here, in a frame that stands for a body without one."""
        self.botframe = frame.f_back
        self._set_stopinfo(frame, None, -1)
        self._guard(lambda: self.interaction(frame, None))

    @property
    def stepping(self) -> bool:
        """Whether the last command was a step."""
        return not self.ended and self.stopframe is None and self.stoplineno != -1

    def _stepped_over(self) -> FrameType | None:
        """The generator at whose yield the last command, a step, has ended, or the body where it goes into that."""
        at = self.stopframe if not self.ended and self.stoplineno == 0 else None
        at = (self.host.frame or self._outermost) if self.stepping else at
        return at if at is not None and is_left(at) else None

    def tell_step(self) -> None:
        """The call ends: a step over a yield goes on in the call for the next element."""
        at = self._stepped_over()
        if at is not None:
            self.host.steps_on(at)

    def from_running(self, frame: FrameType, bottom: FrameType, alone: bool = True, at_line: bool = False) -> None:
        """Stops in a frame that is running: at the line that it is about to run, or at the one after `breakpoint()`.

        Args:
          frame: The frame.
          bottom: What called the body.
          alone: Whether nobody else watches the end of this call.
          at_line: Whether it is about to run a line: one that waits would keep the stop waiting. Else it is in a call
            of `breakpoint()`, and stops where it is only if AutoGraph left its statement no next line.
        """
        self.botframe = bottom
        outermost = self._take(frame, bottom)
        if alone:
            self._bottom, self._outermost = bottom, outermost
        self._set_stopinfo(None, None)
        here = frame if at_line else self._in_joined(frame, bottom)
        if here is not None:
            settrace(None)  # what the prompt runs is not to be traced
            try:
                self._dispatch(here, "line", None)
            except Abort as abort:
                raise abort.with_traceback(None) from None  # our frames are not the program's
        if not self.ended:
            settrace(self.trace_dispatch)

    def _in_joined(self, frame: FrameType | None, bottom: FrameType) -> FrameType | None:
        """The innermost frame of the user's, where AutoGraph joined the lines of the statement that it is in.

        There is no next line in such a statement: a step would go into the next function that it calls.
        """
        generated = self.host.generated
        while frame is not None and frame is not bottom and not self._shown(frame):
            frame = frame.f_back
        base, one, shown = generated.base(frame) if frame is not None else None, frame, None
        while base is not None and one is not None:
            if generated.base(one) is base:
                if shown is None and generated.at_statement(one) is not None:
                    shown = one
                if generated.joined(one.f_code, one.f_lineno):
                    return shown
            one = None if one is base else one.f_back
        return None

    def _take(self, frame: FrameType | None, bottom: FrameType | None) -> FrameType | None:
        """Traces frames that are running; the outermost of them."""
        outermost = None
        while frame is not None and frame is not bottom:
            if self._shown(frame):
                self._touched.append((frame, frame.f_trace, frame.f_trace_lines))
                if self.host.chained is not None:
                    self.host.chained.adopt(frame, frame.f_trace)
                frame.f_trace, frame.f_trace_lines = self.trace_dispatch, True
                outermost = frame
            frame = frame.f_back
        return outermost

    def post_mortem(self, traceback_: TracebackType, error: BaseException) -> None:
        """Prompts at the line that raised; `__exception__` is there what it is in pdb when it steps onto one."""
        last = traceback_
        while last.tb_next is not None:
            last = last.tb_next
        last.tb_frame.f_locals["__exception__"] = type(error), error
        self._guard(lambda: self.interaction(None, traceback_))

    # -- ending -------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Ends debugging of this call and gives the turn back."""
        if not self.ended:
            self.ended = True
            self._set_stopinfo(self.botframe, None, -1)
            self.clear_lines()
            settrace(self._previous)
            for frame, before, lines in self._touched:
                frame.f_trace_lines = lines
                if before is None:
                    del frame.f_trace
                else:
                    frame.f_trace = before
            self._touched.clear()
        self._broker.leave(self.stop)

    def set_break(self, filename: str, lineno: int, *args: Any, **named: Any) -> Any:
        before = set(filter(None, bdb.Breakpoint.bpbynumber))
        refused = super().set_break(filename, lineno, *args, **named)
        self._made += [one for one in bdb.Breakpoint.bpbynumber if one is not None and one not in before]
        return refused

    def clear_lines(self) -> None:
        """Deletes the line breakpoints that were made at prompts of this call: bdb keeps them for the whole process."""
        for one in self._made:
            if one in bdb.Breakpoint.bpbynumber:
                one.deleteMe()
        self._made.clear()
        self.breaks.clear()

    def take_over(self, other: Tracer) -> None:
        """Ends an earlier stop of the same call; what was set at its prompts holds on."""
        for name in _KEPT:
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))
        other.leave_breaks()
        other.finish()

    def leave_breaks(self) -> None:
        """Its line breakpoints are another stop's from now on."""
        self._made = []
        self.breaks: dict[str, list[int]] = {}

    def _load_breaks(self) -> None:
        """Those of another debugger, or of another call, are not the concern of this one."""

    def _abort(self) -> None:
        self.stop.interrupted = True
        self.finish()
        if self._bottom is not None:  # `breakpoint()`: nobody watches the end of this call
            self.host.aborted()

    def set_continue(self) -> None:
        self._set_stopinfo(self.botframe, None, -1)
        if not self._commands_run:  # else pdb still says where that was
            self._go_on()

    def _go_on(self) -> None:
        if self.breaks:  # line breakpoints made at the prompt: the turn is given back, tracing goes on
            self._broker.leave(self.stop)
        else:
            self.finish()
        if self.stop.aborted:  # by a Ctrl-C after the answer, before the turn was given back
            raise Abort("interrupted at a pyfunc_debug stop")

    def set_quit(self) -> None:
        self._aborting = True

    # -- bdb: only the user's files, and nothing escapes --------------------------------------------------------------

    def trace_dispatch(self, frame: FrameType, event: str, arg: Any) -> Any:
        other = self.host.chained
        if other is not None:
            other.tell(frame, event, arg)
        try:
            return self._dispatch(frame, event, arg) or (other.follow if other is not None else None)
        except Abort as abort:
            if other is not None:
                other.unwind(frame, event, self._bottom)
            raise abort.with_traceback(None) from None  # our frames are not the program's

    def _dispatch(self, frame: FrameType, event: str, arg: Any) -> Any:
        if self.ended:
            return self.host.look(frame, event, arg) if self.resume else None
        prompts = len(self.stop.spans)
        self._event = event
        if event == "return":
            self.host.generated.note_left(frame)
        if event == "call" and self._yielded:  # NumPy, which TensorFlow converts the element with
            local = None
        else:
            local = self._guard(lambda: super(Tracer, self).trace_dispatch(frame, event, arg))
        self._yielded = self._yielded or (event == "return" and frame is self.host.frame and is_generator(frame))
        if self.resume and event == "call" and local is None:  # not stepped into: another breakpoint may be in it
            local = self.host.entered(frame)
        elif self.resume and len(self.stop.spans) != prompts:
            self.host.passed(frame, event, arg, self.stop.breakpoint if not prompts else None)
        elif self.resume and not self.ended:
            looked = self.host.look(frame, event, arg)
            if self.ended:  # another breakpoint took over
                return looked
        if event == "return" and frame is self._outermost:  # nobody else sees this call end after `breakpoint()`
            self.tell_step()
            self.finish()
            self.host.ended(self.stop)
        if self.ended:
            return self.host.local if self.resume else None
        return local

    def _guard(self, work: Callable[[], Any]) -> Any:
        """Nothing but Abort gets out, and nothing keeps the turn."""
        try:
            return work()
        except Abort:
            self._abort()
            raise
        except (KeyboardInterrupt, bdb.BdbQuit):
            self._abort()
            raise Abort("interrupted at a pyfunc_debug stop") from None
        except BaseException as error:
            self.finish()
            self.host.trouble("a debugger's command", error)
            return None
        finally:
            if self.ended:
                self.host.ended(self.stop)

    def _below(self, frame: FrameType) -> FrameType | None:
        """The first frame under the body's, else under the user's: nothing from there on is stepped into."""
        one: FrameType | None = frame
        while one is not None:
            if one is self.host.frame:
                return one.f_back
            one = one.f_back
        one = frame
        while one is not None and is_user(one.f_code.co_filename):
            one = one.f_back
        return one

    def stop_here(self, frame: FrameType) -> bool:
        if not self._shown(frame):
            return False
        if self.host.stand_in is not None and self._is_foreign(frame):
            return False
        base = self.host.generated.base(frame)
        if base is None:
            return bool(super().stop_here(frame))
        line = self.host.generated.at_statement(frame)
        if self._event == "line" and line is None:
            return False  # AutoGraph's own
        if base is self.stopframe:
            return bool(self.stoplineno != -1 and (line or 0) >= self.stoplineno)
        return bool(self.stopframe is None)

    def _is_foreign(self, frame: FrameType) -> bool:
        """Whether TensorFlow, and not code that is stepped through, called this function of an installed package."""
        code, forward, caller = frame.f_code, self.host.forward, frame.f_back
        if not is_installed(code.co_filename) or (caller is not None and caller.f_trace is not None):
            return False
        return forward is None or code.co_filename != forward.body.file

    def break_here(self, frame: FrameType) -> bool:
        if not self.breaks:
            return False
        seen = self.host.generated.seen(frame, frame.f_lineno)
        if seen is not frame and self.host.generated.at_statement(frame) is None:
            return False
        return bool(super().break_here(seen))

    def break_anywhere(self, frame: FrameType) -> bool:
        return bool(self.breaks) and bool(super().break_anywhere(self.host.generated.seen(frame, frame.f_lineno)))

    def dispatch_line(self, frame: FrameType) -> Any:
        self.host.generated.note(frame)
        return super().dispatch_line(frame)

    def dispatch_call(self, frame: FrameType, arg: Any) -> Any:
        base = self.host.generated.base(frame)
        if base is None or base is frame:
            return super().dispatch_call(frame, arg)
        return self.trace_dispatch if base.f_trace is not None else None  # a branch or a loop of it

    def dispatch_return(self, frame: FrameType, arg: Any) -> Any:
        base = self.host.generated.base(frame)
        return super().dispatch_return(frame, arg) if base is None or base is frame else self.trace_dispatch

    def dispatch_exception(self, frame: FrameType, arg: Any) -> Any:
        base = self.host.generated.base(frame)
        if base is not None and self._raised == (id(arg[1]), base):  # was said in a branch of it
            return self.trace_dispatch
        self._raised = id(arg[1]), base
        return super().dispatch_exception(frame, arg)

    def _set_stopinfo(self, stopframe: Any, returnframe: Any, *args: Any, **named: Any) -> None:
        super()._set_stopinfo(_real(stopframe), _real(returnframe), *args, **named)

    def _shown(self, frame: FrameType | None) -> bool:
        if frame is None or frame.f_globals.get("__name__", "").startswith("namedtuple_"):  # its file is <string>
            return False
        return is_user(frame.f_code.co_filename) or frame is self.host.stand_in

    def _set_caller_tracefunc(self, current_frame: FrameType) -> None:
        if self._shown(current_frame.f_back):  # else bdb would trace TensorFlow's frame
            parent = getattr(super(), "_set_caller_tracefunc", None)
            if parent is not None:
                parent(current_frame)

    def get_stack(self, f: FrameType | None, t: TracebackType | None) -> tuple[list[tuple[FrameType, int]], int]:
        stack, index = super().get_stack(f, t)
        current = stack[index] if stack else None
        callers = _callers(stack[0][0]) if stack else []
        self.callers = self.host.generated.stack(callers)
        shown = [*callers, *user_stack(stack)]
        if self.host.stand_in is not None and f is self.host.stand_in:
            shown.append((f, f.f_lineno))
        if not shown:
            return stack, index
        at = len(shown) if current is None or current not in shown else shown.index(current) + 1
        generated = self.host.generated
        return [*generated.stack(shown[:at]), *generated.stack(shown[at:])], len(generated.stack(shown[:at])) - 1

    def user_return(self, frame: FrameType, return_value: Any) -> None:
        self.stop.outputs = return_value
        locals_ = frame.f_locals
        super().user_return(frame, return_value)
        replaced = locals_.get("__return__", return_value)
        if replaced is not return_value and self.host.is_body(frame):
            self.result = (replaced,)
            self.changed.append("the return value")

    # -- prompting ----------------------------------------------------------------------------------------------------

    def interaction(self, frame: FrameType | None, tb_or_exc: Any) -> None:
        at = frame
        if frame is None and isinstance(tb_or_exc, TracebackType):
            *_, (at, _) = traceback.walk_tb(tb_or_exc)
        if at is not None:
            self.stop.locals = functools.partial(self.host.generated.names, at)
        try:
            self._hold(lambda: super(Tracer, self).interaction(frame, tb_or_exc), at)
        finally:
            self.stop.locals = dict

    def bp_commands(self, frame: FrameType) -> Any:
        """Runs the commands of a line breakpoint that was made at a prompt: they need somebody who hears them."""
        if getattr(self, "currentbp", 0) not in self.commands:
            return True
        self._commands_run = True
        try:
            self._hold(lambda: super(Tracer, self).bp_commands(frame), frame)
        finally:
            self._commands_run = False
        if self.stopframe is self.botframe and self.stoplineno == -1:
            self._go_on()
        return None

    def _hold(self, prompt: Callable[[], Any], frame: FrameType | None) -> None:
        span: list[int | None] = [time.monotonic_ns(), None, None]
        self.stop.spans.append(span)
        try:
            self._interact(prompt, span, frame)
        finally:
            span[2] = time.monotonic_ns()

    def _interact(self, prompt: Callable[[], Any], span: list[int | None], frame: FrameType | None) -> None:
        first = len(self.stop.spans) == 1
        queues = self._broker.active not in (None, self.stop)
        if first and queues:
            self.host.held(self.stop)
        refused = self._broker.acquire(self.stop)
        if not refused:
            span[1] = time.monotonic_ns() if queues else span[0]  # asking who answers is part of the stop
            if first:
                self.host.held(self.stop)
        self.host.count(self.stop, refused or STOPPED, first=not self._counted)
        self._counted = True
        if refused:
            self.finish()
            return
        if not self.stop.seq:
            self.say(f"{self.headline()}\n")
            if self.header is not None:
                self.say(f"{self.header}\n")
            unsure = self.host.generated.unsure(frame) if frame is not None and self._bottom is not None else ""
            if unsure:
                self.say(f"{folded(f'*** {unsure}', getattr(self.stop.front, 'columns', None))}\n")
            if getattr(self.stop.front, "reads_pdbrc", True):
                self.rcLines = _pdbrc()
            if self.stop.condition_error:
                change = "" if self.stop.condition_error.startswith(LOG) else ", change it (`edit EXPRESSION`)"
                choice = f"keep it (`keep`){change}, or switch the breakpoint off (`disable`)"
                self.say(f"{folded(choice, getattr(self.stop.front, 'columns', None))}\n")
        prompt()
        if self._aborting:
            self._broker.quit(self.stop)
            raise Abort("quit at a pyfunc_debug stop")

    def headline(self) -> str:
        """What stopped, where, and who waits."""
        stop = self.stop
        waiting = len(self._broker.waiting())
        parts = [f"{stop.why}: {stop.title} on {stop.thread}"]
        if waiting:
            parts.append(f"{waiting} more waiting (others)")
        starving = self._broker.starving()
        columns = getattr(stop.front, "columns", None)
        lines = [f"--- {'; '.join(parts)}", *([f"*** {starving}"] if starving else [])]
        return "\n".join(folded(line, columns) for line in lines)

    def read(self) -> str:
        """The next line, for pdb."""
        stop = self.stop
        front = stop.front
        prompt = self.stdout.take_prompt()
        if front is None:
            return ""
        stop.seq += 1
        self._broker.prompts(stop, True)
        self._broker.tell_listeners()
        try:
            line = front.ask(stop, prompt)
        except KeyboardInterrupt:
            self._broker.interrupt()
            raise Abort("interrupted at a pyfunc_debug stop") from None
        finally:
            self._broker.prompts(stop, False)
        if stop.aborted:
            raise Abort("interrupted at a pyfunc_debug stop")
        if line is None or stop.released:
            return ""
        self._console.append(prompt + line)
        return line + "\n"

    def say(self, text: str) -> None:
        """Text for whoever answers."""
        self._console.append(text.rstrip("\n"))
        del self._console[:-_CONSOLE_LINES]
        if self.stop.front is not None:
            self.stop.front.tell(self.stop, text)

    def _describe(self) -> dict[str, Any]:
        if not self.stack:
            return {"console": list(self._console)}
        return {
            **snapshot(self.stack, self.curindex, self.host.user_line, getattr(self.stop.front, "picture", None)),
            "watches": [self._watched(text) for text in getattr(self.stop.front, "watches", ())],
            "console": list(self._console),
            "inputs": [
                {"name": name, "text": one_line(value)} for name, value in zip(self.stop.names, self.stop.inputs)
            ],
            "waiting": [stop.brief() for stop in self._broker.waiting()],
            "starving": self._broker.starving(),
        }

    def _watched(self, text: str) -> dict[str, Any]:
        """What an expression that somebody watches is worth in the selected frame."""
        try:
            with self.evaluating():
                value = eval(text, self.curframe.f_globals, self.curframe_locals)  # the person's own expression
        except Abort:
            raise
        except BaseException as error:
            problem = "".join(traceback.format_exception_only(type(error), error)).strip()
            return {"name": text, "type": "", "text": self._with_dropped(problem, error), "failed": True}
        return variable(text, value, getattr(self.stop.front, "picture", None))

    def _completed(self, line: str, word: str) -> list[str]:
        """What Tab offers: commands for the first word, what a command says of the others, names and attributes."""
        begin = len(line) - len(word)
        command = "" if not line[:begin].strip() else self.parseline(line)[0]
        asked = getattr(self, f"complete_{command}", None) if command else None
        found: list[str] = list(self.completenames(word, line, begin, len(line))) if command == "" else []
        try:
            with self.evaluating():
                found += (asked or self._complete_expression)(word, line, begin, len(line)) or []
        except Exception:  # an attribute may do anything: there is nothing to offer
            return found
        last = word.rpartition(".")[2]
        public = {one for one in found if last.startswith("_") or not one.rpartition(".")[2].startswith("_")}
        return sorted(public or set(found))

    def preloop(self) -> None:
        """Shows `display`ed expressions; pdb's own asks arrays for their truth and lets the error out."""
        self._show_display()

    def _show_display(self) -> None:
        for expression, old in list((self.displaying.get(self.curframe) or {}).items()):
            new = self._getval_except(expression)
            if new is not old and _text(new) != _text(old):
                self.displaying[self.curframe][expression] = new
                self.message(f"display {expression}: {_text(new)}  [old: {_text(old)}]")

    def onecmd(self, line: str) -> Any:
        try:
            return super().onecmd(line)
        except (Abort, bdb.BdbQuit):
            raise
        except BaseException as error:  # a command of pdb's that failed must not end the body
            if self.stop.aborted:
                raise Abort("interrupted at a pyfunc_debug stop") from None
            self.error("".join(traceback.format_exception_only(type(error), error)).strip())
            return None

    @contextlib.contextmanager
    def evaluating(self) -> Iterator[None]:
        """Calls made by an evaluation pass breakpoints, and tf.functions run eagerly on this thread."""
        with self._broker.evaluation(), self.host.evaluation():
            yield

    def _getval(self, arg: str) -> Any:
        with self.evaluating():
            return super()._getval(arg)

    def _getval_except(self, arg: str, *frame: Any, **named: Any) -> Any:
        with self.evaluating():
            return super()._getval_except(arg, *frame, **named)

    def default(self, line: str) -> None:
        """Evaluates an expression or runs a statement in the selected frame, without touching sys.stdout."""
        if line[:1] == "!":
            line = line[1:].strip()
        line = self._whole(line)
        frame, names = self.curframe, self.curframe_locals
        try:
            before = dict(names)
            for statement in syntax.parse(line + "\n", "<prompt>").body:
                expression = isinstance(statement, ast.Expr)  # `x; y` shows both
                if isinstance(statement, ast.Expr):
                    code = compile(ast.Expression(statement.value), "<prompt>", "eval")
                else:
                    code = compile(ast.Module([statement], []), "<prompt>", "exec")
                # What has a frame of its own sees global names only; else these are the module's, for `globals()`.
                inner = [one.co_name for one in code.co_consts if isinstance(one, CodeType)]
                merged = inner and (expression or all(name in _COMPREHENSIONS for name in inner))
                modules = {"print": self._print, **frame.f_globals, **names} if merged else frame.f_globals
                here = _Printing(names, modules, self._print) if "print" in code.co_names else names
                with self.evaluating():  # typed by the user at the prompt
                    if expression:
                        value = eval(code, modules, here)
                    else:
                        exec(code, modules, here)
                self._keep(frame, before, names)
                if expression:
                    self.displayhook(value)
        except Abort:
            raise
        except BaseException as error:  # also exit() and sys.exit(): at a prompt they end nothing
            if self.stop.aborted:
                raise Abort("interrupted at a pyfunc_debug stop") from None
            self.error("".join(traceback.format_exception_only(type(error), error)).strip())

    def error(self, msg: str) -> None:
        super().error(self._with_dropped(msg, sys.exc_info()[1]))

    def _with_dropped(self, text: str, error: BaseException | None) -> str:
        """The text of an error; with the reason, where it says that a name is not known which AutoGraph dropped."""
        name = error.name if isinstance(error, NameError) else None
        if name is None or f"name {name!r} is not defined" not in text or not self.stack:
            return text
        why = self.host.generated.dropped(self.curframe, name)
        return f"{text} ({why})" if why else text

    def _whole(self, line: str) -> str:
        """The statement that a line begins (`for x in xs:`), with the lines that are typed after it."""
        whole = line + "\n"
        while True:
            try:
                if codeop.compile_command(whole, "<prompt>", "single") is not None:
                    return whole
            except (SyntaxError, ValueError, OverflowError):  # is said when it is compiled
                return line if whole == line + "\n" else whole
            self.stdout.write("...   ")
            more = self.read()
            if not more:
                return whole
            whole += ("" if whole == line + "\n" else "\n") + more.rstrip("\n")

    def _print(self, *values: Any, file: Any = None, **options: Any) -> None:
        """`print` as it is typed at the prompt: its text lands there. The program's own prints stay where they are."""
        print(*values, file=self.stdout if file is None else file, **options)

    def _keep(self, frame: FrameType, before: dict[str, Any], names: Any) -> None:
        """Makes assignments stick in the frame, and notes which there were."""
        changed = {name: value for name, value in names.items() if name not in before or before[name] is not value}
        if isinstance(frame, UserFrame):
            frame.keep(before)
        elif sys.version_info < (3, 13):
            gone = before.keys() - names.keys()
            store(frame, changed)  # Python 3.11 takes what is in f_locals once for each time that it was asked for it
            for name in gone:
                names.pop(name, None)
        self.changed += [name for name in changed if name != "__return__"]


def _pdbrc() -> list[str]:
    """Lines for the first prompt of a stop, as pdb reads them: of the home folder, then of this one."""
    lines: list[str] = []
    for path in (os.path.expanduser("~/.pdbrc"), ".pdbrc"):
        with contextlib.suppress(OSError, UnicodeDecodeError), open(path, encoding="utf-8") as file:
            lines += file
    return lines


def _real(frame: Any) -> Any:
    return frame.real if isinstance(frame, UserFrame) else frame


def _callers(frame: FrameType) -> list[tuple[FrameType, int]]:
    """The user's frames around a call that runs on their own thread, an eager one, outermost first."""
    found = []
    one = frame.f_back
    while one is not None and one.f_globals.get("__name__") != "pyfunc_debug.cli.program":
        found.append((one, one.f_lineno))
        one = one.f_back
    return user_stack(found[::-1])


def _text(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:
        return f"*** repr raised {type(error).__name__} ***"
