"""Text that TensorFlow's ops make, given to a Python module: in Python, too, that is a tensor, and no text.

`json.loads(example["meta"])` of a record that `tf.io.parse_single_example` has read fails at trace, and with values.
"""

from __future__ import annotations

import ast
import sys

from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, parameters
from pyfunc_debug.doctor.failures.reading.symbols import calls, dtype_of, is_symbolic, shape_of, symbolic_parts

_BYTES = {"frombuffer", "loads", "BytesIO", "decompress", "b64decode", "unpack", "unpack_from", "crc32"}
"""Functions that take bytes."""
_OF_NUMPY = {"frombuffer", "fromstring", "loadtxt", "genfromtxt"}
"""NumPy's functions that read text or bytes: the others take an eager tensor for an array."""
THEN = "With .numpy() it reads the value itself. It is the first of two pastes: the next run tells that of the map."
"""What is said of the lines: the map still has no values."""
_FARTHEST = 8
"""Lines from the first to the last that one paste changes."""


def values_of_texts(spot: Spot) -> Edit | None:
    """The calls of a mapped function's frame that are given text of ops, with the values in its place.

    Args:
      spot: The frame; it knows what its names were when the failing line was reached.

    Returns:
      The lines around the failing one; None where it gives no module of Python's such text.
    """
    function = spot.function
    if not isinstance(function, ast.FunctionDef):
        return None
    given = parameters(function)
    pieces: dict[ast.expr, str] = {}
    for call in calls(function):
        for one in call.args if _reads(call, spot) else ():
            tensor = symbolic_parts(one, spot).get(ast.unparse(one).replace("'", '"'))
            if dotted(one) in given or not is_symbolic(tensor) or dtype_of(tensor) != "string" or shape_of(tensor):
                continue
            text = "" if dotted(call.func).rpartition(".")[2] in _BYTES else ".decode()"
            pieces[one] = f"{spot.source.text(one)}.numpy(){text}"
    near = {one: text for one, text in pieces.items() if 0 <= one.lineno - spot.line < _FARTHEST}
    if not any(one.lineno == spot.line for one in near):
        return None
    first, last = spot.line, max(one.end_lineno or one.lineno for one in near)
    return Edit(spot.file, first, last, spot.source.spliced(near, first, last))


def _reads(call: ast.Call, spot: Spot) -> bool:
    """Whether a call is of a function of Python's own modules, or one of NumPy's that read text."""
    root = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    module = spot.value(root.id) if isinstance(root, ast.Name) else None
    if type(module).__name__ != "module":
        return False
    name = str(getattr(module, "__name__", "")).partition(".")[0]
    return name in sys.stdlib_module_names or (name == "numpy" and dotted(call.func).rpartition(".")[2] in _OF_NUMPY)
