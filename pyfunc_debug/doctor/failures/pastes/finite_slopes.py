"""Pastes that are differentiated, with bounds where their gradient would be NaN: at equal rows, at 0, of constants."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.models.keras_calls import is_loss
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, applied
from pyfunc_debug.doctor.failures.pastes.signs import Signs
from pyfunc_debug.doctor.failures.pastes.slope_bounds import Bounds
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, names, parameters, read, tapes_around
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_keras, is_symbolic, of_weights

_RULES = ("cut-gradient", "none-gradient")
"""Rules of explanations that are about a gradient."""


def finite(explanation: Explanation, situation: Situation) -> Explanation:
    """The explanation, with bounds in what its paste computes where that is differentiated."""
    edit = explanation.edit
    source = read(edit.file) if edit is not None else None
    spot = next((one for one in reversed(situation.spots) if edit is not None and one.file == edit.file), None)
    if edit is None or source is None or spot is None or not _is_differentiated(explanation, situation):
        return explanation
    found = bounded(edit, source, spot, _constants(situation, spot))
    return explanation if found is edit else dataclasses.replace(explanation, edit=found)


def bounded(
    edit: Edit, source: Source, spot: Spot, constants: frozenset[str] = frozenset(), around: bool = True
) -> Edit:
    """An edit with bounds in its lines, and in roots of the same functions that are written as a power.

    Args:
      edit: The edit of lines that are differentiated.
      source: Its file, as it is without it.
      spot: A frame of the file: knows numbers by their names.
      constants: Names that have no gradient.
      around: Whether the edit may grow by other lines of these functions.
    """
    after = Source(applied([edit], source.lines))
    first, last = edit.first, edit.first + len(edit.lines) - 1
    tf = alias(spot, "tensorflow")
    every = [one for one in ast.walk(after.tree) if isinstance(one, ast.FunctionDef)]
    inside = [one for one in every if any(one.lineno <= line <= (one.end_lineno or 0) for line in (first, last))]
    pieces: dict[ast.expr, str] = {}
    said: dict[ast.expr, str] = {}
    for scope in [*sorted(inside, key=lambda one: -one.lineno), after.tree]:
        bounds = Bounds(Signs(tf, spot, scope, constants), scope)
        for value in values_of(scope):
            pasted = first <= value.lineno <= last
            for node in outermost(value, bounds, not pasted) if pasted or (around and scope in inside) else ():
                if not any(node is one or _holds(one, node) for one in pieces):
                    pieces[node], said[node] = bounds.text(node)
    if not pieces:
        return edit
    start = min([first, *(one.lineno for one in pieces)])
    end = max([last, *(one.end_lineno or one.lineno for one in pieces)])
    lines = list(after.spliced(pieces, start, end))
    for node in sorted(pieces, key=lambda one: one.lineno):
        line = next((place for place, text in enumerate(lines) if pieces[node] in text), None)
        if line is not None and not any(said[node] in text for text in lines) and not lines[line].endswith("\\"):
            lines[line] += f"  # {said[node]}"
    moved = len(edit.lines) - (edit.last + 1 - edit.first)
    return Edit(edit.file, start, end - moved, tuple(lines))


def _is_differentiated(explanation: Explanation, situation: Situation) -> bool:
    """Whether what is pasted stands in a loss, under a tape, or in a layer behind which something is trained."""
    if explanation.rule in _RULES:
        return True
    index, by = wrapping.entry(situation)
    if by == "tf.data" or not situation.spots:
        return False
    if any(tapes_around(one.source, one.line) for one in situation.spots):
        return True
    if any(is_keras(value) for one in situation.spots for value in one.variables.values()):
        return True  # a model is built
    if by != "Keras":
        return False
    spot = situation.spots[index]
    layer = spot.variables.get("self")
    kinds = [one.__name__ for one in type(layer).__mro__]
    if is_loss(situation) or "Loss" in kinds:
        return True
    if "Metric" in kinds or _is_metric(spot):
        return False
    held = [value for one in situation.spots[index:] for value in one.variables.values() if is_symbolic(value)]
    return any(map(of_weights, held)) or bool(getattr(layer, "trainable_weights", None))


def _is_metric(spot: Spot) -> bool:
    """Whether the function that Keras traced is one of `compile(metrics=[...])`."""
    name = getattr(spot.function, "name", "")
    return any(
        name in names(one.value) for call in calls(spot.source.tree) if dotted(call.func).endswith("compile")
        for one in call.keywords if one.arg in ("metrics", "weighted_metrics")
    )  # fmt: skip


def _constants(situation: Situation, spot: Spot) -> frozenset[str]:
    """Tensors of a function that are made of no weight, where another of it is: labels."""
    function = spot.function
    given = parameters(function) if isinstance(function, ast.FunctionDef) else []
    tensors = {name: spot.variables.get(name) for name in given if is_symbolic(spot.variables.get(name))}
    trained = {name for name, one in tensors.items() if of_weights(one)}
    if trained:
        return frozenset(tensors) - trained
    return frozenset(given[:1]) if len(given) == 2 and is_loss(situation) else frozenset()


def values_of(scope: ast.AST) -> Iterator[ast.expr]:
    """The expressions that the statements of a scope hold themselves, but those of definitions."""
    for statement in ast.walk(scope):
        if isinstance(statement, ast.stmt) and not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            yield from (one for one in ast.iter_child_nodes(statement) if isinstance(one, ast.expr))


def outermost(node: ast.expr, bounds: Bounds, only_powers: bool) -> Iterator[ast.expr]:
    """The outermost expressions that get a bound."""
    if bounds.changes(node) and (isinstance(node, ast.BinOp) or not only_powers):
        yield node
        return
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.expr):
            yield from outermost(one, bounds, only_powers)
        elif isinstance(one, (ast.keyword, ast.comprehension)):
            for part in ast.iter_child_nodes(one):
                if isinstance(part, ast.expr):
                    yield from outermost(part, bounds, only_powers)


def _holds(node: ast.expr, other: ast.expr) -> bool:
    return any(one is other for one in ast.walk(node))
