"""A metric that gives what Keras traces to Python code in another file: `self.score = scores(pred, true)`.

A metric needs no gradient, so that the one line may run as Python; the model stays a graph.
"""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.graphs.text_methods import of_texts_alone
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    dtype_of,
    is_keras_variable,
    is_symbolic,
    lookup,
    of_keras,
    root_is,
    shape_of,
    symbolic_parts,
)

RULE = "symbolic-value"
_SAID = re.compile(r"symbolic|SymbolicTensor|'Tensor' object|Tensor objects are only iterable")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if code that update_state called in another file failed on symbolic tensors."""
    last = situation.last
    if last is None or situation.body or not _SAID.search(situation.message):
        return None
    spot = next((one for one in reversed(situation.spots) if _updates(one)), None)
    statement = spot.statement if spot is not None else None
    if spot is None or statement is None or last.file == spot.file:
        return None
    target, value = _kept(statement)
    variable = lookup(target, spot) if target is not None else None
    if target is None or value is None or not is_keras_variable(variable) or shape_of(variable) != ():
        return None
    called = [
        one for one in calls(value)
        if not any(root_is(one.func, spot, part) for part in ("tensorflow", "keras"))
        and any(symbolic_parts(arg, spot) for arg in one.args)
    ]  # fmt: skip
    inputs = [one for one in called[0].args if symbolic_parts(one, spot)] if len(called) == 1 else []
    read = [one for one in ast.walk(value) if isinstance(one, ast.Name) and is_symbolic(spot.value(one.id))]
    if not inputs or not all(any(one in ast.walk(arg) for arg in inputs) for one in read):
        return None
    source, tf, np = spot.source, alias(spot, "tensorflow"), alias(spot, "numpy")
    names = [one.id if isinstance(one, ast.Name) else f"given{place}" for place, one in enumerate(inputs)]
    texts, joined = names, ""
    if of_texts_alone(last.function):
        held = [one for one in last.variables.values() if is_symbolic(one)]
        if not held or not all("int" in dtype_of(one) and len(shape_of(one) or ()) == 2 for one in held):
            return None
        texts = [f'[" ".join(map(str, row)) for row in {one}.tolist()]' for one in names]
        joined = " Each row of ids is joined to a text."
    if value.lineno != value.end_lineno or not source.lines[value.lineno - 1].isascii() or len(set(names)) < len(names):
        return None
    text, dtype = source.text_with(value, dict(zip(inputs, texts))), dtype_of(variable)
    body = f"lambda {', '.join(names)}: {np}.{dtype}({text})"
    given = ", ".join(source.text(one) for one in inputs)
    new = f"{tf}.ensure_shape({tf}.numpy_function({body}, [{given}], {tf}.{dtype}), [])"
    owner = source.text(target)
    edit = edit_of(spot.file, source.replaced({value: new}))
    if edit is not None and isinstance(statement, ast.Assign):
        line = f"{indent_of(source.lines[statement.lineno - 1])}{owner}.assign({new})"
        edit = Edit(spot.file, statement.lineno, statement.end_lineno or statement.lineno, (line,))
        joined += f" {owner} is a variable, which `=` would replace: assign gives it the value."
    cause = (
        f"{short(source.text(called[0].func), 40)} is Python, which needs values: Keras traced update_state with "
        f"symbols. A metric needs no gradient: a numpy_function runs it for each batch.{joined}"
    )
    return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")


def _updates(spot: Spot) -> bool:
    """Whether a frame is update_state of a metric of the user's."""
    owner = spot.variables.get("self")
    return spot.code in ("update_state", "tf__update_state") and of_keras(type(owner), "Metric")


def _kept(statement: ast.stmt) -> tuple[ast.expr | None, ast.expr | None]:
    """`self.score` and the value that it gets, by `=` or by assign."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return statement.targets[0], statement.value
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and len(call.args) == 1:
        return (call.func.value, call.args[0]) if call.func.attr.startswith("assign") else (None, None)
    return None, None
