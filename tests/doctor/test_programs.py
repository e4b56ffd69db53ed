"""Each rule finds what it is for, at the user's line, with something to paste; and is silent where it only looks so."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections import Counter
from pathlib import Path
from types import CodeType

import pytest

import pyfunc_debug as pfd
from pyfunc_debug import doctor
from pyfunc_debug.records import Finding
from tests.doctor import programs
from tests.doctor import programs_apart_flips as programs_apart_flips
from tests.doctor import programs_asked_tables as programs_asked_tables
from tests.doctor import programs_batch_axes as programs_batch_axes
from tests.doctor import programs_batch_statistics as programs_batch_statistics
from tests.doctor import programs_called_by_keras as programs_called_by_keras
from tests.doctor import programs_caught as programs_caught
from tests.doctor import programs_channel_orders as programs_channel_orders
from tests.doctor import programs_compiled as programs_compiled
from tests.doctor import programs_computed_once as programs_computed_once
from tests.doctor import programs_copies as programs_copies
from tests.doctor import programs_cut_caches as programs_cut_caches
from tests.doctor import programs_cut_elements as programs_cut_elements
from tests.doctor import programs_decided_draws as programs_decided_draws
from tests.doctor import programs_decorated as programs_decorated
from tests.doctor import programs_doubled_rows as programs_doubled_rows
from tests.doctor import programs_dropped as programs_dropped
from tests.doctor import programs_dropped_results as programs_dropped_results
from tests.doctor import programs_eager_training as programs_eager_training
from tests.doctor import programs_figures as programs_figures
from tests.doctor import programs_files_and_weights as programs_files_and_weights
from tests.doctor import programs_filtered_apart as programs_filtered_apart
from tests.doctor import programs_first_batches as programs_first_batches
from tests.doctor import programs_fitted as programs_fitted
from tests.doctor import programs_generator_draws as programs_generator_draws
from tests.doctor import programs_images as programs_images
from tests.doctor import programs_kept_by_metrics as programs_kept_by_metrics
from tests.doctor import programs_keras as programs_keras
from tests.doctor import programs_keras_arrays as programs_keras_arrays
from tests.doctor import programs_keras_data as programs_keras_data
from tests.doctor import programs_known_targets as programs_known_targets
from tests.doctor import programs_late_skips as programs_late_skips
from tests.doctor import programs_loops_and_branches as programs_loops_and_branches
from tests.doctor import programs_losses_and_steps as programs_losses_and_steps
from tests.doctor import programs_lost_elements as programs_lost_elements
from tests.doctor import programs_lost_numbers as programs_lost_numbers
from tests.doctor import programs_lost_phases as programs_lost_phases
from tests.doctor import programs_misread_names as programs_misread_names
from tests.doctor import programs_mixed_axes as programs_mixed_axes
from tests.doctor import programs_models as programs_models
from tests.doctor import programs_networks as programs_networks
from tests.doctor import programs_never_equal as programs_never_equal
from tests.doctor import programs_nones as programs_nones
from tests.doctor import programs_numbers_of_tapes as programs_numbers_of_tapes
from tests.doctor import programs_of_datasets as programs_of_datasets
from tests.doctor import programs_own_steps as programs_own_steps
from tests.doctor import programs_padded_labels as programs_padded_labels
from tests.doctor import programs_passes as programs_passes
from tests.doctor import programs_pipelines as programs_pipelines
from tests.doctor import programs_predictions as programs_predictions
from tests.doctor import programs_ranges as programs_ranges
from tests.doctor import programs_redrawn_splits as programs_redrawn_splits
from tests.doctor import programs_removed_in_loops as programs_removed_in_loops
from tests.doctor import programs_repeated_setups as programs_repeated_setups
from tests.doctor import programs_same_runs as programs_same_runs
from tests.doctor import programs_scales as programs_scales
from tests.doctor import programs_seeds as programs_seeds
from tests.doctor import programs_session_runs as programs_session_runs
from tests.doctor import programs_sessions as programs_sessions
from tests.doctor import programs_set_orders as programs_set_orders
from tests.doctor import programs_shared_numbers as programs_shared_numbers
from tests.doctor import programs_shuffled_rows as programs_shuffled_rows
from tests.doctor import programs_shuffled_sequences as programs_shuffled_sequences
from tests.doctor import programs_shuffled_windows as programs_shuffled_windows
from tests.doctor import programs_shuffles as programs_shuffles
from tests.doctor import programs_silent as programs_silent  # adds its own to those of `programs`
from tests.doctor import programs_slopes as programs_slopes
from tests.doctor import programs_small_shuffles as programs_small_shuffles
from tests.doctor import programs_sounds as programs_sounds
from tests.doctor import programs_summaries as programs_summaries
from tests.doctor import programs_taken_apart as programs_taken_apart
from tests.doctor import programs_taken_ids as programs_taken_ids
from tests.doctor import programs_threads as programs_threads
from tests.doctor import programs_traced_values as programs_traced_values
from tests.doctor import programs_unchanged_inputs as programs_unchanged_inputs
from tests.doctor import programs_unfilled_rows as programs_unfilled_rows
from tests.doctor import programs_unmapped_validation as programs_unmapped_validation
from tests.doctor import programs_unread_orders as programs_unread_orders
from tests.doctor import programs_unscaled_boxes as programs_unscaled_boxes
from tests.doctor import programs_used_counters as programs_used_counters
from tests.doctor import programs_validations as programs_validations
from tests.doctor.alone import alone, loaded
from tests.doctor.pasting import pasted
from tests.share import shared


def findings(program, ends_with: type[BaseException] | None = None, clock: str = "", **options) -> list[Finding]:
    """What is found in a recording of a program, which may end with an exception, by a clock that the test drives."""
    recording = pfd.record(**options)
    if ends_with is None:
        with recording:
            program()
    else:
        with pytest.raises(ends_with), recording:
            program()
    if clock:
        with contextlib.closing(sqlite3.connect(recording.path)) as file:
            file.executescript(clock)
    found = recording.findings()
    recording.close()
    assert not [one for one in found if one.rule == "doctor-trouble"], found
    return found


def mended(source: str, program, fix: str, folder: Path, monkeypatch):
    """The program with the fix pasted into its text, and what must be switched on around it."""
    folder = folder / "mended"
    folder.mkdir()
    switch = re.fullmatch(r"pyfunc_debug\.(exact_gradients\(.*\))  # at the top, before the functions are traced", fix)
    program = loaded(source if switch else pasted(source, fix), program, folder, monkeypatch)
    return program, eval(f"pfd.{switch[1]}") if switch else contextlib.nullcontext()


WORDS = {
    "batch-draw": "where the body is written for one image only its author can say",
    "augmented-validation": "what of a function is augmentation only its author knows",
    "all-dropped": "what an except hid is known when it raises: then another cause is told",
    "caught-error": "what an except hid is known when it raises: then another cause is told",
    "changed-by-hand": "nothing is wrong with the program",
    "constant-output": "whether it is meant to be constant only its author knows",
    "empty-fit": "which rows were meant only its author knows",
    "empty-recording": "something that is not there has to be called",
    "fitted-in-body": "which data is that of training only its author knows",
    "exploding-gradient": "what the gradients are applied with is not in the recording",
    "nondeterministic": "what is wanted of a clock or a name only its author knows; np.empty has a paste",
    "range-jump": "it asks for a look at one call",
    "trace-failed": "an exception of any kind; those that are known have pastes in test_failures",
    "vanishing-gradient": "a paste where the body is a function that squashes, as for saturated",
    "zipped-rest": "which elements belong together only its author knows",
    "known-target": "what is to be foretold, and how many windows are left, only its author knows",
}
"""Rules whose fix is no line to paste, and why."""


def test_every_other_rule_has_a_fix_that_is_pasted_and_run():
    pasted = {rule for rule, _, options in programs.TRIGGERS if options.get("pastes")}
    assert {rule for rule, _, _ in programs.TRIGGERS} - pasted == set(WORDS)
    assert set(WORDS) <= set(doctor.names())


def test_each_rule_has_three_programs_that_trigger_it_and_three_that_only_look_so():
    triggers, near = (Counter(rule for rule, _, _ in cases) for cases in (programs.TRIGGERS, programs.NEAR))
    assert {rule: (count, near[rule]) for rule, count in triggers.items() if min(count, near[rule]) < 3} == {}


_QUICK = 2


def name(case) -> str:
    return f"{case[0]}-{case[1].__name__}"


def each(cases, of_each_rule):
    """Parameters for tests. The quick line has two programs of each rule that do not train a model.

    Args:
      cases: The programs.
      of_each_rule: Whether the whole suite has one of each rule, or of all only those that fall to it.
    """
    quick = Counter()
    for ident, case, more in shared((name(case), case[0] if of_each_rule else "", case) for case in cases):
        slow = quick[case[0]] == _QUICK or trains(case[1].__code__)
        quick[case[0]] += not slow
        yield pytest.param(case, marks=[*more, *[pytest.mark.slow] * slow], id=ident)


def trains(code: CodeType) -> bool:
    """Whether a program calls Keras' `fit`."""
    return "fit" in code.co_names or any(trains(one) for one in code.co_consts if isinstance(one, CodeType))


@pytest.mark.parametrize("case", [*each(programs.TRIGGERS, True)])
def test_it_is_found(case, tmp_path, monkeypatch):
    rule, program, options = case
    severity = options.get("severity")
    source = alone(program)
    program = loaded(source, program, tmp_path, monkeypatch)
    found = findings(program, options.get("ends_with"), options.get("clock", ""), **options.get("record", {}))
    ours = [one for one in found if one.rule == rule]
    assert ours, [(one.rule, one.message) for one in found]
    for one in ours:
        assert severity is None or one.severity == severity
        assert one.fix.strip() or rule == "trace-failed"  # of which the exception may be of any kind
        assert "FILE" not in one.fix
        assert options.get("says", "") in f"{one.message} {' '.join(one.evidence)} {one.fix}"
        if one.node is not None:
            assert one.file == program.__code__.co_filename
    if options.get("pastes"):
        at = program.__code__.co_filename  # the file that it was taken out of is known too, and reads alike
        fix = next((one.fix for one in ours if one.file == at), ours[0].fix)
        program, kept = mended(source, case[1], fix, tmp_path, monkeypatch)
        with kept:
            found = findings(program, **options.get("record", {}))
        assert [one.message for one in found if one.rule == rule] == []


@pytest.mark.parametrize("case", [*each(programs.NEAR, False)])
def test_nothing_is_found_where_it_only_looks_so(case, tmp_path, monkeypatch):
    rule, program, options = case
    program = loaded(alone(program), program, tmp_path, monkeypatch)
    found = findings(program, options.get("ends_with"), options.get("clock", ""), **options.get("record", {}))
    assert [one.message for one in found if one.rule == rule] == []
