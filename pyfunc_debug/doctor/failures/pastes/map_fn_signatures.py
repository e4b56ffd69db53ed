"""What `tf.map_fn` says that its lambda returns, and has to say where that is another dtype than its elements have."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted


def map_fn(part: ast.expr, spot: Spot) -> ast.Call | None:
    """The `tf.map_fn` whose lambda computes nothing else."""
    function = spot.source.parent(part)
    call = spot.source.parent(function) if isinstance(function, ast.Lambda) else None
    return call if isinstance(call, ast.Call) and dotted(call.func).endswith("map_fn") else None


def declared(call: ast.Call | None) -> ast.expr | None:
    """What a `tf.map_fn` says that its function returns."""
    given = [one.value for one in call.keywords if one.arg in ("fn_output_signature", "dtype")] if call else []
    return given[0] if given else None


def with_signature(spot: Spot, call: ast.Call, part: ast.expr, new: str, dtype: str) -> Edit | None:
    """A `tf.map_fn` with another text for what its lambda computes, and the dtype of that."""
    whole = spot.source.with_argument(call, f"fn_output_signature={dtype}").replace(spot.source.text(part), new, 1)
    return edit_of(spot.file, spot.source.replaced({call: whole}))
