"""How fast something grew, as evidence: what there was first and last, and how much more with each call."""

from __future__ import annotations

from pyfunc_debug.analysis.growth import grown
from pyfunc_debug.doctor.facts import Facts

_MUCH_BYTES = 20_000_000


def growth(facts: Facts, name: str, what: str) -> tuple[str, ...]:
    """`graphs alive: 3 after 10 calls, 103 after 1,010: 0.1 more with each call`; nothing where it did not grow.

    Args:
      facts: The recording.
      name: As `analysis.growth.grown` takes it.
      what: In words: "graphs alive".
    """
    found = grown(facts.meta, name)
    if found is None or found.last <= found.first:
        return ()
    text = f"{what}: {found.first:,} after {found.first_calls:,} calls, {found.last:,} after {found.last_calls:,}"
    if found.first_calls == found.last_calls:  # of a program that calls no body
        text = f"{what}: {found.first:,} at first, {found.last:,} at the end"
    if found.a_call:
        text += f": {found.a_call:.2g} more with each call"
    elif found.a_second:
        text += f": {found.a_second:.2g} more each second"
    return (text,)


def alive(facts: Facts) -> int | None:
    """How many graphs that were traced while recording were in memory at its end; None where nobody counted."""
    known = facts.meta.get("growth")
    if not isinstance(known, dict) or not known["points"] or "graphs" not in known["columns"]:
        return None
    return int(known["points"][-1][known["columns"].index("graphs")])


def memory(facts: Facts) -> tuple[str, ...]:
    """How the process's memory grew in the second half of the recording, where it did so steadily."""
    found = grown(facts.meta, "resident_bytes", 0.5)
    if found is None or found.last - found.first < _MUCH_BYTES or not (found.a_call or found.a_second):
        return ()
    more = f"{(found.last - found.first) / 1e6:,.0f} MB"
    step = f"{found.a_call / 1e3:,.1f} kB a call" if found.a_call else f"{(found.a_second or 0) / 1e6:,.1f} MB a second"
    return (f"the process grew by {more} in the second half of the recording, steadily: {step}, whoever made it",)


def a_call(facts: Facts) -> str:
    """` (this process grew by 399 kB a call, whoever made it)`, where it did so steadily; "" elsewhere."""
    found = grown(facts.meta, "resident_bytes")
    if found is None or not found.a_call:
        return ""
    return f" (this process grew by {found.a_call / 1e3:,.0f} kB a call, whoever made it)"
