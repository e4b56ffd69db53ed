"""A TextVectorization or a lookup layer that a dataset's function calls, and that has no vocabulary yet."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, parameters
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_dataset, lookup, of_keras

RULE = "uninitialized"
_SAID = "Table not initialized"
_LAYERS = ("TextVectorization", "StringLookup", "IntegerLookup")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the one such layer that the program has was never adapted."""
    spot = situation.last
    if spot is None or situation.body or _SAID not in situation.message:
        return None
    source = spot.source
    every = {**spot.module, **spot.variables}
    layers = [name for name, one in every.items() if any(of_keras(type(one), kind) for kind in _LAYERS)]
    adapted = {dotted(one.func).rpartition(".")[0] for one in calls(source.tree) if dotted(one.func).endswith(".adapt")}
    layers = [one for one in layers if one not in adapted]
    if len(layers) != 1:
        return None
    name = layers[0]
    kind = type(every[name]).__name__
    cause = f"{name} has no vocabulary: a {kind} learns it by adapt, before it is called."
    found = _text_of(name, source.tree, spot)
    if found is None:
        return Explanation(RULE, spot.file, spot.line, cause, None, f"Call {name}.adapt(texts) before.")
    statement, texts = found
    line = f"{indent_of(source.lines[statement.lineno - 1])}{name}.adapt({texts})"
    edit = Edit(spot.file, statement.lineno, statement.lineno - 1, (line,))
    return Explanation(RULE, spot.file, statement.lineno, cause, edit, "", "likely")


def _text_of(name: str, tree: ast.AST, spot: Spot) -> tuple[ast.Assign, str] | None:
    """The statement that maps the layer over a dataset, and the dataset of what the layer gets."""
    for one in ast.walk(tree):
        if not isinstance(one, ast.Assign) or not isinstance(one.value, ast.Call):
            continue
        mapped = one.value.func.value if isinstance(one.value.func, ast.Attribute) else None
        given: Any = one.value.args[0] if one.value.args else None
        if getattr(one.value.func, "attr", "") != "map" or not isinstance(mapped, ast.Name):
            continue
        if isinstance(given, ast.Name):
            given = next(
                (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == given.id), None
            )
        inside = [
            each.args[0] for each in calls(given) if dotted(each.func) == name and each.args
        ] if given is not None else []  # fmt: skip
        if len(inside) != 1 or not isinstance(inside[0], ast.Name) or not is_dataset(lookup(mapped, spot)):
            continue
        listed = parameters(given)
        if inside[0].id not in listed:
            continue
        texts = mapped.id if len(listed) == 1 else f"{mapped.id}.map(lambda {', '.join(listed)}: {inside[0].id})"
        return one, texts
    return None
