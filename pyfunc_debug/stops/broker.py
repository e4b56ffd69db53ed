"""Who may prompt: one stop at a time, others in order behind it, with the GIL free.

A stop gets its turn at its first prompt and keeps it until it continues or its call ends; whatever happens, the turn is
given back. Nobody able to answer means going on: a stop never hangs a program.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator

from pyfunc_debug.program.pools import Pool
from pyfunc_debug.stops.endings import Endings, await_interrupt, end_process, send_interrupt, take_back
from pyfunc_debug.stops.rules import EVALUATION, EXPIRED, RELEASED, SKIPPED, STEPPING, UNANSWERED
from pyfunc_debug.stops.stop import Abort, Front, Stop

_ABORTING_S = 1.0
"""After an interrupt calls that hit a breakpoint end as well, so that a pipeline does not ask again at once."""
_QUIET_S = 0.25
"""A pipeline that began no body for so long, while those are ended, begins none of its own accord."""
_EVALUATION_S = 0.25
"""How long a call that hits a breakpoint waits while a prompt evaluates; the evaluation may be waiting for it."""

_STEPPING_S = 2.0
"""How long a call waits while another one runs on after a step: that one may be waiting for this call."""


class Broker:
    """Gives turns to stops.

    Attributes:
      fronts: Asked in this order.
      listeners: Called, on any thread, when a stop opens, moves, waits or closes.
      on_unanswered: Told of a stop that nobody could answer.
      pool_of: The thread pool that a stop's call runs on.
      end_running: Ends the bodies that run, but not those on the threads that it is given, which end anyway.
      ending: Whether calls of their nodes that begin now may have to end as well: see `check_beginning`.
      on_ending: Told of each change of `ending`.
      evaluating: Threads that evaluate at a prompt, and the number of the evaluation.
      judging: Threads that evaluate a condition.
      endings: Ends the expressions of breakpoints that never return.
    """

    def __init__(self) -> None:
        self.fronts: list[Front] = []
        self.listeners: list[Callable[[], None]] = []
        self.on_unanswered: Callable[[Stop], None] = lambda stop: None
        self.pool_of: Callable[[Stop], Pool | None] = lambda stop: None
        self.end_running: Callable[[Container[int]], None] = lambda held: None
        self.ending = False
        self.on_ending: Callable[[], None] = lambda: None
        self._turn = threading.Condition()
        self._active: Stop | None = None
        self._waiting: list[Stop] = []
        self._epoch = 0
        self._aborting_until = 0.0
        self._ended_nodes: set[str] = set()  # of the calls that were ended
        self._left_over: tuple[float, frozenset[int]] = (0.0, frozenset())  # until when, and which threads there were
        self._last_ended = 0.0  # when a call was last ended as it began
        self._interrupted = False
        self._closed = False
        self.evaluating: dict[int, int] = {}
        self._evaluations = 0
        self._leaving: set[int] = set()  # threads whose evaluation is over: to end it would end something else
        self._ended = 0  # how often the evaluation was asked to end
        self.judging: set[int] = set()
        self.endings = Endings()

    @property
    def active(self) -> Stop | None:
        """The stop whose turn it is."""
        return self._active

    def waiting(self) -> list[Stop]:
        """Stops waiting for their turn, in order."""
        return list(self._waiting)

    def held(self) -> set[int]:
        """The threads whose calls are at a prompt or wait for one."""
        return {one.ident for stop in (*self.waiting(), self._active) for one in _with_outer(stop)}

    # -- turns, on the bodies' threads --------------------------------------------------------------------------------

    def acquire(self, stop: Stop, front: Front | None = None) -> str:
        """Waits for a turn.

        Args:
          stop: Who wants it.
          front: Who answers, if that is known.

        Returns:
          Empty when `stop` has it and a front; else why it goes on without: one of `rules.BUCKETS`.

        Raises:
          Abort: the stop was interrupted while it waited.
        """
        with self._turn:
            self._check(stop)
            refused = "" if self._active is stop else self._take_turn(stop)
        if refused:
            return refused
        stop.front = front or self._front(stop)
        if stop.front is None:
            self.leave(stop)
            self.on_unanswered(stop)
            return UNANSWERED
        self.tell_listeners()
        return ""

    def _take_turn(self, stop: Stop) -> str:
        refused = self._refuse(stop)
        outer = self._active
        if refused:
            return refused
        if outer is not None and outer.ident == stop.ident:  # a body called while its caller is stopped
            stop.outer = outer
        else:
            late = self._wait(stop)
            if late:
                self.tell_listeners()  # fewer wait now
                return late
        self._active, stop.running_since = stop, None
        return ""

    def _refuse(self, stop: Stop) -> str:
        if self._closed:
            return RELEASED
        if self._active is not None and stop.policy == "skip" and self._active.ident != stop.ident:
            return SKIPPED
        return ""

    def switch(self, stop: Stop, other: Stop) -> str:
        """Gives the turn of a stop to one that waits, until that goes on or has run on for long after a step.

        Returns:
          Why `stop` goes on, then: `rules.RELEASED`; empty when it has its turn again, at once where `other` is gone.

        Raises:
          Abort: the stop was interrupted meanwhile.
        """
        with self._turn:
            if self._active is not stop or other not in self._waiting:
                return ""
            self._waiting.remove(other)
            self._waiting.insert(0, other)
            self._active = None
            self._turn.notify_all()
            late = self._wait(stop, back=True)
            if not late:
                self._active, stop.running_since = stop, None
        self.tell_listeners()
        return late

    def _wait(self, stop: Stop, back: bool = False) -> str:
        """Until it is this stop's turn; with `back` it has had it, and gets it again before those that have not."""
        epoch, arrived = self._epoch, time.monotonic()
        during = set(self.evaluating.values())  # one of these may be waiting for this very call
        end = arrived + stop.policy if isinstance(stop.policy, (int, float)) and not back else None
        self._waiting.insert(1 if back else len(self._waiting), stop)
        try:
            if self._active is not None or back:
                self.tell_listeners()
            while self._active is not None or self._waiting[0] is not stop:
                self._check(stop)
                if self._epoch != epoch:
                    return RELEASED
                now = time.monotonic()
                left = None if end is None else end - now
                if left is not None and left <= 0:
                    return EXPIRED
                during &= set(self.evaluating.values())  # an evaluation that came later knows nothing of this call
                if during and not back:
                    patience = arrived + _EVALUATION_S - now
                    if patience <= 0:
                        return EVALUATION
                    left = patience if left is None else min(left, patience)
                running = self._active.running_since if self._active is not None else None
                if self._active is not None and self._active.ident in self.evaluating:
                    running = None  # it did not step
                if running is not None:
                    patience = max(running, arrived) + _STEPPING_S - now
                    if patience <= 0:
                        if not back:
                            return STEPPING
                        self._active = None  # it queues again when it comes to its next prompt
                        break
                    left = patience if left is None else min(left, patience)
                self._turn.wait(left)
            self._check(stop)
            # Released just before its turn came: it goes on all the same.
            return RELEASED if self._epoch != epoch else ""
        finally:
            self._waiting.remove(stop)
            self._turn.notify_all()

    def _check(self, stop: Stop) -> None:
        now = time.monotonic()
        if stop.aborted or now < self._aborting_until or (now < self._left_over[0] and self._is_left_over(stop)):
            self._note_ended([stop])
            if stop.aborted and now < self._aborting_until:  # each body that is ended where it runs takes its time
                self._aborting_until = now + _ABORTING_S
            raise Abort("interrupted at a pyfunc_debug stop")

    def _is_left_over(self, stop: Stop) -> bool:
        pool = self.pool_of(stop) if stop.native_id in self._left_over[1] else None
        return pool is not None and pool.private and stop.node is not None and stop.node.token in self._ended_nodes

    def _note_ended(self, stops: Iterable[Stop]) -> None:
        self._ended_nodes.update(stop.node.token for stop in stops if stop.node is not None)

    def _front(self, stop: Stop) -> Front | None:
        fronts = list(self.fronts)
        if stop.front is not None:  # it goes on: what it has changed, it puts back at the end of the stop
            fronts.insert(0, stop.front)
        for front in fronts:
            try:
                if front.can_answer(stop):
                    return front
            except Exception as error:
                print(f"pyfunc_debug: {front.name} failed: {type(error).__name__}: {error}", file=sys.stderr)
        return None

    def somebody_is_named(self) -> bool:
        """Whether answers are prepared: then nobody else is asked, an attached IDE neither."""
        return any(getattr(front, "prepared", False) for front in self.fronts)

    def can_answer(self, stop: Stop) -> bool:
        """Whether somebody could answer a stop now."""
        return not self._closed and self._front(stop) is not None

    def can_pause(self, stop: Stop) -> bool:
        """Whether whoever would answer a stop now presses Ctrl-C to look at what runs."""
        return not self._closed and bool(getattr(self._front(stop), "pauses", False))

    def prompts(self, stop: Stop, open_: bool) -> None:
        """A stop is at its prompt, or runs on after an answer."""
        with self._turn:
            stop.open = open_
            stop.running_since = None if open_ else time.monotonic()
            self._turn.notify_all()

    def leave(self, stop: Stop) -> None:
        """Gives the turn back. Harmless when `stop` does not have it."""
        with self._turn:
            if self._active is not stop and stop.front is None:
                return
            if self._active is stop:  # else another one has the turn: see `switch`
                self._active, stop.outer = stop.outer, None
                self._turn.notify_all()
            front, stop.front = stop.front, None
        stop.open = False
        if front is not None:
            with contextlib.suppress(Exception):
                front.closed(stop)
        self.tell_listeners()

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        """While a stopped prompt evaluates: calls that it makes and that hit a breakpoint pass.

        Calls on other threads that arrive meanwhile pass as well when it lasts: it may be waiting for them, and they
        would wait for the stop.
        """
        me = threading.get_ident()
        if me in self.evaluating:
            yield
            return
        with self._turn:
            self._evaluations += 1
            self.evaluating[me] = self._evaluations
        try:
            yield
        finally:
            try:
                self._leaving.add(me)
                self._turn.acquire()
            except KeyboardInterrupt:  # `end_evaluation` sent it: it is raised as this returns, with the lock or not
                self._leaving.add(me)
            owned = self._turn._is_owned()  # type: ignore[attr-defined]  # noqa: SLF001 - no public way to ask
            self.evaluating.pop(me, None)
            self._leaving.discard(me)
            ended, self._ended = self._ended, 0
            if owned:
                if self._active is not None and self._active.ident == me and self._active.running_since is not None:
                    self._active.running_since = time.monotonic()  # what was evaluated is not a step's time
                self._turn.notify_all()
                self._turn.release()
            if ended:  # it may come only now: to clear it would leave CPython looking for it in every loop
                with contextlib.suppress(KeyboardInterrupt):
                    await_interrupt()

    def evaluates(self, ident: int) -> bool:
        """Whether this thread evaluates something for a prompt or a condition."""
        return ident in self.evaluating or ident in self.judging

    # -- from any thread ----------------------------------------------------------------------------------------------

    def release(self) -> int:
        """Lets every waiting call go on; the stopped one stays.

        Returns:
          How many were waiting.
        """
        with self._turn:
            self._epoch += 1
            count = len(self._waiting)
            self._turn.notify_all()
        return count

    def close(self) -> list[Stop]:
        """Lets every call go on, also the stopped one, and those that hit a breakpoint from now on.

        Returns:
          Those that were stopped, or waited for their turn.
        """
        with self._turn:
            self._closed = True
            self._epoch += 1
            stops = [one for stop in (self._active, *self._waiting) for one in _with_outer(stop)]
            self._turn.notify_all()
        for stop in stops:
            stop.released = True
            if stop.front is not None:
                stop.front.wake(stop)
        return [stop for stop in stops if not stop.aborted]

    @property
    def closed(self) -> bool:
        """Whether nobody is asked any more: the program is ending."""
        return self._closed

    def end_evaluation(self) -> bool:
        """Ends what a prompt evaluates, with KeyboardInterrupt; the stop stays.

        Asked again, it ends the process as Ctrl-C does. A call in C does not end by this: see `evaluates_still`.

        Returns:
          Whether a prompt evaluates.
        """
        with self._turn:
            stop = self._active
            if stop is None or stop.ident not in self.evaluating:
                return False
            self._ended += 1
            asked, ident = self._ended, stop.ident
            if ident == threading.main_thread().ident:
                return True  # there the handler raises it, also in C
            send_interrupt(ident)
        if asked > 1:
            end_process()
        return True

    def evaluates_still(self, timeout_s: float, back: bool = False) -> int | None:
        """Waits until the evaluation that was asked to end has ended.

        Args:
          timeout_s: How long.
          back: Whether the exception that was sent to it is taken back if it has not.

        Returns:
          Its thread where it has not, unless that is the main one: there a signal's handler ends calls in C.
        """
        with self._turn:
            stop = self._active
            ident = stop.ident if stop is not None else 0
            number = self.evaluating.get(ident)
            if not self._ended or number is None or ident == threading.main_thread().ident:
                return None
            if self._turn.wait_for(lambda: self.evaluating.get(ident) != number, timeout_s):
                return None
            if back:
                take_back(ident)
        return ident

    def tell_evaluation(self, text: str) -> None:
        """Says something to whoever waits for an evaluation."""
        stop = self._active
        front = stop.front if stop is not None else None
        if stop is not None and front is not None:
            front.tell(stop, text)

    def can_end_evaluation(self, ident: int) -> bool:
        """Whether what this thread does now is an evaluation, which an exception may end."""
        return (ident in self.evaluating and ident not in self._leaving) or self.endings.can_end(ident)

    def interrupt(self) -> bool:
        """Ends the stop and everything that waits behind it with Abort.

        Returns:
          Whether there was anything to interrupt.
        """
        with self._turn:
            stops = [one for stop in (*self._waiting, self._active) for one in _with_outer(stop)]
            if not stops:
                return False
            self._interrupted = True
            self._end(stops, stops)
        self.end_running({stop.ident for stop in stops})
        for stop in stops:
            front = stop.front
            if front is not None:
                front.wake(stop)
        return True

    def interrupt_running(self) -> None:
        """Ends the bodies that run, where none is stopped, as an interrupted stop does."""
        with self._turn:
            self._interrupted = True
            self._end([], [])
        self.end_running(())

    def quit(self, stop: Stop) -> None:
        """`q` at a stop: all that waits behind it or runs ends as well, and what comes until the program knows."""
        with self._turn:
            waiting = [one for stop in self._waiting for one in _with_outer(stop)]
            self._end(waiting, [stop, *waiting])
        self.end_running({one.ident for one in (stop, *waiting)})

    def _end(self, stops: list[Stop], ended: list[Stop]) -> None:
        now = time.monotonic()
        if not self._is_ending(now):
            self._ended_nodes.clear()
        self._aborting_until = now + _ABORTING_S
        self._note_ended(ended)
        self._set_ending(True)
        for stop in stops:
            stop.aborted = True
        self._turn.notify_all()

    def _is_ending(self, now: float) -> bool:
        return now < max(self._aborting_until, self._left_over[0])

    def _set_ending(self, ending: bool) -> None:
        self._last_ended = time.monotonic()
        if self.ending != ending:
            self.ending = ending
            self.on_ending()

    def check_beginning(self, stop: Stop) -> None:
        """A call begins, without a breakpoint, while `ending`.

        A pipeline begins one for each that was ended, and a body that never returns would hold it for ever.

        Raises:
          Abort: bodies of its node were ended where they ran, and this is for the same loop.
        """
        with self._turn:
            if not self._is_ending(time.monotonic()):
                self._set_ending(False)
            elif stop.node is not None and stop.node.token in self._ended_nodes:
                self._last_ended = time.monotonic()
                self._check(stop)

    def settle(self) -> None:
        """Waits until pipelines whose bodies are ended begin no more: nobody is going to see those that begin later."""
        with self._turn:
            while self.ending:
                end = max(self._aborting_until, self._left_over[0])
                left = min(self._last_ended + _QUIET_S, end) - time.monotonic()
                if left <= 0:
                    self._set_ending(False)  # what is switched on next ends nothing of this
                else:
                    self._turn.wait(left)

    def program_knows(self) -> None:
        """The program has the exception of a call that was ended: what it does next stops again.

        What a pipeline still calls on the threads that it has ends as well, for the same time.
        """
        with self._turn:
            if self.aborting():
                self._aborting_until = 0.0
                self._left_over = (time.monotonic() + _ABORTING_S, _threads())

    def busy(self) -> bool:
        """Whether a call is stopped, waits, or is being ended by an interrupt."""
        return self._active is not None or bool(self._waiting) or self.aborting()

    def aborting(self) -> bool:
        """Whether an interrupt is ending calls."""
        return time.monotonic() < self._aborting_until

    def take_interrupt(self) -> bool:
        """Whether a stop was interrupted and that was not reported yet; asking ends it."""
        taken, self._interrupted = self._interrupted, False
        self.program_knows()
        return taken

    def show_interrupt(self) -> bool:
        """The same, as the last word: calls that a pipeline still makes while it is taken down end as well."""
        taken = self._interrupted
        if taken:
            self.take_interrupt()
            self._aborting_until = time.monotonic() + _ABORTING_S
        return taken

    @property
    def interrupted(self) -> bool:
        """Whether a stop was interrupted and the program does not know yet."""
        return self._interrupted

    def starving(self) -> str:
        """A warning when one of TensorFlow's pools may have no thread left for all the parked calls; else empty."""
        active = self._active
        parked = Counter(self.pool_of(stop) for stop in (*self._waiting, *([active] if active is not None else [])))
        return " ".join(
            f"{'1 call is' if count == 1 else f'{count} calls are'} parked and {_size(pool)}: {pool.victims} may stand "
            "still until you continue (`continue all` lets every waiting call go on)."
            for pool, count in parked.items()
            if pool is not None and count >= pool.threads
        )

    def tell_listeners(self) -> None:
        """Says that something about the stops changed."""
        for listener in list(self.listeners):
            with contextlib.suppress(Exception):
                listener()


def _with_outer(stop: Stop | None) -> Iterator[Stop]:
    """A stop, and those of the calls around it that are stopped as well."""
    while stop is not None:
        yield stop
        stop = stop.outer


def _size(pool: Pool) -> str:
    threads = f"{pool.threads} {'thread' if pool.threads == 1 else 'threads'}"
    if pool.source:
        return f"{pool.name} has {threads} ({pool.source})"
    return f"the size of {pool.name} is not known (by default {threads})"


def _threads() -> frozenset[int]:
    """The native ids of this process's threads; empty where the system does not tell."""
    try:
        return frozenset(map(int, os.listdir("/proc/self/task")))
    except OSError:
        return frozenset()
