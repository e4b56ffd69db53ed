"""A CTC loss that refuses its lengths, its labels or the order of its axes: it counts steps and keeps a class."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.refused_ops import Refused, each, numbers_of, shape_at, value_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls

_MANY_STEPS = re.compile(r"sequence_length\(\d+\) <= (\d+)")
_BLANK = re.compile(r"Saw a non-null label .* following a null label, batch: \d+ num_classes: (\d+) labels: ([\d,]+)")
_SHORT = re.compile(r"Not enough time for target transition sequence \(required: (\d+), available: (\d+)\)")
_ORDER = re.compile(r"Incompatible shapes: |Dimensions must be equal|len\(sequence_length\) != batch_size")
_OF_KERAS = {"ctc_batch_cost": ("y_true", "y_pred", "input_length", "label_length")}
_OF_TF = {"ctc_loss": ("labels", "logits", "label_length", "logit_length")}
_SAME_FOR_ALL = ("ones", "fill", "full", "repeat", "tile")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line's only CTC loss says what it refused."""
    message = situation.message
    if (said := _MANY_STEPS.search(message)) is not None:
        return each(situation, _many_steps, int(said[1]))
    if (said := _BLANK.search(message)) is not None:
        classes, labels = int(said[1]), [int(one) for one in said[2].strip(",").split(",")]
        last = max((at for at, one in enumerate(labels) if one < classes - 1), default=0)  # padding may follow it
        return each(situation, _blank, classes, max(labels[: last + 1]))
    if (said := _SHORT.search(message)) is not None:
        return each(situation, _short, int(said[1]), int(said[2]))
    return each(situation, _order) if "CTC" in message or _ORDER.search(message) else None


def _call(place: Refused) -> tuple[ast.Call, dict[str, ast.expr]] | None:
    """The loss, and its labels, outputs and lengths by the names that Keras gives them."""
    known = {**_OF_KERAS, **_OF_TF}
    found = [one for one in calls(place.statement) if dotted(one.func).rpartition(".")[2] in known]
    if len(found) != 1:
        return None
    call = found[0]
    listed = known[dotted(call.func).rpartition(".")[2]]
    given = {name: part for at, name in enumerate(listed) if (part := argument(call, at, name)) is not None}
    if "logits" in given:
        names = {"labels": "y_true", "logits": "y_pred", "logit_length": "input_length"}
        given = {names.get(name, name): part for name, part in given.items()}
    return call, given


def _many_steps(place: Refused, steps: int) -> Explanation | None:
    found = _call(place)
    lengths, outputs = (found[1].get(name) if found else None for name in ("input_length", "y_pred"))
    if found is None or lengths is None or outputs is None:
        return None
    tf, text, said = alias(place.spot, "tensorflow"), place.text(lengths), short(place.text(outputs), 30)
    numbers = numbers_of(value_of(lengths, place.spot))
    most = f"up to {int(numbers.max())}" if numbers is not None and numbers.max() > steps else f"more than {steps}"
    cause = (
        f"the lengths `{short(text, 40)}` say {most} time steps, and {said} has {steps}: CTC takes the steps of the "
        "model's output. Strides and pooling make them fewer than those of the input."
    )
    made = ast.unparse(_made(place, lengths))
    axis = 0 if _is_time_major(found[0]) else 1
    if any(word in made for word in _SAME_FOR_ALL) and "np." not in made:
        new = f"{tf}.fill({tf}.shape({text}), {tf}.shape({place.text(outputs)})[{axis}])"
        return place.told(cause, {lengths: new})
    return place.told(cause, {}, f"Divide the lengths as the model divides the steps; {steps} is the most.")


def _made(place: Refused, node: ast.expr) -> ast.expr:
    """What a name was given in its function, where that is one line."""
    function = place.spot.function
    values = [
        one.value for one in ast.walk(function or place.statement)
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == ast.unparse(node)
    ]  # fmt: skip
    return values[0] if len(values) == 1 else node


def _is_time_major(call: ast.Call) -> bool:
    """Whether the first axis of the outputs is time: so tf.nn.ctc_loss has it, unless its argument says otherwise."""
    if dotted(call.func).rpartition(".")[2] in _OF_KERAS:
        return False
    said = argument(call, 4, "logits_time_major")
    return said is None or (isinstance(said, ast.Constant) and said.value is True)


def _blank(place: Refused, classes: int, most: int) -> Explanation | None:
    found = _call(place)
    outputs = found[1].get("y_pred") if found else None
    if outputs is None or most < classes - 1:
        return None
    cause = (
        f"{short(place.text(outputs), 30)} has {classes} classes, 0 to {classes - 1}, and CTC takes the last one for "
        f"the blank between letters. A label is {most}: labels may be 0 to {classes - 2}."
    )
    advice = f"The last layer needs a unit for each letter and one for the blank: {most + 2} or more."
    return place.told(cause, {}, advice)


def _short(place: Refused, needed: int, steps: int) -> Explanation | None:
    found = _call(place)
    lengths, labels = (found[1].get(name) if found else None for name in ("label_length", "y_true"))
    if found is None or lengths is None or labels is None:
        return None
    cause = (
        f"a label needs {needed} time steps, one for each letter and one more between two that are the same, and the "
        f"output has {steps} by its length."
    )
    padded = f"shape({place.text(labels)})[1]" in ast.unparse(_made(place, lengths)).replace("tf.", "")
    advice = "Less pooling or striding along that axis leaves more steps."
    if padded:
        advice = f"`{short(place.text(lengths), 30)}` counts padding, too: give the labels' own lengths. {advice}"
    return place.told(cause, {}, advice)


def _order(place: Refused) -> Explanation | None:
    """`tf.nn.ctc_loss(labels, logits, ...)` of logits [batch, time, classes]: it takes the first axis for time."""
    found = _call(place)
    if found is None or not _is_time_major(found[0]):
        return None
    call, given = found
    lengths, outputs = given.get("input_length"), given.get("y_pred")
    rows = shape_at(lengths, place.spot) if lengths is not None else None
    shape = shape_at(outputs, place.spot) if outputs is not None else None
    if outputs is None or not rows or not shape or len(shape) != 3 or rows[0] is None:
        return None
    if shape[0] != rows[0] or shape[1] == rows[0] or argument(call, 4, "logits_time_major") is not None:
        return None
    said = short(place.text(outputs), 30)
    cause = (
        f"{said} is [{', '.join('?' if one is None else str(one) for one in shape)}], a batch of {rows[0]} first, and "
        "tf.nn.ctc_loss takes the first axis for time."
    )
    new = place.spot.source.with_argument(call, "logits_time_major=False")
    return place.told(cause, {call: new})
