"""The call around a tracer, as the tracer sees it."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable
from types import FrameType
from typing import Any

from pyfunc_debug.events import NodeFacts
from pyfunc_debug.stops.chained_tracer import ChainedTracer
from pyfunc_debug.stops.environment import Environment
from pyfunc_debug.stops.generated import Generated
from pyfunc_debug.stops.rules import Breakpoint
from pyfunc_debug.stops.stop import Stop


class TracerHost:
    """What a tracer needs of the call around it; `CallWatch` is one, and this one has no call."""

    stand_in: FrameType | None = None
    forward: NodeFacts | None = None
    """Of a gradient call: the node whose gradient it is."""
    frame: FrameType | None = None
    """The body's."""
    generated = Generated(Environment())
    """What AutoGraph made of the user's functions."""
    chained: ChainedTracer | None = None
    """Another tool that traces this thread."""

    def trouble(self, where: str, error: BaseException) -> None:
        """Something of ours failed."""

    def count(self, stop: Stop, outcome: str, first: bool) -> None:
        """The stop got its turn (`first`: for the first time), or not."""

    def held(self, stop: Stop) -> None:
        """The call is held from now on: it queues for its turn, or has got it."""

    def ended(self, stop: Stop) -> None:
        """The stop is over. May be called more than once."""

    def steps_on(self, frame: FrameType) -> None:
        """A step over the yield of this generator: the call for the next element stops behind it."""

    def is_body(self, frame: FrameType) -> bool:
        """Whether this is the frame whose return value the node's output is made of."""
        return False

    def user_line(self, file: str, line: int) -> tuple[str, int]:
        """The user's line for a line that may be generated."""
        return file, line

    def aborted(self) -> None:
        """An Abort leaves a trace function of a call that is not armed: who gives the other tool its thread back?"""

    def detach(self) -> None:
        """Disables every breakpoint."""

    def rules(self) -> Iterable[Breakpoint]:
        """The breakpoints of the process."""
        return ()

    def node_names(self) -> Collection[str]:
        """What a breakpoint can call the nodes that there are."""
        return ()

    def break_on(self, node: str, condition: str | None, once: bool) -> Breakpoint:
        """Makes a breakpoint on a node. Raises BadOptionError where the condition is not Python."""
        raise NotImplementedError

    def look(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Looks at an event of the call once a stop in it has ended: other breakpoints still watch it."""

    def passed(self, frame: FrameType, event: str, arg: Any, already: Breakpoint | None) -> None:
        """A prompt opened at this event, after a step: breakpoints that would have stopped here are hit.

        Args:
          frame: Where.
          event: The event.
          arg: Its argument.
          already: The breakpoint whose stop this is, and that is counted.
        """

    def entered(self, frame: FrameType) -> Any:
        """The trace function of a function that is not stepped into."""

    def local(self, frame: FrameType, event: str, arg: Any) -> Any:
        """The trace function of the call's frames then."""

    def evaluation(self) -> contextlib.AbstractContextManager[Any]:
        """Around an evaluation."""
        return contextlib.nullcontext()
