"""The rules. A module has the names of what it finds, and a function that looks for it in a recording's facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.rules import (
    aliasing,
    batch_means,
    bytes_compared,
    changed_by_hand,
    changed_order,
    checked_gradients,
    closed_variables,
    cut_gradients,
    departures,
    died,
    dropped_datasets,
    empty_recording,
    epoch_ends,
    epochs,
    errors,
    failed_programs,
    forked,
    gradient_sizes,
    hang,
    input_bound,
    keras_state,
    landed_elements,
    late_binding,
    leaked_tapes,
    memory,
    nans,
    needless_python,
    never_fetched,
    nondeterminism,
    none_gradients,
    one_lock,
    outside_branch,
    placement,
    printed_symbols,
    ran_out,
    ranges,
    rebuilt_generators,
    recomputed,
    replicas,
    retraces,
    returned,
    second_order,
    seeded_bodies,
    serialization,
    shared_state,
    shuffled_apart,
    shuffled_results,
    shuffled_splits,
    single_elements,
    stale_caches,
    stale_closures,
    static_shapes,
    time,
    trace_failed,
    trace_only,
    unanswered_stops,
    untaped,
    unused_inputs,
    wrapped_values,
    wrong_tapes,
)
from pyfunc_debug.records import Finding


class Rule(Protocol):
    """What a module of this package offers.

    `check` asks with SQL aggregates where it asks about calls or values: a recording may hold millions.
    """

    @property
    def NAMES(self) -> tuple[str, ...]:  # noqa: N802 - a module's constant
        """Names of what it finds; each has its section in docs/doctor.md."""

    def check(self, facts: Facts) -> Iterator[Finding]:
        """What it finds."""


MODULES: tuple[Rule, ...] = (
    died,
    forked,
    aliasing,
    batch_means,
    gradient_sizes,
    hang,
    input_bound,
    ranges,
    shared_state,
    shuffled_apart,
    shuffled_results,
    shuffled_splits,
    single_elements,
    static_shapes,
    time,
    bytes_compared,
    changed_by_hand,
    changed_order,
    checked_gradients,
    closed_variables,
    departures,
    cut_gradients,
    dropped_datasets,
    empty_recording,
    epoch_ends,
    epochs,
    errors,
    failed_programs,
    keras_state,
    landed_elements,
    late_binding,
    leaked_tapes,
    memory,
    nans,
    needless_python,
    never_fetched,
    nondeterminism,
    none_gradients,
    one_lock,
    outside_branch,
    placement,
    printed_symbols,
    ran_out,
    rebuilt_generators,
    recomputed,
    replicas,
    retraces,
    returned,
    second_order,
    seeded_bodies,
    serialization,
    stale_caches,
    stale_closures,
    trace_failed,
    trace_only,
    unanswered_stops,
    untaped,
    unused_inputs,
    wrapped_values,
    wrong_tapes,
)
