"""A name that a module of Python's or NumPy's does not have, and where it is: `np.norm`, `np.float`, `os.exists`."""

from __future__ import annotations

import ast
import builtins
import re
import sys

from pyfunc_debug.doctor.failures.graphs.other_names import OF_MODULE, asked_of
from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation

_REMOVED = re.compile(r"`np\.(\w+)` was removed in .*?[Uu]se `([\w.]+)`")
_PARTS = {
    "numpy": ("linalg", "random", "fft", "ma", "lib.stride_tricks"), "os": ("path",), "PIL": ("Image",),
    "datetime": ("datetime", "date"),
    "scipy": ("ndimage", "signal", "special", "linalg", "stats", "interpolate", "spatial", "fft"),
}  # fmt: skip
"""Where else a module has functions, in the order in which they are looked through."""
_GONE = {
    "float": "float", "int": "int", "bool": "bool", "object": "object", "complex": "complex",
    "str": "str", "long": "int",
    "unicode": "str", "float_": "{}.float64", "int0": "{}.intp", "complex_": "{}.complex128", "unicode_": "{}.str_",
    "string_": "{}.bytes_", "Inf": "{}.inf", "Infinity": "{}.inf", "infty": "{}.inf", "NaN": "{}.nan", "NAN": "{}.nan",
    "product": "{}.prod", "cumproduct": "{}.cumprod", "sometrue": "{}.any", "alltrue": "{}.all", "in1d": "{}.isin",
    "row_stack": "{}.vstack", "trapz": "{}.trapezoid", "round_": "{}.round", "mat": "{}.asmatrix", "PINF": "{}.inf",
}  # fmt: skip
"""What NumPy had, and what is there now (NumPy's release notes of 1.20, 1.24, 2.0 and 2.4)."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line of a body or a generator reads such a name."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.kind != "AttributeError" or not situation.data:
        return None
    said = OF_MODULE.search(situation.message)
    if (removed := _REMOVED.search(situation.message)) is not None:
        asked = asked_of(spot, statement, removed[1])
        held = spot.source.text(asked[0].value) if asked else "np"
        new = removed[2].replace("np.", f"{held}.")
        edit = in_place(spot, dict.fromkeys(asked, new))
        cause = f"NumPy has no {removed[1]} any more; it is {new}."
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Write {new}.")
    if said is None:
        return None
    module, name = said[1], said[2]
    asked, owner = asked_of(spot, statement, name), sys.modules.get(module)
    if not asked or owner is None:
        return None
    held = spot.source.text(asked[0].value)
    new, cause = "", f"{module} has no {name}"
    if module == "numpy" and name in _GONE:
        new = _GONE[name].format(held)
        cause = f"NumPy has no {name} any more; it is {new}."
    else:
        places = [one for one in _PARTS.get(module, ()) if _has(module, one, name)]
        if places:
            new = f"{held}.{places[0]}.{name}"
            cause += f", but {module}.{places[0]} has."
        elif hasattr(builtins, name):
            new, cause = name, f"{cause}: {name} is Python's own, and of no module."
    if not new:
        return None
    pieces: dict[ast.expr, str] = dict.fromkeys(asked, new)
    edit = in_place(spot, pieces)
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Write {new}.")


def _has(module: str, part: str, name: str) -> bool:
    """Whether a part of a module that is loaded has a name."""
    found: object = sys.modules.get(f"{module}.{part}") or sys.modules.get(module)
    if found is sys.modules.get(module):
        for one in part.split("."):
            found = getattr(found, one, None)
    return hasattr(found, name)
