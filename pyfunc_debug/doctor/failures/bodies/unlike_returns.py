"""A body with several `return`s, of which one writes the dtype that Tout declares, and another gives a wider one."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.dtypes import assignments
from pyfunc_debug.doctor.failures.reading.nodes import Node, is_none, other_touts, return_values
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, read
from pyfunc_debug.doctor.failures.reading.symbols import alias

_MAKERS = ("array", "asarray", "empty", "full", "ones", "zeros")
_PLACES = {"full": 2}
"""Where a maker takes its dtype by place, if not second."""
_MOST = 3
"""Returns that one paste casts."""


def cast(situation: Situation, node: Node, spot: Spot | None, got: str, wanted: str) -> Edit | None:
    """The returns that do not write the declared dtype, with a cast to it; None where none of them writes it.

    Args:
      situation: The failure.
      node: The node, of one result.
      spot: A frame of the file that makes it.
      got: The dtype that was returned.
      wanted: The dtype that Tout declares.
    """
    function = node.function()
    if not isinstance(function, ast.FunctionDef) or spot is None or node.file is None or len(node.tout) != 1:
        return None
    if not _widens(got, wanted) or other_touts(node, situation)[1]:
        return None
    values, assigned = return_values(function), assignments(function)
    others = [one for one in values if not _writes(one, wanted, assigned)]
    plain = not any(isinstance(one, ast.Tuple) or is_none(one) for one in others)
    if not 0 < len(others) <= min(len(values) - 1, _MOST) or not plain:
        return None
    tf, np, source = alias(spot, "tensorflow"), alias(spot, "numpy"), read(node.file)
    form = f"{tf}.cast({{}}, {tf}.{wanted})" if node.kind == "py_function" else f"{np}.asarray({{}}, {np}.{wanted})"
    return Edit(node.file, *source.kept_lines({one: form.format(source.text(one)) for one in others}))


def _widens(got: str, wanted: str) -> bool:
    """Whether a cast loses at most digits: whole numbers and numbers of more bits become floats."""
    kinds = [one.rstrip("0123456789").removeprefix("u") for one in (got, wanted)]
    return kinds[0] == kinds[1] or kinds == ["int", "float"]


def _writes(value: ast.expr, dtype: str, assigned: dict[str, ast.expr]) -> bool:
    """Whether an expression says its dtype itself: `np.zeros(4, np.float32)`, `x.astype("float32")`, `np.int64(0)`."""
    if isinstance(value, ast.Name):
        made = assigned.get(value.id)
        return made is not None and not isinstance(made, ast.Name) and _writes(made, dtype, {})
    if not isinstance(value, ast.Call):
        return False
    name = dotted(value.func).rpartition(".")[2] or getattr(value.func, "attr", "")
    if name == dtype:
        return True
    place = 0 if name == "astype" else 1 if name == "cast" else _PLACES.get(name, 1) if name in _MAKERS else None
    named = next((one.value for one in value.keywords if one.arg == "dtype"), None)
    given = value.args[place] if place is not None and len(value.args) > place else named if name in _MAKERS else None
    if isinstance(given, ast.Constant):
        return bool(given.value == dtype)
    return given is not None and dotted(given).rpartition(".")[2] == dtype
