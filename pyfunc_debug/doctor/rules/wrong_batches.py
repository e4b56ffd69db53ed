"""Generators whose batches are not what their lines were written for: told by what the recorded batches were."""

from __future__ import annotations

from collections.abc import Iterator

from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.generators import (
    apart_rows,
    changed_arrays,
    index_slices,
    list_batches,
    same_batches,
    sorted_batches,
    unfilled_rows,
    unread_orders,
    used_counters,
)
from pyfunc_debug.doctor.generators.batches import Batches
from pyfunc_debug.records import Finding

NAMES = ("wrong-batches",)
_LOOKS = (
    list_batches.grown,
    list_batches.single,
    same_batches.of_counter,
    same_batches.of_index,
    same_batches.of_draw,
    used_counters.of_counter,
    index_slices.of_slices,
    unfilled_rows.of_last,
    changed_arrays.in_place,
    sorted_batches.by_class,
    apart_rows.of_order,
    apart_rows.of_draws,
    apart_rows.of_choices,
    unread_orders.of_epochs,
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a generator, or `__getitem__`, that Keras or `Dataset.from_generator` asks."""
    told: set[tuple[str | None, int | None]] = set()
    for node, _ in facts.generators.values():
        batches = Batches.of(facts, node)
        if batches is None or (node.file, node.line) in told:
            continue
        found = next((one for look in _LOOKS if (one := look(facts, batches)) is not None), None)
        if found is not None:
            told.add((node.file, node.line))
            yield Finding(
                NAMES[0], found.severity, node.id, (), found.message, found.fix, batches.file, found.line,
                evidence=found.evidence, confidence="measured",
            )  # fmt: skip
