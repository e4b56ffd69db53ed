"""A loss that is made of a model's own tensors, as of a VAE, given to `add_loss` of the model or to `compile`."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_keras, keras_name, lookup, of_keras

RULE = "structure"
_LAYER = "WithLoss"
_OF_TENSORS = re.compile(r"Could not interpret loss identifier: <KerasTensor")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if such a tensor was given to either."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body:
        return None
    if situation.kind == "NotImplementedError" and not situation.message:
        return _added(spot, statement)
    return _compiled(spot) if _OF_TENSORS.search(situation.message) else None


def _added(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`vae.add_loss(loss)`, which Keras 3 has for layers only, in their call."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not dotted(call.func).endswith(".add_loss") or len(call.args) != 1:
        return None
    cause = "add_loss of a model takes no tensors that describe it: a layer adds a loss, in its call."
    lines = _with_loss(spot, dotted(call.func).removesuffix(".add_loss"), spot.source.text(call.args[0]))
    first, last = spot.source.span(statement)
    if lines is None:
        return Explanation(RULE, spot.file, spot.line, cause, None, "Compute it in a layer, with self.add_loss.")
    blanks = indent_of(spot.source.lines[first - 1])
    edit = Edit(spot.file, first, last, tuple(f"{blanks}{one}" for one in lines))
    return Explanation(RULE, spot.file, spot.line, f"{cause} Below, one does.", edit)


def _compiled(spot: Spot) -> Explanation | None:
    """`compile(loss=loss)` of a tensor: what a loss gave of two tensors is that loss, anything else is a layer's."""
    source = spot.source
    for call in calls(source.tree):
        loss = argument(call, 1, "loss") if dotted(call.func).endswith(".compile") else None
        if loss is None:
            continue
        value: ast.AST | None = loss
        if isinstance(loss, ast.Name):
            made = [one.value for one in ast.walk(source.tree) if isinstance(one, ast.Assign)
                    and loss.id in map(source.text, one.targets) and one.lineno < loss.lineno]  # fmt: skip
            value = made[0] if len(made) == 1 else None
        cause = (
            "`loss` is a tensor that describes the model: Keras calls a loss with the labels and predictions of each "
            "batch, and takes a function for it."
        )
        model = dotted(call.func).removesuffix(".compile")
        of_labels = isinstance(value, ast.Call) and len(value.args) == 2 and not value.keywords
        if isinstance(value, ast.Call) and of_labels and all(is_keras(lookup(one, spot)) for one in value.args):
            own = getattr(_model(spot, model), "inputs", [])
            if not any(lookup(value.args[0], spot) is one for one in own):  # it stands for the labels
                edit = edit_of(spot.file, source.replaced({loss: source.text(value.func)}))
                return Explanation(RULE, spot.file, loss.lineno, cause, edit, "", "likely")
        statement, lines = source.statement(call.lineno), _with_loss(spot, model, source.text(loss))
        keyword = next((one for one in call.keywords if one.value is loss), None)
        if lines is None or statement is None or keyword is None or statement.lineno != statement.end_lineno:
            advice = "Write it as a function of y_true and y_pred; what needs other tensors, in a layer with add_loss."
            return Explanation(RULE, spot.file, loss.lineno, cause, None, advice)
        rest = ", ".join(
            [*map(source.text, call.args), *(ast.unparse(one) for one in call.keywords if one is not keyword)]
        )  # fmt: skip
        blanks = indent_of(source.lines[statement.lineno - 1])
        every = (*lines, f"{source.text(call.func)}({rest})")
        edit = Edit(spot.file, statement.lineno, statement.lineno, tuple(f"{blanks}{one}" for one in every))
        return Explanation(RULE, spot.file, loss.lineno, f"{cause} A layer can add one of other tensors.", edit)
    return None


def _model(spot: Spot, name: str) -> Any:
    found: Any = spot.value(name) if name.isidentifier() else None
    return found if of_keras(type(found), "Functional") else None


def _with_loss(spot: Spot, name: str, loss: str) -> list[str] | None:
    """The model with a layer that adds the loss; None where it is none of one output, or has no name of its own."""
    model = _model(spot, name)
    if model is None or len(model.outputs) != 1 or _LAYER in spot.module:
        return None
    tf, keras = alias(spot, "tensorflow"), keras_name(spot)
    return [
        f"class {_LAYER}({keras}.layers.Layer):",
        "    def call(self, given):",
        f"        self.add_loss({tf}.reduce_mean(given[1]))",
        "        return given[0]",
        f"{name} = {keras}.Model({name}.inputs, {_LAYER}()([{name}.output, {loss}]))",
    ]
