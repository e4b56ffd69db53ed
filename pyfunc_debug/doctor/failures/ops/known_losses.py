"""Losses of other libraries, on values, that TensorFlow has as an op: with a gradient, and for the whole batch."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, parameters
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, shape_of

_SMALLEST = 11
"""tf.image.ssim compares windows of this size."""
_OPS = {"structural_similarity": "image.ssim", "peak_signal_noise_ratio": "image.psnr"}


def in_op(spot: Spot) -> Edit | None:
    """The body of a loss of images that asks skimage for a likeness, as one line with TensorFlow's op.

    Args:
      spot: The frame of the loss, which Keras traced.
    """
    function = spot.function
    given = parameters(function) if isinstance(function, ast.FunctionDef) else []
    if not isinstance(function, ast.FunctionDef) or len(given) != 2:
        return None
    found = []
    for one in calls(function):
        called = spot.value(one.func.id) if isinstance(one.func, ast.Name) else None
        name = getattr(called, "__name__", dotted(one.func).rpartition(".")[2])
        found += [(one, name)] * (name in _OPS)
    shape = shape_of(spot.value(given[0]))
    returned = [one.value for one in function.body if isinstance(one, ast.Return)]
    if len(found) != 1 or len(returned) != 1 or returned[0] is None or shape is None or len(shape) != 4:
        return None
    call, name = found[0]
    if any(size is None or size < _SMALLEST for size in shape[1:3]):
        return None
    ranges = [one.value for one in call.keywords if one.arg == "data_range"]
    largest = spot.source.text(ranges[0]) if ranges else "1.0"
    whole = f"{alias(spot, 'tensorflow')}.{_OPS[name]}({given[0]}, {given[1]}, max_val={largest})"
    value = returned[0]
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub) and isinstance(value.left, ast.Constant):
        whole = f"{spot.source.text(value.left)} - {whole}"
    elif isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        whole = f"-{whole}"
    elif not isinstance(value, (ast.Name, ast.Call)):
        return None
    first, last = function.body[0].lineno, function.body[-1].end_lineno or function.body[-1].lineno
    return Edit(spot.file, first, last, (f"{indent_of(spot.source.lines[first - 1])}return {whole}",))
