"""A weight of Keras' given to a tf.function while another function is traced: its value is asked for, and not there."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.situation import Situation
from pyfunc_debug.doctor.failures.source import dotted
from pyfunc_debug.doctor.failures.symbols import alias, calls, lookup

RULE = "symbolic-value"
_SAID = "numpy() is only available when eager execution is enabled"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an argument of the failing line's tf.function is such a weight."""
    spot = situation.last
    statement = spot.source.statement(spot.line) if spot is not None else None
    if spot is None or statement is None or situation.body or _SAID not in situation.message:
        return None
    for call in calls(statement):
        weights = [one for one in call.args if _is_weight(lookup(one, spot))]
        if not weights or not _is_compiled(call, spot.source.tree):
            continue
        tf, texts = alias(spot, "tensorflow"), [spot.source.text(one) for one in weights]
        pieces: dict[ast.expr, str] = {one: f"{tf}.convert_to_tensor({text})" for one, text in zip(weights, texts)}
        found = spot.source.replaced(pieces)
        cause = (
            f"{', '.join(texts)} is a weight of Keras', and {dotted(call.func)} a tf.function: it takes what is no "
            "tensor for NumPy, and asks for a value while the graph is built. As a tensor the graph reads it each time."
        )
        edit = None if found is None else Edit(spot.file, found[0], found[1], (found[2],))
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Give it {pieces[weights[0]]}.")
    return None


def _is_weight(value: Any) -> bool:
    """Whether a value is a variable of Keras 3's."""
    return any(one.__name__ == "Variable" and one.__module__.startswith("keras.") for one in type(value).__mro__)


def _is_compiled(call: ast.Call, tree: ast.AST) -> bool:
    """Whether a function of this name is decorated with tf.function."""
    name = dotted(call.func).rpartition(".")[2]
    made = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    decorators = [part for one in made for part in one.decorator_list]
    return any(dotted(one.func if isinstance(one, ast.Call) else one).endswith("tf.function") for one in decorators)
