"""`explain()`: a tf.function's graph traces with the reason for each, its runs and its nodes, recorded or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pyfunc_debug.analysis.retraces import Explanation, NodeUse, TraceRow, explain_function
from pyfunc_debug.api.live import LiveRecording, current
from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.interception.graphs.live import KerasStep, LiveFunction, LiveGraph, describe, keras_step

_UNRECORDED = (
    "not recording: how long tracing took, runs, calls, and traces that failed or whose graphs are gone are not known"
)
_KERAS = "Keras runs this step inside a graph of its own, which loops over the batches: its runs are counted there"
_BEFORE = "graphs without a time were traced before recording began"


def explain(
    function: Any, recording: LiveRecording | None = None, *, try_with: Iterable[Sequence[Any]] | None = None
) -> Explanation:
    """Says of each graph of a tf.function why TensorFlow traced it, and what would have avoided that.

    TensorFlow keeps graphs by the types of their arguments (core/function/polymorphism/function_cache.py).

    Args:
      function: What `tf.function` returned, a Keras model (what `fit` traces), or a method of it: `model.fit`,
        `model.evaluate`, `model.predict`.
      recording: A recording of this process that saw it; by default the one that is going on, if any.
      try_with: Calls to try the advice on, each a tuple of positional arguments. The advised function is made,
        traced, which runs your Python again, run on copies of the arguments, and thrown away; each piece of advice
        then says how many graphs served these calls, and whether the results were equal. Variables and what the
        function captures are put back; other side effects of your Python code stay.

    Returns:
      An explanation that prints as a table. Without a recording it comes from the function's own cache of graphs:
      times, runs and failed graph traces are then not known.

    Raises:
      BadOptionError: `function` is not a tf.function, or `try_with` was given for Keras' own.
      UnsupportedTensorFlowError: this TensorFlow keeps its graphs elsewhere.

    Example:
      train_step(batch, lr=0.1)
      train_step(batch, lr=0.2)
      print(pfd.explain(train_step))  # why there are two graphs
      print(pfd.explain(train_step, try_with=[(batch, 0.1), (batch, 0.2)]))  # and whether one would do
    """
    if try_with is not None:
        return _tried(function, recording, try_with)
    step = keras_step(function)
    if step is not None:
        return _of_keras(step, recording)
    live = describe(function)
    recording = recording if recording is not None else current()
    recorded = _recorded(function, recording) if recording is not None else None
    if recorded is None:
        notes = (_UNRECORDED,) if recording is None else ("not traced since recording began",)
        rows = tuple(_row(graph) for graph in live.graphs)
        return Explanation(live.body.name, live.body.file, live.body.line, rows, notes if rows else ())
    return _merged(live, recorded)


def _tried(function: Any, recording: LiveRecording | None, calls: Iterable[Sequence[Any]]) -> Explanation:
    """The explanation with what became of its advice."""
    from pyfunc_debug.api.trial import try_advice  # it imports NumPy

    found = explain(function, recording)
    if keras_step(function) is not None:
        raise BadOptionError("try_with is for functions that you call yourself: Keras calls this one")
    return try_advice(function, found, calls)


def _of_keras(step: KerasStep, recording: LiveRecording | None) -> Explanation:
    """The explanation of the tf.function in which Keras runs a model's step."""
    if step.function is None:
        why = "the model runs eagerly: nothing is traced" if step.eager else f"{step.name} has not traced its step yet"
        return Explanation(step.name, step.file, step.line, (), (why,))
    found = explain(step.function, recording)
    return replace(found, name=step.name, file=step.file, line=step.line, notes=(*found.notes, _KERAS))


def _recorded(function: Any, recording: LiveRecording) -> Explanation | None:
    number = recording.function_number(function)
    if number is None:
        return None
    found = recording.reader.rows("SELECT function FROM trace WHERE object = ? LIMIT 1", (number,))
    return explain_function(recording.reader, found[0][0], number) if found else None


def _merged(live: LiveFunction, recorded: Explanation) -> Explanation:
    """Graphs from before the recording first, then what was recorded."""
    names = {row.name for row in recorded.rows}
    older = tuple(_row(graph) for graph in live.graphs if graph.name not in names)
    if not older:
        return recorded
    return replace(recorded, rows=(*older, *recorded.rows), notes=(*recorded.notes, _BEFORE))


def _row(graph: LiveGraph) -> TraceRow:
    nodes = tuple(NodeUse(body.name, None, body.file, body.line, None) for _, body in graph.nodes if not body.internal)
    reason = graph.reason
    return TraceRow(graph.name, graph.signature, reason.sentences, reason.closest, reason.avoid, None, None, nodes)
