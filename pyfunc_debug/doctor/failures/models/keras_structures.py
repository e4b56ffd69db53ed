"""Data whose structure is not that of a model's inputs and outputs: one array for two outputs, no labels, a flat tuple.

Keras compares structures only where a layer, a loss or a metric meets them, and fails there in its own words. Here the
model's inputs and outputs are counted beside what `fit`, `evaluate` or `predict` was given.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.datasets import dropped_parts
from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, described, is_dataset, lookup, shape_of, sizes_of

RULE = "structure"
_LABELS = ("label", "labels", "y", "target", "targets", "class", "classes")
"""How labels are called in a dict with the inputs."""
_STACKS = ("array", "stack", "asarray")
_LEARNS = ("fit", "evaluate")


@dataclass(frozen=True)
class Given:
    """A call of `fit`, `evaluate` or `predict`: what it gives to which model."""

    spot: Spot
    call: ast.Call
    model: Any
    x: ast.expr
    y: ast.expr | None

    @property
    def method(self) -> str:
        return self.call.func.attr if isinstance(self.call.func, ast.Attribute) else ""

    @property
    def inputs(self) -> int:
        return len(self.model.inputs)

    @property
    def outputs(self) -> int:
        return len(self.model.outputs)

    def text(self, node: ast.expr) -> str:
        return self.spot.source.text(node)

    def told(self, cause: str, pieces: dict[ast.expr, str] | None, advice: str = "") -> Explanation:
        edit = edit_of(self.spot.file, self.spot.source.replaced(pieces)) if pieces else None
        return Explanation(RULE, self.spot.file, self.call.lineno, cause, edit, "" if edit is not None else advice)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a model has other inputs or outputs than its data."""
    for spot, call in failed_fits(situation) if through_keras(situation.inner) else ():
        given = given_to(spot, call)
        found = None
        if given is not None and is_dataset(lookup(given.x, spot)):
            spec = lookup(given.x, spot).element_spec
            found = _dropped(situation, given, spec) or _of_dataset(given, spec)
        elif given is not None:
            found = _of_arrays(given)
        if found is not None:
            return found
    return None


def through_keras(error: BaseException) -> bool:
    """Whether an exception came through a file of Keras'."""
    return any("keras" in one.f_code.co_filename for one in frames(error.__traceback__))


def given_to(spot: Spot, call: ast.Call) -> Given | None:
    model = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
    x, y = argument(call, 0, "x"), argument(call, 1, "y")
    try:
        if x is None or not model.inputs or not model.outputs:  # type: ignore[union-attr]
            return None
    except (AttributeError, TypeError, ValueError):  # a subclassed one, or one that is not built
        return None
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return Given(spot, call, model, x, y if method in _LEARNS else None)


# -- datasets


def _of_dataset(given: Given, spec: Any) -> Explanation | None:
    if isinstance(spec, dict):
        return _in_one_dict(given, spec)
    if isinstance(spec, tuple) and 2 < len(spec) == given.inputs + given.outputs and given.method in _LEARNS:
        return _flat(given, spec)
    if given.method not in _LEARNS:
        return _inputs_alone(given, spec)
    if isinstance(spec, tuple) and len(spec) == given.inputs > 1 == given.outputs and all(map(_is_pair, spec)):
        text = given.text(given.x)
        cause = f"Each part of {text} is a pair (inputs, labels) of its own: Keras takes one pair, ((x1, x2, ...), y)."
        whole = ".map(lambda *rows: (tuple(row[0] for row in rows), rows[0][1]))"
        return given.told(cause, {one: f"{given.text(one)}{whole}" for one in (given.x, *validation(given, spec))})
    if not isinstance(spec, tuple):
        return _unlabelled(given, given.x, spec)
    if len(spec) == given.inputs > 1 and all(shape_of(one) is not None for one in spec):
        return _inputs_in_a_row(given, spec)
    if len(spec) > 1 and given.outputs > 1 and shape_of(spec[1]) is not None:
        return _one_of_labels(given, spec)
    return None


def _dropped(situation: Situation, given: Given, spec: Any) -> Explanation | None:
    """Labels that a map takes and does not return."""
    restored = None
    if given.method in _LEARNS and given.y is None and given.inputs == given.outputs == 1 and shape_of(spec):
        restored = dropped_parts.restored(situation, 2)
    if restored is None:
        return None
    cause = f"{given.text(given.x)} has inputs and no labels: {restored.cause}"
    return Explanation(RULE, restored.edit.file, restored.edit.first, cause, restored.edit)


def _is_pair(spec: Any) -> bool:
    return isinstance(spec, tuple) and len(spec) == 2


def _flat(given: Given, spec: tuple[Any, ...]) -> Explanation | None:
    """`(x, y1, y2)` for one input and two outputs: Keras takes the third part for weights of the rows."""
    if any(shape_of(one) is None for one in spec):
        return None
    x, y = _names("x", given.inputs), _names("y", given.outputs)
    whole = f"lambda {', '.join([*x, *y])}: ({_tuple(x)}, {_tuple(y)})"
    cause = (
        f"{given.text(given.x)} gives {len(spec)} parts in a row, and the model has {_count(given.inputs, 'input')} "
        f"and {_count(given.outputs, 'output')}. Keras takes (inputs, outputs): of several, each is a tuple; a "
        "third part is the weights of the rows."
    )
    pieces = {one: f"{given.text(one)}.map({whole})" for one in (given.x, *validation(given, spec))}
    return given.told(cause, pieces)


def _inputs_in_a_row(given: Given, spec: tuple[Any, ...]) -> Explanation:
    """`(anchor, positive, negative)` for three inputs, without labels: Keras takes the second part for these."""
    text, loss = given.text(given.x), getattr(given.model, "loss", None)
    places = ["the first for the inputs", "the second for the labels", "the third for weights of the rows"]
    cause = (
        f"{text} gives the {given.inputs} inputs in a row, and no labels: of a tuple Keras takes "
        f"{', '.join(places[: len(spec)])}. The inputs are one tuple in it."
    )
    tf = alias(given.spot, "tensorflow")
    if loss is None:
        whole = ".map(lambda *x: (x,))"
    elif callable(loss):  # a function of the user's, which may do without
        cause += " Labels of 0, if the loss reads none:"
        whole = f".map(lambda *x: (x, {tf}.zeros({tf}.shape(x[0])[:1])))"
    else:
        return given.told(cause, None, f"Give the labels, too: ((x1, x2, ...), y), for the loss {loss!r}.")
    return given.told(cause, {one: f"{given.text(one)}{whole}" for one in (given.x, *validation(given, spec))})


def _inputs_alone(given: Given, spec: Any) -> Explanation | None:
    """`predict` of a dataset with the inputs in a row, with or without the labels behind them."""
    behind = len(spec) - given.inputs if isinstance(spec, tuple) else -1
    if given.inputs < 2 or behind not in (0, given.outputs) or any(shape_of(one) is None for one in spec):
        return None
    names = [*_names("x", given.inputs), *("_" for _ in range(behind > 0))]
    text, listed = given.text(given.x), ", ".join(names if behind < 2 else [*names[:-1], "*_"])
    cause = (
        f"{text} gives {len(spec)} parts in a row: of these, predict takes the first for the inputs. The model's "
        f"{given.inputs} inputs are one tuple in it."
    )
    return given.told(cause, {given.x: f"{text}.map(lambda {listed}: (({', '.join(names[: given.inputs])}),))"})


def validation(given: Given, spec: Any) -> list[ast.expr]:
    """The dataset to validate with, if its elements are made in the same way."""
    node = next((one.value for one in given.call.keywords if one.arg == "validation_data"), None)
    value: Any = lookup(node, given.spot) if node is not None else None
    alike = is_dataset(value) and _outline(value.element_spec) == _outline(spec)
    return [node] if node is not None and alike else []


def _outline(spec: Any) -> Any:
    """Which parts there are, without their sizes."""
    if isinstance(spec, dict):
        return {name: _outline(one) for name, one in spec.items()}
    return [_outline(one) for one in spec] if isinstance(spec, (tuple, list)) else None


def _in_one_dict(given: Given, spec: dict[str, Any]) -> Explanation | None:
    """`{"x": ..., "label": ...}`: Keras takes a dict for inputs alone."""
    named = [one for one in spec if str(one).lower() in _LABELS]
    others = [one for one in spec if one not in named]
    if given.method not in _LEARNS or len(named) != 1 or given.outputs > 1 or not others:
        return None
    names = [str(one.name) for one in given.model.inputs]
    if given.inputs == len(others) == 1:
        inputs = f"row[{others[0]!r}]"
    elif set(names) <= set(others):
        inputs = "{" + ", ".join(f"{one!r}: row[{one!r}]" for one in names) + "}"
    else:
        return None
    cause = (
        f"Each element of {given.text(given.x)} is one dict with the labels in it, and Keras takes a dict for inputs. "
        "It wants (inputs, labels)."
    )
    whole = f".map(lambda row: ({inputs}, row[{named[0]!r}]))"
    return given.told(cause, {one: f"{given.text(one)}{whole}" for one in (given.x, *validation(given, spec))})


def _one_of_labels(given: Given, spec: tuple[Any, ...]) -> Explanation | None:
    """One tensor of labels for several outputs."""
    count, label, shape = given.outputs, spec[1], shape_of(spec[1]) or ()
    listed = _yields_list(given, count)
    if not shape or count not in shape or len(spec) > 2:
        return None
    first = listed or (shape[0] == count and shape[-1] != count)
    each = [f"y[{one}]" if first else f"y[..., {one}]" for one in range(count)]
    cause = f"{outputs_of(given)}, and the labels of {given.text(given.x)} are one tensor, {described(label)}"
    cause += ": tf.data makes one of a list. Keras takes a tuple." if listed else ". Keras takes a tuple, one for each."
    whole = f".map(lambda x, y: (x, ({', '.join(each)})))"
    return given.told(cause, {one: f"{given.text(one)}{whole}" for one in (given.x, *validation(given, spec))})


def _yields_list(given: Given, count: int) -> bool:
    """Whether a generator of the file yields its labels as a list of this length."""
    yields = [
        one.value for one in ast.walk(given.spot.source.tree)
        if isinstance(one, ast.Yield) and isinstance(one.value, ast.Tuple) and len(one.value.elts) == 2
    ]  # fmt: skip
    lists = [one.elts[1] for one in yields if isinstance(one.elts[1], ast.List)]
    return bool(lists) and len(lists) == len(yields) and all(len(one.elts) == count for one in lists)


def _unlabelled(given: Given, node: ast.expr, spec: Any) -> Explanation | None:
    """Inputs without labels, to learn from."""
    shape = shape_of(spec)
    if given.method not in _LEARNS or given.outputs > 1 or given.inputs > 1 or not shape or given.y is not None:
        return None
    if getattr(given.model, "loss", None) is None:
        return None
    output, text = shape_of(given.model.outputs[0]), given.text(node)
    cause = f"{text} has inputs and no labels, and {given.method} needs both: the loss compares with None."
    same = output is not None and shape[1:] == output[1:]
    new = f"{text}.map(lambda x: (x, x))" if is_dataset(lookup(node, given.spot)) else f"{text}, {text}"
    advice = f"Give it the labels: {given.method}(x, y), or a dataset whose elements are (x, y)."
    if same:
        cause += " The model gives what it is given: then x is its label, too."
    return given.told(cause, {node: new} if same else None, advice)


# -- arrays


def _of_arrays(given: Given) -> Explanation | None:
    x, y = shape_of(lookup(given.x, given.spot)), None
    if given.y is not None:
        y = shape_of(lookup(given.y, given.spot))
        if given.outputs > 1 and y is not None:
            return _one_array(given, given.y, y, f"{outputs_of(given)}, and the labels are", given.outputs)
    elif x is not None and given.method in _LEARNS:
        return _unlabelled(given, given.x, lookup(given.x, given.spot))
    side = argument(given.call, 1, "batch_size") if given.method == "predict" else None
    if side is not None and x is not None and shape_of(lookup(side, given.spot)):
        return _beside(given, side)
    if given.inputs > 1 and x is None:
        x = _stacked(given)
    if given.inputs > 1 and x is not None:
        which = f"The model has {given.inputs} inputs, and was given"
        return _one_array(given, given.x, x, which, given.inputs)
    return None


def _beside(given: Given, side: ast.expr) -> Explanation | None:
    """`predict(a, b)`."""
    text = given.text
    if given.inputs < 2 or any(not isinstance(one, ast.Name) for one in given.call.args):
        return None
    cause = f"predict takes {text(side)} for batch_size, its second argument. Several inputs are one list."
    rest = [f"{one.arg}={text(one.value)}" if one.arg else f"**{text(one.value)}" for one in given.call.keywords]
    listed = ", ".join([f"[{', '.join(map(text, given.call.args))}]", *rest])
    return given.told(cause, {given.call: f"{text(given.call.func)}({listed})"})


def _one_array(
    given: Given, node: ast.expr, shape: tuple[int | None, ...], which: str, count: int
) -> Explanation | None:
    """One array where there is one for each input or output."""
    if count not in (shape[:1] + shape[-1:]):
        return None
    text = given.text(node)
    if isinstance(node, ast.Call):
        text = given.text(node.args[0])  # the list that was stacked
    elif shape[0] == count:
        text = f"list({text})"
    else:
        text = "[" + ", ".join(f"{text}[..., {one}]" for one in range(count)) + "]"
    cause = f"{which} one array, {sizes_of(shape)}. Keras takes a list with one array for each."
    return given.told(cause, {node: text})


def _stacked(given: Given) -> tuple[int | None, ...] | None:
    """The shape of `np.array([x1, x2])`, as far as it is known."""
    node = given.x
    if not isinstance(node, ast.Call) or dotted(node.func).rpartition(".")[2] not in _STACKS or not node.args:
        return None
    parts = node.args[0].elts if isinstance(node.args[0], (ast.List, ast.Tuple)) else []
    shapes = {shape_of(lookup(one, given.spot)) for one in parts}
    shape = shapes.pop() if len(shapes) == 1 else None
    return (len(parts), *shape) if shape is not None and len(parts) == given.inputs else None


def outputs_of(given: Given) -> str:
    return f"The model has {given.outputs} outputs ({short(', '.join(given.model.output_names), 40)})"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _names(letter: str, count: int) -> list[str]:
    return [letter] if count == 1 else [f"{letter}{one + 1}" for one in range(count)]


def _tuple(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"
