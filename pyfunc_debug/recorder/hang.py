"""Watches for calls that do not end: which they are, where they stand, and what they wait for. Said once, and recorded.

A thread that looks once a second. A call hangs when it is older than the limit, its thread takes no CPU and its Python
does not move, nor waits again and again, as for small pieces of data that come. One that works is reported when it is
older than twice the limit, with the lines that it was seen in; it may still end, so that only one that never did is a
finding. While C code has the GIL, nobody can look.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from pyfunc_debug.events import Notice
from pyfunc_debug.places import source_line
from pyfunc_debug.program.forks import Forks
from pyfunc_debug.program.frames import line_text
from pyfunc_debug.program.looks import Looks
from pyfunc_debug.program.printable import tell
from pyfunc_debug.program.thread_deaths import ThreadDeaths
from pyfunc_debug.program.waiting import (
    FOR_PROCESSES,
    Waiting,
    empty_loops,
    plain_values,
    ran_ns,
    runnable,
    waiting,
    waits_begun,
    yields,
)
from pyfunc_debug.recorder.forked import MainWait, ended_for, ended_lines, forked_lines, who_waits
from pyfunc_debug.recorder.long_trace import EPOCHS, PROGRAM, TRACE, LongTrace
from pyfunc_debug.recorder.ticket import Ticket
from pyfunc_debug.records import Frame

_LOOK_S = 1.0
_MOST_SAID = 8
"""Calls of one body that are printed: of a generator of generators there may be thousands."""
_BUSY_SHARE = 0.1
"""A thread works if it was on a core, or waited for one, for this share of the time between two looks."""
_SOONER = 0.9
"""A forked process is reported after this share of the time: before the calls that wait for it."""
_TEXT_FRAMES = 4
_WORKING_LOOKS = 5
"""How often a call must be seen at work in one frame."""
_WAITS_A_SECOND, _LEAST_WAITS = 50, 20
"""A thread that begins to wait so often is at work: each wait ended. One that asks once a second in vain is not."""


_Seen = tuple[tuple[int, int], int | None, int | None]
"""The instruction that a thread was at, how long it ran so far, and how often it began to wait."""


@dataclass
class _Work:
    """The lines that a working call's body was in each time that it was looked at."""

    lines: set[int] = field(default_factory=set)
    looks: int = 0
    same: dict[str, str] | None = None
    """Variables that had one value each time."""
    waits: Counter[tuple[str, Frame]] = field(default_factory=Counter)
    """What it waited for again and again, and at which line of the user's."""
    rates: list[float] = field(default_factory=list)
    """How often a second."""

    def again(self) -> dict[str, Any] | None:
        """What it waited for in most looks, where, and how often a second; None where it did not."""
        (what, one), looks = self.waits.most_common(1)[0] if self.waits else (("", None), 0)
        if one is None or 2 * looks <= self.looks:
            return None
        return {"what": what, "file": one.file, "line": one.line, "rate": round(statistics.median(self.rates))}


class HangWatch:
    """Looks at the calls in progress.

    Args:
      open_calls: Calls in progress, by number.
      body: Name of a token's body.
      notice: Tells the recording: rule, token, call, facts.
      after_s: How old a call must be.
      say: Tells the user; stderr by default.
      advise: What to do about what a rule of the doctor's finds, as text; empty where nothing is known.
      endless: Why the graph trace that a thread is in, in this frame, does not end, as text; empty where it may.

    Attributes:
      gather: Makes open calls of those that began at least this many ns ago, whichever way they took (`HotPath`).
    """

    def __init__(
        self, open_calls: dict[int, Ticket], body: Callable[[str], str], notice: Callable[..., None], after_s: float,
        say: Callable[[str], None] | None = None, advise: Callable[[str], str] = lambda rule: "",
        endless: Callable[[FrameType], str] = lambda frame: "",
    ) -> None:  # fmt: skip
        self._open = open_calls
        self._body = body
        self._notice = notice
        self._after_s = after_s
        self._say = say or tell
        self._advise = advise
        self.gather: Callable[[int], object] = lambda least_ns: None
        self._seen: dict[int, _Seen] = {}
        self._looked_ns = 0
        self._reported: set[int] = set()
        self._said: Counter[str] = Counter()  # calls, by body
        self._working: dict[int, _Work] = {}
        self._deaths = ThreadDeaths()
        self._between_s = min(_LOOK_S, after_s / 2)
        self._forked: set[str] = set()
        self._main = MainWait(after_s)
        self._traces = [LongTrace(after_s, endless, functions) for functions in (TRACE, EPOCHS, PROGRAM)]
        self._forks = Forks(_SOONER * after_s, self._between_s)
        self._looks = Looks("hang", self._between_s, self._look_at_all, self._trouble)

    def start(self) -> None:
        """Begins to look."""
        self._deaths.watch()
        self._forks.watch()
        self._looks.start()

    def stop(self) -> None:
        """Stops looking."""
        self._deaths.rest()
        self._forks.rest()
        self._looks.stop()

    def _look_at_all(self) -> None:
        self.look_at_forks()
        self.look_at_main()
        self.look_at_trace()
        self.look()

    def _trouble(self, error: Exception) -> None:  # a thread may end while we look at it
        self._notice(Notice.HANG_TROUBLE, None, None, error=f"{type(error).__name__}: {error}")

    def look_at_forks(self) -> None:
        """Reports forked processes that say that they stand still."""
        for facts in self._forks.news():
            waits = {} if facts["went_on"] else who_waits()
            sources = [frame[0] for frame in (*facts["frames"], *waits.get("frames", ()), facts["forked"]) if frame]
            self._notice(Notice.FORKED, None, None, **facts, waits=waits, sources=sources)
            place = str([facts["forked"], facts["frames"][-1:]])
            if not facts["went_on"] and place not in self._forked:  # other workers of a pool stand there, too
                self._forked.add(place)
                self._say("\n".join(filter(None, [*forked_lines(facts, waits), self._advise("forked-process")])))

    def look_at_main(self) -> None:
        """Reports a main thread that waits for processes that have ended; a call on it is looked at as a call."""
        found = None if self._forked else self._main.look(self._forks, self._open)
        if found is not None:
            facts, lines = found
            self._notice(Notice.HANG, None, None, **facts)
            self._say("\n".join([*lines, *filter(None, [self._advise("hang")])]))

    def look_at_trace(self) -> None:
        """Reports a graph trace, an epoch of Keras', or a loop, of the main thread that does not end."""
        for one in self._traces:
            told = one.look()
            if told:
                self._say(told)

    def look(self) -> None:
        """Looks once; calls that stood still since the last time are reported."""
        now = time.monotonic_ns()
        self.gather(int(self._after_s * 1e9))
        old = [one for one in list(self._open.values()) if now - one.start_ns > self._after_s * 1e9]
        still: list[tuple[Ticket, Waiting]] = []
        seen: dict[int, _Seen] = {}
        for ticket in old:
            state = waiting(ticket.ident)
            if state is None or ticket.end_ns or ticket.call not in self._open:
                continue
            ran = ran_ns(ticket.thread)
            begun = waits_begun(ticket.thread)
            seen[ticket.call] = (state.at, ran, begun)
            before = self._seen.get(ticket.call)
            if state.stopped:
                self._working.pop(ticket.call, None)
                continue
            moved = before is not None and before[0] != state.at
            took = ran - before[1] if before is not None and before[1] is not None and ran is not None else 0
            waits = begun - before[2] if before is not None and before[2] is not None and begun is not None else 0
            rate = waits / max((now - self._looked_ns) / 1e9, 1e-9)
            again = rate if waits >= _LEAST_WAITS and rate >= _WAITS_A_SECOND else 0.0
            if moved or took > _BUSY_SHARE * (now - self._looked_ns) or again or runnable(ticket.thread):
                self._at_work(ticket, state, now, again)
            elif before is not None:
                still.append((ticket, state))
        self._seen, self._looked_ns = seen, now
        self._working = {call: work for call, work in self._working.items() if call in seen}
        if still and any(ticket.call not in self._reported for ticket, _ in still):
            new = [one for one in still if one[0].call not in self._reported]
            self._reported.update(ticket.call for ticket, _ in new)
            self._tell(new, still, now)

    def _at_work(self, ticket: Ticket, state: Waiting, now: int, rate: float) -> None:
        """One look at a call that works; it is reported when it is old, a generator that waits for pieces sooner.

        Args:
          ticket: The call.
          state: What its thread does.
          now: The time of the look.
          rate: How often a second it began to wait since the look before; 0.0 where that is seldom.
        """
        if not state.own or ticket.call in self._reported:
            return
        body = state.stack[-state.own]
        work = self._working.setdefault(ticket.call, _Work())
        work.looks += 1
        work.lines.add(body.line)
        values = plain_values(ticket.ident, body)
        work.same = {name: one for name, one in (work.same or values).items() if values.get(name) == one}
        if rate and state.what:
            work.waits[state.what, state.stack[-1]] += 1
            work.rates.append(rate)
        again, waits_to_yield = work.again(), yields(ticket.ident, body)
        limit_s = self._after_s * (1 if again is not None and waits_to_yield else 2)
        if now - ticket.start_ns <= limit_s * 1e9 or work.looks < _WORKING_LOOKS:
            return
        self._reported.add(ticket.call)
        lines, empty = sorted(work.lines), sorted(empty_loops(ticket.ident, body).items())
        age = (now - ticket.start_ns) / 1e9
        self._notice(
            Notice.HANG, ticket.token, ticket.call, age_s=round(age, 1), what="", pool=0, lock=False,
            frames=[[one.file, one.line, one.function, one.text] for one in state.stack[-state.own :]],
            working=work.looks, lines=lines, empty=empty,
            same=sorted(work.same.items()), again=again, yields=waits_to_yield,
        )  # fmt: skip
        where = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]} to {lines[-1]}"
        name = self._body(ticket.token)
        text = [
            "pyfunc-debug: a call works for long:",
            f"  call #{ticket.call} of {name}, for {age:.0f} s: seen {work.looks} times, always in {where}",
        ]
        text += [
            f"    {source_line(body.file, line)} {line_text(body.file, line)}".rstrip() for line in lines[:_TEXT_FRAMES]
        ]
        if again is not None and (again["file"], again["line"]) not in [(body.file, line) for line in lines]:
            text.append(f"    {source_line(again['file'], again['line'])} {line_text(again['file'], again['line'])}")
        if again is not None:
            text.append(f"    there it waits for {again['what']}, some {again['rate']:,} times a second")
        if waits_to_yield:
            text.append(f"    it is a generator, and has yielded no element for {age:.0f} s")
        text += [f"    {source_line(body.file, line)} {one} is empty" for line, one in empty]
        self._say("\n".join(text))

    def _tell(self, new: list[tuple[Ticket, Waiting]], still: list[tuple[Ticket, Waiting]], now: int) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        calls = {ticket.ident: ticket.call for ticket in list(self._open.values())}  # also younger ones
        stand = {ticket.ident for ticket, _ in still}
        others = [state.holder for _, state in still if state.holder is not None and state.holder.ident not in stand]
        pool = len(still) >= cores and len(still) > 1 and all(state.lock for _, state in still) and not others
        lines = []
        for ticket, state in new:
            age = (now - ticket.start_ns) / 1e9
            where = [f"{source_line(one.file, one.line)} {one.text}".rstrip() for one in state.stack]
            facts: dict[str, Any] = {
                "age_s": round(age, 1), "what": state.what, "pool": len(still) if pool else 0, "lock": state.lock,
                "frames": [[one.file, one.line, one.function, one.text] for one in state.stack],
            }  # fmt: skip
            if (held := state.holder) is not None:
                facts["holder"] = {**dataclasses.asdict(held), "call": calls.get(held.ident)}
            if state.keras is not None:
                facts["keras"] = dataclasses.asdict(state.keras)
            gone, alive = ended_for(self._forks, ticket.ident, state)
            if gone:
                facts["ended"], facts["alive"] = [dataclasses.asdict(one) for one in gone], alive
            dead = self._deaths.of(state.what, state.on)
            if dead is not None:
                facts["dead"] = dataclasses.asdict(dead)
            self._notice(Notice.HANG, ticket.token, ticket.call, **facts)
            body = self._body(ticket.token)
            self._said[body] += 1
            if self._said[body] > _MOST_SAID:
                continue
            waits = f"waits for {state.what}" if state.what else "is in C code"
            waits += f", in {state.keras.name} of Keras" if state.keras is not None else ""
            lines.append(f"  call #{ticket.call} of {body}, for {age:.0f} s: {waits}")
            lines += [f"    {line}" for line in where[-_TEXT_FRAMES:]]
            if held is not None and not held.itself:
                at = f"{source_line(held.file, held.taken)} {line_text(held.file, held.taken)}"
                lines.append(f"    {held.thread} took the lock at {at}")
            lines += ended_lines(gone)
            if dead is not None:
                lines.append(f"    {dead.thread}, which calls {dead.does}, died of {dead.error}:")
                lines.append(f"    {source_line(dead.file, dead.line)} {line_text(dead.file, dead.line)}")
            if self._said[body] == _MOST_SAID:
                lines.append(f"    more calls of {body} that stand still are noted in the recording, and not printed")
        if not lines:
            return
        if pool:
            lines.append(
                f"  {len(still)} calls wait at once, no fewer than TensorFlow's pool has threads: nobody may be left "
                "to do what they wait for"
            )
        if self._forked and all(state.what in FOR_PROCESSES or not state.stack for _, state in new):
            return  # said of the processes that they wait for
        advice = self._advise("hang")
        self._say("\n".join(["pyfunc-debug: nothing moves in these calls:", *lines, *filter(None, [advice])]))
