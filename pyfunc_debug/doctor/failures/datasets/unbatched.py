"""Elements of a dataset with an axis less, or one more, than Keras wants: single examples, or batches of batches."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.models import keras_calls
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import is_dataset, lookup, method_calls

RULE = "unbatched"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the elements of the dataset have one axis less than the model's input."""
    spot, statement = situation.last, situation.statement
    if (
        spot is None
        or statement is None
        or situation.body
        or situation.kind not in ("ValueError", "InvalidArgumentError")
    ):
        return None
    for call in keras_calls.fits(statement):
        assert isinstance(call.func, ast.Attribute)
        keywords = {one.arg: one.value for one in call.keywords}
        model = lookup(call.func.value, spot)
        for given in (call.args[0] if call.args else keywords.get("x"), keywords.get("validation_data")):
            said = _single(given, model, spot)
            new = "" if given is None else f"{spot.source.text(given)}.batch({_batch_size(spot)})"
            if said is None and given is not None:
                said, new = _batched_twice(given, model, spot)
            if said is None and given is not None:
                said, new = _batches_of_batches(given, situation.message, spot)
            if given is None or said is None:
                continue
            cause = f"{dotted(call.func)} got {short(spot.source.text(given), 30)}, whose elements {said}"
            edit = edit_of(spot.file, spot.source.replaced({given: new}))
            return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Give it {new}.")
    return None


def _batch_size(spot: Spot) -> str:
    """The size that the file's one `.batch(size)` has; 32 where it has none, or several."""
    found = {spot.source.text(one.args[0]) for one in method_calls(spot.source.tree, "batch") if one.args}
    return found.pop() if len(found) == 1 else "32"


def _batched_twice(given: ast.expr, model: Any, spot: Spot) -> tuple[str | None, str]:
    """What shows that each row of a dataset's batches is a batch of one, and the dataset without that axis."""
    element, wanted = _element(given, spot), _input(model)
    if element is None or wanted is None or len(element) != len(wanted) + 1 or element[1] != 1:
        return None, ""
    if any(None not in pair and pair[0] != pair[1] for pair in zip(element[2:], wanted[1:])):
        return None, ""
    spec = lookup(given, spot).element_spec
    labels = isinstance(spec, tuple) and len(spec) == 2
    shown, axes = (str(list(one)).replace("None", "?") for one in (element, ("batch", *wanted[1:])))
    taken = "lambda x, y: (x[:, 0], y)" if labels else "lambda x: x[:, 0]"
    said = f"have the shape {shown}: each row is a batch of one already. The model's input is {axes}."
    return said.replace("'batch'", "batch"), f"{spot.source.text(given)}.map({taken})"


_KERNEL = re.compile(r"kernel of shape \(([^)]*)\) and input of shape \(([^)]*)\)")


def _batches_of_batches(given: ast.expr, message: str, spot: Spot) -> tuple[str | None, str]:
    """What shows that batches were batched again, of which a convolution gets an axis more than it takes."""
    sizes, element = _KERNEL.search(message), _element(given, spot)
    if sizes is None or element is None or element[:2] != (None, None):
        return None, ""
    if sizes[2].count(",") != sizes[1].count(",") + 1 or sizes[2].count(",") + 1 != len(element):
        return None, ""
    shown = str(list(element)).replace("None", "?")
    said = f"have the shape {shown}: batches of what are batches already, as its source gives them."
    return said, f"{spot.source.text(given)}.unbatch()"


def _beside_numbers(given: ast.expr | None, element: tuple[int | None, ...], spot: Spot) -> str | None:
    """That elements are single examples, where each label is one number: for a model that is not built yet."""
    value: Any = spot.value(given.id) if isinstance(given, ast.Name) else None
    spec = value.element_spec if is_dataset(value) else None
    label = spec[1] if isinstance(spec, tuple) and len(spec) == 2 else None
    if not element or None in element or getattr(getattr(label, "shape", None), "rank", None) != 0:
        return None
    return (
        f"have the shape {list(element)}, and each label is one number: single examples. Keras takes the first axis "
        "of each part for the batch."
    )


def _single(given: ast.expr | None, model: Any, spot: Spot) -> str | None:
    """What shows that the elements of a dataset are single examples, as the end of a sentence; else None."""
    element, wanted = _element(given, spot), _input(model)
    if element is not None and wanted is not None:
        if not _fits(element, wanted[1:]):
            return None
        said = f"have the shape {list(element)}: single examples. Keras takes the first axis for the batch, and the "
        return f"{said}model's input is {['batch', *wanted[1:]]}.".replace("'batch'", "batch")
    if element is not None and (said_of_label := _beside_numbers(given, element, spot)) is not None:
        return said_of_label
    named = _named(given, spot)
    inputs = {one.name: tuple(one.shape) for one in getattr(model, "inputs", None) or () if hasattr(one, "name")}
    if not named or not inputs or named.keys() != inputs.keys():
        return None
    for name, shape in named.items():
        own = inputs[name][1:]
        if not (_fits(shape, own) or (shape == () and own in ((), (1,)))):
            return None
    shown = ", ".join(f"{name} {list(shape)}" for name, shape in list(named.items())[:2])
    return f"are single examples ({shown}). Keras takes the first axis of each input for the batch."


def _named(given: ast.expr | None, spot: Spot) -> dict[str, tuple[int | None, ...]]:
    """The shapes of a dataset's inputs by their names; empty where they have none, or a rank is not known."""
    value: Any = spot.value(given.id) if isinstance(given, ast.Name) else None
    spec = value.element_spec if is_dataset(value) else None
    first = spec[0] if isinstance(spec, tuple) and spec else spec
    if not isinstance(first, dict) or any(getattr(getattr(one, "shape", None), "rank", None) is None
                                          for one in first.values()):  # fmt: skip
        return {}
    return {str(name): tuple(one.shape.as_list()) for name, one in first.items()}


def _element(given: ast.expr | None, spot: Spot) -> tuple[int | None, ...] | None:
    """The shape of the dataset's only input; None where that is not known."""
    value: Any = spot.value(given.id) if isinstance(given, ast.Name) else None
    if not is_dataset(value):
        return None
    spec = value.element_spec
    first = spec[0] if isinstance(spec, tuple) and spec else spec
    shape = getattr(first, "shape", None)
    if shape is None or getattr(shape, "rank", None) is None:
        return None
    return tuple(shape.as_list())


def _input(model: Any) -> tuple[int | None, ...] | None:
    """The shape of the model's only input."""
    if not any(one.__module__.startswith("keras.") for one in type(model).__mro__):
        return None
    shape = getattr(model, "input_shape", None) if getattr(model, "built", False) else None
    known = isinstance(shape, tuple) and bool(shape) and all(one is None or isinstance(one, int) for one in shape)
    return shape if known else None


def _fits(element: tuple[int | None, ...], wanted: tuple[int | None, ...]) -> bool:
    """Whether an element is one example. A first axis without a size is a batch."""
    same = len(element) == len(wanted) and all(one == two or two is None for one, two in zip(element, wanted))
    return same and bool(element) and element[0] is not None
