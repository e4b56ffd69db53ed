"""Stops that nobody could answer: the calls went on, and what the prompt would have shown was recorded."""

from __future__ import annotations

from collections.abc import Iterator

from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = ("stop-unanswered",)
_MOST_CALLS = 1000
_MOST_SHOWN = 8


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a node and a reason, with its calls and what the first one was given."""
    seen: dict[tuple[int | None, str], list[tuple[int | None, list[str], list[str]]]] = {}
    for node, call, noticed in facts.notices["stop-unanswered"]:
        why = str(noticed.get("why", "a stop"))
        given, local = ([str(one) for one in noticed.get(key, ())] for key in ("inputs", "locals"))
        seen.setdefault((node, why), []).append((call, given, local))
    for (node, why), found in seen.items():
        known = facts.nodes.get(node) if node is not None else None
        body = known.body if known is not None else "a body"
        calls = tuple(call for call, _, _ in found if call is not None)[:_MOST_CALLS]
        _, inputs, variables = found[0]
        told = f" The first one was given {', '.join(inputs)}." if inputs else ""
        if variables:
            told += f" There was {', '.join(variables[:_MOST_SHOWN])}{', ...' if len(variables) > _MOST_SHOWN else ''}."
        times = "once" if len(found) == 1 else f"{len(found):,} times"
        yield Finding(
            "stop-unanswered", "note", node, calls,
            f"{body} would have stopped {times} ({why}), but nobody could answer, and the calls went on.{told}",
            "run it where you can answer (a terminal, a notebook, pfd.answers), or remove the breakpoint",
            known.file if known is not None else None, known.line if known is not None else None,
        )  # fmt: skip
