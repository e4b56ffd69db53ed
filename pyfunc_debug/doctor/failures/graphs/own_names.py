"""A file of the user's that is called as a module that is imported: `json.py`, `random.py`, `keras.py`."""

from __future__ import annotations

import importlib.machinery
import os
import re
import sys
from contextlib import suppress

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation

RULE = "shadowed-module"
_MODULE = "<module>"
_NAMED = re.compile(
    r"module '([\w.]+)'|from '([\w.]+)'|No module named '[\w.]+'; '([\w.]+)' is not a package|'module' object"
)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an import found the user's file where another module of its name was meant."""
    if situation.body or situation.kind not in ("AttributeError", "ImportError", "ModuleNotFoundError", "TypeError"):
        return None
    found = _NAMED.search(situation.message)
    if found is None:
        return None
    said = {one.partition(".")[0] for one in found.groups() if one}
    loaded = [spot for spot in situation.spots if spot.code == _MODULE]
    files = [spot.file for spot in loaded]
    for spot in reversed(loaded):
        name = os.path.splitext(os.path.basename(spot.file))[0]
        if (name in said or files.count(spot.file) > 1) and (other := _other(name, spot.file)):
            cause = f"this file has the name of {other}: `import {name}`, also in TensorFlow, finds this one instead."
            return Explanation(RULE, spot.file, spot.line, cause, None, f"Call {name}.py by another name.")
    return None


def _other(name: str, file: str) -> str:
    """What else has the name: "Python's module json"; "" where nothing has."""
    folder = os.path.realpath(os.path.dirname(file))
    path = [one for one in sys.path if os.path.realpath(one or os.getcwd()) != folder]
    spec = None
    with suppress(ImportError, ValueError, AttributeError):
        spec = importlib.machinery.PathFinder.find_spec(name, path)
    if spec is None or spec.loader is None:
        return ""
    return f"Python's module {name}" if name in sys.stdlib_module_names else f"the package {name}"
