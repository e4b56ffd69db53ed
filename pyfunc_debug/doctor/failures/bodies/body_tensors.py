"""Tensors taken for arrays in a body, and arrays for tensors."""

from __future__ import annotations

import ast
import builtins
import re

import numpy as np

from pyfunc_debug.doctor.code import own_nodes
from pyfunc_debug.doctor.failures.graphs.text_methods import numbers
from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, first_statement, holds, in_place, of_a_tensor
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import failed_node, op_of_arrays
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import indent_of, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import dtype_of

_NO_ATTRIBUTE = re.compile(r"'?(?:[\w.]*\.)?(\w+)'? object has no attribute '(\w+)'")
_NO_ASSIGNMENT = re.compile(
    r"'[\w.]*Tensor' object does not support item assignment"
    r"|only integer scalar arrays can be converted to a scalar index"  # `image[image < 0.5] = 0`
)
_TENSORS = ("EagerTensor", "SparseTensor", "RaggedTensor", "IndexedSlices", "SymbolicTensor")
_STRINGS = {
    "decode",
    "split",
    "strip",
    "lower",
    "upper",
    "replace",
    "startswith",
    "endswith",
    "join",
    "encode",
    "format",
}


def array_method(situation: Situation, spot: Spot) -> Explanation | None:
    """`path.decode()` and `image.astype(...)` of an eager tensor."""
    match = _NO_ATTRIBUTE.search(situation.message)
    statement = spot.statement
    if match is None or match[1] != "EagerTensor" or statement is None:
        return None
    pieces: dict[ast.expr, str] = {}
    for one in ast.walk(statement):
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
            name = one.value.id
            if holds(spot, name, "EagerTensor") and (one.attr == match[2] or _of_arrays(spot, name, one.attr)):
                if match[2] in _STRINGS and dtype_of(spot.variables[name]) != "string":
                    return numbers(spot, name, spot.variables[name], match[2], RULE)
                text = match[2] in _STRINGS and match[2] != "decode"
                pieces[one.value] = f"{name}.numpy()" + (".decode()" if text else "")
    first = next(iter(pieces), None)
    everywhere = _at_the_top(spot, first.id) if isinstance(first, ast.Name) and match[2] not in _STRINGS else None
    if everywhere is not None and isinstance(first, ast.Name):
        cause = f"a py_function gives its body eager tensors, and {first.id} is one: it has no `.{match[2]}`."
        return Explanation(
            RULE, spot.file, spot.line, f"{cause} `.numpy()` gives its value, a NumPy array.", everywhere
        )
    kind = "bytes for text" if match[2] in _STRINGS else "a NumPy array"
    return of_a_tensor(spot, pieces, f"it has no `.{match[2]}`. `.numpy()` gives its value, {kind}.")


def _of_arrays(spot: Spot, name: str, attribute: str) -> bool:
    """Whether arrays have an attribute that an eager tensor of numbers has not."""
    value = spot.variables[name]
    return dtype_of(value) != "string" and hasattr(np.ndarray, attribute) and not hasattr(type(value), attribute)


def _at_the_top(spot: Spot, name: str) -> Edit | None:
    """`x = x.numpy()` above the rest of a body, where other statements ask the parameter for what arrays have, too."""
    function = spot.function
    if not isinstance(function, ast.FunctionDef) or name not in parameters(function):
        return None
    uses = [one for one in own_nodes(function) if isinstance(one, ast.Name) and one.id == name]
    asked = [
        one for one in own_nodes(function)
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == name
    ]  # fmt: skip
    lines = {one.lineno for one in asked if _of_arrays(spot, name, one.attr)}
    if len(lines) < 2 or any(isinstance(one.ctx, ast.Store) for one in uses):
        return None
    if any(hasattr(type(spot.variables[name]), one.attr) and not hasattr(np.ndarray, one.attr) for one in asked):
        return None
    line = first_statement(function)
    return Edit(spot.file, line, line - 1, (f"{indent_of(spot.source.lines[line - 1])}{name} = {name}.numpy()",))


def no_numpy(situation: Situation, spot: Spot) -> Explanation | None:
    """`.numpy()` in the body of a numpy_function, which is given arrays."""
    match = _NO_ATTRIBUTE.search(situation.message)
    statement = spot.statement
    if match is None or match[2] != "numpy" or match[1] in _TENSORS or statement is None:
        return None
    node = failed_node(situation)
    function = spot.function
    calls = [
        one
        for one in ast.walk(statement)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "numpy"
    ]
    pieces: dict[ast.expr, str] = {one: spot.source.text(one.func.value) for one in calls}  # type: ignore[attr-defined]
    edit = in_place(spot, pieces)
    if edit is None or function is None:
        return None
    given = {"bytes": "bytes for text", "ndarray": "NumPy arrays"}.get(match[1], f"NumPy values ({match[1]})")
    if node is not None and node.kind == "py_function":
        if not hasattr(np, match[1]) and not hasattr(builtins, match[1]):
            return None
        text = spot.source.text(next(iter(pieces)))
        cause = f"in `{short(text, 40)}` what is asked for its value is not a tensor, but a value already: {match[1]}."
        return Explanation(RULE, spot.file, spot.line, cause, edit)
    return Explanation(
        RULE, spot.file, spot.line,
        f"{op_of_arrays(situation)} gives its body {given}, not tensors: there is no `.numpy()`. Only a "
        "py_function gives eager tensors.",
        edit,
    )  # fmt: skip


def assigns(situation: Situation, spot: Spot) -> Explanation | None:
    """`image[1:3] = 0` of an eager tensor."""
    statement = spot.statement
    if not _NO_ASSIGNMENT.search(situation.message) or statement is None:
        return None
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    for target in targets:
        while isinstance(target, (ast.Subscript, ast.Attribute)):
            target = target.value
        if isinstance(target, ast.Name) and holds(spot, target.id, "EagerTensor"):
            blanks = indent_of(spot.source.lines[statement.lineno - 1])
            line = f"{blanks}{target.id} = {target.id}.numpy().copy()"
            return Explanation(
                RULE, spot.file, spot.line,
                f"a py_function gives its body eager tensors, and {target.id} is one: a tensor cannot be changed. A "
                "copy as a NumPy array can, and may be returned.",
                Edit(spot.file, statement.lineno, statement.lineno - 1, (line,)),
            )  # fmt: skip
    return None
