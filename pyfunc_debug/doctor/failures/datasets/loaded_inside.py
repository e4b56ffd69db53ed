"""`tf.data.Dataset.load(path)` in a function that a dataset maps: it reads files at once, and needs the path's text.

In `interleave`, `flat_map` and `map` the path is a tensor without a value (`tensorflow/python/data/ops/load_op.py`).
`make_csv_dataset` and Keras' `..._dataset_from_directory` read at once, too.
"""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, parameters
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    dtype_of,
    is_dataset,
    lookup,
    method_calls,
    symbolic_parts,
)

RULE = "symbolic-value"
_SAID = re.compile(
    r"incompatible function arguments|SnapshotMetadata|not (?:Symbolic)?Tensor|Failed to initialize|"
    r"Iterating over a symbolic"
)
_LOADS = (
    "Dataset.load", "data.experimental.load", "make_csv_dataset", "make_batched_features_dataset",
    "image_dataset_from_directory", "text_dataset_from_directory",
)  # fmt: skip
_PATHS = ("path", "file_pattern", "directory")
_JOINS = {
    "flat_map": "functools.reduce({tf}.data.Dataset.concatenate, {parts})",
    "interleave": (
        "{tf}.data.Dataset.choose_from_datasets({parts}, {tf}.data.Dataset.range(len({parts})).repeat(), "
        "stop_on_empty_dataset=False)"
    ),
}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a saved dataset was to be loaded by a path that is a tensor of a graph."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or not _SAID.search(situation.message):
        return None
    loads = [one for one in calls(statement) if dotted(one.func).endswith(_LOADS)]
    named = (argument(loads[0], 0, one) for one in _PATHS) if len(loads) == 1 else iter(())
    path = next((one for one in named if one is not None), None)
    given = [
        one for one in method_calls(statement, *_JOINS, "map") if one.args and dotted(one.args[0]).endswith(_LOADS)
    ]
    called = None
    if path is not None and symbolic_parts(path, spot):
        found = wrapping.dataset_call(situation, wrapping.entry(situation)[0])
        called = found[:2] if found is not None else None
        loader, name = dotted(loads[0].func), spot.source.text(path)
    elif not loads and len(given) == 1:  # `interleave(tf.data.Dataset.load)`
        path, called = given[0].args[0], (spot, given[0])
        loader, name = dotted(path), "the path"
    else:
        return None
    method = called[1].func.attr if called is not None and isinstance(called[1].func, ast.Attribute) else ""
    cause = (
        f"{loader} opens its files while TensorFlow traces the function of {method or 'a dataset'}, and takes a path "
        f"as text: {name} is a tensor without a value here. In Python each path has one."
    )
    edit = _in_python(called[0], called[1], method) if called is not None and not list(calls(path)) else None
    if (
        edit is not None
        and called is not None
        and any(one.arg in ("cycle_length", "block_length") for one in called[1].keywords)
    ):
        cause += " In the line below all of them take turns, one element each, not cycle_length of them."
    advice = "" if edit else "Load each of them in a Python loop, and join them by concatenate."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _in_python(spot: Spot, call: ast.Call, method: str) -> Edit | None:
    """The datasets in a list, made by the function in Python, and one made of them."""
    statement, source = spot.source.statement(call.lineno), spot.source
    if method not in _JOINS or not call.args or not isinstance(statement, ast.Assign):
        return None
    function, owner = call.args[0], call.func.value  # type: ignore[attr-defined]
    name = "path"
    if isinstance(function, ast.Lambda):
        if len(parameters(function)) != 1:
            return None
        (name,) = parameters(function)
        made = source.text(function.body)
    else:
        made = f"{source.text(function)}(path)"
    value = lookup(owner, spot)
    if is_dataset(value) and dtype_of(value.element_spec) != "string":
        return None
    blanks = indent_of(source.lines[statement.lineno - 1])
    taken = {one.id for one in ast.walk(source.tree) if isinstance(one, ast.Name)}
    parts = "parts" if "parts" not in taken else "loaded_parts"
    first = f"{blanks}{parts} = [{made} for {name} in map(bytes.decode, {source.text(owner)}.as_numpy_iterator())]"
    joined = _JOINS[method].format(tf=alias(spot, "tensorflow"), parts=parts)
    begin, end, lines = source.kept_lines({call: joined})
    if begin != statement.lineno or end != statement.end_lineno:
        return None
    return Edit(spot.file, begin, end, (first, *lines))
