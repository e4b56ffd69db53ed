"""What names of a traced function stand for behind its py_functions, by the shapes that the recorded calls had."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from pyfunc_debug.doctor.code import stored_names
from pyfunc_debug.doctor.failures.reading.made_values import made_dtype, made_shape, made_value
from pyfunc_debug.doctor.failures.reading.nodes import user_nodes
from pyfunc_debug.doctor.failures.reading.shapes import recorded
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function
from pyfunc_debug.doctor.failures.reading.symbols import Described

_WRAPS = ("tuple", "list")


def results_above(function: Function, spot: Spot, situation: Situation) -> dict[str, Any]:
    """What a function's names are in a line, as far as recorded results of its py_functions say it.

    Args:
      function: The function.
      spot: The line, with what is known of its names.
      situation: The failure, with the recording.
    """
    results = {} if isinstance(function, ast.Lambda) else _results(function, spot.file, situation)
    if not results or isinstance(function, ast.Lambda):
        return {}
    known: dict[str, Any] = {}
    for one in _above(function.body, spot.line):
        made = results.get(id(one), {})
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
            there = Spot(spot.file, spot.line, {**spot.variables, **known}, spot.module, spot.by)
            if any(isinstance(part, ast.Name) and part.id in known for part in ast.walk(one.value)):
                made = {one.targets[0].id: found} if (found := _made(one.value, there)) is not None else {}
        for name in {name for part in ast.walk(one) for name in stored_names(part)}:
            known.pop(name, None)
        known.update(made)
    return known


def _results(function: ast.FunctionDef | ast.AsyncFunctionDef, file: str, situation: Situation) -> dict[int, Any]:
    """Names and what they are, by the assignment that calls py_function."""
    found: dict[int, dict[str, Described]] = {}
    own = {id(one): one for one in ast.walk(function) if isinstance(one, ast.Assign) and len(one.targets) == 1}
    for node in user_nodes(situation):
        call, source = node.call(), node.source
        outer = source.parent(call) if call is not None and node.site is not None and node.site[0] == file else None
        if isinstance(outer, ast.Call) and isinstance(outer.func, ast.Name) and outer.func.id in _WRAPS:
            outer = source.parent(outer)
        if outer is None or id(outer) not in own or id(outer) in found:
            continue
        target = own[id(outer)].targets[0]
        shapes, _ = recorded(situation.rows, node.id)
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        found[id(outer)] = {
            part.id: Described(node.tout[place], shapes[place]) for place, part in enumerate(parts)
            if isinstance(part, ast.Name) and place in shapes and place < len(node.tout)
        }  # fmt: skip
    return {key: one for key, one in found.items() if one}


def _above(body: Sequence[ast.stmt], line: int) -> Iterator[ast.stmt]:
    """The statements that ran before a line, each whole; of those around it, the ones in their part."""
    for one in body:
        if one.lineno <= line <= (one.end_lineno or one.lineno):
            for field in ("body", "orelse", "finalbody"):
                inside = getattr(one, field, None)
                if isinstance(inside, list) and inside and inside[0].lineno <= line <= (inside[-1].end_lineno or 0):
                    yield from _above(inside, line)
            return
        yield one


def _made(value: ast.expr, spot: Spot) -> Described | None:
    shape = made_shape(lambda inputs: made_value(value, spot, inputs=inputs))
    dtype = made_dtype(made_value(value, spot)) if shape is not None else None
    return Described(dtype, shape) if dtype is not None else None
