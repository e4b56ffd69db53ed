"""A mapped function that takes the parts of an element and returns fewer: `lambda image, box: decode(image)`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading import datasets
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Function, Source, dotted, parameters
from pyfunc_debug.doctor.failures.reading.symbols import method_calls
from pyfunc_debug.interception.names.private import dataset_inputs

_MAPS = ("_MapDataset", "_ParallelMapDataset")


@dataclass(frozen=True)
class Restored:
    """A map that drops parts.

    Attributes:
      cause: What it does, as a sentence.
      edit: Its result with these parts.
    """

    cause: str
    edit: Edit


def shuffled(situation: Situation) -> bool:
    """Whether a dataset of the failing line is shuffled: then no other dataset has its order."""
    return any("Shuffle" in type(one).__name__ for one in datasets.read_here(situation))


def restored(situation: Situation, count: int) -> Restored | None:
    """The one map without whose dropped parts an element has fewer than `count`.

    Args:
      situation: The failure.
      count: How many parts the failing line needs.
    """
    taken = {len(spec) for spec in _taken(situation)}
    found = []
    for file, source in situation.sources():
        for call in method_calls(source.tree, "map"):
            function = _function(source, call)
            if function is None or len(parameters(function)) not in taken or function.args.vararg is not None:
                continue
            result = _result(function)
            dropped = [] if result is None else _dropped(function)
            own = len(result.elts) if isinstance(result, ast.Tuple) else 1
            if result is not None and dropped and own + len(dropped) == count:
                found.append((file, source, function, result, dropped))
    if len(found) != 1:
        return None
    file, source, function, result, dropped = found[0]
    name = "the lambda" if isinstance(function, ast.Lambda) else getattr(function, "name", "")
    parts = [source.text(one) for one in result.elts] if isinstance(result, ast.Tuple) else [source.text(result)]
    every = parameters(function)
    if len(parts) == 1 and len(dropped) == len(every) - 1:  # each part at its own place
        parts = [one if one in dropped else parts[0] for one in every]
    else:
        parts += dropped
    text = f"({', '.join(parts)})" if isinstance(function, ast.Lambda) else ", ".join(parts)
    listed = " and ".join(dropped)
    them = "it" if len(dropped) == 1 else "them"
    cause = f"{name} in .map (line {result.lineno}) is given {listed}, and does not return {them}."
    return Restored(cause, Edit(file, *source.kept_lines({result: text})))


def _taken(situation: Situation) -> list[tuple[object, ...]]:
    """What the maps of the failing line's datasets take, where that is a tuple."""
    inputs = [
        dataset_inputs(one)[0].element_spec for one in datasets.read_here(situation)
        if type(one).__name__ in _MAPS and dataset_inputs(one)
    ]  # fmt: skip
    return [one for one in inputs if type(one) is tuple]


def _function(source: Source, call: ast.Call) -> Function | None:
    """The lambda, or the file's one function, that a map is given."""
    given = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "map_func"), None)
    if isinstance(given, ast.Lambda):
        return given
    name = dotted(given).rpartition(".")[2]
    found = [one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    return found[0] if len(found) == 1 and name else None


def _result(function: Function) -> ast.expr | None:
    """The one expression that a function gives back; no dict."""
    if isinstance(function, ast.Lambda):
        return None if isinstance(function.body, (ast.Dict, ast.List)) else function.body
    returned = [one.value for one in own_nodes(function) if isinstance(one, ast.Return)]
    value = returned[0] if len(returned) == 1 else None
    return None if isinstance(value, (ast.Dict, ast.List)) else value


def _dropped(function: Function) -> list[str]:
    """The parameters that a function does not read or change."""
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    used = {one.id for part in body for one in ast.walk(part) if isinstance(one, ast.Name)}
    return [one for one in parameters(function) if one not in used]
