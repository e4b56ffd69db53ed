"""What is said under the ledger: what is missing in the recording, how it ended, and what recording cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyfunc_debug.analysis.contention import gil_line
from pyfunc_debug.analysis.death import death_lines
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.pfrec.losses import Loss
from pyfunc_debug.pfrec.processes import writer_lives

_BUSY = 0.25
"""From this share of the machine's CPU on, that of other processes is said."""
_NOTABLE = 0.1
"""From this share of the recorded time on, what recording cost is said unasked: see docs/costs.md."""


def footer(reader: Reader, meta: dict[str, Any], hidden: int) -> tuple[str, ...]:
    """Sentences, the most important first.

    Args:
      reader: The recording.
      meta: Its meta table.
      hidden: How many functions and nodes the ledger does not show.
    """
    lines = [*_warnings(reader, meta), *gil_line(reader)]
    cost = own_cost(meta)
    if cost is not None:
        lines.append(_cost(cost))
    lines += _others(meta)
    if hidden:
        lines.append(
            f"{hidden} of TensorFlow's and Keras' own functions and nodes are hidden "
            "(--all, or ledger(include_internal=True), shows them)"
        )
    return tuple(lines)


def short_footer(reader: Reader, meta: dict[str, Any]) -> tuple[str, ...]:
    """What is said of it unasked as a program ends: without what is as it should be, or is not about the program.

    Args:
      reader: The recording.
      meta: Its table `meta`.
    """
    lines = _warnings(reader, meta)
    if (meta.get("gil") or {}).get("grade") != "native":
        lines += gil_line(reader)
    cost = own_cost(meta)
    if cost is not None and cost.share >= _NOTABLE:
        lines.append(f"recording cost ~{_percent(cost.share)} % of {_time(cost.wall_ns)}: times are longer by it")
    return tuple(lines)


def _warnings(reader: Reader, meta: dict[str, Any]) -> list[str]:
    """What is missing, how the recording ended, and what went wrong in it."""
    lines = _lost(meta)
    wanted = (meta.get("options") or {}).get("nodes", "*")
    if wanted != "*":
        lines.append(f"only calls of nodes that match {wanted} were recorded")
    if meta.get("stopped"):
        lines.append(str(meta["stopped"]))
    if is_interrupted(reader.path, meta):
        lines += death_lines(reader)
    elif meta.get("state") == "recording":
        lines.append("still recording")
    for trouble, times in list((meta.get("troubles") or {}).items())[:3]:
        lines.append(f"pyfunc_debug had trouble ({times}x): {trouble}")
    if meta.get("limits"):
        lines.append(str(meta["limits"]))
    return lines


def _lost(meta: dict[str, Any]) -> list[str]:
    """What did not come into the recording, and why."""
    dropped = meta.get("dropped") or {}
    reasons = dropped.get("reasons")
    lines = []
    for key, what in (
        ("calls", "calls{failed} were counted but not stored"), ("values", "values were not stored"),
        ("without_values", "more calls are stored without values"), ("runs", "runs were not stored"),
    ):  # fmt: skip
        found = reasons.get(key) if isinstance(reasons, dict) else None
        if found is None:  # a recording of before there were reasons
            found = {Loss.BUDGET.value: dropped.get(key, 0)}
        failed = reasons.get("failed", {}) if key == "calls" and isinstance(reasons, dict) else {}
        for reason, count in found.items():
            if count:
                those = f" ({failed[reason]:,} of them failed)" if failed.get(reason) else ""
                lines.append(f"{count:,} {what.format(failed=those)}: {_words(reason, meta)}")
                newest = dropped.get("newest")
                if key == "calls" and reason == Loss.BUDGET and isinstance(newest, int) and newest:
                    lines[-1] += (
                        f"; stored after that: {'the first ' if those else ''}failures, what findings name, each "
                        f"node's first calls, the slowest and the newest {newest:,}"
                    )
    return lines


def _words(reason: str, meta: dict[str, Any]) -> str:
    try:
        why = Loss(reason)
        if why is Loss.BUDGET and meta.get("folder_full"):
            return f"the budget of {meta.get('folder_budget', '?')} bytes for all recordings in its folder was used up"
        return why.said(meta.get("budget", "?"))
    except ValueError:  # of a newer pyfunc_debug
        return reason


def unfinished(path: str, meta: dict[str, Any]) -> str:
    """What is said of a call without an end. It runs on only where the program does, and is recorded."""
    return "had not ended" if meta.get("state") != "recording" or is_interrupted(path, meta) else "still running"


def is_interrupted(path: str, meta: dict[str, Any]) -> bool:
    """Whether the process that was recorded is known to be gone although its recording says that it still grows."""
    return meta.get("state") == "interrupted" or (meta.get("state") == "recording" and not writer_lives(path, meta))


@dataclass(frozen=True)
class OwnCost:
    """What recording cost, as the recorder says itself. All in ns but `share`, a fraction of `wall_ns`.

    Attributes:
      hook_ns: Of one call without its values, calibrated when the recording ended.
      values_ns: Of all reading and copying of values in the bodies' threads, measured, wall time.
      writer_ns: CPU of the writer thread, measured.
    """

    share: float
    wall_ns: int
    hook_ns: int
    values_ns: int
    writer_ns: int


def own_cost(meta: dict[str, Any]) -> OwnCost | None:
    """The cost of a recording; None while it is not known."""
    cost, clock, end = meta.get("cost"), meta.get("clock"), meta.get("end_ns")
    if not isinstance(cost, dict) or not isinstance(clock, dict) or not isinstance(end, int):
        return None
    wall = end - int(clock["monotonic_ns"])
    if wall <= 0:
        return None
    hook, values, writer = int(cost["hook_ns"]), int(cost["values_ns"]), int(cost["writer_cpu_ns"])
    return OwnCost((hook * int(cost["calls"]) + values + writer) / wall, wall, hook, values, writer)


def _percent(share: float) -> str:
    """Two digits, and never in powers of ten."""
    return f"{100 * share:.2g}" if share < 0.995 else f"{100 * share:,.0f}"


def _time(ns: int) -> str:
    return f"{ns / 1e9:.3g} s" if 1e9 <= ns < 1e12 else f"{ns / 1e9:,.0f} s" if ns >= 1e12 else f"{ns / 1e6:.3g} ms"


def _others(meta: dict[str, Any]) -> list[str]:
    """That the machine was busy with something else: then times are longer, and say less of the program."""
    share = meta.get("others") or 0.0
    if share < _BUSY:
        return []
    return [f"other processes used {share:.0%} of this machine's CPU meanwhile: times are longer than on an idle one"]


def _cost(cost: OwnCost) -> str:
    return (
        f"recording cost ~{_percent(cost.share)} % of {_time(cost.wall_ns)}: hook ~{cost.hook_ns / 1e3:.2g} us a "
        f"call (calibrated), values {_time(cost.values_ns)}, writer thread {_time(cost.writer_ns)} CPU "
        "(measured)"
    )
