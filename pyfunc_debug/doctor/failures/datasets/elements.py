"""What Dataset methods and `fit` make of elements: `apply` for `map`, functions that yield, `((x, y),)`, ragged."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.datasets import padded_batches
from pyfunc_debug.doctor.failures.models import keras_calls
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.datasets import leaves, part_names
from pyfunc_debug.doctor.failures.reading.nodes import tail
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, read, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_dataset

RULE = "structure"
_GENERATOR = re.compile(
    r"Unsupported return value from function passed to Dataset\.(\w+)\(\): <generator object (\S+) at"
)
_NO_TARGET = re.compile(r"None values not supported|Target data is missing|y_true.*NoneType|NoneType.*y_true")

_PADDED = "`padded_batch` is only supported for datasets that produce tensor elements"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if one of these is why the program failed."""
    if situation.body:
        return None
    found = _GENERATOR.search(situation.message)
    if found is not None:
        return _yielding(situation, found[1], found[2].rpartition(".")[2])
    if _PADDED in situation.message:
        return _padded(situation)
    return _one_in_a_tuple(situation) if _NO_TARGET.search(situation.message) else _applied(situation)


def _yielding(situation: Situation, method: str, name: str) -> Explanation | None:
    """A function with a yield, given to a method that wants the result for one element."""
    for spot in reversed(situation.spots):
        source = read(spot.file)
        functions = [one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
        yields = [
            one for function in functions for one in ast.walk(function)
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Yield) and one.value.value is not None
        ]  # fmt: skip
        if len(functions) != 1 or not yields:
            continue
        first = yields[0]
        cause = (
            f"{name} has a yield: calling it makes a generator, and runs none of its lines. Dataset.{method} wants "
            "what belongs to one element, returned."
        )
        edit = None
        if len(yields) == 1 and first in functions[0].body and isinstance(first.value, ast.Yield) and first.value.value:
            text = f"{indent_of(source.lines[first.lineno - 1])}return {source.text(first.value.value)}"
            edit = Edit(spot.file, first.lineno, first.end_lineno or first.lineno, (text,))
        advice = "" if edit else "Return it. For several elements, flat_map a function that returns a Dataset."
        return Explanation(RULE, spot.file, first.lineno, cause, edit, advice)
    return None


def _applied(situation: Situation) -> Explanation | None:
    """`dataset.apply(f)` with a function of elements: it got the dataset itself."""
    if hasattr(situation.error, "op"):  # the dataset ran: the function did take a dataset
        return None
    for outer, inner in zip(situation.spots, situation.spots[1:]):
        statement = outer.statement
        for call in calls(statement) if statement is not None else ():
            if not isinstance(call.func, ast.Attribute) or call.func.attr != "apply" or len(call.args) != 1:
                continue
            entered = inner.function
            same = dotted(call.args[0]).rpartition(".")[2] == getattr(entered, "name", "")
            if not same and not (isinstance(call.args[0], ast.Lambda) and isinstance(entered, ast.Lambda)):
                continue
            given = [value for value in inner.variables.values() if is_dataset(value)]
            if not given or "Dataset" not in situation.message:
                continue
            text = outer.source.text(call.func.value)
            found = outer.source.replaced({call.func: f"{text}.map"})
            cause = (
                f"`{short(outer.source.text(call), 40)}` calls {short(outer.source.text(call.args[0]), 30)} once, with "
                "the whole dataset. map calls it for each element."
            )
            edit = edit_of(outer.file, found)
            return Explanation(RULE, outer.file, outer.line, cause, edit, "" if edit else f"Call {text}.map(...).")
    return None


def _one_in_a_tuple(situation: Situation) -> Explanation | None:
    """`fit` on elements `((x, y),)`: one value, the inputs, and no target."""
    spot, statement = situation.last, situation.statement
    for call in keras_calls.fits(statement) if statement is not None else ():
        given = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "x"), None)
        if spot is None or not isinstance(given, ast.Name) or not is_dataset(spot.value(given.id)):
            continue
        spec = spot.value(given.id).element_spec
        if not isinstance(spec, tuple) or len(spec) != 1 or not isinstance(spec[0], tuple) or len(spec[0]) < 2:
            continue
        found = spot.source.replaced({given: f"{given.id}.map(lambda element: element)"})
        edit = edit_of(spot.file, found)
        names = ", ".join(("x", "y", "weight")[: len(spec[0])])
        cause = (
            f"the elements of {given.id} are (({names}),), a tuple around the pair: Keras takes all of it for the "
            f"inputs, and has no target. A map hands on the inner ({names})."
        )
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Yield ({names}) alone.")
    return None


def _padded(situation: Situation) -> Explanation | None:
    """`padded_batch` of ragged or sparse elements, or parts, which it does not take: as tensors, it does."""
    spot, found = situation.last, padded_batches.given(situation)
    statement = situation.statement
    padded = [
        one for one in (calls(statement) if statement is not None else ())
        if isinstance(one.func, ast.Attribute) and one.func.attr == "padded_batch"
    ]  # fmt: skip
    if spot is None or found is None or len(padded) != 1:
        return None
    spec, tf = found[0], alias(spot, "tensorflow")
    kind = "sparse" if any(type(one).__name__ == "SparseTensorSpec" for one in leaves(spec)) else "ragged"
    text = f".map({_to_tensors(spec, tf)}).padded_batch({spot.source.arguments(padded[0])})"
    edit = Edit(spot.file, *spot.source.kept_lines({tail(padded[0]): text}))
    parts = "have parts that" if isinstance(spec, (tuple, dict)) else "are tensors that"
    cause = (
        f"the elements of this dataset {parts} are {kind}, and padded_batch pads plain tensors only. A map makes "
        "plain ones of them; ragged_batch would keep the batch ragged."
    )
    if kind == "sparse":
        cause = cause.partition("; ragged_batch")[0] + "."
    return Explanation(RULE, spot.file, edit.first, cause, edit)


def _to_tensors(spec: Any, tf: str) -> str:
    """A lambda that makes plain tensors of the ragged and sparse parts of an element."""
    if isinstance(spec, tuple) and not hasattr(spec, "dtype"):
        names = part_names(len(spec))
        parts = ", ".join(_to_tensor(one, name, tf) for one, name in zip(spec, names))
        return f"lambda {', '.join(names)}: ({parts}{',' * (len(spec) == 1)})"
    return f"lambda x: {_to_tensor(spec, 'x', tf)}"


def _to_tensor(spec: Any, text: str, tf: str) -> str:
    if isinstance(spec, dict):
        places = {key: text + f"[{key!r}]".replace("'", '"') for key in spec}
        parts = {key: _to_tensor(one, places[key], tf) for key, one in spec.items()}
        changed = [f"{key!r}: {new}".replace("'", '"') for key, new in parts.items() if new != places[key]]
        return f"{{**{text}, {', '.join(changed)}}}" if changed else text
    if isinstance(spec, tuple) and not hasattr(spec, "dtype"):
        inside = [_to_tensor(one, f"{text}[{place}]", tf) for place, one in enumerate(spec)]
        return f"({', '.join(inside)}{',' * (len(inside) == 1)})"
    if type(spec).__name__ == "SparseTensorSpec":
        return f"{tf}.sparse.to_dense({text})"
    return f"{text}.to_tensor()" if getattr(spec, "ragged_rank", 0) else text  # a map takes rank 0 for a tensor
