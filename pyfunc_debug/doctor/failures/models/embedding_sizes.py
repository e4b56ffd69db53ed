"""An id that an Embedding layer has no row for: TensorFlow names the op, and neither the layer's size nor the line."""

from __future__ import annotations

import ast
import re
import sys
from contextlib import suppress
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_ndarray, lookup
from pyfunc_debug.interception.names.private import keras_layers

RULE = "label-range"
_SAID = re.compile(r"indices(?:\[[\d,]*\])? = (\d+) is not in \[0, (\d+)\)")
_NODE = re.compile(r"/(?:GatherV2|embedding_lookup)\b")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a layer of the model that is trained looked up an id that it has no row for."""
    found = _SAID.search(situation.message)
    if found is None or situation.body or not _NODE.search(situation.message):
        return None
    seen, rows = int(found[1]), int(found[2])
    for spot, call in failed_fits(situation):
        model = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
        layers = [one for one in _every(model) if getattr(one, "input_dim", None) == rows]
        if not layers:
            continue
        largest = _largest(call, spot, rows) if _reads_the_input(layers[0], model) else None
        most = max(seen, largest or 0)
        cause = (
            f"{'The' if len(layers) == 1 else 'An'} Embedding layer has {rows} rows, ids 0 to {rows - 1}, and "
            f"the data has {f'ids up to {most}' if largest is not None else f'the id {seen}'}. input_dim is the "
            "largest id and one more."
        )
        made = [
            (file, source, one) for file, source in situation.sources() for one in calls(source.tree)
            if dotted(one.func).rpartition(".")[2] == "Embedding" and argument(one, 0, "input_dim") is not None
        ]  # fmt: skip
        if len(made) > 1:
            made = [one for one in made if _rows(one[2], spot) == rows]
        if len(made) == 1 and largest is None and _counts(made[0][1], made[0][2]):
            return _positions(*made[0], rows, seen, _length(call, spot))
        plain = len(made) == 1 and isinstance(argument(made[0][2], 0, "input_dim"), ast.Constant)
        if len(made) != 1 or (largest is None and (seen != rows or plain)):
            return Explanation(RULE, spot.file, call.lineno, cause, None, "Give input_dim the largest id and one more.")
        file, source, embedding = made[0]
        given = argument(embedding, 0, "input_dim")
        assert given is not None
        new = str(most + 1) if plain or most != rows else f"{source.text(given)} + 1"
        edit = edit_of(file, source.replaced({given: new}))
        return Explanation(RULE, file, given.lineno, cause, edit, "", "measured" if largest is not None else "likely")
    return None


def _counts(source: Source, embedding: ast.Call) -> bool:
    """Whether a layer that is an attribute looks up `tf.range(...)`: positions."""
    holder = source.parent(embedding)
    name = dotted(holder.targets[0]) if isinstance(holder, ast.Assign) else ""
    for one in calls(source.tree):
        if name.startswith("self.") and dotted(one.func) == name and one.args:
            given, function = one.args[0], source.function(one.lineno)
            if isinstance(given, ast.Name) and isinstance(function, ast.FunctionDef):
                return any("range" in source.text(made) for made in _assigned(function, given.id))
            return "range" in source.text(given)
    return False


def _assigned(function: ast.FunctionDef, name: str) -> list[ast.expr]:
    return [
        one.value for one in ast.walk(function)
        if isinstance(one, ast.Assign) and [dotted(target) for target in one.targets] == [name]
    ]  # fmt: skip


def _positions(file: str, source: Source, embedding: ast.Call, rows: int, seen: int, length: int | None) -> Explanation:
    """Positions of sequences that are longer than the layer."""
    given = argument(embedding, 0, "input_dim")
    assert given is not None
    cause = f"This Embedding layer has {rows} rows, for positions 0 to {rows - 1}, and looks up position {seen}"
    if length is None or length <= seen:
        advice = "Give input_dim the length of the longest sequence, or cut the sequences to its rows."
        return Explanation(RULE, file, given.lineno, f"{cause}: a sequence is longer.", None, advice)
    edit = edit_of(file, source.replaced({given: str(length)}))
    cause += f": the rows of the data have {length} columns."
    return Explanation(RULE, file, given.lineno, cause, edit, "" if edit else f"Give it {length} rows.", "likely")


def _length(call: ast.Call, spot: Spot) -> int | None:
    """The columns of the one array that `fit` gets."""
    given = argument(call, 0, "x")
    value: Any = lookup(given, spot) if given is not None else None
    return int(value.shape[1]) if is_ndarray(value) and value.ndim == 2 else None


def _reads_the_input(layer: Any, model: Any) -> bool:
    """Whether a layer looks up what the model's one input has, and no part of it."""
    with suppress(Exception):
        return len(model.inputs) == 1 and layer.input is model.inputs[0]
    return False


def _every(layer: Any) -> list[Any]:
    """The layers of a model, and of the models in it."""
    inside = [*(keras_layers(layer) or ())] if layer is not None else []
    return [part for one in inside for part in (one, *_every(one))]


def _rows(call: ast.Call, spot: Spot) -> Any:
    given = argument(call, 0, "input_dim")
    return computed(given, spot) if given is not None else None


def _largest(call: ast.Call, spot: Spot, rows: int) -> int | None:
    """The largest id of the one array that `fit` gets; None of other data."""
    given = argument(call, 0, "x")
    value: Any = lookup(given, spot) if given is not None else None
    if not is_ndarray(value) or not value.size or value.dtype.kind not in "iu":
        return None
    largest = int(sys.modules["numpy"].max(value))
    return largest if largest >= rows else None
