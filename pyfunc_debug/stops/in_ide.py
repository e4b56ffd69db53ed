"""Stops in the IDE that is attached: one at a time, as at a prompt, but the IDE itself holds the call and asks."""

from __future__ import annotations

import threading
from types import FrameType

from pyfunc_debug.stops.broker import Broker
from pyfunc_debug.stops.environment import Environment
from pyfunc_debug.stops.stop import Stop


class _Ide:
    """Has the turn of a stop that the IDE holds: nothing is asked or told through it."""

    name = "the attached IDE"

    def can_answer(self, stop: Stop) -> bool:
        return True

    def ask(self, stop: Stop, prompt: str) -> str | None:
        return None

    def tell(self, stop: Stop, text: str) -> None: ...

    def closed(self, stop: Stop) -> None: ...

    def wake(self, stop: Stop) -> None: ...


IDE = _Ide()


def hold(
    stop: Stop, broker: Broker, environment: Environment, frame: FrameType, error: BaseException | None = None,
    place: tuple[str, int] | None = None,
) -> bool:  # fmt: skip
    """Holds a call in the IDE; `stop` has its turn, and gives it back. Calls that are evaluated there pass breakpoints.

    Returns:
      Whether it goes on with a step.
    """
    me = threading.get_ident()
    broker.prompts(stop, True)
    broker.judging.add(me)
    try:
        return environment.hold_in_debugger(frame, error, place)
    finally:
        broker.judging.discard(me)
        broker.leave(stop)
