"""The panel's list of breakpoints, the kernel's half: the same breakpoints as `%pyfunc_break` and `pfd.break_on`."""

from __future__ import annotations

from typing import Any

from pyfunc_debug.errors import BadOptionError, PyfuncDebugError
from pyfunc_debug.stops import Breakpoint
from pyfunc_debug.stops.conditions import Condition
from pyfunc_debug.stops.rules import STOPPED
from pyfunc_debug.switchboard import board

Json = dict[str, Any]


def answer(content: Json) -> Json:
    """Does what a page asks.

    Args:
      content: `action`: list; add (where, and optionally when, condition, hits, once); change (number, and enabled or
        condition); remove (number); check (condition).

    Returns:
      `status`: "ok", or in words what is wrong; and all `breakpoints` as they are then.
    """
    try:
        _do(content)
        status = "ok"
    except PyfuncDebugError as error:
        status = str(error)
    return {"status": status, "breakpoints": [_as_json(one) for one in board.rules.all()]}


def _do(content: Json) -> None:
    action = content.get("action")
    condition = str(content.get("condition") or "").strip() or None
    if action == "check":
        if condition is not None:
            Condition(condition)
    elif action == "add":
        board.rules.add(
            str(content.get("where", "")),
            when=str(content.get("when") or "before"),
            condition=condition,
            hits=int(content.get("hits") or 1),
            once=bool(content.get("once")),
        )
    elif action in ("change", "remove"):
        found = next((one for one in board.rules.all() if one.number == content.get("number")), None)
        if found is None:
            raise BadOptionError("this breakpoint was removed elsewhere")
        if action == "remove":
            found.remove()
            return
        if "condition" in content:
            found.edit(condition)
        if "enabled" in content:
            (found.enable if content["enabled"] else found.disable)()


def _as_json(one: Breakpoint) -> Json:
    return {
        "number": one.number, "where": one.where, "file": one.file, "line": one.line, "when": one.when,
        "condition": one.condition, "first_hit": one.first_hit, "once": one.once, "enabled": one.enabled,
        "hits": one.hits, "stopped": one.outcomes[STOPPED], "error": one.error,
    }  # fmt: skip
