"""A callback that asks itself for what its model has: `self.predict(x)` of a callback is `self.model.predict(x)`."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import held, lookup, of_keras

RULE = "missing-attribute"
_OF_MODELS = frozenset({
    "predict", "predict_on_batch", "evaluate", "test_on_batch", "train_on_batch", "optimizer", "layers", "get_layer",
    "get_weights", "set_weights", "save", "save_weights", "load_weights", "summary", "inputs", "outputs", "input",
    "output", "weights", "trainable_weights", "trainable_variables", "to_json", "count_params",
})  # fmt: skip
"""What no callback would keep under that name: not `losses` or `history`, which many fill themselves."""
_OF_GRAPHS = frozenset({"inputs", "outputs", "input", "output"})
"""What a subclassed model lacks as well."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the attribute that a callback lacks is one of its model."""
    error, spot, statement = situation.inner, situation.last, situation.statement
    if not isinstance(error, AttributeError) or spot is None or statement is None:
        return None
    owner, name = getattr(error, "obj", None), getattr(error, "name", None)
    if name not in _OF_MODELS or not of_keras(type(owner), "Callback"):
        return None
    asked = [
        one for one in ast.walk(statement)
        if isinstance(one, ast.Attribute) and one.attr == name and lookup(one.value, spot) is owner
    ]  # fmt: skip
    if not asked:
        return None
    model = held(ast.Attribute(asked[0].value, "model", ast.Load()), spot)
    if model is None or (name in _OF_GRAPHS and type(model).__name__ not in ("Functional", "Sequential")):
        return None
    own = spot.source.text(asked[0].value)
    cause = (
        f"{short(type(owner).__name__, 30)} is a callback, and has no `{name}`: the model, which has, is {own}.model."
    )
    edit = edit_of(spot.file, spot.source.replaced({one.value: f"{own}.model" for one in asked}))
    return Explanation(RULE, spot.file, spot.line, cause, edit)
