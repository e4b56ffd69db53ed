"""What is said of a line that asked a symbolic tensor for its value: where it ran, and what runs later."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.models.keras_calls import is_loss
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import alias, described, is_keras

RULE = "symbolic-value"

SHAPE_CHECK = re.compile(r"is incompatible with the layer\b|^Invalid input shape for input ")
"""What Keras' own checks of shapes say: a layer ran there as it should, and nothing wanted a value."""
_TENSOR_OF_GENERATOR = re.compile(r"from_generator\(\s*(?:generator=)?[\w.]+\.(?:py|numpy)_function\(")
"""A node in the place of a generator: `from_generator` takes no tensor."""


def explained(
    situation: Situation, spot: Spot, statement: ast.stmt, parts: dict[str, object], edit: Edit | None,
    sure: bool = True, advice: str = "",
) -> Explanation:  # fmt: skip
    code = short(spot.source.text(statement).split("\n")[0], 44)
    shown = [f"{name} ({described(one)})" for name, one in list(parts.items())[:2]]
    keras = any(is_keras(one) for one in parts.values())
    if keras:
        says = (
            "only describes an input of the model and has"
            if len(shown) < 2
            else "only describe inputs of the model and have"
        )
        what = f"{' and '.join(shown)} {says} no value"
        cause = f"`{code}` ran once, while the Keras model was built: {what}. Only layers and keras.ops take it."
    else:
        cause = f"`{code}` ran once, {when(situation)}, when {' and '.join(shown)} had no value yet. {runs(situation)}"
    if edit is not None and _TENSOR_OF_GENERATOR.search("\n".join(edit.lines)):
        given = ", ".join(name for name in parts if name.isidentifier())
        edit, advice = None, (
            f"from_generator calls a function, and gives it what stands in args as values: from_generator(read, "
            f"args=({given},), ...) of a function read({given}) that takes it there."
        )  # fmt: skip
    if edit is None and not advice and is_loss(situation):
        advice = "A loss needs a gradient, and NumPy and Python give none: compute it with TensorFlow's ops."
    if edit is None and not advice:
        tf = alias(spot, "tensorflow")
        advice = f"Use ops of {tf}, or do it in a py_function: {tf}.py_function(f, [{', '.join(parts)}], Tout)."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice, "measured" if sure else "likely")


def when(situation: Situation) -> str:
    index, by = wrapping.entry(situation)
    index, by = _traced_around(situation, index, by)
    function = situation.spots[index].function
    name = getattr(function, "name", "the lambda" if function is not None else "the model")
    if by == "tf.data":
        call = wrapping.dataset_call(situation, index)
        method = (
            f"Dataset.{call[1].func.attr}"
            if call is not None and isinstance(call[1].func, ast.Attribute)
            else "tf.data"
        )
        return f"while {method} traced {name}"
    if by == "Keras":
        return f"while Keras traced {name}"
    return f"while {name} was traced"


def _traced_around(situation: Situation, index: int, by: str) -> tuple[int, str]:
    """The user's own tf.function, where that traces a layer which it calls: Keras only passes the call on."""
    if by != "Keras":
        return index, by
    around = [at for at, one in enumerate(situation.spots[:index]) if one.generated or one.by == "tf.function"]
    own = around and wrapping.dataset_call(situation, around[-1]) is None
    return (around[-1], "tf.function") if own else (index, by)


def runs(situation: Situation) -> str:
    _, by = _traced_around(situation, *wrapping.entry(situation))
    by = "tf.data" if wrapping.around_layer(situation) is not None else by
    what = {"tf.data": "element", "Keras": "batch"}.get(by, "run")
    return f"Each {what} goes through the graph: ops, and Python only in py_functions."


def few(parts: dict[str, object]) -> str:
    return " and ".join(f"{name} ({described(one)})" for name, one in list(parts.items())[:2])
