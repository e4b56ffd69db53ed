"""Functions of keras.backend, and the optimizers' minimize, which Keras 3 does not have any more."""

from __future__ import annotations

import ast
import sys

from pyfunc_debug.doctor.failures.gradients.moved_tapes import in_block
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, keras_name, lookup

RULE = "older-api"


def explain(spot: Spot, of: ast.Attribute, situation: Situation) -> Explanation | None:
    """`K.sum`: TensorFlow's module of that name still has it; `K.function`: a model does it.

    Args:
      spot: Where it was asked for.
      of: The attribute.
      situation: The failure.
    """
    if of.attr == "function":
        return _function(spot, of)
    legacy = sys.modules.get("keras._tf_keras.keras.backend")
    if legacy is None or not hasattr(legacy, of.attr) or not isinstance(of.value, ast.Name):
        return None
    cause = (
        f"Keras 3 has no keras.backend.{of.attr}. tensorflow.keras.backend has it, with the other functions of Keras "
        "2; what they take and give are TensorFlow's tensors."
    )
    edit = _imported(spot, of.value.id)
    return Explanation(
        RULE, spot.file, of.lineno, cause, edit, "" if edit else "Import backend from tensorflow.keras."
    )  # fmt: skip


def _imported(spot: Spot, name: str) -> Edit | None:
    """The line that imports the module, as TensorFlow's."""
    for one in ast.walk(spot.source.tree):
        if not isinstance(one, (ast.Import, ast.ImportFrom)) or len(one.names) != 1:
            continue
        given = one.names[0]
        if (given.asname or given.name) != name or one.lineno != one.end_lineno:
            continue
        blanks = indent_of(spot.source.lines[one.lineno - 1])
        if isinstance(one, ast.Import) and given.name == "keras.backend" and given.asname:
            return Edit(spot.file, one.lineno, one.lineno, (f"{blanks}import tensorflow.keras.backend as {name}",))
        if isinstance(one, ast.ImportFrom) and one.module == "keras" and given.name == "backend":
            new = f" as {given.asname}" if given.asname else ""
            return Edit(spot.file, one.lineno, one.lineno, (f"{blanks}from tensorflow.keras import backend{new}",))
    return None


def _function(spot: Spot, of: ast.Attribute) -> Explanation | None:
    """`K.function([model.input], [layer.output])` as the prediction of a model."""
    found = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.Call) and one.func is of]
    call = found[0] if found else None
    cause = "Keras 3 has no K.function. A model from the same inputs to the same outputs gives their values."
    if call is None or len(call.args) != 2 or call.keywords:
        return Explanation(RULE, spot.file, of.lineno, cause, None, "Make a keras.Model of them, and call its predict.")
    inputs, outputs = call.args
    model = f"{keras_name(spot)}.Model({spot.source.text(inputs)}, {spot.source.text(outputs)})"
    one_in, one_out = (isinstance(each, ast.List) and len(each.elts) == 1 for each in (inputs, outputs))
    new = f"lambda values, model={model}: [model.predict(values)]" if one_out else f"{model}.predict"
    placed = spot.source.replaced({call: f"({new})" if isinstance(spot.source.parent(call), ast.Call) else new})
    if placed is None or not one_in or not isinstance(outputs, ast.List):
        return Explanation(RULE, spot.file, of.lineno, cause, None, "Make a keras.Model of them, and call its predict.")
    return Explanation(RULE, spot.file, of.lineno, cause, Edit(spot.file, placed[0], placed[1], (placed[2],)))


def _is_used(statement: ast.stmt | None, source: Source) -> bool:
    """Whether the file reads what the statement assigns."""
    targets = {dotted(one) for one in getattr(statement, "targets", ())}
    return any(isinstance(one, ast.Name) and one.id in targets and isinstance(one.ctx, ast.Load)
               for one in ast.walk(source.tree))  # fmt: skip


def set_by_keras(spot: Spot, rate: str = "") -> Explanation | None:
    """`K.set_value(v, x)` as a line of its own, which Keras 3 cannot do with its variables, as `v.assign(x)`.

    Args:
      spot: The frame.
      rate: What is there in the place of v, where that has another name now.
    """
    statement = spot.statement
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not dotted(call.func).endswith("set_value") or len(call.args) != 2:
        return None
    variable, value = map(spot.source.text, call.args)
    first, last = spot.source.span(statement)  # type: ignore[arg-type]
    line = f"{indent_of(spot.source.lines[first - 1])}{rate or variable}.assign({value})"
    cause = f"{'Keras 3 calls it learning_rate, and its' if rate else 'Of Keras 3'} variables change by assign."
    return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, first, last, (line,)))


def minimized(spot: Spot, of: ast.Attribute) -> Explanation | None:
    """`optimizer.minimize(loss, var_list=[w])` as a tape and `apply`."""
    source = spot.source
    statement = source.statement(spot.line)
    call = next((one for one in calls(statement) if one.func is of), None) if statement is not None else None
    cause = "An optimizer of Keras 3 has no minimize: a GradientTape asks for the gradients, and apply takes them."
    advice = "Compute the loss under a tf.GradientTape, and call optimizer.apply(gradients, variables)."
    loss = argument(call, 0, "loss") if call is not None else None
    variables = argument(call, 1, "var_list") if call is not None else None
    whole = call is not None and getattr(statement, "value", None) is call and not _is_used(statement, source)
    tape = next((one.value for one in call.keywords if one.arg == "tape"), None) if call is not None else None
    if tape is not None and loss is not None and variables is not None and whole and statement is not None:
        listed, own = source.text(variables), source.text(of.value)
        line = f"{own}.apply({source.text(tape)}.gradient({source.text(loss)}, {listed}), {listed})"
        first, last = source.span(statement)
        edit = Edit(spot.file, first, last, (f"{indent_of(source.lines[first - 1])}{line}",))
        return Explanation(RULE, spot.file, of.lineno, cause, edit)
    if call is None or statement is None or loss is None or variables is None or not whole or len(call.args) > 2:
        return Explanation(RULE, spot.file, of.lineno, cause, None, advice)
    value = source.text(loss.body) if isinstance(loss, ast.Lambda) and not loss.args.args else f"{source.text(loss)}()"
    given = lookup(loss, spot)
    if not isinstance(loss, ast.Lambda) and not callable(given):
        taped = _taped(spot, of, statement, loss, variables)
        return Explanation(RULE, spot.file, of.lineno, cause, taped, "" if taped else advice)
    asked = lookup(variables, spot)
    listed = source.text(variables)
    if callable(asked) or (isinstance(variables, ast.Lambda) and not variables.args.args):
        listed = source.text(variables.body) if isinstance(variables, ast.Lambda) else f"{listed}()"
    tf, own = alias(spot, "tensorflow"), source.text(of.value)
    blanks = indent_of(source.lines[statement.lineno - 1])
    lines = (
        f"{blanks}with {tf}.GradientTape() as tape:",
        f"{blanks}    loss_value = {value}",
        f"{blanks}{own}.apply(tape.gradient(loss_value, {listed}), {listed})",
    )
    edit = Edit(spot.file, statement.lineno, statement.end_lineno or statement.lineno, lines)
    return Explanation(RULE, spot.file, of.lineno, cause, edit)


def _taped(spot: Spot, of: ast.Attribute, statement: ast.stmt, loss: ast.expr, variables: ast.expr) -> Edit | None:
    """The lines that compute a loss under a tape, where minimize got it as a tensor."""
    source = spot.source
    begun = in_block(source, statement, loss, variables, f"with {alias(spot, 'tensorflow')}.GradientTape() as tape:")
    if begun is None:
        return None
    begin, text, lines = begun
    listed = source.text(variables)
    applied = f"{source.text(of.value)}.apply(tape.gradient({text}, {listed}), {listed})"
    blanks = indent_of(source.lines[statement.lineno - 1])
    return Edit(spot.file, begin, statement.end_lineno or statement.lineno, (*lines, f"{blanks}{applied}"))
