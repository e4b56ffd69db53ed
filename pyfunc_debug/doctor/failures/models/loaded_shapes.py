"""A model of a file that takes other data than it is given: which line loaded it, and whether the file is old."""

from __future__ import annotations

import ast
import os
import re
import sys
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import failed_single_inputs
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import is_keras_class, lookup, method_calls, shape_of, sizes_of

RULE = "structure"
_SAID = re.compile(r"Invalid input shape for input |is incompatible with the layer: expected (?:shape|axis)")
_COLOURS = (1, 3, 4)
_MARGIN = 2
"""Seconds that the start of a process may be off."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if what failed is a call of a model that the file loads, on data of other sizes."""
    if situation.body or not _SAID.search(situation.message):
        return None
    for spot, call, model, node in failed_single_inputs(situation):
        owner = getattr(call.func, "value", None)
        load = _loaded(spot, owner.id) if isinstance(owner, ast.Name) else None
        if load is None:
            continue
        wanted, given = shape_of(model.inputs[0]), shape_of(lookup(node, spot))
        if wanted is None or given is None or _fits(given, wanted) or len(given) != len(wanted):
            continue
        if len(wanted) == 4 and wanted[3] == given[3] and wanted[3] in _COLOURS:
            continue  # images of another height or width can be scaled: image_sizes
        return _told(situation, spot, call, load, wanted, given)
    return None


def _fits(given: tuple[int | None, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(given) == len(wanted) and all(None in pair or pair[0] == pair[1] for pair in zip(given[1:], wanted[1:]))


def _loaded(spot: Spot, name: str) -> ast.Call | None:
    """The `load_model(...)` that a name of the function is given, if by nothing else."""
    around = spot.source.function(spot.line)
    found = [
        one.value for one in ast.walk(around or spot.source.tree)
        if isinstance(one, ast.Assign) and name in map(dotted, one.targets)
        and spot.source.function(one.lineno) is around
    ]  # fmt: skip
    one = max((each for each in found if each.lineno <= spot.line), key=lambda each: each.lineno, default=None)
    return one if isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] == "load_model" else None


def _told(
    situation: Situation, spot: Spot, call: ast.Call, load: ast.Call,
    wanted: tuple[int | None, ...], given: tuple[int | None, ...],
) -> Explanation:  # fmt: skip
    source, node = spot.source, argument(call, 0, "x")
    path = argument(load, 0, "filepath")
    value: Any = (lookup(path, spot) or computed(path, spot)) if path is not None else None
    owner, method = dotted(call.func).rpartition(".")[0], getattr(call.func, "attr", "")
    file = os.path.basename(value) if isinstance(value, str) else short(source.text(path), 30) if path else "a file"
    cause = f"{owner} was loaded from {file} (line {load.lineno}) and takes {sizes_of(wanted)}. "
    cause += f"{short(source.text(node), 30) if node else 'The data'} is {sizes_of(given)}."
    advice = f"Give {method} data of {sizes_of(wanted[1:])} each, or load the file of a model that was built for yours."
    fit = _trained(situation, spot) if isinstance(value, str) and _is_older(value) else None
    if fit is None:
        return Explanation(RULE, spot.file, call.lineno, cause, None, advice)
    cause += f" The file is older than this program: what fit (line {fit.lineno}) trained is not in it."
    trained, _, _ = dotted(fit.func).rpartition(".")
    text = _path(situation, spot, path) if path is not None else ""
    first = _first(situation, spot)
    model: Any = first.value(trained)
    inputs: Any = getattr(model, "inputs", None) or ()
    statement = first.source.statement(fit.lineno)
    if not text or statement is None or len(inputs) != 1 or not _fits(given, shape_of(inputs[0]) or ()):
        return Explanation(
            RULE, spot.file, call.lineno, cause, None, f"Save the model by {trained}.save(...) behind it."
        )
    last = statement.end_lineno or statement.lineno
    blanks = indent_of(first.source.lines[statement.lineno - 1])
    edit = Edit(first.file, last + 1, last, (f"{blanks}{trained}.save({text})",))
    return Explanation(RULE, spot.file, call.lineno, cause, edit)


def _is_older(path: str) -> bool:
    """Whether a file was written before this process began; not said where only other systems know that."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        with open("/proc/stat", encoding="ascii") as file:
            booted = next(int(line.split()[1]) for line in file if line.startswith("btime "))
        return os.stat(path).st_mtime < booted + ticks / os.sysconf("SC_CLK_TCK") - _MARGIN
    except (OSError, ValueError, IndexError, StopIteration):
        return False


def _first(situation: Situation, spot: Spot) -> Spot:
    """The outermost frame of a frame's file."""
    return next(one for one in situation.spots if one.file == spot.file)


def _trained(situation: Situation, spot: Spot) -> ast.Call | None:
    """The last `model.fit(...)` of the program's own statements above the one that failed."""
    first = _first(situation, spot)
    found = [
        one for each in first.source.tree.body if each.lineno < first.line and not hasattr(each, "body")
        for one in method_calls(each, "fit") if isinstance(getattr(one.func, "value", None), ast.Name)
    ]  # fmt: skip
    found = [one for one in found if is_keras_class(type(first.value(dotted(one.func).rpartition(".")[0])))]
    return found[-1] if found and first.source.function(first.line) is None else None


def _path(situation: Situation, spot: Spot, path: ast.expr) -> str:
    """How the program's own statements write the path of a file, also that of a parameter."""
    first, function = _first(situation, spot), spot.source.function(spot.line)
    if function is None:
        return spot.source.text(path)
    if (
        not isinstance(function, ast.FunctionDef)
        or not isinstance(path, ast.Name)
        or situation.outer(spot) is not first
    ):
        return spot.source.text(path) if isinstance(path, ast.Constant) else ""
    called = [one for one in first.source.calls_of(frozenset({function.name})) if one.lineno == first.line]
    if len(called) != 1 or path.id not in parameters(function):
        return ""
    node = argument(called[0], parameters(function).index(path.id), path.id)
    return first.source.text(node) if node is not None else ""
