"""What would have avoided a retrace: said only where following it is proven to work.

What depends on the function's code (a Python number that could be a tensor, a size that could stay open) is advised
when proofs.py shows that the code allows it. Else the sentence says what it costs, and nothing is advised.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pyfunc_debug.interception.graphs import proofs
from pyfunc_debug.interception.graphs.signatures import (
    Difference,
    children,
    covering,
    is_number,
    leaf,
    number_of,
    path_text,
)  # fmt: skip
from pyfunc_debug.interception.names import TensorFlowNames

_FROM_CODE = ("number", "mixed", "size", "rank")


def advise(
    old: Any, new: Any, found: list[Difference], earlier: Collection[Any], defaults: Mapping[str, Any], function: Any,
    names: TensorFlowNames,
) -> tuple[tuple[str, ...], str | None]:  # fmt: skip
    """Sentences on what differs between two signatures, and what avoids it.

    Args:
      old: The closest earlier FunctionType.
      new: The FunctionType that was traced.
      found: Their differences.
      earlier: All earlier FunctionTypes of the function.
      defaults: Default values of its parameters.
      function: The Python function.
      names: TensorFlow's names.
    """
    asked = [one for one in found if one.about in _FROM_CODE]
    dtypes = _dtypes(old, new, function, names) if asked else None
    fixes = [one.fix for one in found if one.fix]
    if asked and dtypes is not None:
        fixes = [*_proven(old, new, asked, len(asked) == len(found), defaults, dtypes), *fixes]
    shown = [_costs(one, new, earlier) if dtypes is None or one.about == "value" else one for one in found]
    helped = all(one.fix or (one in asked and dtypes is not None) for one in found)  # half of a fix avoids nothing
    return tuple(one.text for one in shown), "; ".join(dict.fromkeys(fixes)) if helped else None


def _proven(
    old: Any, new: Any, asked: list[Difference], whole: bool, defaults: Mapping[str, Any],
    dtypes: dict[tuple[Any, ...], str],
) -> list[str]:  # fmt: skip
    """Advice that the function's code allows."""
    shapes = any(one.about in ("size", "rank") for one in asked)
    if shapes and whole:
        signature = covering(old, new, defaults, dtypes)
        if signature:
            return [signature]
    fixes = []
    for one in asked:
        if one.about in ("number", "mixed"):
            value = number_of(leaf(new, one.keys))
            value = number_of(leaf(old, one.keys)) if value is None else value
            fixes.append(
                f"always pass `{path_text(one.keys)}` as a tensor: tf.constant({value!r}, tf.{dtypes[one.keys]})"
            )
    return [*fixes, *(["reduce_retracing=True"] * shapes)]


def _costs(one: Difference, new: Any, earlier: Collection[Any]) -> Difference:
    """A difference with what it costs, where nothing is known to avoid it."""
    if one.about not in ("number", "value", "mixed"):
        return one
    values = {repr(leaf(kind, one.keys)) for kind in (*earlier, new)}
    return replace(one, text=f"{one.text}: each value needs its own graph ({len(values)} so far)")


def _dtypes(old: Any, new: Any, function: Any, names: TensorFlowNames) -> dict[tuple[Any, ...], str] | None:
    """For each Python number that differs the dtype that it must have as a tensor; None if it is not proven."""
    numbers: dict[tuple[Any, ...], proofs.Number] = {}
    try:
        arguments = {
            name: _value((name,), old.parameters[name].type_constraint, parameter.type_constraint, numbers)
            for name, parameter in new.parameters.items()
        }
        if not proofs.prove(function, arguments, names):
            return None
        return {keys: _one_dtype(number) for keys, number in numbers.items()}
    except (proofs.NotProvenError, KeyError):
        return None


def _one_dtype(number: proofs.Number) -> str:
    if len(number.needs) > 1:
        raise proofs.NotProvenError("a number that is used with tensors of several dtypes")
    return next(iter(number.needs)) if number.needs else proofs.default_dtype(number.values)


def _value(keys: tuple[Any, ...], old: Any, new: Any, numbers: dict[tuple[Any, ...], proofs.Number]) -> proofs.Value:
    """An argument in both signatures, as proofs.py wants it."""
    before, now = children(old), children(new)
    if before is not None and now is not None:
        if type(old) is not type(new) or before.keys() != now.keys():
            raise proofs.NotProvenError("another structure")
        return proofs.Structure({key: _value((*keys, key), before[key], now[key], numbers) for key in now})
    kinds = type(old).__name__, type(new).__name__
    if kinds == ("TensorSpec", "TensorSpec"):
        if old.dtype != new.dtype:
            raise proofs.NotProvenError("another dtype")
        ranks = old.shape.rank != new.shape.rank
        return proofs.Tensor(new.dtype.name, size=not ranks and repr(old.shape) != repr(new.shape), rank=ranks)
    if old == new:
        return proofs.Constant() if kinds[0] == "Literal" and is_number(new.value) else proofs.Other()
    values = _finite(one.value for one in (old, new) if type(one).__name__ == "Literal")
    if number_of(old, new) is None or not values:
        raise proofs.NotProvenError("neither a number nor a tensor")
    numbers[keys] = number = proofs.Number(values)
    number.needs.update(one.dtype.name for one in (old, new) if type(one).__name__ == "TensorSpec")
    return number


def _finite(values: Iterable[Any]) -> tuple[int | float, ...]:
    """Python numbers that can be written down again; none if there is another among them."""
    found = tuple(values)
    return found if all(is_number(value) and math.isfinite(value) for value in found) else ()
