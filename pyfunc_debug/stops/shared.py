"""What all calls under watch have in common."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol

from pyfunc_debug.stops.broker import Broker
from pyfunc_debug.stops.environment import Environment
from pyfunc_debug.stops.generators import Resumed
from pyfunc_debug.stops.judge import Judge
from pyfunc_debug.stops.rules import Rules


class Say(Protocol):
    """Tells whoever debugs something; with `once` not again, with `values` (of the program) in one line."""

    def __call__(self, text: str, *, once: bool = False, values: bool = False) -> None: ...


@dataclass(frozen=True)
class Shared:
    """Given to each call that is watched.

    Attributes:
      rules: The breakpoints.
      broker: Who gives turns.
      environment: What they ask of the rest of the package.
      judge: Whether a rule stops a call.
      say: Tells whoever debugs something.
      node_names: What a breakpoint can call the nodes that there are.
      aborted: By thread: of calls ended at a `breakpoint()` of theirs, on a thread that another tool traces, what
        gives it its thread back.
      step_on: Notes, of a node, the generator in which the call for its next element is to stop.
    """

    rules: Rules
    broker: Broker
    environment: Environment
    judge: Judge
    say: Say
    node_names: Callable[[], Collection[str]]
    step_on: Callable[[str, Resumed], None]
    aborted: dict[int, Callable[[], None]] = field(default_factory=dict)
