"""The observer that records: what happens on the hot path, and the queue between it and the writer thread.

Nothing here waits, takes a lock, touches a file or formats text while a body is about to run. When there is no room,
values are dropped first, then calls are counted instead of stored; the recording reports both.
"""

from __future__ import annotations

import sqlite3
import traceback
from _thread import get_native_id
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import monotonic_ns, thread_time_ns
from types import FrameType
from typing import Any

from pyfunc_debug.events import FunctionFacts, LiveRuns, NodeFacts, Notice, RunFacts, TraceFacts
from pyfunc_debug.pfrec import Writer
from pyfunc_debug.pfrec.losses import Loss
from pyfunc_debug.pfrec.processes import identity
from pyfunc_debug.pfrec.ring import Ring
from pyfunc_debug.program.threads import number_anew
from pyfunc_debug.recorder.budget import Budget
from pyfunc_debug.recorder.compiled import CompiledNotices
from pyfunc_debug.recorder.gil_rows import GilProbe, GilRows
from pyfunc_debug.recorder.growth import Growth
from pyfunc_debug.recorder.hang import HangWatch
from pyfunc_debug.recorder.hot import NO_ROOM, ROUSE_PART, SKIP, HotPath
from pyfunc_debug.recorder.losses import NOTES
from pyfunc_debug.recorder.random_states import RandomStates
from pyfunc_debug.recorder.rows import Rows
from pyfunc_debug.recorder.sampling import Sampling, Steps
from pyfunc_debug.recorder.ticket import EMPTY, NOT_MEASURED, Ticket, cpu_since
from pyfunc_debug.recorder.worker import Worker
from pyfunc_debug.records import Line, Printed
from pyfunc_debug.values import QUEUE_FULL, Held, Policies, Policy, hold
from pyfunc_debug.values.policy import matches

_SAY = {Notice.WRONG_TAPE: 20}
"""How often a rule's notice is written for one node and one line that took the gradient; once if it is not here."""
_SAY_ALL = 2000
_EAGER_REMEMBERED = 10_000  # eager calls whose gradient may still be asked for


class Recorder:
    """Records calls, nodes, graph traces and runs into a file. An `events.Observer`.

    Args:
      path: The recording's file.
      policies: What to keep of values, and of which nodes.
      budget: How many bytes it may take.
      meta: What to say of the recording in its `meta` table.
      overwrite: Whether an older recording may be replaced.
      sampling: Which calls are stored; None: all.
    """

    def __init__(
        self, path: str, policies: Policies, budget: Budget, meta: dict[str, Any], overwrite: bool = False,
        sampling: Sampling | None = None,
    ) -> None:  # fmt: skip
        self._policies = policies
        self._queue_calls = budget.queue_calls
        self._queue_bytes = budget.queue_bytes
        self._queue: deque[Any] = deque()
        self._open: dict[int, Ticket] = {}
        self._reported: dict[tuple[Any, ...], int] = {}
        self._known: dict[str, int] = {}  # token -> policy
        self._full = False  # whether values have no room any more
        self._names: dict[str, tuple[str | None, ...]] = {}  # token -> what a glob may match
        self._eager_nodes: dict[Any, str] = {}  # what identifies a node of eager calls -> token of its first call
        self._eager: dict[str, str] = {}  # token of a recent eager call -> token of the first call of that node
        self._eager_order: deque[str] = deque()
        self._early: dict[str, list[NodeFacts]] = {}  # forward token that is not known yet -> its gradients' nodes
        self._compiled = CompiledNotices()
        self._older: Callable[[str, int], NodeFacts] | None = None
        number_anew()
        self._rows = Rows()
        self._thread_names = self._rows.nodes.thread_names
        self._hot = HotPath(self, self._queue, self._open, self._known, LiveRuns(), budget)
        self._steps = None if sampling is None or sampling.when is None else Steps(sampling)
        if sampling is not None:
            self._hot.first, self._hot.every = sampling.first, sampling.every
        if self._steps is not None:
            self._hot.wanted = self._steps.wanted(None)
        self.enter, self.leave = self._hot.enter, self._hot.leave
        writer = Writer(path, overwrite)
        self._writer = writer
        process = identity()
        meta = {**meta, "process": process, "ring": None}
        self._worker = Worker(writer, self._rows, budget, self._queue, self._open, self._release, self._fullness, meta)
        self._ring = self._make_ring(budget, process)
        if self._ring is not None:
            self._worker.beat = self._ring.beat
        self._worker.values_full = self._empty
        self._worker.moved = self._follow
        self._worker.spare = self._drop_ring
        self._worker.begun = lambda: self._hot.calls
        self._worker.tallies = self._hot.tallies
        self._worker.queued_bytes = lambda: self._hot.queued_bytes
        self._worker.hot = self._hot
        self._hot.rouse = self._worker.rouse
        self._worker.start()

    @property
    def path(self) -> str:
        """Where the file is now."""
        return self._writer.path

    def _follow(self, path: str) -> None:
        if self._ring is not None:
            self._ring.follow(path)

    def _make_ring(self, budget: Budget, process: dict[str, Any]) -> Ring | None:
        """None where it cannot be: then a killed program's last moments are missing from the recording."""
        say = self._writer.set_meta
        ring = None
        try:
            ring = Ring(self.path, budget.ring_calls, budget.ring_given, lambda place: say({"ring": place}))
            say({"process": {**process, "lock": ring.locked}})
            self._writer.fold()  # who has the file without its log and ring learns that there were some
            self._hot.ring = ring
        except (OSError, ValueError, sqlite3.Error):
            if ring is not None:
                ring.close()
            return None
        return ring

    def _drop_ring(self, keep: bool = False) -> None:
        ring, self._ring, self._hot.ring = self._ring, None, None
        if ring is not None:
            ring.close(keep)

    def connect(
        self,
        live_runs: LiveRuns,
        older: Callable[[str, int], NodeFacts],
        locate_node: Callable[[NodeFacts], NodeFacts],
        user_line: Callable[[str, int], tuple[str, int]],
        inputs: Callable[[], list[dict[str, Any]]] = list,
    ) -> None:
        """Tells where to ask about runs in flight, older nodes, lines of generated code, and loops over datasets."""
        self._worker.inputs = inputs
        self._hot.live = live_runs
        self._older = older
        self._rows.nodes.connect(locate_node, user_line)
        self._rows.nodes.runs_before = live_runs.first() - 1

    def ask_for_role(self, role: Callable[[], dict[str, Any]]) -> None:
        """From now on asks once a second for this process's `role` and `rank`: one that is killed has them, too."""
        self._worker.role = role

    def count_growth(self, counts: Callable[[], Mapping[str, int]]) -> None:
        """From now on, what may pile up is counted about once a second."""
        self._worker.growth = Growth(counts)

    def growth(self) -> dict[str, Any]:
        """Counts a last time, and no more: for `meta`."""
        growth, self._worker.growth = self._worker.growth, None
        if growth is None:
            return {}
        try:
            growth.look(self._hot.calls, self._hot.queued_bytes, last=True)
        except Exception as error:
            self.trouble("counting what piles up", error)
        return {"growth": growth.known()}

    def measure_gil(self, probe: GilProbe) -> None:
        """From now on, finished calls are also given to a GIL probe, and what it says of them is recorded."""
        self._worker.gil = GilRows(probe)
        self._rows.calls.sums.measured = True
        self._hot.all_cpu = True

    def keep_random_states(self) -> None:
        """From now on, the state of the global random generators is recorded for each call, as its body begins."""
        states = self._rows.calls.random_states = RandomStates()
        hot, enter = self._hot, self._hot.enter

        def enter_and_note(token: str, args: Any) -> Ticket | None:
            ticket = enter(token, args)
            if ticket is None or ticket.light or ticket.late == EMPTY:
                return ticket
            try:
                size = states.note(ticket.call, self._queue_bytes - hot.queued_bytes)
                ticket.room += size
                hot.queued_bytes += size
            except Exception as error:
                self.trouble("reading the random state", error)
            if ticket.cpu_start_ns != NOT_MEASURED:  # the call begins now
                ticket.cpu_start_ns = thread_time_ns()
            ticket.start_ns = monotonic_ns()
            return ticket

        self.enter = enter_and_note

    def watch_for_hangs(
        self, after_s: float, advise: Callable[[str], str], endless: Callable[[FrameType], str]
    ) -> HangWatch:
        """Watches calls that do not end from now on; the caller stops it before `close`.

        Args:
          after_s: How old a call must be.
          advise: What to do about what a rule of the doctor's finds, as text.
          endless: Why the graph trace that a thread is in does not end, as text.
        """
        watch = HangWatch(
            self._open, self._rows.nodes.body_of, self.notice, after_s, advise=advise, endless=endless
        )  # fmt: skip
        watch.start()
        return watch

    # -- the hot path: events.Observer --------------------------------------------------------------------------------

    @property
    def sees_values(self) -> bool:
        """Whether at least a summary is kept of each node's values."""
        return self._policies.shows_all()

    @property
    def samples(self) -> HotPath | None:
        """The hot path, where sampling leaves calls out."""
        return self._hot if self._hot.every else None

    def fail(self, ticket: Ticket | None, error: BaseException) -> None:
        """The body raised. The exception is not kept alive, only what is needed to print it."""
        if ticket is None:
            return
        ticket.end_ns = monotonic_ns()
        ticket.cpu_ns = cpu_since(ticket.cpu_start_ns)
        kind = type(error).__name__
        try:
            text: Any = traceback.TracebackException(
                type(error), error, error.__traceback__, lookup_lines=False, compact=True
            )
        except Exception as trouble:
            text = f"(the exception could not be read: {type(trouble).__name__})"
        ticket.failure = (kind, text)
        self._hot.finish(ticket)

    def returned(self, ticket: Ticket | None, value: Any, declared: Any) -> Any:
        """The body returned, and TensorFlow has not converted its value yet."""
        if ticket is None or ticket.light or not self._hot.accepting:
            return None
        try:
            return self._rows.returns.returned(ticket.token, ticket.call, value, declared)
        except Exception as error:
            self.trouble("looking at what a body returned", error)
            return None

    def converted(self, returned: Any, outputs: Any) -> None:
        """TensorFlow has converted it."""
        try:
            self._rows.returns.converted(returned, outputs)
        except Exception as error:
            self.trouble("comparing what a body returned", error)

    def rejected(self, ticket: Ticket, error: BaseException) -> None:
        """What an eager body returned cannot be made a tensor: its call, which is queued or stored, has failed."""
        try:
            why = type(error).__name__, str(error)
        except Exception as trouble:
            why = type(error).__name__, f"(the exception could not be read: {type(trouble).__name__})"
        if self._hot.accepting:
            self._put(("rejected", ticket.call, why))

    def count_dropped(self, ticket: Ticket) -> None:
        losses = self._rows.allowance.losses
        self._release(ticket.room)
        if self._rows.calls.random_states is not None:
            self._rows.calls.random_states.take(ticket.call)
        losses.call(ticket, losses.waiting or Loss.QUEUE)

    def register_thread(self, native_id: int) -> None:
        self._rows.nodes.register_thread(native_id)
        if self._ring is not None:
            self._ring.describe(thread=native_id, name=self._thread_names.get(native_id, ""))

    def hold_values(self, values: Any, policy: int, room: int) -> tuple[list[Held] | None, int]:
        try:
            held, size = hold(values, policy, room, self._queue_bytes)
            why = self._rows.allowance.losses.waiting
            if why is not None:
                for one in held:
                    if one.note == QUEUE_FULL:
                        one.note = NOTES[why]
            return held, size
        except Exception as error:
            self.trouble("taking hold of values", error)
            return None, 0

    def _empty(self) -> None:
        """Values are taken of few calls from now on: to read and copy what cannot be stored would cost time."""
        self._full = True
        for token, policy in list(self._known.items()):
            self._known[token] = self._policy(policy)
        self._ask_again()

    def _ask_again(self) -> None:
        """After a change of known policies: sampling remembers them."""
        for tally in list(self._hot.tallies.values()):
            tally.policy = -1

    def _policy(self, policy: int) -> int:
        """The policy that a node gets now."""
        if not self._full or policy <= 0:
            return policy
        return NO_ROOM + min(policy % NO_ROOM, Policy.SUMMARY)

    def _release(self, size: int) -> None:
        self._hot.queued_bytes -= size
        if not self._queue:
            # Two threads may have lost one another's update; now it is known.
            self._hot.queued_bytes = sum(ticket.room for ticket in list(self._open.values()))

    def _fullness(self) -> float:
        """Share of the queue's room that is taken."""
        return max(len(self._queue) / max(self._queue_calls, 1), self._hot.queued_bytes / self._queue_bytes)

    def register(self, token: str, args: Any) -> tuple[str, int]:
        """Token and policy of a token that is not known: an eager call, or a node made before recording began."""
        first = self._eager.get(token)
        if first is not None:
            return first, self._known[first]
        try:
            count = len(args)
            node = self._older(token, count) if self._older is not None else None
            if node is not None:
                self._comes_early(node)
                return token, self._tell("older" if node.name is None else "node", node)
        except Exception as error:
            self.trouble("describing an older node", error)
        policy = self._known[token] = self._policy(self._policies.default)
        return token, policy

    def _learn(self, node: NodeFacts) -> int:
        policy = self._known.get(node.gradient_of) if node.gradient_of is not None else None
        if policy is None:  # a gradient is kept as its forward node is
            names = (node.body.name, node.name, node.token)
            wanted = self._policies.nodes == "*" or matches(self._policies.nodes, *names)
            policy = int(self._policies.of(*names)) if wanted else SKIP
        policy = self._known[node.token] = self._policy(policy)
        own = (node.body.name, node.name, node.token)
        self._names[node.token] = self._names.get(node.gradient_of, own) if node.gradient_of is not None else own
        if policy != SKIP:
            self._describe(node)
        return policy

    def _describe(self, node: NodeFacts) -> None:
        """Says in the ring what the file will say of a node."""
        ring = self._ring
        if ring is None:
            return
        stack: tuple[tuple[Any, ...], ...] = tuple((one.file, one.line, one.function, one.text) for one in node.stack)
        if node.site is not None:
            stack = (self._rows.nodes.site_frame(node.site, text=False),)
        ring.describe(
            token=node.token, kind=node.kind, body=node.body.name, file=node.body.file, line=node.body.line,
            internal=node.internal, name=node.name, graph=node.graph, function=_function(ring, node.function),
            stack=ring.share(stack), gradient_of=node.gradient_of, tout=node.tout, paths=node.paths,
            out_paths=node.out_paths,
        )  # fmt: skip

    def keep(self, pattern: str) -> None:
        """Keeps the values of calls in full from now on, of nodes that match."""
        self._policies.keep(pattern)
        for token, names in list(self._names.items()):
            if self._known.get(token, SKIP) != SKIP and matches(pattern, *names):
                self._known[token] = self._policy(int(Policy.FULL))
        self._ask_again()

    def _eager_node(self, node: NodeFacts) -> None:
        """All eager calls of one body from one line are one node; TensorFlow gives each a token of its own."""
        if node.gradient_of is not None:
            node = replace(node, gradient_of=self._eager.get(node.gradient_of, node.gradient_of))
            key: Any = node.gradient_of
        else:
            key = (node.kind, node.body, node.site)
        first = self._eager_nodes.get(key)
        if first is None:
            first = self._eager_nodes[key] = node.token
            self._learn(node)
            self._put(("node", node))
        self._eager[node.token] = first
        self._eager_order.append(node.token)
        if len(self._eager_order) > _EAGER_REMEMBERED:
            self._eager.pop(self._eager_order.popleft(), None)

    # -- everything else that interception reports --------------------------------------------------------------------

    def _put(self, item: Any) -> None:
        """Gives something to the writer, which is woken if it sleeps; where calls are sampled it has time."""
        self._queue.append(item)
        hot = self._hot
        if hot.asleep and (not hot.every or len(self._queue) > self._queue_calls // ROUSE_PART):
            hot.asleep = False
            self._worker.rouse()

    def node_made(self, node: NodeFacts) -> None:
        """A node was made, or an eager call is about to happen."""
        if not self._hot.accepting:
            return
        if node.site is not None:
            self._eager_node(node)
        elif not self._comes_early(node):
            self._tell("node", node)
            if node.body.elements in ("threads", "processes"):  # its calls wait for them, and run no body
                self.notice(Notice.KERAS_WORKERS, node.token, None, processes=node.body.elements == "processes")

    def _tell(self, what: str, node: NodeFacts) -> int:
        """Takes a node in, and after it the gradients that came before it; returns its policy."""
        self._put((what, node))
        policy = self._learn(node)
        self._tell_early(node.token)
        return policy

    def _comes_early(self, node: NodeFacts) -> bool:
        """Whether a gradient comes before its forward node, whose names and policy it takes: it waits for it.

        The gradient of an older graph is traced just before the graph's first run under a tape.
        """
        forward = node.gradient_of
        if forward is None or forward in self._known:
            return False
        self._early.setdefault(forward, []).append(node)
        if forward in self._known:  # meanwhile, by another thread, which may have seen none that waits
            self._tell_early(forward)
        return True

    def _tell_early(self, forward: str) -> None:
        waiting = self._early.get(forward)
        while waiting:
            try:
                self._tell("node", waiting.pop())
            except IndexError:  # another thread took the last one
                return

    def trace_began(self, trace: int, function: FunctionFacts) -> None:
        """TensorFlow begins to trace a function: said beside the file only, for a program that dies in it."""
        ring = self._ring
        if ring is not None and self._hot.accepting:
            ring.describe(tracing=trace, function=_function(ring, function))

    def trace_ended(self, trace: TraceFacts) -> None:
        """TensorFlow finished a graph trace."""
        if self._hot.accepting:
            thread = get_native_id()
            self._rows.nodes.register_thread(thread)
            self._put(("trace", trace, thread))
            ring = self._ring
            if ring is not None:
                ring.describe(
                    trace=trace.id, function=_function(ring, trace.function), object=trace.object, name=trace.name,
                    signature=trace.signature, reason=trace.reason, on=thread, start_ns=trace.start_ns,
                    duration_ns=trace.duration_ns, error=trace.error, parent=trace.parent, closest=trace.closest,
                    avoid=trace.avoid, tokens=sorted(trace.tokens),
                )  # fmt: skip
            if trace.failure is not None:
                message, frames = trace.failure
                self.notice(Notice.TRACE_FAILED, None, None, trace=trace.id, message=message, frames=frames)

    def run_began(self, run: RunFacts) -> None:
        """Python started a tf.function: calls see it among the runs in flight. Sampling may depend on it."""
        if self._steps is not None and run.kind == "forward":
            try:
                self._hot.wanted = self._steps.wanted(run)
            except Exception as error:
                self.trouble("sampling", error)

    def run_ended(self, run: RunFacts) -> None:
        """The tf.function returned or raised."""
        if self._hot.accepting:
            if run.thread not in self._thread_names:
                self._rows.nodes.register_thread(run.thread)
            if len(self._queue) < self._queue_calls:
                self._put(run)
            else:
                losses = self._rows.allowance.losses
                losses.run(losses.waiting or Loss.QUEUE)

    def paired(
        self, ticket: Ticket | None, own: Ticket | None, used: Ticket | None, dy: tuple[int, ...], dx: tuple[int, ...]
    ) -> None:
        """A gradient call found its forward call, and a tape."""
        if ticket is not None:  # a forward call may be from an earlier recording, with a number of that one's
            ticket.pair = (
                own.call if own is not None and own.recorder is self else None,
                used.call if used is not None and used.recorder is self else None, dy, dx,
            )  # fmt: skip

    def gradient_notice(self, rule: Notice, token: str, ticket: Ticket | None, **facts: Any) -> None:
        """Something about gradients, for the doctor; written a few times for each node, then only the calls show it."""
        runs = ticket.runs if ticket is not None and rule in _SAY else ()
        key = (rule, token, runs[0].site if runs else None)
        reported = self._reported.get(key, 0)
        if reported < _SAY.get(rule, 1) and len(self._reported) < _SAY_ALL:
            self._reported[key] = reported + 1
            self.notice(rule, token, ticket.call if ticket is not None else None, **facts)

    def trouble(self, where: str, error: BaseException) -> None:
        """Something of ours failed: counted, written into the recording, and printed once at its end."""
        self._rows.troubles[f"{where}: {type(error).__name__}: {error}"[:500]] += 1

    def lines(self, lines: Sequence[Line], prints: Sequence[Printed]) -> None:
        """Counts of lines and printed texts so far; they replace the earlier ones."""
        if self._hot.accepting and (lines or prints):
            self._put(("lines", tuple(lines), tuple(prints)))

    def notice(self, rule: Notice, token: str | None, call: int | None, **facts: Any) -> None:
        """Something for the doctor."""
        if self._hot.accepting:
            if rule is Notice.COMPILED:
                self._compiled.say(facts)  # now: XLA's own text follows as soon as the function runs
            self._put(("notice", rule.value, self._eager.get(token, token) if token else None, call, facts))

    # -- switching ----------------------------------------------------------------------------------------------------

    def now(self) -> dict[str, int]:
        """Counts for a progress line: calls begun, waiting to be written, in progress."""
        self._hot.gather(0)
        return {
            "calls": self._rows.calls.count + sum(type(one) is Ticket for one in list(self._queue)) + len(self._open),
            "queued": len(self._queue),
            "open": len(self._open),
        }

    def flush(self, timeout_s: float = 30.0) -> bool:
        """Waits until everything queued so far can be read from the file; False if that took too long."""
        return self._worker.flush(timeout_s)

    def close(self, meta: dict[str, Any]) -> dict[str, Any]:
        """Writes what is queued and closes the file.

        Args:
          meta: Last entries for the `meta` table.

        Returns:
          What went wrong meanwhile: `troubles` and, if writing stopped early, `stopped`.
        """
        self._hot.accepting = False
        self._worker.close(meta, cost_ns=self._hook_cost())
        self._drop_ring()
        return {"troubles": dict(self._rows.troubles), "stopped": self._worker.stopped}

    def abandon(self) -> None:
        """In a forked child: never touch the parent's file."""
        self._hot.accepting = False
        self._queue.clear()
        self._open.clear()
        self._drop_ring(keep=True)
        self._worker.abandon()

    def _hook_cost(self) -> int:
        """What one recorded call without values costs here, measured now on a recorder of no consequence."""
        count = 500
        probe = HotPath(self, deque(), {}, {"": 0}, LiveRuns(), Budget(1_000_000))
        probe.all_cpu = self._hot.all_cpu
        start = thread_time_ns()
        for _ in range(count):
            probe.leave(probe.enter("", ()), None)
        return (thread_time_ns() - start) // count


def _function(ring: Ring, facts: FunctionFacts | None) -> int | None:
    """The number in the ring of a traced function."""
    return None if facts is None else ring.share((facts.name, facts.kind, facts.file, facts.line, facts.internal))
