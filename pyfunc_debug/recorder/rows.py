"""From facts and tickets to rows: numbers for nodes, functions and threads, and which run a call belongs to.

Lives on the writer thread, except for the counters that the hot path adds to when it has to drop something.
"""

from __future__ import annotations

import json
import linecache
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyfunc_debug.events import Body, FunctionFacts, NodeFacts, RunFacts, TraceFacts
from pyfunc_debug.pfrec.contents import encode
from pyfunc_debug.program.frames import is_user, line_text
from pyfunc_debug.program.threads import current_name
from pyfunc_debug.recorder.pairs import Pairs, gradient_names
from pyfunc_debug.recorder.ticket import NOT_MEASURED, Ticket
from pyfunc_debug.records import Line, Printed
from pyfunc_debug.values import Held, Policy, Summary, summarize

_POLICIES = tuple(Policy)
_SOURCE_LARGEST = 2 << 20
_TEXT_LARGEST = 100_000
"""Longer messages and tracebacks of exceptions are cut."""


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return str(value)
    return value


class Batch:
    """Rows waiting for one commit, by table."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[Any, ...]]] = {}
        self.blobs: list[tuple[bytes, str, str, str, bytes]] = []

    def add(self, table: str, *row: Any) -> None:
        self.rows.setdefault(table, []).append(row)

    def clean(self) -> None:
        """Makes every value one that SQLite accepts: lone surrogates are escaped, integers beyond 64 bits are text."""
        for table, rows in self.rows.items():
            self.rows[table] = [tuple(map(_clean, row)) for row in rows]


class Rows:
    """Makes rows, and keeps the numbers that tie them together.

    Attributes:
      locate_node, user_line: Set by the recorder: find an older node's graph; map a line of generated code.
      calls, values_ns: Calls seen by the writer, and how long taking hold of their values took.
      thread_names: Names of the threads by native id.
      lasting: Tokens of nodes in graphs, as opposed to eager calls.
      unsettled, unsettled_since: Older nodes whose graph was not looked up yet, and since when the first one waits.
      stored: Set by the worker: whether contents with a digest are in the file already.
      keep_values, keep_calls: Switched off by the worker when the budget is used up.
      values_room: Bytes of contents that still fit, set by the worker with each write.
      troubles: Failures of ours, counted.
    """

    def __init__(self) -> None:
        self.locate_node: Callable[[NodeFacts], NodeFacts] = lambda node: node
        self.user_line: Callable[[str, int], tuple[str, int]] = lambda file, line: (file, line)
        self.calls = 0
        self.values_ns = 0
        self.lasting: set[str] = set()
        self.stored: Callable[[bytes], bool] = lambda digest: False
        self.keep_values = True
        self.values_room = 1 << 62
        self.keep_calls = True
        self.troubles: Counter[str] = Counter()
        self.thread_names: dict[int, str] = {}
        self.dropped_values = 0
        self.dropped_runs = 0
        self._dropped_calls: dict[str, list[int]] = {}  # token -> calls, errors, ns
        self._dropping = threading.RLock()  # only taken when something is lost already; the count must be exact
        self._nodes: dict[str, tuple[int, str]] = {}  # token -> (node id, forward | gradient)
        self.bodies: dict[int, str] = {}  # node id -> name of its body
        self._paths: dict[int, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self._functions: dict[Any, int] = {}
        self._threads: dict[int, int] = {}
        self._stacks: dict[str, int] = {}
        self._sites: dict[tuple[str, int, str], int | None] = {}
        self._sources: set[str] = set()
        self._ordinals: Counter[Any] = Counter()
        self._traces: dict[int, int] = {}  # trace id -> function id
        self._pending_tokens: dict[str, list[int]] = {}  # traces whose nodes are not known yet
        self._forward_of: dict[str, str] = {}  # gradient node's token -> forward node's
        self._holders: dict[str, list[int]] = {}  # token -> graph traces whose graphs hold it
        self._named: dict[str, list[int]] = {}  # function's name -> graph traces
        self._node_count = 0
        self.unsettled: list[tuple[int, NodeFacts]] = []
        self.unsettled_since = 0.0
        self._failures = 0
        self._notices = 0
        self._pairs = Pairs()

    def body_of(self, token: str) -> str:
        """Name of the body behind a token; the token itself if it is not known."""
        known = self._nodes.get(token)
        return token if known is None else self.bodies.get(known[0], token)

    # -- what the hot path counts -------------------------------------------------------------------------------------

    def count_dropped(self, ticket: Ticket) -> None:
        """A call that could not be queued, or not be stored."""
        with self._dropping:
            counts = self._dropped_calls.setdefault(ticket.token, [0, 0, 0])
            counts[0] += 1
            counts[1] += ticket.failure is not None
            counts[2] += ticket.end_ns - ticket.start_ns

    def count_dropped_run(self) -> None:
        """A run that could not be queued, or not be stored."""
        with self._dropping:
            self.dropped_runs += 1

    def register_thread(self, native_id: int) -> None:
        """Notes the name of the current thread: it may be gone before the writer comes to it."""
        self.thread_names[native_id] = current_name()

    # -- nodes and functions ------------------------------------------------------------------------------------------

    def node(self, batch: Batch, facts: NodeFacts, older: bool = False) -> int:
        """The number of a node, writing its row when it is new."""
        known = self._nodes.get(facts.token)
        if known is not None:
            return known[0]
        if facts.gradient_of is not None:
            forward = self._nodes.get(facts.gradient_of)
            number = forward[0] if forward is not None else self._new_node(batch, facts)
            self._nodes[facts.token] = (number, "gradient")
            self._forward_of[facts.token] = facts.gradient_of
            if facts.site is None:
                self.lasting.add(facts.token)
            return number
        number = self._new_node(batch, facts)
        if older:
            if not self.unsettled:
                self.unsettled_since = time.monotonic()
            self.unsettled.append((number, facts))
        if facts.site is None:
            self.lasting.add(facts.token)
        self._nodes[facts.token] = (number, "forward")
        for trace in self._pending_tokens.pop(facts.token, ()):
            batch.add("trace_node", trace, number)
        return number

    def resolve_pending(self, batch: Batch) -> None:
        """Finds where older nodes stand: the first time that walks all live objects (interception/library.py)."""
        while self.unsettled:
            number, facts = self.unsettled.pop(0)
            self._node_row(batch, number, self.locate_node(facts))

    def _new_node(self, batch: Batch, facts: NodeFacts) -> int:
        self._node_count += 1
        self._node_row(batch, self._node_count, facts)
        return self._node_count

    def _node_row(self, batch: Batch, number: int, facts: NodeFacts) -> None:
        stack = [(frame.file, frame.line, frame.function, frame.text) for frame in facts.stack]
        stack_id = self._stack(batch, stack) if facts.site is None else self._site(batch, facts.site)
        origin = "tensorflow" if facts.internal else "user"
        batch.add(
            "node", number, None if facts.token.startswith("eager_") else facts.token, facts.kind, facts.body.name,
            facts.body.file, facts.body.line, facts.name, facts.graph, self.function(batch, facts.function),
            stack_id, json.dumps(facts.tout), json.dumps(facts.paths), json.dumps(facts.out_paths), origin,
        )  # fmt: skip
        self._paths[number] = (facts.paths, facts.out_paths)
        self.bodies[number] = facts.body.name
        for name in {facts.body.file, *(entry[0] for entry in stack)}:
            self._source(batch, name)

    def function(self, batch: Batch, facts: FunctionFacts | None) -> int | None:
        """The number of a traced function, writing its row when it is new."""
        if facts is None:
            return None
        key = (facts.name, facts.kind, facts.file, facts.line)
        number = self._functions.get(key)
        if number is None:
            number = self._functions[key] = len(self._functions) + 1
            origin = "tensorflow" if facts.internal else "user"
            batch.add("function", number, facts.name, facts.kind, facts.file, facts.line, origin)
            self._source(batch, facts.file)
        return number

    def _stack(self, batch: Batch, frames: Iterable[tuple[Any, ...]]) -> int | None:
        text = json.dumps(list(frames))
        if text == "[]":
            return None
        number = self._stacks.get(text)
        if number is None:
            number = self._stacks[text] = len(self._stacks) + 1
            batch.add("stack", number, text)
        return number

    def _source(self, batch: Batch, file: str | None) -> None:
        """Stores a user file's text once. Notebook cells have theirs in linecache only."""
        if file is None or file in self._sources or not is_user(file):
            return
        self._sources.add(file)
        lines = linecache.getlines(file)
        if lines and sum(map(len, lines)) <= _SOURCE_LARGEST:
            batch.add("source", file, "".join(lines))

    def thread(self, batch: Batch, native_id: int) -> int:
        """The number of a thread, writing its row when it is new."""
        number = self._threads.get(native_id)
        if number is None:
            number = self._threads[native_id] = len(self._threads) + 1
            batch.add("thread", number, self.thread_names.get(native_id, f"thread {native_id}"), native_id)
        return number

    # -- graph traces and runs ----------------------------------------------------------------------------------------

    def trace(self, batch: Batch, facts: TraceFacts, native_id: int) -> None:
        function = self.function(batch, facts.function)
        owner = facts.object if facts.object is not None else ("function", function)
        self._ordinals[owner] += 1
        self._traces[facts.id] = function or 0
        batch.add(
            "trace", facts.id, function, facts.object, self._ordinals[owner], facts.name, facts.signature,
            json.dumps(facts.reason), self.thread(batch, native_id), facts.start_ns, facts.duration_ns, facts.error,
            facts.parent, facts.closest, facts.avoid,
        )  # fmt: skip
        self._named.setdefault(facts.function.name.rpartition(".")[2], []).append(facts.id)
        for token in facts.tokens:
            self._holders.setdefault(token, []).append(facts.id)
            node = self._nodes.get(token)
            if node is not None:
                batch.add("trace_node", facts.id, node[0])
            else:
                self._pending_tokens.setdefault(token, []).append(facts.id)

    def run(self, batch: Batch, run: RunFacts) -> None:
        if not self.keep_calls:
            self.count_dropped_run()
            return
        trace = run.trace if run.kind == "forward" else self._forward_trace(run)
        function = self._traces.get(trace) if trace is not None else None
        batch.add(
            "run", run.id, trace, function or self.function(batch, run.function), run.kind, run.name,
            self.thread(batch, run.thread), run.start_ns, run.duration_ns, run.error, self._site(batch, run.site),
        )  # fmt: skip

    def _site(self, batch: Batch, site: tuple[str, int, str] | None) -> int | None:
        """The number of the stack that is this line alone, at the user's line if the code was generated."""
        if site is None:
            return None
        number = self._sites.get(site)
        if number is None:
            file, line = self.user_line(site[0], site[1])
            stack = [(file, line, site[2].removeprefix("tf__"), line_text(file, line))]
            number = self._sites[site] = self._stack(batch, stack)
            self._source(batch, file)
        return number

    def _forward_trace(self, run: RunFacts) -> int | None:
        """The graph trace that a backward run differentiates.

        It is the one that holds the forward nodes of its gradient nodes, else the only one of its name.
        """
        for token in run.tokens or ():
            holders = self._holders.get(self._forward_of.get(token, ""))
            if holders:
                return holders[-1]
        named = self._named.get(run.function.name if run.function is not None else "", [])
        return named[-1] if len({self._traces[trace] for trace in named}) == 1 else None

    # -- calls --------------------------------------------------------------------------------------------------------

    def call(self, batch: Batch, ticket: Ticket, running: bool = False, shown: bool = False) -> int:
        """The rows of one call: the call, its values, its failure.

        Args:
          batch: Where they go.
          ticket: The call.
          running: Whether the body still runs; then the same call is reported again when it has ended.
          shown: Whether it was reported as running before: then it is completed whatever the budget says.

        Returns:
          The number of its node.
        """
        node, kind = self._nodes.get(ticket.token) or (self._unknown(batch, ticket), "forward")
        if not running:
            self.calls += 1
            self.values_ns += ticket.values_ns
            if not self.keep_calls and not shown:
                self.count_dropped(ticket)
                return node
        failure = None if ticket.failure is None else self._failure(batch, ticket.failure)
        runs = self._candidates(ticket)
        certain = runs[0].id if len(runs) == 1 and runs[0].tokens is not None else None
        status = "running" if running else "ok" if failure is None else "error"
        forward = tape = None
        if not running:
            if kind == "gradient":
                forward, tape = self._pairs.gradient(ticket, self._forward_of.get(ticket.token))
            else:
                self._pairs.forward(ticket)
        batch.add(
            "call", ticket.call, node, kind, forward, certain,
            json.dumps([run.id for run in runs]) if runs and certain is None else None,
            self.thread(batch, ticket.thread), ticket.start_ns, None if running else ticket.end_ns,
            None if running or ticket.cpu_ns == NOT_MEASURED else ticket.cpu_ns, status, failure, tape,
        )  # fmt: skip
        if ticket.policy and not running:
            inputs, outputs = self._paths.get(node, ((), ()))
            if kind == "gradient":
                inputs, outputs = gradient_names(ticket.pair, inputs, outputs)
            self._values(batch, ticket, "input", ticket.inputs, inputs, "in" if kind == "forward" else "dy")
            self._values(batch, ticket, "output", ticket.outputs, outputs, "out" if kind == "forward" else "dx")
        return node

    def _candidates(self, ticket: Ticket) -> list[RunFacts]:
        """The runs in flight whose graphs hold the node. An eager call belongs to none."""
        if ticket.token not in self.lasting:
            return []
        return [run for run in ticket.runs if run.tokens is None or ticket.token in run.tokens]

    def _unknown(self, batch: Batch, ticket: Ticket) -> int:
        """A call whose node could not be described: it is shown all the same."""
        body = Body(ticket.token, None, None, (), internal=False)
        return self.node(
            batch,
            NodeFacts(ticket.token, "py_function", body, None, None, None, (), (), (), (), False, None, None),
        )

    def _values(
        self, batch: Batch, ticket: Ticket, role: str, held: Sequence[Held] | None, paths: tuple[str, ...], short: str
    ) -> None:
        if held is None:
            return
        if not self.keep_values:
            self.dropped_values += len(held)
            return
        policy = _POLICIES[ticket.policy]
        for position, one in enumerate(held):
            path = paths[position] if position < len(paths) else f"{short}[{position}]"
            summary = summarize(one, policy)
            if one.note:
                self.dropped_values += 1
            blob = None
            if summary.data is not None:
                blob = self._contents(batch, summary)
            self._value(batch, ticket.call, role, position, path, summary, blob)

    def _contents(self, batch: Batch, summary: Summary) -> bytes | None:
        """The digest of a value's elements, which go into the file; None where there is no room for them."""
        contents = encode(summary.data)
        digest, size = contents[0], len(contents[-1])
        if self.stored(digest):
            return digest
        if size > self.values_room:
            summary.kept, summary.note = "", "dropped: no room in the budget"
            self.dropped_values += 1
            return None
        self.values_room -= size
        batch.blobs.append(contents)
        return digest

    def _value(
        self, batch: Batch, call: int, role: str, position: int, path: str, summary: Summary, blob: bytes | None
    ) -> None:
        batch.add(
            "value", call, role, position, path, summary.dtype,
            None if summary.shape is None else str(list(summary.shape)), summary.nbytes, summary.min, summary.max,
            summary.mean, summary.std, summary.nan, summary.inf, summary.zeros, summary.sampled,
            str(list(summary.histogram)) if summary.histogram else None, summary.text, summary.note, summary.kept,
            blob, summary.digest,
        )  # fmt: skip

    def _failure(self, batch: Batch, failure: Any) -> int:
        self._failures += 1
        kind, described = failure
        if isinstance(described, traceback.TracebackException):
            frames = self._mend(described)
            message = str(described)
            text = "".join(described.format())
        else:
            message, frames = described, []
            text = f"{kind}: {message}"
        batch.add("failure", self._failures, kind, _cut(message), _cut(text), json.dumps(frames))
        for frame in frames:
            self._source(batch, frame[0])
        return self._failures

    def _mend(self, failure: traceback.TracebackException) -> list[tuple[str, int, str, str]]:
        """Leaves only the user's frames, at the user's lines; also in the exceptions that led to it."""
        todo: list[traceback.TracebackException | None] = [failure]
        seen = set()
        frames: list[tuple[str, int, str, str]] = []
        while todo:
            one = todo.pop()
            if one is None or id(one) in seen:
                continue
            seen.add(id(one))
            kept = []
            for entry in one.stack:
                file, line = self.user_line(entry.filename, entry.lineno or 0)
                if is_user(file):
                    name = entry.name.removeprefix("tf__")
                    kept.append(traceback.FrameSummary(file, line, name, lookup_line=False, line=line_text(file, line)))
            one.stack = traceback.StackSummary.from_list(kept)
            if one is failure:
                frames = [(entry.filename, entry.lineno or 0, entry.name, entry.line or "") for entry in kept]
            todo += [one.__cause__, one.__context__]
        return frames

    # -- lines --------------------------------------------------------------------------------------------------------

    def lines(self, batch: Batch, lines: Iterable[Line], prints: Iterable[Printed]) -> None:
        """Counts of lines, and what was printed where, as they are now."""
        for one in lines:
            batch.add(
                "line", one.file, one.line, one.kind, one.traced, one.ran, one.capped, json.dumps(one.graph),
                json.dumps(one.inside),
            )  # fmt: skip
            self._source(batch, one.file)
        for number, printed in enumerate(prints, 1):
            batch.add(
                "print", number, printed.trace, printed.call, printed.file, printed.line, printed.function, printed.text
            )
            self._source(batch, printed.file)

    # -- the end ------------------------------------------------------------------------------------------------------

    def notice(self, batch: Batch, rule: str, token: str | None, call: int | None, facts: dict[str, Any]) -> None:
        node = self._nodes.get(token, (None, ""))[0] if token is not None else None
        self._notices += 1
        batch.add("notice", self._notices, rule, node, call, json.dumps(facts, default=str))

    def dropped(self) -> tuple[list[tuple[int, str, int, int, int]], int]:
        """Rows of the table `dropped`, and the number of calls in them."""
        rows: dict[tuple[int, str], list[int]] = {}
        with self._dropping:
            for token, counts in self._dropped_calls.items():
                row = rows.setdefault(self._nodes.get(token, (0, "forward")), [0, 0, 0])
                for index, amount in enumerate(counts):
                    row[index] += amount
        found = [(node, kind, row[0], row[1], row[2]) for (node, kind), row in rows.items()]
        return [row for row in found if row[0]], sum(row[2] for row in found)


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_LARGEST else f"{text[:_TEXT_LARGEST]}... ({len(text):,} characters)"
