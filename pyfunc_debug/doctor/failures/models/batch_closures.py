"""Losses and metrics that read a tensor of the model by its name: a mask, weights, the mean that an encoder gives.

Keras calls them with `y_true` and `y_pred` only. What they read stays a description of the model, without a value, in
each of them and in the functions that they call. One `compute_loss` gives the name the tensor of the batch.
"""

from __future__ import annotations

import ast
import dis
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.failed_layers import one_back
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, lines_of
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, names
from pyfunc_debug.doctor.failures.reading.symbols import (
    is_keras,
    is_keras_class,
    keras_name,
    method_calls,
    of_keras,
)
from pyfunc_debug.program.frames import is_installed, is_user

RULE = "symbolic-value"
_SAID = re.compile(r"KerasTensor|Failed to convert elements of \(None|'str' object has no attribute 'base_dtype'")
_GIVEN = (
    ("_compile_loss", "_user_loss"), ("_compile_metrics", "_user_metrics"),
    ("_compile_metrics", "_user_weighted_metrics"),
)  # fmt: skip
_MOST = 50
"""Functions that are looked into."""


@dataclass
class _Read:
    """What losses and metrics read.

    Attributes:
      tensors: Tensors of the model that have no value, by their names.
      readers: The functions that read one of them.
      closed: Names that belong to a function around the reader, and not to its file.
    """

    tensors: dict[str, Any] = field(default_factory=dict)
    readers: dict[CodeType, str] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a loss or a metric of the model that is trained reads a tensor of a model by its name."""
    if situation.body or not situation.spots or not _SAID.search(situation.message):
        return None
    model = _trained(situation)
    top = list(_functions(model))
    read = _read(top)
    if read is None or not read.tensors:
        return None
    index, by = wrapping.entry(situation)
    if by == "Keras" and situation.spots[index].code not in {one.__name__ for one in top}:
        return None
    spot = next((one for one in reversed(situation.spots) if _runs(one, read)), None)
    if spot is None and by == "Keras":
        return None
    spot = spot or next(
        (one for one in situation.spots if any(one.first_line(code) is not None for code in read.readers)), None
    )
    if spot is None:
        return None
    first = next(iter(read.readers))
    line = spot.line if _runs(spot, read) else spot.first_line(first) or spot.line
    kept, who = list(read.tensors), list(dict.fromkeys(read.readers.values()))
    losses = [each.__name__ for each in _functions(model, _GIVEN[:1])]
    given = "losses and metrics" if 0 < len(losses) < len(top) else "a loss" if losses else "a metric"
    one = len(kept) == 1
    reading = f"{' and '.join(who[:2])}{', and others,' if len(who) > 2 else ''} read{'s' * (len(who) == 1)}"
    inputs = {id(each) for each in getattr(model, "inputs", None) or ()}
    foreign = [name for name, tensor in read.tensors.items() if not _sources(tensor) <= inputs]
    if foreign:
        named = " and ".join(foreign)
        cause = (
            f"{reading} {named}, which {'has no value: it comes' if len(foreign) == 1 else 'have no value: they come'} "
            "from an Input that is none of the inputs of the model that is trained."
        )
        advice = "Make it one of the model's inputs, Model([..., it], ...), and give fit an array for each input."
        return Explanation(RULE, spot.file, line, cause, None, advice)
    cause = (
        f"{reading} {' and '.join(kept)}, which describe{'s' * one} the model and {'has' if one else 'have'} no value: "
        f"Keras gives {given} y_true and y_pred only."
    )
    edit = _edit(spot, [one.__name__ for one in top], read)
    if edit is None and losses and _are_apart(spot, [one.__name__ for one in top], read):
        advice = "Compute the loss in the model's compute_loss(x, y, y_pred, ...): it has the inputs x, too."
        return Explanation(RULE, spot.file, line, cause, None, advice)
    if edit is None:
        if by != "Keras" or situation.spots[index].code in losses:
            return None
        advice = "Compute it in the model's train_step and test_step: these have the inputs x, too."
        return Explanation(RULE, spot.file, line, cause, None, advice)
    cause += f" Below, compute_loss computes {'it' if one else 'them'} for each batch, before the loss."
    return Explanation(RULE, spot.file, line, cause, edit)


def _runs(spot: Spot, read: _Read) -> bool:
    """Whether a frame is one of the functions that read such a tensor."""
    return any(
        (first := spot.first_line(code)) is not None and code.co_name == spot.code and first <= spot.line
        for code in read.readers
    )


def _trained(situation: Situation) -> Any:
    """The model that Keras' own `fit` or `evaluate` was asked of, if its way to compute a loss is Keras' own."""
    for frame, _ in lines_of((situation.error, situation.inner)):
        given = frame.f_locals.get("args")
        if frame.f_code.co_name != "error_handler" or not isinstance(given, tuple) or not given:
            continue
        if of_keras(type(given[0]), "Functional") or of_keras(type(given[0]), "Sequential"):
            return given[0] if is_keras_class(type(given[0])) else None
    return None


def _functions(model: Any, places: Iterable[tuple[str, str]] = _GIVEN) -> Iterator[FunctionType]:
    """The user's functions that a model was compiled with, losses first."""
    try:
        kept = vars(model)
    except TypeError:
        return
    for holder, name in places:
        held = kept.get(holder)
        given = vars(held).get(name) if held is not None else None
        for one in _flat(given):
            if isinstance(one, FunctionType) and _is_own(one):
                yield one


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _flat(one)
    else:
        yield value


def _is_own(function: FunctionType) -> bool:
    file = function.__code__.co_filename
    return is_user(file) and not is_installed(file)


def _read(top: Iterable[FunctionType]) -> _Read | None:
    """What functions read, and those that they call; None where one name stands for two tensors."""
    found, waiting = _Read(), list(top)
    seen: set[CodeType] = set()
    while waiting and len(seen) < _MOST:
        function = waiting.pop(0)
        if function.__code__ in seen:
            continue
        seen.add(function.__code__)
        closed = _closed(function)
        reached = {name: function.__globals__.get(name) for name in _globals(function.__code__)}
        for name, value in {**reached, **closed}.items():
            if isinstance(value, FunctionType) and _is_own(value):
                waiting.append(value)
            if not is_keras(value):
                continue
            if found.tensors.setdefault(name, value) is not value:
                return None
            named = function.__name__
            found.readers[function.__code__] = "the lambda" if named == "<lambda>" else named
            if name in closed:
                found.closed.add(name)
    return found


def _closed(function: FunctionType) -> dict[str, Any]:
    """What a function reads of the one around it."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not written yet
            continue
    return found


def _globals(code: CodeType) -> list[str]:
    """The names of its module that code reads, also in functions inside."""
    found = [one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    inside = [one for one in code.co_consts if isinstance(one, CodeType)]
    return [*map(str, found), *(name for one in inside for name in _globals(one))]


def _sources(tensor: Any) -> set[int]:
    """The inputs, by their ids, that a tensor of a model is computed of."""
    found, waiting = set(), [tensor]
    seen: set[int] = set()
    while waiting and len(seen) < 10_000:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        _, given = one_back(one)
        if not given:
            found.add(id(one))
        waiting += given
    return found


def _edit(spot: Spot, top: list[str], read: _Read) -> Edit | None:
    """The lines above the one `compile` that is given the functions."""
    source = spot.source
    found = _compiles(source, top)
    every = {one.id for one in ast.walk(source.tree) if isinstance(one, ast.Name)} | _defined(source)
    if len(found) != 1 or {"of_batch", "compute_loss"} & every:
        return None
    model, statement = dotted(getattr(found[0].func, "value", None)), source.statement(found[0].lineno)
    if not model or statement is None or any(isinstance(one, (ast.For, ast.While)) for one in source.around(statement)):
        return None
    scope = next((one for one in source.around(statement) if isinstance(one, ast.FunctionDef)), None)
    begins = {spot.first_line(code) for code in read.readers}
    if None in begins or _are_apart(spot, top, read):
        return None  # a name of their module is not one of the module that compiles
    words = {_word(source, scope, name, read, begins) for name in read.tensors}
    if len(words) != 1 or "" in words or not _alone(source, scope, statement, read, begins):
        return None
    blanks, kept = indent_of(source.lines[statement.lineno - 1]), list(read.tensors)
    keras, listed = f"{keras_name(spot)}.Model", ", ".join(kept)
    tensors = listed if len(kept) == 1 else f"[{listed}]"
    lines = (
        f"{blanks}of_batch = {keras}({model}.input, {tensors})",
        f"{blanks}def compute_loss(x, *given, **words):",
        f"{blanks}    {words.pop()} {listed}  # losses and metrics read {'it' if len(kept) == 1 else 'them'}",
        f"{blanks}    {listed} = of_batch(x)",
        f"{blanks}    return {keras}.compute_loss({model}, x, *given, **words)",
        f"{blanks}{model}.compute_loss = compute_loss",
    )
    return Edit(spot.file, statement.lineno, statement.lineno - 1, lines)


def _compiles(source: Source, top: Collection[str]) -> list[ast.Call]:
    """The calls of `compile` that are given one of the functions."""
    wanted = set(top)
    return [one for one in method_calls(source.tree, "compile") if wanted & {*names(one), *_lambdas(one)}]


def _are_apart(spot: Spot, top: Collection[str], read: _Read) -> bool:
    """Whether a function that reads a tensor, and the `compile` that is given it, are in two files."""
    begins = [first for code in read.readers if (first := spot.first_line(code)) is not None]
    calls = [one.lineno for one in _compiles(spot.source, top)]
    return bool(begins and calls) and not spot.source.together(*begins, *calls)


def _lambdas(call: ast.Call) -> set[str]:
    return {"<lambda>" for one in ast.walk(call) if isinstance(one, ast.Lambda)}


def _defined(source: Source) -> set[str]:
    return {one.name for one in ast.walk(source.tree) if isinstance(one, (ast.FunctionDef, ast.ClassDef))}


def _word(source: Source, scope: ast.FunctionDef | None, name: str, read: _Read, lines: Collection[int | None]) -> str:
    """By which statement a function beside `compile` may write a name that the readers read; "" by none."""
    if name in read.closed:
        inside = scope is not None and name in _bound(scope) and all(
            any(isinstance(one, (ast.FunctionDef, ast.Lambda)) and one.lineno == first for one in ast.walk(scope))
            for first in lines
        )  # fmt: skip
        return "nonlocal" if inside else ""
    if scope is None or (name not in _bound(scope) and len(source.calls_of(frozenset({scope.name}))) == 1):
        return "global"
    return ""


def _bound(function: ast.FunctionDef) -> set[str]:
    """The parameters of a function and the names that it writes."""
    found = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            found.add(one.id)
        if not isinstance(one, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            waiting += ast.iter_child_nodes(one)
    return found


def _alone(
    source: Source, scope: ast.FunctionDef | None, statement: ast.stmt, read: _Read, lines: Collection[int | None]
) -> bool:
    """Whether nothing but the losses and metrics reads the names after `compile`."""
    for one in ast.walk(source.tree):
        if not isinstance(one, ast.Name) or one.id not in read.tensors or not isinstance(one.ctx, ast.Load):
            continue
        around = [each for each in source.around(one) if isinstance(each, (ast.FunctionDef, ast.Lambda))]
        if any(each.lineno in lines for each in around):
            continue
        if around[:1] != ([scope] if scope is not None else []) and (read.closed or around):
            if read.closed and scope not in around:
                continue  # another function's own
            if any(one.id in _bound(each) for each in around if isinstance(each, ast.FunctionDef)):
                continue
            return False
        if one.lineno > (statement.end_lineno or statement.lineno):
            return False
    return True
