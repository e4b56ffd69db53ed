"""`flat_map` over windows of pairs or dicts, whose parts are datasets; and over what a py_function returns."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.bodies.results import body_shape
from pyfunc_debug.doctor.failures.pastes.as_python import element_spec
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.datasets import has_datasets
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import NODE_CALLS, argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import Function, Source, dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls

RULE = "structure"
_METHODS = ("flat_map", "interleave")
_RESULT = re.compile(r"`?map_func`? (?:argument )?must return a `Dataset` object\. Got <class '([\w.]+)'>")
_AS_DATASET = re.compile(
    r"'(?:dict|tuple)' object has no attribute '(?:batch|take|skip|padded_batch)'|\(\) takes 1 positional argument but"
)
_REFUSE = ("flat_map_op.py", "interleave_op.py")
_NO_TEXT = "'Tensor' object has no attribute '_name'"
_OF_EACH = {"batch", "padded_batch", "take", "skip", "prefetch", "int", "len"}
"""What can be asked of each part of a window alone."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if what a function of flat_map was given or returned is why the program failed."""
    result, asked = _RESULT.search(situation.message), _AS_DATASET.search(situation.message)
    unnamed = result is None and _is_refused(situation)
    if situation.body or not (result or asked or unnamed):
        return None
    for spot in reversed(situation.spots):
        statement = spot.statement
        found = [one for one in calls(statement) if _is_flat(one)] if statement is not None else []
        given = argument(found[0], 0, "map_func") if len(found) == 1 else None
        if given is not None:
            spec = element_spec(situation, spot)
            function = _function(given, spot.source)
            if function is None:
                return None
            if result or unnamed:
                return _returned(spot, found[0], function, result[1] if result else "SymbolicTensor", spec)
            return _of_parts(spot, found[0], given, function, spec) if _has_datasets(spec) else None
    return None


def _is_refused(situation: Situation) -> bool:
    """Whether TensorFlow failed on the words of its refusal: a spec of a tensor in a graph that is done has no text."""
    files = (one.f_code.co_filename for one in frames(situation.inner.__traceback__))
    return _NO_TEXT in situation.message and any(one.endswith(_REFUSE) for one in files)


def _is_flat(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS


def _has_datasets(spec: Any) -> bool:
    """Whether an element has datasets for its parts, as those of `window` do; one dataset alone is none of them."""
    return isinstance(spec, (dict, tuple)) and has_datasets(spec)


def _function(given: ast.expr, source: Source) -> Function | None:
    if isinstance(given, ast.Lambda):
        return given
    found = [one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.name == dotted(given)]
    return found[0] if len(found) == 1 else None


def _results(function: Function) -> list[ast.expr]:
    if isinstance(function, ast.Lambda):
        return [function.body]
    return [one.value for one in own_nodes(function) if isinstance(one, ast.Return) and one.value is not None]


def _returned(spot: Spot, call: ast.Call, function: Function, kind: str, spec: Any) -> Explanation | None:
    """A function that gives several datasets, or tensors, where one dataset is asked for."""
    results = _results(function)
    made = [one for one in calls(function) if dotted(one.func).rpartition(".")[2] in NODE_CALLS]
    if made and body_shape(made[0], spot) == ():
        return None  # one number: a map was meant
    windows = _has_datasets(spec)
    if len(results) == 1 and not (windows or made):
        return _of_one(spot, call, function, results[0], kind)
    if len(results) != 1:
        return None
    source, tf = spot.source, alias(spot, "tensorflow")
    text = source.text(results[0])
    text = f"({text})" if isinstance(results[0], ast.Tuple) and not text.startswith("(") else text
    text = f"tuple({text})" if kind == "list" else text
    name = getattr(function, "name", "the lambda")
    assert isinstance(call.func, ast.Attribute)
    what = kind.rpartition(".")[2].replace("SymbolicTensor", "tensor")
    cause = f"{call.func.attr} wants one Dataset from {name}, of the elements that come out, and it returned a {what}. "
    if windows:
        new = f"{tf}.data.Dataset.zip({text})"
        cause += "A window has a dataset for each part of the elements: zip makes one of them."
    else:
        new = f"{tf}.data.Dataset.from_tensor_slices({text})"
        cause += "Its rows are the elements of one."
    edit = edit_of(spot.file, source.replaced({results[0]: new}))
    return Explanation(RULE, spot.file, results[0].lineno, cause, edit, "" if edit else f"Return {short(new, 60)}.")


def _of_one(spot: Spot, call: ast.Call, function: Function, result: ast.expr, kind: str) -> Explanation | None:
    """A function that gives what it was given, or an op of it: one element, where a dataset is asked for."""
    if not kind.endswith("Tensor") or not isinstance(result, (ast.Name, ast.Call)):
        return None
    name, what = getattr(function, "name", "the lambda"), kind.rpartition(".")[2].replace("SymbolicTensor", "tensor")
    assert isinstance(call.func, ast.Attribute)
    cause = (
        f"{call.func.attr} wants a Dataset from {name}, of the elements that come out, and it returned a {what}. "
        "from_tensors makes a dataset of that one element."
    )
    new = f"{alias(spot, 'tensorflow')}.data.Dataset.from_tensors({spot.source.text(result)})"
    edit = edit_of(spot.file, spot.source.replaced({result: new}))
    return Explanation(RULE, spot.file, result.lineno, cause, edit, "" if edit else f"Return {short(new, 60)}.")


def _of_parts(spot: Spot, call: ast.Call, given: ast.expr, function: Function, spec: Any) -> Explanation | None:
    """A function of one dataset, where each part of a window is one."""
    asked = {dotted(one.func).rpartition(".")[2] or getattr(one.func, "attr", "") for one in calls(function)}
    if len(function.args.args) != 1 or not asked <= _OF_EACH:
        return None
    source, tf = spot.source, alias(spot, "tensorflow")
    star = "*" if isinstance(spec, tuple) else ""
    new = f"lambda {star}parts: {tf}.data.Dataset.zip({tf}.nest.map_structure({source.text(given)}, parts))"
    edit = edit_of(spot.file, source.replaced({given: new}))
    what = f"tuples of {len(spec)}" if isinstance(spec, tuple) else "dicts"
    cause = (
        f"the elements were {what} before window, so that a window is not one dataset: it has one for each part of "
        "them. Each is asked for its batch, and zip makes one dataset of all."
    )
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else f"Give it {short(new, 60)}.")
