"""A generator that takes pieces of data from elsewhere, and yields nothing, as until a buffer of its own is full."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts

_LOOPS = (ast.While, ast.For)
_YIELDS = (ast.Yield, ast.YieldFrom)


def sentence(facts: Facts, noticed: dict[str, Any], over: bool) -> str:
    """What a call waited for again and again, and that it yielded nothing; "" where it did not."""
    again = noticed.get("again")
    if not again:
        return ""
    at = facts.source_line(str(again["file"]), int(again["line"]))
    waits, goes, leaves = ("waited", "went", "left") if over else ("waits", "goes", "leaves")
    text = f". It {waits} for {again['what']} some {again['rate']:,} times a second, at {at}, and {goes} on each time"
    skip = _skip(facts, again) if noticed.get("yields") else None
    if skip is not None:
        text += f", but `if {ast.unparse(skip.test)}` in line {skip.lineno} {leaves} out the yield"
    return text


def fix(facts: Facts, noticed: dict[str, Any]) -> str:
    """What to do about it, in words; "" where nothing is known."""
    again = noticed.get("again")
    if not again or not noticed.get("yields"):
        return ""
    skip = _skip(facts, again)
    until = f"until `{ast.unparse(skip.test)}` is false" if skip is not None else "until it yields"
    return (
        f"see what it takes {until}: a buffer that it fills first has to be smaller than what comes in a few seconds; "
        "print how many it holds"
    )


def _skip(facts: Facts, again: dict[str, Any]) -> ast.If | None:
    """The `if ...: continue` between the line that waits and the next `yield` of its loop; None where there is none."""
    line = int(again["line"])
    loops = [one for kind in _LOOPS for one in pastes.around(facts.tree(str(again["file"])), line, kind)]
    loop = max(loops, key=lambda one: one.lineno, default=None)
    if loop is None:
        return None
    yielded = [one.lineno for kind in _YIELDS for one in pastes.walk(loop, kind) if one.lineno > line]
    skips = [
        one for one in pastes.walk(loop, ast.If)
        if line < one.lineno < min(yielded, default=0) and not one.orelse and isinstance(one.body[-1], ast.Continue)
    ]  # fmt: skip
    return skips[0] if len(skips) == 1 else None
