"""`sess.partial_run` that feeds a placeholder again: each is fed once between two calls of `partial_run_setup`."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_symbolic, lookup

RULE = "session-feed"
_SAID = re.compile(r"The feed (\S+) has already been fed")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a run in parts was fed what an earlier part of it was."""
    found, spot, statement = _SAID.search(situation.message), situation.last, situation.statement
    if found is None or spot is None or statement is None:
        return None
    runs = [(one, given) for one in calls(statement) if (given := _feeds(one)) is not None]
    if len(runs) != 1:
        return None
    run, given = runs[0]
    again = [key for key in given.keys if key is not None and _is(key, found[1], spot)]
    if len(again) != 1:
        return None
    key, value = next(one for one in zip(given.keys, given.values) if one[0] is again[0])
    text = spot.source.text
    handle = text(run.args[0]) if run.args else ""
    name = text(again[0])
    earlier = [
        (one, value) for one in own_nodes(spot.function or spot.source.tree)
        if isinstance(one, ast.Call) and one is not run and one.args and text(one.args[0]) == handle
        and _choices(spot, one) <= _choices(spot, run)
        and one.lineno < spot.line and (fed := _feeds(one)) is not None
        for key, value in zip(fed.keys, fed.values) if key is not None and text(key) == name
    ]  # fmt: skip
    if not earlier:
        cause = f"{name} is fed again. partial_run takes each placeholder once after a partial_run_setup."
        setup = next((one.lineno for one in calls(spot.source.tree) if _last(one) == "partial_run_setup"), None)
        where = f" (line {setup})" if setup is not None else ""
        return Explanation(
            RULE,
            spot.file,
            spot.line,
            cause,
            None,
            f"Call partial_run_setup{where} again for each round of partial_run.",
        )
    before, first = earlier[-1]
    cause = (
        f"{name} is fed again: line {before.lineno} fed it, and partial_run takes each placeholder once after a "
        f"partial_run_setup. Below {name} keeps the {text(first)} of line {before.lineno}."
    )
    if text(first) != text(value):
        cause += f" For {text(value)} it takes another run."
    return Explanation(RULE, spot.file, spot.line, cause, _without(spot, run, given, key), "")


def _choices(spot: Spot, call: ast.Call) -> set[int]:
    """The branches and loops around a call."""
    kinds = (ast.If, ast.IfExp, ast.For, ast.While, ast.Try, ast.BoolOp)
    return {id(one) for one in spot.source.around(call) if isinstance(one, kinds)}


def _without(spot: Spot, run: ast.Call, given: ast.Dict, key: ast.expr | None) -> Edit | None:
    """The call with a dict that lacks one key."""
    text = spot.source.text
    kept = [
        f"**{text(value)}" if one is None else f"{text(one)}: {text(value)}"
        for one, value in zip(given.keys, given.values) if one is not key
    ]  # fmt: skip
    return edit_of(spot.file, spot.source.replaced({given: f"{{{', '.join(kept)}}}"}))


def _feeds(call: ast.Call) -> ast.Dict | None:
    """What a call of partial_run feeds, where it is written there."""
    given = argument(call, 2, "feed_dict") if _last(call) == "partial_run" else None
    return given if isinstance(given, ast.Dict) else None


def _last(call: ast.Call) -> str:
    return dotted(call.func).rpartition(".")[2]


def _is(key: ast.expr, name: str, spot: Spot) -> bool:
    tensor = lookup(key, spot)
    return is_symbolic(tensor) and name in (tensor.name, tensor.op.name)
