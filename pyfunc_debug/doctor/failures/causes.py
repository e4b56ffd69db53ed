"""All causes, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Callable

from pyfunc_debug.doctor.failures.bodies import (
    body_values,
    keywords,
    object_values,
    output_contract,
    ragged_rows,
    results,
    structures,
    unknown_shape,
)
from pyfunc_debug.doctor.failures.datasets import (
    arguments,
    batched_images,
    batched_input,
    batches,
    dropped,
    dropped_rests,
    elements,
    exhausted,
    feature_specs,
    generators,
    iterator_states,
    landed,
    loaded_inside,
    lost_shapes,
    map_arguments,
    object_arrays,
    other_ranks,
    padded_batches,
    parsed_records,
    ragged_lists,
    sliced_parts,
    squeezed,
    text_arguments,
    unbatched,
    unknown_length,
    used_iterators,
    window_tensors,
    windows,
)
from pyfunc_debug.doctor.failures.gradients import (
    above_tape,
    below_tape,
    custom_gradients,
    flat_losses,
    metric_losses,
    no_gradients,
    scalar_zeros,
    score_losses,
    session_gradients,
    taped_losses,
    two_models,
    unreturned_gradients,
    used_tapes,
    watched,
)
from pyfunc_debug.doctor.failures.graphs import (
    array_indices,
    array_methods,
    autograph,
    called,
    called_branches,
    captured,
    checks,
    each_value,
    eager_dtypes,
    endless_traces,
    foreign_code,
    graph_variables,
    guards,
    hashed_tensors,
    input_signatures,
    item_writes,
    kept_tensor,
    leaked_tensor,
    lost_object,
    made_in_build,
    mapped,
    mixed_dtypes,
    none_shape,
    python_loops,
    python_objects,
    restored_functions,
    returns_in_loops,
    seeds_of_tensors,
    stacked,
    symbolic_value,
    taken_parts,
    texts_of_symbols,
    uncalled,
    uninitialized,
    variables,
    vector_shapes,
    whole_numbers,
    xla,
)
from pyfunc_debug.doctor.failures.models import (
    class_weights,
    data_axes,
    dict_metrics,
    fit_arguments,
    fitted_data,
    given_functions,
    keras_batches,
    keras_lengths,
    keras_names,
    keras_structures,
    label_ranges,
    label_shapes,
    layer_outputs,
    layers_in_call,
    library_metrics,
    loaded_models,
    loss_closures,
    loss_loops,
    lost_function,
    missing_attribute,
    missing_super,
    model_losses,
    older_api,
    predictions,
    sample_sizes,
    scheduled_rates,
    schedules,
    single_examples,
    tflite,
    weights_read,
)
from pyfunc_debug.doctor.failures.pastes import neighbours, whole_functions
from pyfunc_debug.doctor.failures.pastes.added_imports import with_imports
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, from_facts
from pyfunc_debug.doctor.failures.pastes.finite_slopes import finite
from pyfunc_debug.doctor.failures.pastes.float_uses import as_floats
from pyfunc_debug.doctor.failures.pastes.lambda_names import distinct
from pyfunc_debug.doctor.failures.reading.situation import Locate, Query, Situation, situation

__all__ = ["Edit", "Explanation", "explain", "from_facts"]

CAUSES: tuple[Callable[[Situation], Explanation | None], ...] = (
    xla.explain,
    tflite.explain,
    lost_function.explain,
    restored_functions.explain,
    input_signatures.explain,
    iterator_states.explain,
    uninitialized.explain,
    variables.explain,
    variables.of_tensor,
    dropped.explain,
    keras_lengths.explain,
    class_weights.explain,
    single_examples.explain,
    fitted_data.explain,
    label_ranges.explain,
    label_shapes.explain,
    data_axes.explain,
    fit_arguments.explain,
    layers_in_call.without_variables,
    made_in_build.explain,
    leaked_tensor.explain,
    leaked_tensor.listed,
    loaded_models.explain,
    lost_object.explain,
    missing_super.explain,
    missing_attribute.explain,
    predictions.explain,
    schedules.explain,
    scheduled_rates.explain,
    metric_losses.explain,
    weights_read.explain,
    called.explain,
    landed.explain,
    called_branches.explain,
    uncalled.explain,
    uncalled.too_many,
    returns_in_loops.explain,
    autograph.condition,
    guards.explain,
    guards.differing,
    endless_traces.explain,
    seeds_of_tensors.explain,
    older_api.explain,
    loaded_inside.explain,
    keywords.explain,
    mapped.explain,
    two_models.explain,
    below_tape.explain,
    above_tape.explain,
    eager_dtypes.explain,
    taped_losses.explain,
    session_gradients.explain,
    score_losses.explain,
    loss_loops.explain,
    unreturned_gradients.explain,
    no_gradients.explain,
    scalar_zeros.explain,
    flat_losses.explain,
    custom_gradients.explain,
    custom_gradients.results,
    elements.explain,
    given_functions.explain,
    given_functions.without_return,
    model_losses.explain,
    window_tensors.explain,
    windows.explain,
    taken_parts.explain,
    keras_batches.explain,
    sample_sizes.explain,
    squeezed.explain,
    generators.explain,
    captured.explain,
    feature_specs.explain,
    parsed_records.explain,
    arguments.explain,
    batched_input.explain,
    batched_images.explain,
    body_values.explain,
    text_arguments.explain,
    ragged_rows.explain,
    padded_batches.explain,
    dropped_rests.explain,
    batches.explain,
    stacked.explain,
    exhausted.explain,
    used_iterators.explain,
    unknown_length.explain,
    unbatched.explain,
    unbatched.one_example,
    generators.grouped,
    results.explain,
    object_values.explain,
    structures.explain,
    unknown_shape.explain,
    generators.without_shapes,
    generators.with_open_ranks,
    none_shape.explain,
    lost_shapes.explain,
    kept_tensor.explain,
    hashed_tensors.explain,
    array_indices.explain,
    mixed_dtypes.explain,
    whole_numbers.explain,
    object_arrays.explain,
    sliced_parts.explain,
    ragged_lists.explain,
    library_metrics.explain,
    dict_metrics.explain,
    loss_closures.explain,
    python_objects.explain,
    python_loops.explain,
    vector_shapes.explain,
    used_tapes.explain,
    watched.explain,
    watched.of_array,
    checks.explain,
    graph_variables.explain,
    graph_variables.of_truth,
    layer_outputs.explain,
    each_value.explain,
    texts_of_symbols.explain,
    symbolic_value.explain,
    map_arguments.explain,
    output_contract.explain,
    foreign_code.elsewhere,
    autograph.explain,
    whole_functions.explain,
    other_ranks.explain,
    array_methods.explain,
    item_writes.explain,
    keras_names.explain,
    keras_structures.explain,
    item_writes.added,
    landed.at_last,
)

OF_VALUES = (symbolic_value.explain, none_shape.explain, foreign_code.elsewhere)
"""Those whose paste is for the one line that needed a value."""


def explain(error: BaseException, locate: Locate, rows: Query) -> Explanation | None:
    """Why an exception reached the user.

    Args:
      error: The exception, with its traceback.
      locate: Maps a line of AutoGraph's generated code to the user's file and line.
      rows: Asks the recording, if there is one: SQL and its parameters.

    Returns:
      The explanation; None where the cause is none of these traps.

    Raises:
      Exception: one of the causes has failed, and no other knows why.
    """
    found = situation(error, locate, rows)
    trouble: list[Exception] = []
    for cause in CAUSES:
        try:
            explanation = cause(found)
        except Exception as failed:  # a later one may know the cause
            trouble.append(failed)
            continue
        if explanation is not None:
            if cause in OF_VALUES:
                explanation = whole_functions.instead(explanation, found)
            return distinct(with_imports(finite(as_floats(neighbours.kept(explanation), found), found), found))
    if trouble:
        raise trouble[0]
    return None
