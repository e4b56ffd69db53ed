"""A body that takes one example gets a batch of them: `batch` comes before the `map` that calls it."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.datasets.mapped_first import swapped
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import failed_node, tail
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, read, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, dtype_of, lookup

RULE = "structure"
_RANKS = re.compile(r"Shape must be rank (\d+) but is rank (\d+)")
_SAID = re.compile(r"too many values to unpack \(expected (\d+)\)")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line unpacks a shape of one size more, and a dataset is batched before it is mapped."""
    if not situation.body:
        return _at_trace(situation)
    found, spot = _SAID.search(situation.message), situation.last
    statement = situation.statement
    value = statement.value if isinstance(statement, ast.Assign) else None
    node = failed_node(situation) if found is not None and situation.body else None
    if found is None or spot is None or node is None or node.site is None or not isinstance(value, ast.Attribute):
        return None
    given = lookup(value.value, spot) if value.attr == "shape" else None
    if given is None or len(given.shape) != int(found[1]) + 1:
        return None
    placed = _swapped(read(node.site[0]))
    if placed is None:
        return None
    batch, edit = placed
    shape = f"{dtype_of(given)}{list(given.shape)}"
    cause = (
        f"{batch} stands before the map: {node.called} got a batch, {shape}, and this line takes one example of "
        f"{found[1]} sizes. Mapped first, each example comes alone."
    )
    advice = "" if edit else f"Call {batch} after the map."
    return Explanation(RULE, spot.file, spot.line, cause, Edit(node.site[0], *edit) if edit else None, advice)


def _at_trace(situation: Situation) -> Explanation | None:
    """An op of TensorFlow's that takes one example was given a batch while the map was traced."""
    found, spot = _RANKS.search(situation.message), situation.last
    if found is None or spot is None or int(found[2]) != int(found[1]) + 1:
        return None
    index, by = wrapping.entry(situation)
    called, function = wrapping.dataset_call(situation, index), situation.spots[index].function
    placed = None
    if called is not None and by == "tf.data":
        placed = _swapped(called[0].source) or _unbatched(called[0].source, called[1])
    statement = spot.statement
    if called is None or placed is None or statement is None:
        return None
    batch, edit = placed
    code = short(spot.source.text(statement).split("\n")[0], 44)
    name = getattr(function, "name", "the lambda")
    cause = (
        f"{batch} stands before the map: {name} gets a batch, and `{code}` takes one example. Mapped first, each "
        "example comes alone."
    )
    where, advice = Edit(called[0].file, *edit) if edit else None, "" if edit else f"Call {batch} after the map."
    return Explanation(RULE, spot.file, spot.line, cause, where, advice, "likely")


def _swapped(source: Source) -> tuple[str, tuple[int, int, tuple[str, ...]] | None] | None:
    """The call of batch, and the lines with `.map(...).batch(...)`, where the file has one such chain."""
    chains = [
        one for one in calls(source.tree)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "map"
        and isinstance(one.func.value, ast.Call) and isinstance(one.func.value.func, ast.Attribute)
        and one.func.value.func.attr == "batch"
    ]  # fmt: skip
    if len(chains) != 1:
        return None
    batch, chain = swapped(source, chains[0])
    found = source.replaced({chains[0]: chain})
    return batch, None if found is None else (found[0], found[1], (found[2],))


def _unbatched(source: Source, call: ast.Call) -> tuple[str, tuple[int, int, tuple[str, ...]]] | None:
    """The map between unbatch and the file's one batch, which stands in another statement."""
    made = [one for one in calls(source.tree) if isinstance(one.func, ast.Attribute) and one.func.attr == "batch"]
    if len(made) != 1 or not made[0].args or not isinstance(call.func, ast.Attribute) or call.func.attr != "map":
        return None
    size = source.arguments(made[0])
    text = f".unbatch().map({source.arguments(call)}).batch({size})"
    return f"batch({size})", source.kept_lines({tail(call): text})
