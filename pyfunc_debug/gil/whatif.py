"""The ceiling of the speed-up that num_parallel_calls can bring to a stage: arithmetic on what its body did.

Three things bound it: the threads that can run bodies at once, the GIL which only one body holds at a time, and the
cores. It is "at most": what the body does inside C (a BLAS that uses all cores already, memory bandwidth) cannot be
seen.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stage:
    """What one element costs in a stage whose body is a call, in ns, with waits for the GIL left out.

    Attributes:
      wall_ns: From the op's begin to its end, alone.
      held_ns: Of these, with the GIL held; None is not known.
      cpu_ns: Of these, on a CPU; None is not known.
      parallel: Calls that run at once now.
    """

    wall_ns: float
    held_ns: float | None
    cpu_ns: float | None
    parallel: float = 1.0


@dataclass(frozen=True, slots=True)
class Ceiling:
    """At most this much faster than now, and what stands in the way."""

    calls: int
    speedup: float
    why: str

    def __str__(self) -> str:
        return f"at most x{self.speedup:.1f}: {self.why}"


def ceiling(stage: Stage, calls: int, pool: int, cores: int) -> Ceiling:
    """The most that num_parallel_calls can bring.

    Args:
      stage: What an element costs now.
      calls: num_parallel_calls.
      pool: Threads in the pool that runs the stage: tf.data's own (`private_threadpool_size`, by default as many as
        cores), not inter_op.
      cores: Cores that the process may use.

    Raises:
      ValueError: A number makes no sense.
    """
    if calls < 1 or pool < 1 or cores < 1 or stage.wall_ns <= 0:
        raise ValueError("calls, pool, cores and wall_ns must be positive")
    limits = [(float(min(calls, pool)), _threads(calls, pool))]
    if stage.held_ns:
        share = min(1.0, stage.held_ns / stage.wall_ns)
        limits.append((1 / share, f"the body holds the GIL {percent(share)} of the time"))
    if stage.cpu_ns:
        share = stage.cpu_ns / stage.wall_ns
        why = f"the body is on a CPU {percent(share)} of the time, and there are {cores} cores"
        limits.append((cores / share, why))
    at_once, why = min(limits, key=lambda limit: limit[0])
    now = min([stage.parallel, *(limit for limit, _ in limits[1:])])
    return Ceiling(calls, at_once / now, why)


def percent(share: float) -> str:
    """A share for people: `41 %`."""
    return f"{100 * share:.0f} %"


def _threads(calls: int, pool: int) -> str:
    if pool < calls:
        return f"{pool} thread{'s' if pool > 1 else ''} in the pool"
    return f"num_parallel_calls={calls}"
