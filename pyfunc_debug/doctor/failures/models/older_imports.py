"""Imports of names that Keras 2 had in modules of its own, from where Keras 3 has them."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Mapping
from types import ModuleType

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import indent_of
from pyfunc_debug.doctor.failures.reading.symbols import alias

RULE = "older-api"
_ROOTS = ("tensorflow.keras", "keras")
_HOMES = (
    "layers", "models", "optimizers", "losses", "metrics", "callbacks", "utils", "initializers", "regularizers",
    "constraints", "activations", "backend", "",
)  # fmt: skip
_MODULES = {
    "np_utils": "utils", "generic_utils": "utils", "adam_v2": "optimizers", "rmsprop_v2": "optimizers",
    "gradient_descent_v2": "optimizers", "adam_v1": "optimizers",
}  # fmt: skip
"""Modules whose names stand in another one now."""
_OTHERWISE = {"CuDNNLSTM": "LSTM", "CuDNNGRU": "GRU", "adam": "Adam", "sgd": "SGD", "rmsprop": "RMSprop",
              "Deconvolution2D": "Conv2DTranspose"}  # fmt: skip
_LEGACY = "keras._tf_keras.keras"
"""What `tensorflow.keras` is: Keras 3, with some modules of Keras 2."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an import, or an attribute of a module, names a place that Keras 3 does not have."""
    spot, keras = situation.last, sys.modules.get("keras")
    statement = situation.statement
    version = str(getattr(keras, "__version__", ""))
    if spot is None or keras is None or not version.startswith("3") or situation.body:
        return None
    if situation.kind == "AttributeError" and statement is not None:
        return _attribute(situation, spot, statement)
    if situation.kind not in ("ImportError", "ModuleNotFoundError") or not isinstance(statement, ast.ImportFrom):
        return None
    module = statement.module or ""
    root = next((one for one in _ROOTS if module == one or module.startswith(f"{one}.")), "")
    if not root or statement.level:
        return None
    homes: dict[str, list[str]] = {}
    for one in statement.names:
        found = _home(keras, root, module, one)
        if found is None:
            return None
        homes.setdefault(found[0], []).append(found[1])
    return _told(spot, statement, module, homes)


def _home(keras: ModuleType, root: str, module: str, name: ast.alias) -> tuple[str, str] | None:
    """The module that has a name now, and how it is imported from there."""
    known = f" as {name.asname}" if name.asname else ""
    if name.name in _MODULES:
        return root, f"{_MODULES[name.name]} as {name.asname or name.name}"
    if module == f"{root}.layers.experimental" and name.name == "preprocessing":  # its layers stand in layers
        return root, f"layers as {name.asname or name.name}"
    loaded = sys.modules.get(module) or sys.modules.get(module.replace("tensorflow.keras", _LEGACY, 1))
    if loaded is not None and hasattr(loaded, name.name):
        return module, f"{name.name}{known}"
    for home in _HOMES:
        if hasattr(getattr(keras, home, None) if home else keras, name.name):
            return f"{root}.{home}".rstrip("."), f"{name.name}{known}"
    rest = module.partition("keras")[2]
    if root == "keras" and _legacy(rest, name.name):
        return f"tensorflow.keras{rest}", f"{name.name}{known}"
    now = _OTHERWISE.get(name.name, "")
    home = "optimizers" if hasattr(keras.optimizers, now) else "layers"
    if now and hasattr(getattr(keras, home), now):
        return f"{root}.{home}", f"{now} as {name.asname or name.name}"
    return None


def _legacy(rest: str, name: str) -> bool:
    """Whether TensorFlow's Keras has a name in a module that Keras alone lacks."""
    try:
        return hasattr(importlib.import_module(f"{_LEGACY}{rest}"), name)
    except ImportError:
        return False


def _told(spot: Spot, statement: ast.ImportFrom, module: str, homes: Mapping[str, list[str]]) -> Explanation:
    first, last = spot.source.span(statement)
    blanks = indent_of(spot.source.lines[first - 1])
    lines = tuple(f"{blanks}from {home} import {', '.join(names)}" for home, names in homes.items())
    if list(homes) == [module]:
        cause = f"{module} of Keras 3 has another name for it."
    else:
        cause = f"Keras 3 does not have {'these' if len(statement.names) > 1 else 'that'} in {module}."
    return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, first, last, lines))


def _elsewhere(spot: Spot, statement: ast.stmt, asked: ModuleType, name: str) -> Explanation | None:
    """`keras.layers.CuDNNLSTM`, and what TensorFlow's Keras alone has."""
    found = [one for one in ast.walk(statement) if isinstance(one, ast.Attribute) and one.attr == name]
    now, module = _OTHERWISE.get(name, name), asked.__name__.rpartition("keras.")[2]
    if len(found) != 1 or (now == name and asked.__name__.startswith((_LEGACY, "tensorflow"))):
        return None
    owner, cause = spot.source.text(found[0].value), f"Keras 3 has {now} in its {module}, and no {name}."
    if now == name:
        owner = f"{alias(spot, 'tensorflow')}.keras.{module}"
        cause = f"keras.{module} of Keras 3 has no {name}: TensorFlow's keras still has it."
    elif not hasattr(asked, now):
        return None
    edit = edit_of(spot.file, spot.source.replaced({found[0]: f"{owner}.{now}"}))
    return Explanation(RULE, spot.file, found[0].lineno, cause, edit, "" if edit else f"Write {owner}.{now}.")


def _attribute(situation: Situation, spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`keras.layers.experimental.preprocessing.Rescaling` as `keras.layers.Rescaling`."""
    asked, name = getattr(situation.inner, "obj", None), getattr(situation.inner, "name", None)
    if not isinstance(asked, ModuleType) or not asked.__name__.startswith(("keras.", "tensorflow.keras")):
        return None
    if name in _OTHERWISE or _legacy(asked.__name__.partition("keras")[2], str(name)):
        return _elsewhere(spot, statement, asked, str(name))
    if name not in ("experimental", *_MODULES):
        return None
    pieces: dict[ast.expr, str] = {}
    for one in (part for part in ast.walk(statement) if isinstance(part, ast.Attribute) and part.attr == name):
        whole: ast.expr = one
        while isinstance(parent := spot.source.parent(whole), ast.Attribute):
            whole = parent
            if parent.attr not in ("preprocessing",):
                break
        if not isinstance(whole, ast.Attribute) or whole is one or not hasattr(asked, whole.attr):
            return None
        pieces[whole] = f"{spot.source.text(one.value)}.{whole.attr}"
    if not pieces:
        return None
    module = asked.__name__.rpartition("keras.")[2]
    cause = f"Keras 3 has no {name} in its {module}: what was there stands in {module} itself."
    edit = edit_of(spot.file, spot.source.replaced(pieces))
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Write {next(iter(pieces.values()))}.")
