"""A Tout of tf.variant or tf.resource: dtypes of objects inside TensorFlow, which no array has."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.reading.nodes import Node, argument, site_spot
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.symbols import alias, dtype_of, shape_of_data
from pyfunc_debug.interception.names.private import converted_result

HANDLES = {"variant": "as lists of tensors or datasets", "resource": "as variables and tables"}
"""Dtypes that no array has, and whose they are."""
_PYTHON = {"bool": "bool", "int": "int64", "float": "float32", "str": "string", "bytes": "string"}


def converted(situation: Situation, node: Node) -> tuple[str, str | None] | None:
    """What to say, and the Tout of what came, if TensorFlow was converting it to such a dtype when it raised."""
    result, value = converted_result(situation.inner.__traceback__)
    values = result if len(node.tout) > 1 and isinstance(result, (list, tuple)) else [result]
    place = next((place for place, one in enumerate(values) if one is value), 0)
    if place >= len(node.tout) or node.tout[place] not in HANDLES or len(values) != len(node.tout):
        return None
    shape = () if isinstance(value, bytes) else shape_of_data(value, texts=True)
    shown = (f"{_own_dtype(value)}{list(shape)}" if shape else _own_dtype(value)) if shape is not None else "an object"
    return declared(situation, node, place, shown, [_own_dtype(one) for one in values])


def declared(situation: Situation, node: Node, place: int, shown: str, own: list[str]) -> tuple[str, str | None]:
    """What to say of a value, and the Tout of what came; None where a dtype of it is not known.

    Args:
      situation: The failure.
      node: The node.
      place: Which of the values it is.
      shown: The value, as it is said.
      own: The dtypes of all values that came; "" where one is not known.
    """
    wanted, which = node.tout[place], "" if len(node.tout) == 1 else f" as value {place + 1}"
    cause = (
        f"{node.opening} returned {shown}{which}, but Tout declares {wanted}: that is for objects inside TensorFlow, "
        f"{HANDLES[wanted]}, and an array never becomes one."
    )
    tout = [one if to in HANDLES else to for one, to in zip(own, node.tout)]
    if not all(tout):
        return cause, None
    spot, call = site_spot(node, situation), node.call()
    tf = alias(spot, "tensorflow") if spot is not None else "tf"
    given = argument(call, 2, "Tout") if call is not None else None
    text = ", ".join(f"{tf}.{one}" for one in tout)
    if isinstance(given, ast.Tuple):
        text = f"({text}{',' * (len(tout) == 1)})"
    elif len(tout) > 1 or isinstance(given, ast.List):
        text = f"[{text}]"
    return cause, text


def _own_dtype(value: Any) -> str:
    """The dtype that TensorFlow has for a value of a body's; "" where that is not sure."""
    while isinstance(value, list) and value and len({type(each) for each in value}) == 1:
        value = value[0]
    dtype = dtype_of(value) or _PYTHON.get(type(value).__name__, "")
    if dtype == "object" and len(getattr(value, "shape", ())) and value.size:
        dtype = _PYTHON.get(type(value.flat[0]).__name__, "") if type(value.flat[0]) in (str, bytes) else ""
    return "string" if dtype.startswith(("str", "bytes", "<U", "|S")) else dtype
