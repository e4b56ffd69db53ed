"""NumPy's functions that only keras.ops has, in a graph and with a gradient: medians, percentiles, those around NaN."""

from __future__ import annotations

import ast
import sys

from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.symbols import keras_name

_POSITIONS = {
    "median": 2, "nanmedian": 2, "quantile": 3, "percentile": 3, "nanquantile": 3, "nanpercentile": 3, "nanmax": 2,
    "nanmin": 2, "nanstd": 2, "nanvar": 2, "trapezoid": 4, "fmax": 2, "fmin": 2, "correlate": 3,
}  # fmt: skip
"""How many arguments in a row mean the same as NumPy's."""
_KEYWORDS = {"axis", "keepdims", "q", "x", "dx", "mode"}


def in_keras(name: str, call: ast.Call, spot: Spot) -> str | None:
    """A call of NumPy's function as one of keras.ops; None where there is none, or no Keras that has it.

    Args:
      name: NumPy's name.
      call: The call, whose arguments are ops already.
      spot: Where it is written.
    """
    ops = getattr(sys.modules.get("keras"), "ops", None)
    if "tf_keras" in sys.modules or ops is None:
        return None
    keras = keras_name(spot)
    keywords = {one.arg for one in call.keywords}
    if name not in _POSITIONS or not hasattr(ops, name) or len(call.args) > _POSITIONS[name] or keywords - _KEYWORDS:
        return None
    listed = ", ".join(ast.unparse(one) for one in (*call.args, *call.keywords))
    return f"{keras}.ops.{name}({listed})"
