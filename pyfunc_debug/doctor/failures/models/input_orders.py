"""Two inputs in the other order: `fit([a, b])` for a model of `[b, a]`."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Sequence
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.symbols import is_dataset, lookup, shape_of, shape_of_data, sizes_of

RULE = "structure"
_SAID = re.compile(r"^Input \d+ with name '.*' of layer '.*' is incompatible with the layer: expected shape=")
_MOST = 4
_Shape = tuple[int | None, ...]


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if all inputs of a model fit in one other order only."""
    if not _SAID.search(situation.message) or situation.body:
        return None
    for spot, call in failed_fits(situation):
        model: Any = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
        wanted = [shape_of(one) for one in getattr(model, "inputs", None) or ()]
        given = argument(call, 0, "x")
        if given is None or None in wanted or not 1 < len(wanted) <= _MOST:
            continue
        takes = " and ".join(sizes_of(shape) for shape in wanted if shape is not None)
        cause = f"The model takes {takes}, in this order, and gets them in another."
        listed = isinstance(given, (ast.List, ast.Tuple)) and not any(
            isinstance(one, ast.Starred) for one in given.elts
        )
        parts = _parts(given, spot)
        order = _order(wanted, [shape_of_data(one) if listed else one for one in parts]) if parts is not None else None
        if order is None:
            continue
        text = spot.source.text
        if isinstance(given, (ast.List, ast.Tuple)):
            new = {given.elts[place]: text(given.elts[other]) for place, other in enumerate(order) if place != other}
            edit = edit_of(spot.file, spot.source.replaced(dict(new)))
            return Explanation(RULE, spot.file, given.lineno, cause, edit)
        values = ", ".join(f"x[{place}]" for place in order)
        rest = [f"{one}" for one in ("y", "w")[: _others(lookup(given, spot))]]
        new_text = f"{text(given)}.map(lambda {', '.join(['x', *rest])}: {f'(({values}), ' + ', '.join(rest) + ')'})"
        edit = edit_of(spot.file, spot.source.replaced({given: new_text})) if rest else None
        return Explanation(
            RULE, spot.file, given.lineno, cause, edit, "" if edit else "Give them in the model's order."
        )
    return None


def _parts(given: ast.expr, spot: Spot) -> list[Any] | None:
    """What is given for each input: values of a list, or shapes of a dataset's elements without the batch's size."""
    if isinstance(given, (ast.List, ast.Tuple)):
        return [lookup(one, spot) for one in given.elts]
    value = lookup(given, spot)
    spec = value.element_spec if is_dataset(value) else None
    inputs = spec[0] if isinstance(spec, tuple) and spec and isinstance(spec[0], tuple) else None
    return [shape_of(one) for one in inputs] if inputs is not None else None


def _others(dataset: Any) -> int:
    return len(dataset.element_spec) - 1


def _order(wanted: Sequence[_Shape | None], given: Sequence[_Shape | None]) -> tuple[int, ...] | None:
    """The one order in which what is given fits; None where it is given so, or more than one does."""
    if len(wanted) != len(given) or None in given:
        return None
    fitting = [
        order for order in itertools.permutations(range(len(given)))
        if all(_fits(shape, given[place]) for shape, place in zip(wanted, order))
    ]  # fmt: skip
    return fitting[0] if len(fitting) == 1 and list(fitting[0]) != sorted(fitting[0]) else None


def _fits(wanted: _Shape | None, given: _Shape | None) -> bool:
    if wanted is None or given is None or len(wanted) != len(given):
        return False
    return all(one is None or one == other for one, other in zip(wanted[1:], given[1:]))
