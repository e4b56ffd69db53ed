"""`Recording`: what users hold in their hands, live or from a file. Asks the reader, the analysis and the doctor."""

from __future__ import annotations

import contextlib
import difflib
import html
import os
import sqlite3
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyfunc_debug.analysis.contention import Contention, make_contention
from pyfunc_debug.analysis.differences import CallDifference, Differences, compare_calls, difference
from pyfunc_debug.analysis.equality import Tolerance
from pyfunc_debug.analysis.filtering import Filter
from pyfunc_debug.analysis.flat import flat_query
from pyfunc_debug.analysis.inputs import Loop, make_loops
from pyfunc_debug.analysis.ledger import Ledger, make_ledger
from pyfunc_debug.analysis.retraces import Explanation, explain_function
from pyfunc_debug.analysis.source import Source, make_source
from pyfunc_debug.analysis.stages import StageAnswer, Verified, make_stages, verify
from pyfunc_debug.api.call_list import Calls
from pyfunc_debug.api.replay import as_recorded, forward_only, function_here, given_runner, whole_inputs
from pyfunc_debug.errors import BadOptionError, BadRecordingError, NotInstalledError, NotKeptError, PyfuncDebugWarning
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.program.random_state import RandomState
from pyfunc_debug.records import Call, Finding, Findings, Front, Function, GraphTrace, Node, Run
from pyfunc_debug.values.policy import matches

if TYPE_CHECKING:
    import pandas as pd

    from pyfunc_debug.report.pytest_file import TestFile

_BESIDE = "SELECT 1 FROM call WHERE start_ns < ? AND (end_ns IS NULL OR end_ns > ?) AND thread != ? LIMIT 1"
"""Whether a call ran on another thread between the end and the start of one."""


class Functions(list[Function]):
    """Traced functions with their graph traces and runs."""

    def __init__(self, functions: list[Function], traces: list[GraphTrace], runs: list[Run]) -> None:
        super().__init__(functions)
        self._traces = traces
        self._runs = runs

    def traces(self, function: Function | int) -> list[GraphTrace]:
        """Graph traces of a function, oldest first."""
        number = function if isinstance(function, int) else function.id
        return [trace for trace in self._traces if trace.function == number]

    def runs(self, function: Function | int) -> list[Run]:
        """Runs of a function that Python started, in order."""
        number = function if isinstance(function, int) else function.id
        return [run for run in self._runs if run.function == number]


class Recording:
    """A recording, read from its file; it may still be growing.

    Args:
      path: A .pfrec file.

    Raises:
      BadRecordingError: the file is missing, damaged, too new, or something else. Each method may raise it
        when the file turns out to be damaged, or was closed.

    Example:
      recording = pfd.open("train.pfrec")
      print(recording.ledger())
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._reader_ = Reader(path)

    @property
    def _reader(self) -> Reader:
        return self._reader_

    @property
    def reader(self) -> Reader:
        """The reader underneath: for the panel, the report and the shell."""
        return self._reader

    @property
    def path(self) -> str:
        """The file."""
        return self._reader.path

    @property
    def meta(self) -> dict[str, Any]:
        """About the recording: versions, process, options, budget, what was dropped, and its own cost.

        `dropped` has numbers of `calls`, `values` and `runs`, `without_values` (calls that are stored without), their
        `reasons` (`failed`: of calls that failed, where one was dropped), and when it ended `counted`: the calls that
        began, which are those stored and those dropped.

        Example:
          print(recording.meta["versions"], recording.meta["ended"])
        """
        return self._reader.meta

    def ledger(self, include_internal: bool = False) -> Ledger:
        """Trace versus run, one row a tf.function and a node.

        Args:
          include_internal: Whether to show TensorFlow's and Keras' own too.

        Returns:
          The ledger: prints as a table, shows as HTML in a notebook; `rows` are its functions, each with its nodes.

        Example:
          for row in recording.ledger().rows:
              print(row.function.name, row.traced, [node.calls for node in row.nodes])
        """
        return make_ledger(self._reader, include_internal)

    def nodes(self) -> list[Node]:
        """All nodes, also TensorFlow's own (`origin`).

        Returns:
          In the order in which they were first seen.

        Example:
          for node in recording.nodes():
              print(node.id, node.body, node.name)
        """
        return self._reader.nodes()

    def functions(self) -> Functions:
        """Traced functions.

        Returns:
          A list that knows their graph traces and runs as well: `traces(function)` and `runs(function)`.

        Example:
          functions = recording.functions()
          print([functions.runs(one) for one in functions])
        """
        return Functions(self._reader.functions(), self._reader.traces(), self._reader.runs())

    def explain(self, function: str | int | Function) -> Explanation:
        """Graph traces of a function with the reason for each, their runs and their nodes.

        Args:
          function: A name or glob, a number, or one of `functions()`.

        Returns:
          Something that prints as text and shows as HTML in a notebook.

        Raises:
          BadOptionError: no such function; the message names the nearest.

        Example:
          print(recording.explain("train_step"))
        """
        return explain_function(self._reader, self.function_id(function))

    def source(self, name: str) -> Source:
        """A function's or body's lines with how often each ran at trace and in bodies, and what it printed.

        Args:
          name: Its name or a glob. Counts are there when recorded with `lines=True`.

        Returns:
          Something that prints as text and shows as HTML in a notebook.

        Raises:
          BadOptionError: nothing of that name.
          NotKeptError: its source is not in the recording.

        Example:
          with pfd.record(lines=True) as recording:
              train_step(batch)
          print(recording.source("augment"))
        """
        return make_source(self._reader, name)

    def function_id(self, function: str | int | Function) -> int:
        """The number of the function that a name, a number or a Function means; of several, the most traced.

        Args:
          function: A name or glob, a number, or one of `functions()`.

        Returns:
          Its `id`.

        Raises:
          BadOptionError: no such function; the message names the nearest.

        Example:
          number = recording.function_id("train_step")
        """
        if isinstance(function, Function):
            return function.id
        functions = self._reader.functions()
        if isinstance(function, int):
            found = [one.id for one in functions if one.id == function]
        else:
            found = [one.id for one in functions if matches(function, one.name, one.name.rpartition(".")[2])]
        if not found:
            names = sorted({one.name for one in functions if one.origin == "user"})
            near = difflib.get_close_matches(str(function), names, 3, 0.4) or names[:5]
            hint = f". There are: {', '.join(near)}" if near else ": the recording has no functions"
            raise BadOptionError(f"no function matches {function!r}{hint}")
        traces = dict(self._reader.rows("SELECT function, count(*) FROM trace GROUP BY function"))
        return max(found, key=lambda number: (traces.get(number, 0), -number))

    def call(self, number: int) -> Call:
        """One call.

        Args:
          number: Its `id`, from 1.

        Returns:
          The call, with its values as far as they were kept.

        Raises:
          NotKeptError: no such call in the recording.

        Example:
          call = recording.call(17)
          print(call.inputs[0].shape, call.duration_ns)
        """
        call = self._reader.call(number)
        if call is None:
            count = self._reader.counts()["call"]
            raise NotKeptError(f"there is no call {number} in this recording of {count:,} calls")
        return self._alive(call)

    def calls(
        self, node: str | int | Node | None = None, status: str | None = None, condition: str | None = None
    ) -> Calls:
        """Calls in the order in which they began, read as you go.

        Args:
          node: A glob over body, op name or token; a node or its number.
          status: "ok", "error" or "running".
          condition: As of a breakpoint, held against what was kept: `nan(x)`, `x.max() > 1`, `changed(x)` (another than
            in the node's call before), `shape(outputs) == (2, 3)`. Calls for which that cannot be said are left out,
            and a warning at the end counts them.

        Returns:
          An iterator: one pass, and nothing is read ahead. Shown in a notebook or at a prompt, it lists the first ten.

        Raises:
          BadOptionError: no node matches, no such status, or no such condition; the message names the nearest.
          NotKeptError: while iterating: what the condition needs was kept of no call.

        Example:
          for call in recording.calls(node="augment*", condition="nan(outputs)"):
              print(call.id, call.outputs[0])
        """
        if status is not None and status not in ("ok", "error", "running"):
            raise BadOptionError(f"status={status!r} is not one of ok, error, running")
        ids = None if node is None else self.node_ids(node)
        judge = None if condition is None else Filter(self._reader, condition)

        def read() -> Iterator[Call]:
            calls = self._reader.calls(ids, status)
            return map(self._alive, calls if judge is None else self._fulfilling(calls, judge))

        return Calls(read, condition)

    def _alive(self, call: Call) -> Call:
        """A call whose methods work."""
        return replace(call, _to_pytest=self._to_pytest, _replay=self.replay)

    @staticmethod
    def _fulfilling(calls: Iterator[Call], judge: Filter) -> Iterator[Call]:
        yield from judge.among(calls)
        if judge.undecided:
            warnings.warn(judge.remark(), PyfuncDebugWarning, stacklevel=3)

    def replay(
        self, number: int, through: Callable[..., Any] | None = None, inputs: Mapping[str, Any] | None = None,
        function: Callable[..., Any] | None = None, random_state: bool = False,
    ) -> list[Any]:  # fmt: skip
        """Runs the body of a recorded call again on its recorded inputs; see `Call.replay`.

        Args:
          number: A forward call.
          through: Is given the body and its arguments, to call it.
          inputs: Other values for some inputs, by name.
          function: Runs in the place of the body.
          random_state: Whether the global random generators begin as they did.

        Returns:
          What it returned, as NumPy arrays.

        Raises:
          BadOptionError: `inputs` names something else than an input.
          NotKeptError: it cannot run again; the message says why.

        Example:
          pfd.open("train.pfrec").replay(1, inputs={"x": 0.5})
        """
        call = self.call(number)
        forward_only(call)
        arrays = whole_inputs(call, inputs)
        if len(arrays) < len(self._node_of(call).paths):
            raise NotKeptError(f'no input of call #{call.id} was recorded: record with values="full"')
        run = self._body(call, through) if function is None else given_runner(function, self._node_of(call), through)
        with as_recorded(call, self._reader) if random_state else contextlib.nullcontext():
            return run(*arrays)

    def _node_of(self, call: Call) -> Node:
        return next(node for node in self.nodes() if node.id == call.node)

    def _body(self, call: Call, through: Callable[..., Any] | None) -> Callable[..., list[Any]]:
        """What runs the body of a call again."""
        node = self._node_of(call)
        texts = dict(self._reader.rows("SELECT file, text FROM source WHERE file = ?", (node.file,)))
        return given_runner(function_here(call, node, texts.get(node.file)), node, through)

    def as_test(self, call: Call, stem: str | None = None, *, rtol: float = 1e-5, atol: float = 1e-8) -> TestFile:
        """A call as the text of a pytest file; see `Call.to_pytest`.

        Args:
          call: A call of this recording.
          stem: Name of the file, without `.py`.
          rtol: Relative tolerance of its numbers.
          atol: Absolute tolerance.

        Returns:
          Its text, the arrays to save beside it, and what it does not hold.

        Raises:
          NotKeptError: the call cannot become a test; the message says why.

        Example:
          print(recording.as_test(recording.call(17), "test_augment").text)
        """
        from pyfunc_debug.report.pytest_file import as_test

        known, state = self._names_of_body(call), self._reader.random_state(call.id)
        kept = None if state is None else RandomState(state[1], state[2], state[0])
        unsure = self._unrepeatable(call, kept is not None)
        return as_test(call, self._reader, known=known, stem=stem, rtol=rtol, atol=atol, unsure=unsure, state=kept)

    def _unrepeatable(self, call: Call, state: bool) -> str:
        """Why its body may give something else for the same inputs, and the random state if kept: or nothing."""
        from pyfunc_debug.doctor import code
        from pyfunc_debug.doctor.facts import Facts

        facts, node = Facts(self._reader), self._node_of(call)
        function = facts.function(node)
        if function is None:
            return ""
        tree, why, advice = facts.tree(node.file), "", ""
        drawn = [one.text for one in code.global_random(function, tree) if one.name in code.SHARED]
        if drawn and not state:
            why, advice = (
                f"draws random numbers ({drawn[0]})",
                " Record with random_state=True to have them in the test.",
            )
        elif drawn and self._reader.rows(_BESIDE, (call.end_ns, call.start_ns, call.thread)):
            why = f"draws random numbers ({drawn[0]}) while other calls ran, which may have drawn in between"
        why = code.unrepeatable(function, tree) or why
        return f"The body {why}: the outcome of this call may not come again.{advice}" if why else ""

    def _to_pytest(self, call: Call, path: str | os.PathLike[str], rtol: float, atol: float) -> str:
        stem = os.path.splitext(os.path.basename(os.fspath(path)))[0]
        return self.as_test(call, stem, rtol=rtol, atol=atol).save(path)

    def _names_of_body(self, call: Call) -> dict[str, Any]:
        """What its body sees besides its parameters: only the process that records knows."""
        return {}

    def node_ids(self, node: str | int | Node) -> list[int]:
        """Numbers of the nodes that a glob, a number or a Node means.

        Args:
          node: As in `calls`.

        Returns:
          Their `id`s, never empty.

        Raises:
          BadOptionError: no node matches; the message names the nearest.

        Example:
          first, *others = recording.node_ids("augment*")
        """
        if isinstance(node, Node):
            return [node.id]
        nodes = self.nodes()
        if isinstance(node, int):
            found = [one.id for one in nodes if one.id == node]
        else:
            found = [one.id for one in nodes if matches(node, one.body, one.name, one.token)]
        if not found:
            names = sorted({one.body for one in nodes} | {one.name for one in nodes if one.name})
            near = difflib.get_close_matches(str(node).strip("*"), names, 3, 0.4) or names[:5]
            hint = f". There are: {', '.join(near)}" if near else ": the recording has no nodes"
            raise BadOptionError(f"no node matches {node!r}{hint}")
        return found

    def diff(self, other: Recording | str | os.PathLike[str], *, rtol: float = 1e-5, atol: float = 1e-8) -> Differences:
        """What differs from another recording, by node and call number: equal, close, different, missing or unknown.

        Args:
          other: The other recording, or its file.
          rtol: Relative tolerance within which numbers are close.
          atol: Absolute tolerance.

        Returns:
          Something that prints as a table, is true if anything is different or missing, and has the `first` such call.

        Raises:
          BadRecordingError: `other` is not a recording.

        Example:
          before, after = pfd.open("before.pfrec"), pfd.open("after.pfrec")
          print(before.diff(after).first)
        """
        tolerance = Tolerance(rtol, atol)
        if isinstance(other, Recording):
            return difference(self._reader, other.reader, tolerance)
        reader = Reader(other)
        try:
            return difference(self._reader, reader, tolerance)
        finally:
            reader.close()

    def diff_calls(
        self, left: int | Call, right: int | Call, *, rtol: float = 1e-5, atol: float = 1e-8
    ) -> CallDifference:
        """What differs between two calls, value by value.

        Args:
          left: A call, or its number in this recording.
          right: The same; a call of another recording is given as `Call`.
          rtol: Relative tolerance within which numbers are close.
          atol: Absolute tolerance.

        Returns:
          Something that prints as text, with one difference a value.

        Raises:
          NotKeptError: no such call.

        Example:
          print(recording.diff_calls(1, 17))
        """
        one = self.call(left) if isinstance(left, int) else left
        other = self.call(right) if isinstance(right, int) else right
        body = next((node.body for node in self.nodes() if node.id == one.node), "")
        return compare_calls(one, other, body, Tolerance(rtol, atol))

    def contention(self) -> Contention:
        """What the GIL did to each node: waits, whom they were for, and what bodies did with the GIL (docs/gil.md).

        Returns:
          Something that prints as text; `nodes`, `matrix` and `worst` are its parts, in ns.

        Example:
          for one in recording.contention().nodes:
              print(one.node.body, one.wait_ns)
        """
        return make_contention(self._reader)

    def stages(self, pool: int | None = None) -> list[StageAnswer]:
        """tf.data stages that call Python, and what num_parallel_calls can still bring them.

        Args:
          pool: Threads of the dataset's pool (`private_threadpool_size`); by default as recorded, else the cores.

        Returns:
          One answer a stage, the most waiting first; `ceilings` are for num_parallel_calls of 1, 2, 4, 8, over the
          present one, and `cures` say what would help.

        Example:
          for stage in recording.stages():
              print(stage.function, stage.cures)
        """
        return make_stages(self._reader, pool)

    def loops(self) -> list[Loop]:
        """The program's loops over datasets, and whether each waits for its input.

        Measured where Python asks the iterator (`for batch in dataset`, data/ops/iterator_ops.py); bounded where the
        graph does, as under Keras' fit.

        Returns:
          One `Loop` for each line that makes iterators: times in ns, `wait_share`, and a `sentence` for people.

        Example:
          for loop in recording.loops():
              print(loop.sentence)
        """
        return make_loops(self._reader)

    def verify_what_if(
        self, dataset_fn: Callable[[int], Iterable[Any]], n: int, node: str | int | Node | None = None,
        pool: int | None = None,
    ) -> Verified:  # fmt: skip
        """Runs a dataset as it is now and with num_parallel_calls=n: the measured next to the predicted speed-up.

        Args:
          dataset_fn: Is given num_parallel_calls and makes the dataset; all its elements are taken.
          n: The num_parallel_calls in question.
          node: Which recorded stage it is; needed when the recording has several.
          pool: As in `stages`.

        Returns:
          Both speed-ups, and the time an element took both ways, in ns.

        Raises:
          BadOptionError: no such stage in the recording, or several.

        Example:
          print(recording.verify_what_if(lambda n: source.map(load, num_parallel_calls=n), 2))
        """
        wanted = None if node is None else set(self.node_ids(node))
        found = [
            one for one in make_stages(self._reader, pool, calls=[n])
            if wanted is None or one.contention.node.id in wanted
        ]  # fmt: skip
        if len(found) != 1:
            names = ", ".join(one.contention.node.body for one in found)
            raise BadOptionError(
                f"the recording has several tf.data stages that call Python ({names}): say which with node=" if found
                else "the recording has no tf.data stage that calls Python"
            )  # fmt: skip
        setting = found[0].setting
        predicted = next(one for one in found[0].ceilings if one.calls == n)
        return verify(predicted, dataset_fn, now=setting.parallel if setting and setting.parallel > 0 else 1)

    def findings(
        self, select: Iterable[str] | None = None, ignore: Iterable[str] | None = None, *, front: Front = "python"
    ) -> Findings:
        """What the doctor says, worst first; see docs/doctor.md.

        Args:
          select: Names of rules, or globs: only these. Without it, what `[tool.pyfunc_debug]` of the project's
            pyproject.toml says, else all.
          ignore: Rules to leave out; likewise.
          front: Where it is read, "shell", "notebook" or "python": fixes say what to type there.

        Returns:
          A list of findings that reads well where it is shown; empty if nothing deserves attention.

        Raises:
          BadOptionError: no such rule (the message names the nearest), or pyproject.toml cannot be read.

        Example:
          for finding in recording.findings(ignore=["retrace"]):
              print(finding.file, finding.line, finding.message)
        """
        from pyfunc_debug.doctor import examine

        chosen, left_out = (None if rules is None else list(rules) for rules in (select, ignore))
        alive = weakref.ref(self)  # findings do not keep a temporary recording

        def thumbnails(finding: Finding) -> list[tuple[str, bytes]]:
            return [] if (recording := alive()) is None else recording.thumbnails(finding)

        return Findings(examine(self._reader, front, chosen, left_out), thumbnails)

    def thumbnails(self, finding: Finding) -> list[tuple[str, bytes]]:
        """What the first call of a finding about values was given, as small pictures.

        Args:
          finding: One of `findings()`: nan-born, inf-born, range-jump, saturated or constant-output.

        Returns:
          Captions and PNG files; nothing of values that were not kept in full, or have no rows and columns.

        Example:
          for finding in recording.findings(select=["nan-born", "inf-born"]):
              for caption, png in recording.thumbnails(finding):
                  print(finding.line, caption, f"{len(png)} bytes of PNG")
        """
        from pyfunc_debug.report import looks

        try:
            with self._reader.lent() as connection:
                return looks.thumbnails(connection, finding)
        except (BadRecordingError, BadOptionError, sqlite3.Error):
            return []

    def sql(self, query: str) -> list[dict[str, Any]]:
        """Rows of a SELECT on the recording's tables.

        Args:
          query: SQLite's SQL; `pyfunc-debug query --schema` prints the tables.

        Returns:
          One dictionary a row, by column.

        Raises:
          BadOptionError: SQLite does not accept the query, or it tries to write.

        Example:
          recording.sql("SELECT node, count(*) AS calls FROM call GROUP BY node")
        """
        columns, rows = self._reader.query(query)
        return [dict(zip(columns, row)) for row in rows]

    def to_html(self, path: str | os.PathLike[str]) -> str:
        """Writes the report: one HTML file with the panel's views, without a network; an older file is replaced.

        Args:
          path: The file to write.

        Returns:
          The absolute path of the file.

        Raises:
          CannotWriteError: it cannot be written there.

        Example:
          print(recording.to_html("report.html"))
        """
        from pyfunc_debug.report import html

        return html.write(self._reader.path, path, self.findings)

    def to_pandas(self, table: str = "calls") -> pd.DataFrame:
        """A table of the recording for pandas.

        Args:
          table: "calls", "values", "nodes", "functions", "traces", "runs", "failures", "threads" or "gil".

        Returns:
          A DataFrame with the table's columns; times in ns unless named otherwise. "calls" also has body,
          function_name, thread_name, time (UTC), ms (without time at breakpoints), wait_ms and gil_grade, failure_type
          and message, inputs and outputs in words, and how many nan and inf its outputs have.

        Raises:
          BadOptionError: no such table.
          NotInstalledError: pandas is not installed.

        Example:
          frame = recording.to_pandas("calls")
          frame.groupby("body").ms.describe()
        """
        query, types = flat_query(self._reader, table)
        try:
            import pandas as pd
        except ImportError as error:
            raise NotInstalledError("to_pandas needs pandas: pip install pandas") from error
        columns, rows = self._reader.query(query)
        frame = pd.DataFrame(rows, columns=columns)
        for name in (name for name, kind in types.items() if kind == "time"):
            frame[name] = pd.to_datetime(frame[name], unit="ns", utc=True)
        return frame

    def export(self, path: str | os.PathLike[str], format: str, *, redact: Iterable[str] = ()) -> str:
        """Writes the recording for other tools; see docs/export.md.

        Args:
          path: The file to write; for parquet the folder.
          format: "parquet" (needs pyarrow), "chrome", "perfetto" (needs perfetto), or "pfrec": a copy.
          redact: What the copy does not hold: "values", "sources", "paths", "args".

        Returns:
          The absolute path of what was written.

        Raises:
          BadOptionError: no such format.
          NotInstalledError: its package is not installed.
          CannotWriteError: it cannot be written there.

        Example:
          recording.export("train.trace.json", format="chrome")
        """
        if format == "pfrec":
            from pyfunc_debug.pfrec.redaction import redact as write_redacted

            return write_redacted(self._reader, os.fspath(path), tuple(redact))
        if redact:
            raise BadOptionError(f"redact is for format='pfrec', not {format!r}")
        from pyfunc_debug.report.exports import export

        return export([self._reader], path, format)

    def close(self) -> None:
        """Closes the file."""
        self._reader.close()

    def __repr__(self) -> str:
        counts = self._reader.counts()  # of failures: texts, to which several calls may refer
        counts["failure"] = int(self._reader.rows("SELECT count(failure) FROM call")[0][0])
        amounts = (f"{counts[key]:,} {key}{'' if counts[key] == 1 else 's'}" for key in ("node", "call", "failure"))
        return f"<recording {os.path.basename(self.path)}: {', '.join(amounts)}, {self._reader.state()}>"

    def _repr_html_(self) -> str:
        return f"<p><code>{html.escape(repr(self))}</code></p>{self.ledger()._repr_html_()}"
