"""Arguments that callbacks of Keras had before Keras 3, as `ModelCheckpoint(period=5)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_keras_class, lookup

RULE = "older-api"
_SAID = re.compile(r"^(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'")
_RENAMED: Mapping[tuple[str, str], str] = {
    ("TensorBoard", "write_grads"): "",
    ("TensorBoard", "batch_size"): "",
    ("TensorBoard", "embeddings_layer_names"): "",
    ("TensorBoard", "embeddings_data"): "",
    ("TensorBoard", "profile_batches"): "profile_batch",
}
"""Callbacks and arguments that are gone, and their new names; "" where there is none."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a callback does not have an argument any more."""
    spot, statement, said = situation.last, situation.statement, _SAID.search(situation.message)
    if spot is None or statement is None or said is None or situation.body:
        return None
    found = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] == said[1]]
    kind = lookup(found[0].func, spot) if len(found) == 1 else None
    if not isinstance(kind, type) or not is_keras_class(kind) or kind.__name__ != said[1]:
        return None
    if (said[1], said[2]) == ("ModelCheckpoint", "period"):
        return _period(spot, found[0])
    new = _RENAMED.get((said[1], said[2]))
    if new is None:
        return None
    cause = f"Keras 3 has no {said[2]}= in {said[1]}" + (f": it is called {new}." if new else ".")
    return _told(spot, found[0], said[2], new, "", cause)


def _period(spot: Spot, call: ast.Call) -> Explanation:
    """`period=5`, in epochs: `save_freq` counts batches."""
    node = next(one.value for one in call.keywords if one.arg == "period")
    text = spot.source.text(node)
    cause = (
        'Keras 3 has no period= in ModelCheckpoint, which counted epochs: save_freq counts batches, or is "epoch". '
        f"With the number of batches in an epoch, save_freq={text} * steps, it saves as before."
    )
    return _told(spot, call, "period", "save_freq", '"epoch"', cause)


def _told(spot: Spot, call: ast.Call, old: str, new: str, value: str, cause: str) -> Explanation:
    """The call with another argument in the place of one, or without it."""
    given = {one.arg: one.value for one in call.keywords}
    text = f"{new}={value or spot.source.text(given[old])}" if new and new not in given else ""
    whole = f"{spot.source.text(call.func)}({spot.source.arguments(call, {old: text})})"
    placed = spot.source.replaced({call: whole})
    return Explanation(RULE, spot.file, call.lineno, cause, edit_of(spot.file, placed))
