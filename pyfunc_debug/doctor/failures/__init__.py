"""Why a program failed: the traps of Python in TensorFlow graphs, recognised by the exception. One module a cause.

An explanation is made in the process that failed, from the live exception; the recording keeps it, and the doctor says
the same later from there. A failure with another cause gets none.
"""

from __future__ import annotations

from collections.abc import Callable

from pyfunc_debug.doctor.failures import (
    above_tape,
    array_indices,
    autograph,
    batched_input,
    batches,
    below_tape,
    body_values,
    called,
    called_branches,
    captured,
    checks,
    custom_gradients,
    elements,
    exhausted,
    feature_specs,
    flat_losses,
    foreign_code,
    generators,
    given_functions,
    graph_variables,
    iterator_states,
    kept_tensor,
    keras_batches,
    keywords,
    landed,
    layer_outputs,
    leaked_tensor,
    library_metrics,
    loaded_models,
    loss_closures,
    loss_loops,
    lost_function,
    lost_object,
    made_in_build,
    map_arguments,
    mapped,
    missing_attribute,
    missing_super,
    mixed_dtypes,
    neighbours,
    no_gradients,
    none_shape,
    object_arrays,
    older_api,
    output_contract,
    predictions,
    python_loops,
    python_objects,
    ragged_rows,
    results,
    scalar_zeros,
    schedules,
    score_losses,
    session_gradients,
    squeezed,
    stacked,
    structures,
    symbolic_value,
    taken_parts,
    taped_losses,
    tflite,
    unbatched,
    uncalled,
    unknown_length,
    unknown_shape,
    used_tapes,
    variables,
    vector_shapes,
    weights_read,
    whole_functions,
    whole_numbers,
    xla,
)
from pyfunc_debug.doctor.failures.added_imports import with_imports
from pyfunc_debug.doctor.failures.explanation import Edit, Explanation, from_facts
from pyfunc_debug.doctor.failures.finite_slopes import finite
from pyfunc_debug.doctor.failures.float_uses import as_floats
from pyfunc_debug.doctor.failures.lambda_names import distinct
from pyfunc_debug.doctor.failures.situation import Locate, Query, Situation, situation

__all__ = ["Edit", "Explanation", "explain", "from_facts"]

CAUSES: tuple[Callable[[Situation], Explanation | None], ...] = (
    xla.explain,
    tflite.explain,
    lost_function.explain,
    iterator_states.explain,
    variables.explain,
    variables.of_tensor,
    made_in_build.explain,
    leaked_tensor.explain,
    leaked_tensor.listed,
    loaded_models.explain,
    lost_object.explain,
    missing_super.explain,
    missing_attribute.explain,
    predictions.explain,
    schedules.explain,
    weights_read.explain,
    called.explain,
    landed.explain,
    called_branches.explain,
    uncalled.explain,
    uncalled.too_many,
    autograph.condition,
    older_api.explain,
    keywords.explain,
    mapped.explain,
    below_tape.explain,
    above_tape.explain,
    taped_losses.explain,
    session_gradients.explain,
    score_losses.explain,
    loss_loops.explain,
    no_gradients.explain,
    scalar_zeros.explain,
    flat_losses.explain,
    custom_gradients.explain,
    elements.explain,
    given_functions.explain,
    given_functions.without_return,
    taken_parts.explain,
    keras_batches.explain,
    squeezed.explain,
    generators.explain,
    captured.explain,
    feature_specs.explain,
    batched_input.explain,
    body_values.explain,
    ragged_rows.explain,
    batches.explain,
    stacked.explain,
    exhausted.explain,
    unknown_length.explain,
    unbatched.explain,
    unbatched.one_example,
    generators.grouped,
    results.explain,
    structures.explain,
    unknown_shape.explain,
    generators.without_shapes,
    none_shape.explain,
    kept_tensor.explain,
    array_indices.explain,
    mixed_dtypes.explain,
    whole_numbers.explain,
    object_arrays.explain,
    library_metrics.explain,
    loss_closures.explain,
    python_objects.explain,
    python_loops.explain,
    vector_shapes.explain,
    used_tapes.explain,
    checks.explain,
    graph_variables.explain,
    layer_outputs.explain,
    symbolic_value.explain,
    map_arguments.explain,
    output_contract.explain,
    foreign_code.elsewhere,
    autograph.explain,
    whole_functions.explain,
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
