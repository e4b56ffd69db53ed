"""`compile(optimizer, loss, ["accuracy"])` as Keras 2 took it: the third argument of Keras 3 is `loss_weights`."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source

RULE = "older-api"
_SAID = re.compile(
    r"dtype='string' is not a valid dtype for Keras type promotion|Expected `loss_weights` argument to be"
    r"|`loss_weights` must match the number of losses|Failed to convert elements of <"
)
_NAMES = ("metrics", "loss_weights")
"""What stood third and fourth in Keras 2."""
_BEFORE = 2


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if metrics stand where weights of losses do."""
    if situation.body or not _SAID.search(situation.message):
        return None
    found = [
        (file, source, call) for file, source in situation.sources() for call in source.calls_of(frozenset({"compile"}))
        if isinstance(call.func, ast.Attribute) and _are_metrics(call)
    ]  # fmt: skip
    if len(found) != 1:
        return None
    file, source, call = found[0]
    given = call.args[_BEFORE:]
    texts = [source.text(one) for one in given]
    if isinstance(given[0], ast.Constant):
        texts[0] = f"[{texts[0]}]"
    pieces = {one: f"{name}={text}" for one, name, text in zip(given, _NAMES, texts)}
    cause = (
        f"Keras 3 takes {source.text(given[0])} for loss_weights: the third argument of compile is that, and was "
        "metrics in Keras 2."
    )
    edit = edit_of(file, source.replaced(pieces)) if len(given) <= len(_NAMES) and _is_plain(source, call) else None
    return Explanation(
        RULE, file, call.lineno, cause, edit, "" if edit else f"Give it metrics={source.text(given[0])}."
    )


def _are_metrics(call: ast.Call) -> bool:
    """Whether the third argument of a call is a list of metrics, or the name of one."""
    third = call.args[_BEFORE] if len(call.args) > _BEFORE else None
    if isinstance(third, (ast.List, ast.Tuple)):
        numbers = [one for one in third.elts if isinstance(one, ast.Constant) and not isinstance(one.value, str)]
        return bool(third.elts) and not numbers
    return isinstance(third, ast.Constant) and isinstance(third.value, str)


def _is_plain(source: Source, call: ast.Call) -> bool:
    """Whether no argument is given twice then, and none comes from a list."""
    named = {one.arg for one in call.keywords}
    return not named & {*_NAMES, None} and not any(isinstance(one, ast.Starred) for one in call.args)
