"""The magics: `%%pyfunc_trace`, `%pyfunc_trace`, `%pyfunc_show`, `%pyfunc_doctor`, `%pyfunc_report`."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import no_var_expand

from jupyter_ext import cells, options, stops
from jupyter_ext.display import findings_unasked, has_widgets, lists_of_ours, static_forms
from pyfunc_debug.errors import PyfuncDebugError
from pyfunc_debug.program import syntax
from pyfunc_debug.records import Finding
from pyfunc_debug.stops.look import look_text
from pyfunc_debug.switchboard import board

_ATTRIBUTE = "_pyfunc_debug"
_MOST_NODES = 10


class _Active:
    """A recording that a magic started."""

    def __init__(self, recording: Any, scope: str, depth: int) -> None:
        self.recording = recording
        self.scope = scope  # "cell", "statement" or "session"
        self.depth = depth
        self.view: Any = None


def _people(function: Any) -> Callable[..., Any]:
    """Errors of ours become UsageErrors: one line instead of a traceback."""

    @functools.wraps(function)
    def wrapped(*args: Any) -> Any:
        __tracebackhide__ = True
        try:
            return function(*args)
        except PyfuncDebugError as error:
            raise UsageError(str(error)) from None

    return wrapped


class PyfuncMagics:
    """Magics, and what they share: the recording that is on, the last one, and the panels."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.active: _Active | None = None
        self.last: Any = None
        self._depth = 0
        self._channel: Any = None
        self._control: Any = None
        self.stops: stops.Stops | None = None

    # -- magics -------------------------------------------------------------------------------------------------------

    def trace_cell(self, line: str, cell: str) -> Any:
        """Record every call of every py_function while this cell runs, and show the panel.

            %%pyfunc_trace [-o FILE] [--values POLICY] [--nodes GLOB] [--gradients MODE]
                           [--lines | --graph-lines] [--no-gil] [--budget 256MB] [--no-panel]

        -o FILE            keep the recording in FILE (.pfrec); a recording of that name is replaced
        --values POLICY    what to keep of inputs and outputs: none, shape, summary (default), sample, full;
                           for some nodes only: --values "augment*=full" (may be given several times)
        --nodes GLOB       record only nodes whose body, op or token matches
        --gradients MODE   stock (default): exactly TensorFlow's gradients; exact: correct ones for each call
        --lines            count how often each of your lines ran, at trace and in bodies
        --graph-lines      also how often the graph ran each line, by TensorFlow's profiler (for short cells)
        --no-gil           do not measure waiting for the GIL
        --budget BYTES     largest size of the recording (default 256MB)
        --no-panel         no live panel, only the ledger and the findings when the cell ends

        The cell runs as it would without the magic. The recording is the variable `_pyfunc` afterwards.
        """
        # Cells typed by people never come here (see cells.py); programs may call the magic.
        with self._recorded(line):
            result = self.shell.run_cell(cell, store_history=False)
        return result.result

    def trace_line(self, line: str) -> Any:
        """Record one statement, or the cells that follow.

            %pyfunc_trace [OPTIONS] STATEMENT      record while the statement runs, like %timeit
            %pyfunc_trace [OPTIONS] on             record the cells that follow, until off
            %pyfunc_trace off                      stop, and show what was recorded
            %pyfunc_trace status                   what is recorded now

        The options are those of %%pyfunc_trace. The recording is the variable `_pyfunc` afterwards.
        """
        if line.split(maxsplit=1)[:1] == [cells.CELL_WORD]:
            cells.show_as_typed()
            return self._begin_cell(line.split(maxsplit=1)[1] if " " in line.strip() else "")
        words, rest = options.split(line)
        if rest == "on":
            self._begin(words, "session")
            return None
        if rest in ("off", "status", ""):
            if words:
                raise UsageError(f"options go with `on` or a statement, not with `%pyfunc_trace {rest}`")
            if rest == "off":
                return self._end_session()
            print(self.status())
            return None
        __tracebackhide__ = True
        with self._recorded(" ".join(words)):
            return self._run_statement(rest)

    def _begin_cell(self, line: str) -> None:
        """First line of a recorded cell; written by the input transformer, not by people."""
        words, rest = options.split(self.shell.var_expand(line))
        if rest:
            options.parse(words)  # an option that is misspelled is named first
            raise UsageError(
                f"%%pyfunc_trace does not understand {rest!r}: what to record goes into the cell's next lines"
            )
        self._begin(words, "cell")

    def show(self, line: str) -> None:
        """Show the panel on the last recording, at a node or a call.

        %pyfunc_show             the panel
        %pyfunc_show augment*    with that node selected
        %pyfunc_show 17          with call 17 selected
        %pyfunc_show --source f  f's lines, with how often each ran and what it printed (recorded with --lines)

        While a cell runs, on a subshell: first the bodies that run now, with their stacks and locals.
        """
        running = [] if line.strip() else board.look()
        if running:
            print(look_text(running, time.monotonic_ns()))
            if self.shell.user_ns.get(stops.LAST) is None:
                return
        recording = self._last_recording()
        option, _, name = line.strip().partition(" ")
        if option == "--source":
            self._show_source(recording, name.strip())
            return
        if option.startswith("-"):
            raise UsageError(f"%pyfunc_show does not know {option}: it takes NODE, CALL, or --source NAME")
        wanted = line.strip().lstrip("#")
        selected: dict[str, Any] = {}
        if wanted.isdigit():
            selected = {"call": recording.call(int(wanted)).id}
        elif wanted:
            selected = {"node": recording.node_ids(wanted)[0]}
        text = self._text_of(recording, wanted, selected)
        if has_widgets(self.shell):
            view = self._show(recording, selected)
            if text:
                print(text)
            self._show_static(recording, view)
        else:
            print(text or recording.ledger())

    @staticmethod
    def _text_of(recording: Any, wanted: str, selected: dict[str, Any]) -> str:
        """A call, or nodes with their newest calls, as text; empty for the whole recording."""
        from pyfunc_debug.analysis.describe import call_text, node_text

        if "call" in selected:
            return call_text(recording.call(selected["call"]), recording.reader)
        if "node" not in selected:
            return ""
        wanted_nodes = set(recording.node_ids(wanted))
        nodes = [node for node in recording.nodes() if node.id in wanted_nodes]
        return "\n".join(node_text(node, recording.reader) for node in nodes[:_MOST_NODES])

    def _show_source(self, recording: Any, name: str) -> None:
        if not name:
            raise UsageError("name a function or a body: %pyfunc_show --source NAME")
        source = recording.source(name)
        if has_widgets(self.shell):
            view = self._show(recording, {"file": source.file, "line": source.lines[0].number})
            self._show_static(source, view)
        else:
            print(source)

    def doctor(self, line: str) -> None:
        """Say what deserves attention in the last recording: what, at which line, and how to fix it.

        %pyfunc_doctor [--select RULE]... [--ignore RULE]...
        """
        from pyfunc_debug.doctor.text import findings_text

        rules: dict[str, list[str]] = {"--select": [], "--ignore": []}
        words = line.replace("=", " ").split()
        if len(words) % 2 or any(option not in rules for option in words[::2]):
            raise UsageError("%pyfunc_doctor examines the last recording; it takes --select RULE and --ignore RULE")
        for option, rule in zip(words[::2], words[1::2]):
            rules[option].append(rule)
        found = self._last_recording().findings(rules["--select"] or None, rules["--ignore"] or None, front="notebook")
        print(findings_text(found) or "No findings.")

    def report(self, line: str) -> None:
        """Write the last recording as one HTML file that opens anywhere, without a kernel and without a network.

        %pyfunc_report FILE.html
        """
        from pyfunc_debug.report import html

        name = line.strip().strip("'\"")
        if not name:
            raise UsageError("name the file: %pyfunc_report FILE.html")
        recording = self._last_recording()
        findings = functools.partial(recording.findings, front="notebook")
        print(f"written: {html.write(recording.path, os.path.expanduser(name), findings)}")

    # -- recording ----------------------------------------------------------------------------------------------------

    def status(self) -> str:
        """One line about the recording that is on, or the last one."""
        if self.active is None:
            return f"not recording; the last recording is {self.last!r}" if self.last is not None else "not recording"
        progress = self.active.recording.progress()
        until = "until %pyfunc_trace off" if self.active.scope == "session" else "while this cell runs"
        calls = "1 call" if progress["calls"] == 1 else f"{progress['calls']:,} calls"
        return f"recording into {self.active.recording.path} {until}: {calls} so far"

    @contextlib.contextmanager
    def _recorded(self, line: str) -> Any:
        words, rest = options.split(self.shell.var_expand(line))
        if rest:
            raise UsageError(f"cannot understand {rest!r}")
        self._begin(words, "statement")
        try:
            yield
            if self.active is not None:
                self.active.recording.note_end(None)
        except BaseException as error:
            if self.active is not None:
                self.active.recording.note_end(error)
            raise
        finally:
            self._end()

    def _begin(self, words: list[str], scope: str) -> None:
        from pyfunc_debug.api.record import record

        if self.active is not None:
            raise UsageError(f"{self.status()}: end that first (%pyfunc_trace off)")
        arguments, wants_panel = options.parse(words)
        if self._channel is not None:
            arguments["values"] = options.with_wishes(arguments["values"], self._channel.wishes)
        try:
            # Running a cell again replaces the recording that it made before; any other file is left alone.
            recording = record(**arguments, overwrite=True)
            if arguments["path"] is not None and self._channel is not None:
                self._channel.replaced(arguments["path"])
            recording.start()
        except PyfuncDebugError as error:
            raise UsageError(str(error)) from None
        self.last = recording
        self.shell.user_ns[stops.LAST] = recording
        self.active = _Active(recording, scope, self._depth)
        if wants_panel and has_widgets(self.shell):
            self.active.view = self._show(recording, {})

    def _end(self) -> None:
        active, self.active = self.active, None
        if active is None:
            return
        with self._channel.quiet() if self._channel is not None else contextlib.nullcontext():
            active.recording.stop()
        self._show_static(active.recording, active.view, findings_unasked(active.recording))

    def _end_session(self) -> None:
        if self.active is None:
            print("not recording")
            return
        if self.active.scope != "session":
            raise UsageError("this cell's own recording ends with the cell")
        self._end()

    def _run_statement(self, statement: str) -> Any:
        import ast

        __tracebackhide__ = True
        shell = self.shell
        tree = syntax.parse(shell.transform_cell(statement))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        if tree.body:
            exec(shell.compile(tree, "<pyfunc_trace>", "exec"), shell.user_global_ns, shell.user_ns)
        if last is None:
            return None
        assert isinstance(last, ast.Expr)
        expression = ast.Expression(last.value)
        return eval(shell.compile(expression, "<pyfunc_trace>", "eval"), shell.user_global_ns, shell.user_ns)

    def cell_begins(self, info: Any) -> None:
        """IPython's `pre_run_cell`. Cells nest: `%%capture` runs its cell inside another."""
        self._depth += 1

    def cell_ended(self, result: Any) -> None:
        """IPython's `post_run_cell`: also after errors and interrupts."""
        if self.active is not None and self.active.scope == "cell" and self._depth <= self.active.depth:
            self.active.recording.note_end(result.error_in_exec or result.error_before_exec)
            self._end()
        self._depth = max(0, self._depth - 1)

    def _last_recording(self) -> Any:
        recording = self.shell.user_ns.get(stops.LAST, self.last)
        if recording is None:
            raise UsageError("nothing was recorded yet: put %%pyfunc_trace over a cell first")
        return recording

    # -- showing ------------------------------------------------------------------------------------------------------

    def _show(self, recording: Any, selected: dict[str, Any]) -> Any:
        from IPython.display import display

        from jupyter_ext.panel import Panel

        channel = self._connect()
        view = channel.expect(recording)
        widget = Panel(view.panel_id, selected)
        channel.attach(view, widget)
        display(widget)
        return view

    def _show_static(self, shown: Any, view: Any, findings: Sequence[Finding] = ()) -> None:
        """The form that stays: in the saved notebook, in exports, in a terminal; of a recording or a source."""
        from IPython.display import display

        forms = static_forms(shown, view.panel_id if view is not None else None, findings)
        if has_widgets(self.shell):
            display(forms, raw=True)
        else:
            print(forms["text/plain"])

    def _connect(self) -> Any:
        if self._channel is None:
            from jupyter_ext.channel import Channel, ControlHandler

            self._channel = Channel()
            self._control = ControlHandler(self.shell.kernel, self._channel.request)
            if self.stops is not None:
                self._channel.stops = self.stops.connect(self._channel.announcer.announce, self._home)
        return self._channel

    def _home(self) -> str | None:
        view = self.active.view if self.active is not None else None
        return view.panel_id if view is not None else None

    def close(self) -> None:
        """Stops recording and the panels' thread."""
        if self.active is not None:
            self._end()
        if self._channel is not None:
            self._control.close()
            self._channel.close()


# -- loading ----------------------------------------------------------------------------------------------------------


class _Extension:
    """All that `%load_ext` changes in a shell, so that `%unload_ext` can put it back."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.magics = PyfuncMagics(shell)
        table = {
            ("cell", "pyfunc_trace"): self.magics.trace_cell,
            ("line", "pyfunc_trace"): self.magics.trace_line,
            ("line", "pyfunc_show"): self.magics.show,
            ("line", "pyfunc_doctor"): self.magics.doctor,
            ("line", "pyfunc_report"): self.magics.report,
        }
        self.kept = {(kind, name): shell.magics_manager.magics[kind].get(name) for kind, name in table}
        for (kind, name), function in table.items():
            magic = _people(function)
            if name == "pyfunc_trace":
                no_var_expand(magic)  # braces and dollars of a statement are Python's
            shell.register_magic_function(magic, kind, name)
        self.transformer = functools.partial(cells.transform, statement_of=options.split)
        # So IPython leaves it out when it asks whether a cell is complete: a `%%` cell goes on until a blank line.
        vars(self.transformer)["has_side_effects"] = True
        shell.input_transformers_cleanup.append(self.transformer)
        shell.events.register("pre_run_cell", self.magics.cell_begins)
        shell.events.register("post_run_cell", self.magics.cell_ended)
        self.stops = self.magics.stops = stops.install(shell)
        self.lists = lists_of_ours(shell)
        self.commands = ("%pyfunc_show", "%pyfunc_break", "%pyfunc_trace", "%%pyfunc_trace")
        for command in self.commands:
            shell.set_hook("complete_command", self.complete, str_key=command)

    def complete(self, shell: Any, event: Any) -> list[str]:
        """Node names where a node is wanted, options and words elsewhere."""
        words = event.line.split()
        before = words[-1] if event.line.endswith(" ") else words[-2] if len(words) > 1 else ""
        if before == "--source":
            return [*self._nodes(), *self._functions()]
        if "pyfunc_show" in words[0]:
            return [*self._nodes(), "--source"]
        if "pyfunc_break" in words[0]:
            if before == "--when":
                return ["before", "after", "error", "gradient"]
            return [*self._nodes(), "list", "clear", "--when", "--if", "--hits", "--once"]
        if before == "--nodes":
            return self._nodes()
        if before == "--values":
            return ["none", "shape", "summary", "sample", "full"]
        if before == "--gradients":
            return ["stock", "exact"]
        return [*options.OPTIONS, *(("on", "off", "status") if not words[0].startswith("%%") else ())]

    def _nodes(self) -> list[str]:
        recording = self.shell.user_ns.get(stops.LAST, self.magics.last)
        try:
            return sorted({node.body for node in recording.nodes() if node.origin == "user"}) if recording else []
        except PyfuncDebugError:
            return []

    def _functions(self) -> list[str]:
        recording = self.shell.user_ns.get(stops.LAST, self.magics.last)
        try:
            return sorted({one.name for one in recording.functions() if one.origin == "user"}) if recording else []
        except PyfuncDebugError:
            return []

    def close(self) -> None:
        shell = self.shell
        self.magics.close()
        self.stops.close()
        self.lists()
        with contextlib.suppress(ValueError):
            shell.input_transformers_cleanup.remove(self.transformer)
        for event, listener in (("pre_run_cell", self.magics.cell_begins), ("post_run_cell", self.magics.cell_ended)):
            with contextlib.suppress(ValueError):
                shell.events.unregister(event, listener)
        for (kind, name), before in self.kept.items():
            if before is None:
                shell.magics_manager.magics[kind].pop(name, None)
            else:
                shell.magics_manager.magics[kind][name] = before
            vars(shell.magics_manager.user_magics).pop(name, None)
        table = getattr(shell, "strdispatchers", {}).get("complete_command")
        for command in self.commands:
            if table is not None:
                table.strs.pop(command, None)


def load(shell: Any) -> None:
    """Adds the magics to a shell; does nothing the second time."""
    if getattr(shell, _ATTRIBUTE, None) is None:
        setattr(shell, _ATTRIBUTE, _Extension(shell))


def unload(shell: Any) -> None:
    """Takes everything away again."""
    extension = getattr(shell, _ATTRIBUTE, None)
    if extension is not None:
        extension.close()
        setattr(shell, _ATTRIBUTE, None)
