"""Rows of calls, of their values and of their failures."""

from __future__ import annotations

import hashlib
import json
import traceback
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyfunc_debug.events import TOO_MANY, Body, NodeFacts, RunFacts
from pyfunc_debug.newest import Newest
from pyfunc_debug.pfrec.contents import encode, most_bytes
from pyfunc_debug.pfrec.losses import Loss
from pyfunc_debug.program.frames import is_user, line_text
from pyfunc_debug.program.random_state import RandomState
from pyfunc_debug.recorder.batch import Batch
from pyfunc_debug.recorder.budget import Allowance
from pyfunc_debug.recorder.hot import FIRST
from pyfunc_debug.recorder.losses import DROPPED
from pyfunc_debug.recorder.node_rows import NodeRows
from pyfunc_debug.recorder.pairs import Pairs, gradient_names
from pyfunc_debug.recorder.random_states import RandomStates
from pyfunc_debug.recorder.sums import Sums
from pyfunc_debug.recorder.ticket import AFTER, EMPTY, NOT_MEASURED, Ticket
from pyfunc_debug.values import Held, Policy, Summary, is_plain, summarize

_POLICIES = tuple(Policy)
_REJECTED = "InvalidArgumentError"
_EAGER = 1024
"""Eager calls of which one hears a moment later if TensorFlow did not take what they returned."""
_NAMED = _UNJUDGED = 10_000
_TOLD = 4096
"""Texts of failures that are known again: a call that fails as another one did refers to the same text."""
_READ_AFTER = "read after the body had run, which may have changed it"


class CallRows:
    """Calls.

    Args:
      nodes: What they refer to.
      allowance: What the file still takes.
      shown: Calls that a finding may show, by number.

    Attributes:
      sums: Of those that are stored.
      random_states: Those of calls on their way, where they are recorded; else None.
      count, values_ns: Calls seen so far, and how long taking hold of their values took.
    """

    def __init__(self, nodes: NodeRows, allowance: Allowance, shown: set[int]) -> None:
        self._nodes = nodes
        self._allowance = allowance
        self._shown = shown
        self._named: set[int] = set()
        self._of_node: Counter[str] = Counter()
        self.sums = Sums()
        self.random_states: RandomStates | None = None
        self.count = 0
        self.values_ns = 0
        self._failures = 0
        self._told: dict[bytes, int] = {}  # digest of all that is said of a failure -> its number
        self._pairs = Pairs()
        self._unjudged: list[tuple[Any, int, tuple[Any, ...]]] = []  # of older nodes: given, node, row
        self._eager: Newest[tuple[int, tuple[Any, ...]]] = Newest(_EAGER)  # good calls: node, row

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
        known = self._nodes.numbers.get(ticket.token)
        node = known[0] if known is not None else self.unknown(batch, ticket.token)
        whole = not running and ticket.failure is None and self._nodes.numbers[ticket.token][1] == "forward"
        rejected = self._rejected(ticket.given, node) if whole else None
        told = ticket.failure or (rejected and (_REJECTED, rejected))
        if not running:
            self.count += 1
            self.values_ns += ticket.values_ns
            noted = self.random_states is not None and ticket.call in self.random_states
            state = self.random_states.take(ticket.call) if self.random_states is not None else None
            if not (shown or self._has_room(ticket, told is not None)):
                self._allowance.losses.call(ticket, self._allowance.why)
                if self._allowance.why is Loss.BUDGET and told is None:
                    self._allowance.reserve.offer(ticket)
                return node
            self._stored(ticket)
            if noted and self._nodes.numbers[ticket.token][1] == "forward":
                self._random_state(batch, ticket.call, state)
        self._row(batch, ticket, told, running, shown)
        return node

    def _random_state(self, batch: Batch, call: int, state: RandomState | None) -> None:
        """The row of the state that a call began with; None: there was no room for it in memory."""
        if state is None:
            self._allowance.losses.values(1, Loss.QUEUE)
            return
        words = [None if one is None else np.frombuffer(one, np.uint32) for one in (state.python, state.numpy)]
        kept = [None if one is None else self._blob(batch, one) for one in words]
        if any(one is not None and digest is None for one, digest in zip(words, kept)):
            self._allowance.losses.values(1, Loss.BUDGET)
            return
        batch.add("random_state", call, json.dumps(state.facts), *kept)

    def _row(self, batch: Batch, ticket: Ticket, told: Any, running: bool, shown: bool) -> None:
        node, kind = self._nodes.numbers[ticket.token]
        failure = self._failure(batch, told) if told else None
        runs = self._candidates(ticket)
        certain = self._nodes.run(runs[0].id) if len(runs) == 1 and runs[0].tokens is not None else None
        ambiguous = certain is None and (runs or (ticket.runs is TOO_MANY and ticket.token in self._nodes.lasting))
        status = "running" if running else "ok" if failure is None else "error"
        forward = tape = None
        if not running:
            if kind == "gradient":
                forward, tape = self._pairs.gradient(ticket, self._nodes.forward_of.get(ticket.token))
            elif node not in self._nodes.exact:  # a numpy_function has no gradient
                self._pairs.forward(ticket)
        batch.note_call(ticket, running, shown)
        batch.add(
            "call", ticket.call, node, kind, forward, certain,
            json.dumps([self._nodes.run(run.id) for run in runs]) if ambiguous else None,
            self._nodes.thread(batch, ticket.thread), ticket.start_ns, None if running else ticket.end_ns,
            None if running or ticket.cpu_ns == NOT_MEASURED else ticket.cpu_ns, status, failure, tape,
        )  # fmt: skip
        if not running:
            self.sums.call(ticket, node, kind, failure is not None)
        older = self._nodes.pending and self._nodes.exact.get(node) == ()
        if older and status == "ok" and len(self._unjudged) < _UNJUDGED:
            self._unjudged.append((ticket.given, node, batch.rows["call"][-1]))
        if status == "ok" and ticket.token.startswith("eager_"):
            self._eager[ticket.call] = node, batch.rows["call"][-1]
        if ticket.extra:
            batch.add("extra", ticket.call, ticket.extra)
        if ticket.policy and not running:
            inputs, outputs = self._nodes.paths.get(node, ((), ()))
            if kind == "gradient":
                inputs, outputs = gradient_names(ticket.pair, inputs, outputs)
            room = self._has_values_room(ticket, failure is not None)
            self._values(batch, ticket, "input", ticket.inputs, inputs, "in" if kind == "forward" else "dy", room)
            self._values(batch, ticket, "output", ticket.outputs, outputs, "out" if kind == "forward" else "dx", room)

    def name(self, call: int) -> None:
        """A notice is about this call: it is stored also when there is room for few."""
        self._allowance.reserve.name(call)
        if len(self._named) < _NAMED:
            self._named.add(call)

    def reserved(self, batch: Batch) -> None:
        """The rows of the calls that were held back: the recording ends."""
        self._allowance.losses.newest = self._allowance.reserve.newest
        tickets, rows = self._allowance.reserve.take()
        for ticket in tickets:
            self._allowance.losses.found(ticket, Loss.BUDGET)
            self._stored(ticket)
            self._row(batch, ticket, None, running=False, shown=False)
        for row in rows:
            batch.add("gil", *row)

    def _has_room(self, ticket: Ticket, failed: bool) -> bool:
        allowance = self._allowance
        if allowance.keep_calls or (failed and allowance.keep_failures):
            return True
        return allowance.keep_marked and (
            ticket.late > EMPTY or self._of_node[ticket.token] < FIRST or ticket.call in self._named
            or ticket.call in self._shown
        )  # fmt: skip

    def _has_values_room(self, ticket: Ticket, failed: bool) -> bool:
        allowance = self._allowance
        return (
            allowance.keep_values or (failed and allowance.keep_failures) or (ticket.late > 0 and allowance.keep_marked)
        )

    def _stored(self, ticket: Ticket) -> None:
        if self._of_node[ticket.token] < FIRST:
            self._of_node[ticket.token] += 1
        if ticket.late == EMPTY:
            self._allowance.losses.without_values += 1

    def judge(self, batch: Batch) -> None:
        """Calls of older nodes, whose Tout was not known yet when they were stored."""
        unjudged, self._unjudged = self._unjudged, []
        for given, node, row in unjudged:
            why = self._rejected(given, node)
            if why is not None:
                self._has_failed(batch, node, row, (_REJECTED, why))

    def rejected(self, batch: Batch, call: int, why: tuple[str, str]) -> None:
        """What the body of an eager call returned cannot be made a tensor."""
        found = self._eager.pop(call, None)
        if found is not None:  # else it was not stored
            self._has_failed(batch, *found, why)

    def _has_failed(self, batch: Batch, node: int, row: tuple[Any, ...], why: tuple[str, str]) -> None:
        self.sums.rejected(node)
        batch.add("call", *row[:-3], "error", self._failure(batch, why), row[-1])

    def _rejected(self, given: Any, node: int) -> str | None:
        """Why the node's kernel takes what the body returned for an error (py_func.cc).

        It compares numbers of values, and of a numpy_function dtypes: a py_function's were converted in Python.
        """
        dtypes = self._nodes.exact.get(node, ())
        count = len(dtypes) or self._nodes.counts.get(node, 0)
        if not count or given is None:  # None: of a generator that has ended, too
            return None
        several = given if isinstance(given, tuple) else (given,)
        if len(several) != count:
            values = f"{len(several)} value{'s' * (len(several) != 1)}" if several else "nothing"
            return f"the body returned {values}, but Tout has {count}"
        for position, (one, dtype) in enumerate(zip(several, dtypes)):
            if one is False:
                return f"value {position} holds Python objects, but Tout says {dtype}"
            own = dtype if one is True else "string" if one.kind in "SUO" else one.name
            if own != dtype and (own == "string" or is_plain(own)) and (dtype == "string" or is_plain(dtype)):
                return f"value {position} is {own}, but Tout says {dtype}"
        return None

    def _candidates(self, ticket: Ticket) -> list[RunFacts]:
        """The runs in flight whose graphs hold the node. An eager call belongs to none."""
        if ticket.token not in self._nodes.lasting:
            return []
        return [run for run in ticket.runs if run.tokens is None or ticket.token in run.tokens]

    def unknown(self, batch: Batch, token: str) -> int:
        """The number of a node that could not be described: its calls are shown all the same."""
        body = Body(token, None, None, (), internal=False)
        return self._nodes.node(
            batch,
            NodeFacts(token, "py_function", body, None, None, None, (), (), (), (), False, None, None),
        )

    def _values(
        self, batch: Batch, ticket: Ticket, role: str, held: Sequence[Held] | None, paths: tuple[str, ...], short: str,
        room: bool,
    ) -> None:  # fmt: skip
        if held is None:
            return
        if not room:
            self._allowance.losses.values(len(held), self._allowance.why)
            return
        policy = _POLICIES[ticket.policy]
        for position, one in enumerate(held):
            path = paths[position] if position < len(paths) else f"{short}[{position}]"
            summary = summarize(one, policy)
            if one.note:
                self._allowance.losses.values(1, DROPPED.get(one.note, Loss.UNREAD))
            if ticket.late == AFTER and role == "input":  # it equals nothing for certain
                summary.note, summary.digest = summary.note or _READ_AFTER, None
            blob = None
            if summary.data is not None:
                blob = self._contents(batch, summary)
            self._value(batch, ticket.call, role, position, path, summary, blob)

    def _contents(self, batch: Batch, summary: Summary) -> bytes | None:
        """The digest of a value's elements, which go into the file; None where there is no room for them."""
        digest = self._blob(batch, summary.data)
        if digest is None:
            self._allowance.losses.values(1, Loss.BUDGET)
            summary.kept, summary.note = "", "dropped: no room in the budget"
        return digest

    def _blob(self, batch: Batch, data: Any) -> bytes | None:
        """The digest of an array, which goes into the file; None where there is no room for it."""
        # Large texts are weighed before they are encoded, which takes their memory five times and seconds.
        if not self._allowance.fits(most_bytes(data)):
            return None
        contents = encode(data)
        digest, size = contents[0], len(contents[-1])
        if self._allowance.stored(digest):
            return digest
        if not self._allowance.fits(size):
            return None
        self._allowance.take(size)
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
        """The number of what is said of a failure, which is in the file once however many calls fail like that."""
        kind, described = failure
        if isinstance(described, traceback.TracebackException):
            frames = self._mend(described)
            message = str(described)
            text = "".join(described.format())
        else:
            message, frames = described, []
            text = f"{kind}: {message}"
        places = json.dumps(frames)
        whole = "\0".join((kind, message, text, places)).encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(whole, digest_size=16).digest()
        if digest in self._told:
            return self._told[digest]
        if len(self._told) == _TOLD:
            self._told.clear()
        self._failures += 1
        self._told[digest] = self._failures
        most = self._allowance.text_chars
        message, text = _cut(message, most), _cut(text, most)
        while len(places) > most and len(frames) > 1:  # the innermost are the last
            frames = frames[-(len(frames) // 2) :]
            places = json.dumps(frames)
        self._allowance.take_text(len(message) + len(text) + len(places))
        batch.add("failure", self._failures, kind, message, text, places)
        for frame in frames:
            self._nodes.source(batch, frame[0], None if self._allowance.keep_calls else self._allowance.text_chars)
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
                file, line = self._nodes.user_line(entry.filename, entry.lineno or 0)
                if is_user(file):
                    name = entry.name.removeprefix("tf__")
                    kept.append(traceback.FrameSummary(file, line, name, lookup_line=False, line=line_text(file, line)))
            one.stack = traceback.StackSummary.from_list(kept)
            if one is failure:
                frames = [(entry.filename, entry.lineno or 0, entry.name, entry.line or "") for entry in kept]
            todo += [one.__cause__, one.__context__]
        return frames


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"
