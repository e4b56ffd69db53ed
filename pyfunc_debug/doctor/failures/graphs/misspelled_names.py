"""A name that is misspelled, of a package, an object or the program's own, and a module that is not imported."""

from __future__ import annotations

import ast
import difflib
import re
import sys
from typing import Any

from pyfunc_debug.doctor.failures.graphs.other_names import OF_MODULE, OF_TENSOR, asked_of
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import lookup

RULE = "argument"
_OF_OBJECT = re.compile(r"^'([\w.]+)' object has no attribute '(\w+)'")
_NOT_IMPORTED = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")
_UNKNOWN = re.compile(r"^name '(\w+)' is not defined")
_IMPORTS = {
    "np": "import numpy as np", "tf": "import tensorflow as tf", "pd": "import pandas as pd", "cv2": "import cv2",
    "plt": "import matplotlib.pyplot as plt", "keras": "from tensorflow import keras",
}  # fmt: skip
_FROM = {
    "Image": "from PIL import Image", "partial": "from functools import partial", "Path": "from pathlib import Path",
    "defaultdict": "from collections import defaultdict", "Counter": "from collections import Counter",
    "deque": "from collections import deque", "deepcopy": "from copy import deepcopy",
    "sleep": "from time import sleep",
    "sqrt": "from math import sqrt", "randint": "from random import randint", "to_categorical":
    "from tensorflow.keras.utils import to_categorical", "pad_sequences":
    "from tensorflow.keras.utils import pad_sequences", "reduce": "from functools import reduce",
}  # fmt: skip
"""Names that are imported from a module, and called as they are."""
_WORDS = {"true": "True", "false": "False", "none": "None", "null": "None", "TRUE": "True", "FALSE": "False"}
"""How other languages write Python's constants."""
_NEAR = 0.85
_FORMATS = frozenset(
    (
        "rgb",
        "rgba",
        "argb",
        "bgr",
        "bgra",
        "abgr",
        "hsv",
        "hls",
        "hsl",
        "lab",
        "luv",
        "yuv",
        "yiq",
        "xyz",
        "gray",
        "grey",
    )
)
"""Parts of names by which two that look alike give other numbers: `tostring_argb` is not `tostring_rgb`."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if there is nearly what was asked for."""
    spot, statement, message = situation.last, situation.statement, situation.message
    if spot is None or statement is None:
        return None
    if situation.kind == "AttributeError" and OF_TENSOR.search(message) is None:
        module, thing = OF_MODULE.search(message), _OF_OBJECT.search(message)
        if module is not None:
            return _of_module(spot, statement, module[1], module[2])
        return _of_object(spot, statement, thing[1].rpartition(".")[2], thing[2]) if thing is not None else None
    if situation.kind == "ImportError" and (missing := _NOT_IMPORTED.search(message)) is not None:
        return _imported(spot, statement, missing[1], missing[2])
    unknown = _UNKNOWN.search(message) if situation.kind == "NameError" else None
    return _of_name(spot, statement, unknown[1]) if unknown is not None else None


def _of_module(spot: Spot, statement: ast.stmt, module: str, name: str) -> Explanation | None:
    """`keras.layers.Densse(4)`."""
    asked, owner = asked_of(spot, statement, name), sys.modules.get(module)
    if not asked or owner is None or len(name) < 4:
        return None
    held = spot.source.text(asked[0].value)
    known = module.partition(".")[0] in ("tensorflow", "keras", "numpy")
    new = _near(name, [*vars(owner), *_public(owner)]) if known else ""
    if not new:
        return None
    pieces: dict[ast.expr, str] = dict.fromkeys(asked, f"{held}.{new}")
    edit = edit_of(spot.file, spot.source.replaced(pieces))
    cause = f"{held} has no {name}, but {new}."
    advice = "" if edit is not None else f"Write {held}.{new}."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice, "likely")


def _of_object(spot: Spot, statement: ast.stmt, said: str, name: str) -> Explanation | None:
    """`model.complie(...)`, `ds.prefech(1)`: of objects of TensorFlow and Keras, and the user's."""
    asked = [one for one in ast.walk(statement) if isinstance(one, ast.Attribute) and one.attr == name]
    if len(asked) != 1 or len(name) < 4:
        return None
    value, held = lookup(asked[0].value, spot), short(spot.source.text(asked[0].value), 40)
    kind: Any = type(value)
    if value is None and "Dataset" in said:
        kind = getattr(getattr(sys.modules.get("tensorflow"), "data", None), "Dataset", None)
    elif value is None or kind.__name__ != said:
        return None
    if not isinstance(kind, type):
        return None
    known = [one for base in kind.__mro__ for one in vars(base)]
    known += [str(one) for one in getattr(value, "__dict__", ())]
    new = _near(name, known)
    if not new:
        return None
    edit = edit_of(spot.file, spot.source.replaced({asked[0]: f"{spot.source.text(asked[0].value)}.{new}"}))
    cause = f"{held} has no {name}, but {new}."
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit is not None else f"Write {new}.", "likely")


def _imported(spot: Spot, statement: ast.stmt, name: str, module: str) -> Explanation | None:
    """`from tensorflow.keras.layers import Dropot`."""
    owner = sys.modules.get(module)
    new = _near(name, [*vars(owner), *_public(owner)]) if owner is not None and len(name) > 3 else ""
    if not isinstance(statement, ast.ImportFrom) or not new:
        return None
    names = [f"{new} as {one.asname or name}" if one.name == name else ast.unparse(one) for one in statement.names]
    uses = sum(isinstance(one, ast.Name) and one.id == name for one in ast.walk(spot.source.tree))
    if not uses:
        names = [one.replace(f" as {name}", "") for one in names]
    first, last = spot.source.span(statement)
    line = f"from {statement.module} import {', '.join(names)}"
    edit = edit_of(spot.file, (first, last, line))
    return Explanation(RULE, spot.file, first, f"{statement.module} has no {name}, but {new}.", edit, "", "likely")


def _of_name(spot: Spot, statement: ast.stmt, name: str) -> Explanation | None:
    """`datset` for `dataset`, and `true` for `True`."""
    if name in _WORDS:
        words: dict[ast.expr, str] = {
            one: _WORDS[name] for one in ast.walk(statement)
            if isinstance(one, ast.Name) and one.id == name and one.lineno == spot.line
        }  # fmt: skip
        edit = edit_of(spot.file, spot.source.replaced(words)) if words else None
        cause = f"Python writes {_WORDS[name]}: {name} is a name, and nothing has it."
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Write {_WORDS[name]}.")
    new = _near(name, [*spot.variables, *spot.module]) if len(name) > 3 else ""
    new = new or _shortened(name, spot)
    asked = [one for one in ast.walk(statement) if isinstance(one, ast.Name) and one.id == name]
    used = [one for one in ast.walk(statement) if isinstance(one, ast.Attribute) and dotted(one.value) == name]
    line = _IMPORTS.get(name, "") or _FROM.get(name, "")
    if not line and not new and name in sys.stdlib_module_names:
        line = f"import {name}"
    if line and (used or name in _FROM):
        body = spot.source.tree.body
        imports = [one for one in body if isinstance(one, (ast.Import, ast.ImportFrom))]
        future = [one.lineno + 1 for one in imports if getattr(one, "module", "") == "__future__"]
        others = [one.lineno for one in imports if getattr(one, "module", "") != "__future__"]
        first = others[0] if others else max(future, default=1)
        added = Edit(spot.file, first, first - 1, (line,))
        return Explanation(RULE, spot.file, spot.line, f"{name} is not imported here.", added)
    if not new or not asked:
        return _elsewhere(spot, name) if asked else None
    pieces: dict[ast.expr, str] = dict.fromkeys(asked, new)
    edit = edit_of(spot.file, spot.source.replaced(pieces))
    cause = f"Nothing has the name {name} here, but {new} is there."
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit is not None else f"Write {new}.", "likely")


def _shortened(name: str, spot: Spot) -> str:
    """The one parameter of the function that a name is short for, or long for: `img` and `image`."""
    function = spot.function
    given = parameters(function) if function is not None and not isinstance(function, ast.Lambda) else []
    found = [
        one
        for one in given
        if one != name and min(len(one), len(name)) > 1 and _abbreviates(*sorted((name, one), key=len))
    ]
    return found[0] if len(found) == 1 else ""


def _abbreviates(less: str, more: str) -> bool:
    """Whether a name has the letters of another one, in their order, and the same first one."""
    letters = iter(more)
    return less[0] == more[0] and all(one in letters for one in less)


def _elsewhere(spot: Spot, name: str) -> Explanation | None:
    """A name that only another function of the file has."""
    function = spot.function
    if function is None or isinstance(function, ast.Lambda):
        return None
    holders = [
        (one, each) for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one is not function
        for each in own_nodes(one) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and each.id == name
    ]  # fmt: skip
    if len({one.name for one, _ in holders}) != 1:
        return None
    holder, stored = holders[0]
    cause = (
        f"{name} is a name of {holder.name}'s own (line {stored.lineno}): {function.name} does not see it, wherever it "
        "is called from."
    )
    advice = (
        f"Hand it over as an argument of {function.name}, or define {function.name} inside {holder.name}, below it."
    )
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _public(module: Any) -> list[str]:
    """Names that TensorFlow's and Keras' modules give only when they are asked for."""
    own = str(getattr(module, "__name__", "")).partition(".")[0] in ("tensorflow", "keras")
    return dir(module) if own else []


def _near(name: str, known: list[str]) -> str:
    """The public name that is nearest: in other letters' case, else nearly the same."""
    public = sorted({one for one in known if not one.startswith("_")} - {name})
    same = [one for one in public if one.lower() == name.lower() and one != name]
    if same:
        return same[-1]
    found = difflib.get_close_matches(name, public, 1, _NEAR)
    return found[0] if found and _formats(name) <= _formats(found[0]) else ""


def _formats(name: str) -> frozenset[str]:
    return _FORMATS & {part.lower() for part in re.split(r"_|(?<=[a-z])(?=[A-Z])|2", name)}
