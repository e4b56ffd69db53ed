"""A tf.function with an input_signature is called with another shape or dtype: it has the one graph that it declares.

TensorFlow casts Python's numbers and arrays to the declared dtype, but no tensors, and no shapes
(tensorflow/core/function/polymorphism/function_type.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls

RULE = "input-signature"
_SPEC = r"TensorSpec\(shape=(<unknown>|\([^)]*\)), dtype=tf\.(\w+), name=[^)]*\)"
_SAID = re.compile(rf"Binding inputs to tf\.function failed due to `Can not cast {_SPEC} to {_SPEC}`")
_TAKEN = re.compile(rf"(\w+): {_SPEC}")
_Shape = tuple[int | None, ...] | None


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the call of a tf.function does not fit what it declares."""
    found, spot = _SAID.search(situation.message), situation.last
    statement = situation.statement
    if found is None or spot is None or statement is None or situation.body:
        return None
    shape, dtype, declared, wanted = found.groups()
    taken = _TAKEN.findall(situation.message.rpartition(" for signature: ")[2])
    places = [place for place, one in enumerate(taken) if one[1:] == (declared, wanted)]
    called = [(one, spec) for one in calls(statement) for spec in _specs(spot.source, one, len(taken))]
    if len(places) != 1 or len(called) != 1:
        return None
    (place,), ((call, specs),) = places, called
    name, tf = taken[place][0], alias(spot, "tensorflow")
    given = call.args[place] if place < len(call.args) else next(
        (one.value for one in call.keywords if one.arg == name), None
    )  # fmt: skip
    function = short(spot.source.text(call.func), 30)
    if dtype != wanted:
        cause = (
            f"{name} of {function} is {dtype}, and its input_signature declares {wanted}: a tensor is not cast for it."
        )
        new = None if given is None else f"{tf}.cast({spot.source.text(given)}, {tf}.{wanted})"
        edit = None if given is None or new is None else edit_of(spot.file, spot.source.replaced({given: new}))
        return Explanation(RULE, spot.file, spot.line, cause, edit, f"Cast {name} to {wanted}." if edit is None else "")
    cause = f"{name} of {function} has the shape {shape}, and its input_signature declares {declared}: "
    cause += "the function has one graph, for what it declares."
    sizes, wanted_sizes = _shape(shape), _shape(declared)
    axis = _axis_of_one(sizes, wanted_sizes)
    edit = edit_of(spot.file, spot.source.replaced({given: spot.source.atom(given) + axis})) if given and axis else None
    if edit is not None:
        return Explanation(RULE, spot.file, spot.line, f"{cause} They differ by an axis of size 1.", edit)
    edit, advice = _wider(spot, specs[place], sizes, wanted_sizes)
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _axis_of_one(given: _Shape, declared: _Shape) -> str:
    """The index that adds a last axis of size 1, or takes it away; "" where the shapes differ otherwise."""
    if given is None or declared is None:
        return ""
    for one, other, index in ((given, declared, "[..., None]"), (declared, given, "[..., 0]")):
        same = len(one) + 1 == len(other) and other[-1] == 1 and len(one) > 0
        if same and all(None in pair or pair[0] == pair[1] for pair in zip(one, other)):
            return index
    return ""


def _specs(source: Source, call: ast.Call, count: int) -> Iterator[list[ast.expr]]:
    """What the one function that a call names declares for its arguments."""
    name = dotted(call.func).rpartition(".")[2]
    functions = [one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    for one in functions[0].decorator_list if len(functions) == 1 else ():
        signature = next((word.value for word in getattr(one, "keywords", ()) if word.arg == "input_signature"), None)
        if isinstance(signature, (ast.List, ast.Tuple)) and len(signature.elts) == count:
            yield signature.elts


def _shape(text: str) -> _Shape:
    if text == "<unknown>":
        return None
    return tuple(None if one == "None" else int(one) for one in re.findall(r"None|\d+", text))


def _wider(spot: Spot, spec: ast.expr, given: _Shape, declared: _Shape) -> tuple[Edit | None, str]:
    """The declared shape with None for the sizes that differ; words where the number of axes differs."""
    if given is None or declared is None or len(given) != len(declared):
        axes = "axis" if declared is not None and len(declared) == 1 else "axes"
        many = "any number of" if declared is None else str(len(declared))
        also = "" if given is None else f", or declare {len(given)} where that is what it computes with"
        return None, f"Give it a tensor of {many} {axes}{also}."
    shape = next((one.value for one in getattr(spec, "keywords", ()) if one.arg == "shape"), None)
    arguments = spec.args if isinstance(spec, ast.Call) else []
    shape = shape if shape is not None else arguments[0] if arguments else None
    if not isinstance(shape, (ast.List, ast.Tuple)) or len(shape.elts) != len(declared):
        return None, "Declare None for each size that changes."
    sizes = [
        spot.source.text(old) if one == wanted else "None" for old, one, wanted in zip(shape.elts, given, declared)
    ]
    comma = "," if isinstance(shape, ast.Tuple) and len(sizes) == 1 else ""
    left, right = "()" if isinstance(shape, ast.Tuple) else "[]"
    edit = edit_of(spot.file, spot.source.replaced({shape: f"{left}{', '.join(sizes)}{comma}{right}"}))
    return edit, "" if edit is not None else "Declare None for each size that changes."
