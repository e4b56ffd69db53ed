"""Names of TensorFlow 1, which TensorFlow's own table (`tf_upgrade_v2`) has with those of TensorFlow 2."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections.abc import Mapping
from contextlib import suppress

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import is_dataset, lookup

RULE = "older-api"
_SAID = re.compile(r"module '(tensorflow(?:\.[\w.]+)?)' has no attribute '(\w+)'")
_OF_DATASETS = re.compile(r"'_?\w*Dataset(?:V\d)?' object has no attribute '(\w+)'")
_TABLE = "tensorflow.tools.compatibility.all_renames_v2"
_NUMPY = {"tf.py_func": "tf.numpy_function"}
"""Better than what the table says."""
_OF_GRAPHS = re.compile(
    r"\b(?:placeholder|Session|InteractiveSession|get_variable|variable_scope|global_variables_initializer|"
    r"make_initializable_iterator|get_default_graph|train\.\w+Optimizer|feed_dict)\b"
)
"""Words of a program that builds a graph for a Session."""
_GONE = {"contrib": "tf.contrib is gone", "estimator": "Estimators are gone since TensorFlow 2.16"}
_PARTS = ("output_shapes", "output_types", "output_classes")
_NEAR = 30
"""Lines that one paste goes over."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line reads such a name."""
    spot = situation.last
    if spot is None or situation.kind != "AttributeError":
        return None
    if (said := _OF_DATASETS.search(situation.message)) is not None:
        return _of_dataset(spot, said[1])
    said = _SAID.search(situation.message)
    tf = _imported(spot) if said is not None else ""
    if said is None or not tf:
        return None
    within = spot.function if spot.function is not None else spot.source.tree
    found: dict[ast.expr, str] = {
        one: new for one in ast.walk(within)
        if isinstance(one, ast.Attribute) and (new := _now(dotted(one), tf)) and _is_outermost(one, spot, tf)
    }  # fmt: skip
    here = [one for one in found if one.lineno <= spot.line <= (one.end_lineno or one.lineno)]
    if not here:
        return _gone(spot, said[2])
    old = dotted(here[0])
    lines = spot.source.code
    if any(_OF_GRAPHS.search(line) for line in lines) and not any("keras" in line for line in lines):
        cause = f"This program is written for TensorFlow 1: {old} and the Session are in tensorflow.compat.v1."
        edit = _compat(spot, tf)
        if edit is not None:
            return Explanation(RULE, spot.file, here[0].lineno, cause, edit)
    near: dict[ast.expr, str] = {
        one: new for one, new in found.items()
        if abs(one.lineno - here[0].lineno) <= _NEAR and (spot.function is not None or one in here)
    }  # fmt: skip
    cause = f"TensorFlow 2 has no {old}; it is {near[here[0]]} now."
    edit = Edit(spot.file, *spot.source.kept_lines(near))
    return Explanation(RULE, spot.file, here[0].lineno, cause, edit)


def _imported(spot: Spot) -> str:
    """The name that TensorFlow was imported by."""
    for one in ast.walk(spot.source.tree):
        if isinstance(one, ast.Import):
            for name in one.names:
                if name.name == "tensorflow":
                    return name.asname or name.name
    return ""


@functools.cache
def _table() -> Mapping[str, str]:
    """The old names and the new ones, `tf.log` and `tf.math.log`; empty where this TensorFlow does not have it."""
    with suppress(Exception):
        found: Mapping[str, str] = importlib.import_module(_TABLE).symbol_renames
        return found
    return {}


def _now(name: str, tf: str) -> str:
    """The new name of one that is written `tf.log`; "" of others, and of those that TensorFlow 2 has."""
    first, _, rest = name.partition(".")
    if first != tf or not rest:
        return ""
    new = _NUMPY.get(f"tf.{rest}") or _table().get(f"tf.{rest}", "")
    return "" if not new or _is_there(rest) else f"{tf}.{new.partition('.')[2]}"


def _is_there(path: str) -> bool:
    value = importlib.import_module("tensorflow")
    for part in path.split("."):
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


def _is_outermost(node: ast.Attribute, spot: Spot, tf: str) -> bool:
    """Whether no longer name with it is in the table: `tf.logging.ERROR`, not `tf.logging`."""
    parent = spot.source.parent(node)
    return not (isinstance(parent, ast.Attribute) and _now(dotted(parent), tf))


def _compat(spot: Spot, tf: str) -> Edit | None:
    """The import of TensorFlow as that of its first version's names."""
    for one in spot.source.tree.body:
        if isinstance(one, ast.Import) and len(one.names) == 1 and one.names[0].name == "tensorflow":
            blanks = indent_of(spot.source.lines[one.lineno - 1])
            lines = (f"{blanks}import tensorflow.compat.v1 as {tf}", f"{blanks}{tf}.disable_v2_behavior()")
            return Edit(spot.file, one.lineno, one.end_lineno or one.lineno, lines)
    return None


def _gone(spot: Spot, name: str) -> Explanation | None:
    said = _GONE.get(name)
    if said is None:
        return None
    advice = "Use what took its place: tf.data, tf.keras and tf.io; the guide is tensorflow.org/guide/migrate."
    return Explanation(RULE, spot.file, spot.line, f"{said}: TensorFlow 2 has nothing by that name.", None, advice)


def _of_dataset(spot: Spot, name: str) -> Explanation | None:
    """`ds.output_shapes` and `ds.make_one_shot_iterator()`, which are functions of tf.compat.v1.data now."""
    statement, tf = spot.statement, _imported(spot)
    found = [
        one for one in ast.walk(statement)
        if isinstance(one, ast.Attribute) and is_dataset(lookup(one.value, spot))
        and one.attr in (*_PARTS, name)
    ] if statement is not None and tf else []  # fmt: skip
    if not found:
        return None
    text = spot.source.text
    if name in _PARTS:
        pieces: dict[ast.expr, str] = {one: f"{tf}.compat.v1.data.get_{one.attr}({text(one.value)})" for one in found}
        cause = f"A dataset of TensorFlow 2 has no {name}: a function gives it, and element_spec says both."
        return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, *spot.source.kept_lines(pieces)))
    if name not in ("make_one_shot_iterator", "make_initializable_iterator"):
        return None
    call = spot.source.parent(found[0])
    if not isinstance(call, ast.Call) or any("Session(" in line for line in spot.source.code):
        made = f"{tf}.compat.v1.data.{name}({text(found[0].value)})"
        cause = f"{name} is a function of tf.compat.v1.data in TensorFlow 2."
        target: ast.expr = call if isinstance(call, ast.Call) else found[0]
        return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, *spot.source.kept_lines({target: made})))
    pieces = {call: f"iter({text(found[0].value)})"}
    cause = f"TensorFlow 2 has no {name}: Python's iter gives the iterator, and `next(...)` or get_next() its elements."
    return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, *spot.source.kept_lines(pieces)))
