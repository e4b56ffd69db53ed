"""A body that reads a tensor of the graph around it, by its closure: only what `inp` lists has a value in it."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.code import own_nodes
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import (
    argument,
    body_frame,
    body_spot,
    failed_node,
    inputs_of,
    parameters,
)
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import names
from pyfunc_debug.doctor.failures.reading.symbols import is_keras, is_symbolic

RULE = "body-input"
_SAID = re.compile(r"SymbolicTensor|KerasTensor|[Ss]ymbolic|out of scope|'Tensor' object has no attribute")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a body failed on a symbolic tensor that it did not get by `inp`."""
    node = failed_node(situation) if situation.body and _SAID.search(situation.message) else None
    call = node.call() if node is not None else None
    if node is None or node.site is None or call is None:
        return None
    spot = body_frame(node, situation)
    read = _read(spot) if spot is not None else []
    if spot is None:  # what the body returned became no array
        spot, function = body_spot(node, situation), node.function()
        if spot is None or function is None:
            return None
        around = [name for name in names(function) if name not in inputs_of(node, situation)]
        read = [name for name in around if is_symbolic(spot.module.get(name))]
    if not read:
        return None
    name = read[0]
    cause = (
        f"{name} is a tensor of the graph around {node.called}, which read it by its closure or a default: a body gets "
        "the values of what inp lists, and of nothing else."
    )
    given, inp = argument(call, 0, "func"), argument(call, 1, "inp")
    edit = None
    if isinstance(given, ast.Lambda) and isinstance(inp, (ast.List, ast.Tuple)) and name in names(given.body):
        takes = parameters(given)
        if name not in takes and not given.args.kwonlyargs and given.args.vararg is None:
            source = node.source
            pieces: dict[ast.expr, str] = {
                given: f"lambda {', '.join([*takes, name])}: {source.text(given.body)}",
                inp: f"[{', '.join([*map(source.text, inp.elts), name])}]",
            }
            found = source.replaced(pieces)
            edit = edit_of(node.site[0], found)
    advice = f"Take {name} as an argument of {node.called}, and add it to inp."
    if is_keras(spot.value(name)):
        advice = "A loss or a metric gets y_true, y_pred and sample_weight: pass it to fit as sample_weight."
    return Explanation(RULE, *node.site, cause, edit, "" if edit is not None else advice)


def _read(spot: Spot) -> list[str]:
    """The names of a running line that stand for tensors of a graph, without those that its function made itself."""
    statement, function = spot.statement, spot.function
    made = {
        one.id for one in (own_nodes(function) if function is not None else ())
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }  # fmt: skip
    found = names(statement) if statement is not None else []
    return [name for name in found if name not in made and is_symbolic(spot.value(name))]
