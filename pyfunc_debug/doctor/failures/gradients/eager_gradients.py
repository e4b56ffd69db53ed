"""`tf.gradients` in eager code, which has no graph to look into: a tape around the lines that compute its target."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.gradients.moved_tapes import LISTS, in_block
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, parameters
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    is_keras,
    is_keras_variable,
    is_tf_variable,
    lookup,
)

RULE = "untaped"
_SAID = "tf.gradients is not supported when eager execution is enabled"
_SYMBOLIC = ("input", "inputs", "output", "outputs")
"""What a model or layer of Keras' has of symbols."""
_PYTHON = ("print", "numpy", "item", "tolist", "fit", "predict", "append", "show", "save")
"""Who calls one of these in a function needs values there."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line of eager code asks for gradients as in a graph."""
    spot = situation.last if _SAID in situation.message and not situation.body else None
    statement = situation.statement
    asked = [one for one in calls(statement) if _asks(one)] if statement is not None else []
    if spot is None or statement is None or len(asked) != 1:
        return None
    call, source = asked[0], spot.source
    target, wanted = argument(call, 0, "ys"), argument(call, 1, "xs")
    if target is None or wanted is None:
        return None
    name, tf = dotted(call.func), alias(spot, "tensorflow")
    cause = f"{name} looks into a graph, and eager code has none. A GradientTape sees what is computed in its block."
    if is_keras(lookup(wanted, spot)) or (isinstance(wanted, ast.Attribute) and wanted.attr in _SYMBOLIC):
        cause = (
            f"{name} asks for a gradient of symbols, which have no values: {source.text(wanted)} only describes input."
        )
        advice = (
            f"Under `with {tf}.GradientTape() as tape:`, call tape.watch(x) for a batch x, and the model with x; then "
            "ask tape.gradient(..., x) of what it gave."
        )
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    edit = _as_graph(spot, call) or _taped(spot, statement, call, target, wanted)
    advice = "" if edit else (
        f"Compute {source.text(target)} under `with {tf}.GradientTape() as tape:`, behind a "
        f"tape.watch(...) of each tensor in {source.text(wanted)}, and ask tape.gradient."
    )  # fmt: skip
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _asks(call: ast.Call) -> bool:
    return dotted(call.func).rpartition(".")[2] == "gradients"


def _as_graph(spot: Spot, call: ast.Call) -> Edit | None:
    """A function that asks several times, each for what was asked before perhaps, as a tf.function."""
    function, source = spot.function, spot.source
    if not isinstance(function, ast.FunctionDef) or function.decorator_list or sum(map(_asks, calls(function))) < 2:
        return None
    given = set(parameters(function))
    made = {
        part.id for one in ast.walk(function) if isinstance(one, ast.Assign) for target in one.targets
        for part in ast.walk(target) if isinstance(part, ast.Name)
    }  # fmt: skip
    for one in filter(_asks, calls(function)):
        target, wanted = argument(one, 0, "ys"), argument(one, 1, "xs")
        if not isinstance(target, ast.Name) or target.id not in made or wanted is None:
            return None
        if any(not isinstance(part, ast.Name) or part.id not in made | given for part in _each(wanted)):
            return None
    if any(dotted(one.func).rpartition(".")[2] in _PYTHON for one in calls(function)):
        return None
    line = f"{indent_of(source.lines[function.lineno - 1])}@{alias(spot, 'tensorflow')}.function"
    return Edit(spot.file, function.lineno, function.lineno - 1, (line,))


def _each(wanted: ast.expr) -> list[ast.expr]:
    return list(wanted.elts) if isinstance(wanted, (ast.List, ast.Tuple)) else [wanted]


def _taped(spot: Spot, statement: ast.stmt, call: ast.Call, target: ast.expr, wanted: ast.expr) -> Edit | None:
    """The lines that compute the target under a tape, and the tape asked in the place of the graph."""
    source, tf = spot.source, alias(spot, "tensorflow")
    if any(isinstance(one, ast.Name) and one.id == "tape" for one in ast.walk(source.tree)):
        return None
    blanks, watched, made = indent_of(source.lines[statement.lineno - 1]), [], []
    for one in _each(wanted):
        kind = "variables" if _is_list(one) else _kind(lookup(one, spot))
        if not kind:
            return None
        text = source.text(one)
        if kind == "array":
            made.append(f"{blanks}{text} = {tf}.convert_to_tensor({text}, {tf}.float32)")
        watched += [] if kind == "variables" else [f"tape.watch({text})"]
    begun = in_block(source, statement, target, wanted, f"with {tf}.GradientTape() as tape:", watched)
    last = statement.end_lineno or statement.lineno
    if begun is None or hasattr(statement, "body"):
        return None
    begin, text, lines = begun
    several = _is_list(wanted) or isinstance(lookup(wanted, spot), (list, tuple))
    place, new = _question(source, call, text, wanted, several)
    return Edit(
        spot.file, begin, last, (*made, *lines, *source.spliced({place: new}, statement.lineno, last))
    )  # fmt: skip


def _is_list(wanted: ast.expr) -> bool:
    """Whether it is written as a model's list of variables."""
    return isinstance(wanted, ast.Attribute) and wanted.attr in LISTS


def _kind(value: Any) -> str:
    """What is differentiated for: "variables", a "tensor", an "array" or number of floats; "" for anything else."""
    if isinstance(value, (list, tuple)):
        return "variables" if value and all(_kind(one) == "variables" for one in value) else ""
    if is_tf_variable(value) or is_keras_variable(value):
        return "variables"
    if type(value) is float or (type(value).__name__ == "ndarray" and value.dtype.kind == "f"):
        return "array"
    if type(value).__name__ == "EagerTensor" and value.dtype.is_floating:
        return "tensor"
    return ""


def _question(source: Source, call: ast.Call, text: str, wanted: ast.expr, several: bool) -> tuple[ast.expr, str]:
    """What stands in the line, and what stands there then: a tape gives no list where it is asked for one thing."""
    listed = isinstance(wanted, (ast.List, ast.Tuple))
    parts = _each(wanted)
    weights = argument(call, 2, "grad_ys")
    more = "" if weights is None else f", output_gradients={source.text(weights)}"
    around = source.parent(call)
    first = isinstance(around, ast.Subscript) and isinstance(around.slice, ast.Constant) and around.slice.value == 0
    if first and len(parts) == 1 and not several and isinstance(around, ast.Subscript):
        return around, f"tape.gradient({text}, {source.text(parts[0])}{more})"
    whole = f"tape.gradient({text}, {source.text(wanted)}{more})"
    return call, whole if listed or several else f"[{whole}]"
