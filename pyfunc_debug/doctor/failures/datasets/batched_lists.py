"""A body that writes one record gets a batch: a list of one number in it, `Int64List(value=[label])`, gets a row."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.bodies.feature_lists import refused_lists
from pyfunc_debug.doctor.failures.datasets.batched_bodies import batches_of
from pyfunc_debug.doctor.failures.datasets.batched_input import RULE
from pyfunc_debug.doctor.failures.datasets.mapped_first import with_unbatch
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.nodes import failed_node, inputs_of
from pyfunc_debug.doctor.failures.reading.situation import Situation


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a batch stands before the map of a body that writes the parts of one example."""
    spot, statement = situation.last if situation.body else None, situation.statement
    if spot is None or statement is None or situation.kind != "TypeError":
        return None
    shapes = [
        tuple(getattr(value[0], "shape", ())) for _, given, value in refused_lists(statement, spot)
        if isinstance(given, ast.List) and len(given.elts) == 1
    ]  # fmt: skip
    rows = {shape[0] for shape in shapes if len(shape) == 1}
    node = failed_node(situation) if rows else None
    if node is None or node.site is None:
        return None
    batches = [one for one in batches_of(node, situation) if one[0] in rows]
    placed = with_unbatch(node) if batches else None
    if placed is None:
        return None
    batch, edit = placed
    name, _ = next(iter(inputs_of(node, situation).items()), ("", None))
    return Explanation(
        RULE, spot.file, spot.line,
        f"{batch} stands before the map: {node.called} got {batches[0][0]} examples at once, {name} of shape "
        f"{list(batches[0])}, and writes one record. Behind `unbatch()` each comes alone.", edit, "", "likely",
    )  # fmt: skip
