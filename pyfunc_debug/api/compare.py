"""`compare()`: a function as a graph and eagerly, or against another function: what differs first, and where.

Both run in this thread, one after the other, each on its own copies of the arguments, with variables, captured tensors
and arrays, and Python's and NumPy's random numbers put back in between. The function runs three times: once more as a
graph first, so that times are fair. A body whose code may write into its inputs runs once more, on copies, to be sure.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyfunc_debug.analysis.comparison import Comparison, Side, align
from pyfunc_debug.analysis.equality import Tolerance, ValueDifference, compare_values
from pyfunc_debug.api.isolation import Isolation, random_put_back
from pyfunc_debug.api.live import LiveRecording, current
from pyfunc_debug.api.record import record
from pyfunc_debug.api.side_effects import examine_body
from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.interception.graphs.eagerly import Resources, eagerly, is_tf_function, op_types, take_resources
from pyfunc_debug.places import source_line
from pyfunc_debug.program.error_text import error_text
from pyfunc_debug.program.python_state import changes, fingerprints, is_random, reachable
from pyfunc_debug.records import Call, Thread, Value
from pyfunc_debug.values.capture import Held
from pyfunc_debug.values.policy import Policy
from pyfunc_debug.values.summary import summarize

_RANDOM = ("Random", "TruncatedNormal", "Multinomial", "ParameterizedTruncatedNormal")
"""How op types begin that draw from TensorFlow's own streams; stateless ones begin otherwise."""


def compare(
    function: Callable[..., Any], *args: Any, against: Callable[..., Any] | None = None, gradients: bool = True,
    rtol: float = 1e-5, atol: float = 1e-6, **kwargs: Any,
) -> Comparison:  # fmt: skip
    """Runs a function as a graph and eagerly, and says what differs first: a node's call, an output or a gradient.

    No switch of TensorFlow's is changed for other threads. Variables that the graph uses are put back after each run,
    as are Python's and NumPy's global random states; other Python state is not: what changed is reported.

    Args:
      function: A tf.function, or a plain function or Keras layer, which is then made one.
      *args: Its arguments.
      against: Another function to compare with, run as it is, in place of the eager run.
      gradients: Whether to compare gradients as well.
      rtol: Relative tolerance within which numbers are close.
      atol: Absolute tolerance.
      **kwargs: Its keyword arguments.

    Returns:
      A comparison that prints as a table; `.equal` and `.first` for programs.

    Raises:
      BadOptionError: called while a graph is being built, or something is not callable.
      UnsupportedTensorFlowError: this TensorFlow keeps its eager switch elsewhere.

    Example:
      result = pfd.compare(train_step, batch)
      print(result.first or "the same eagerly and as a graph")
    """
    import tensorflow as tf

    for thing in (function, *([] if against is None else [against])):
        if not callable(thing):
            raise BadOptionError(f"{thing!r} is not callable: compare takes a function and its arguments")
    if not tf.executing_eagerly():
        raise BadOptionError(
            "compare cannot run while a graph is being built: call it outside tf.function and tf.Graph"
        )
    graph = function if is_tf_function(function) else tf.function(function)
    plain = getattr(function, "python_function", function)
    functions = [plain, *([] if against is None else [getattr(against, "python_function", against)])]
    work = _Work(tf, Tolerance(rtol, atol), gradients, Isolation(tf, functions, args, kwargs))
    running = current()
    with nullcontext(running) if running is not None else record(values="full", gil=False) as recording:
        assert recording is not None
        return work.compare(recording, plain, graph, against)


@dataclass
class _Run:
    """What one run gave."""

    name: str
    outputs: list[Value | None] = field(default_factory=list)
    gradients: dict[str, Value | None] = field(default_factory=dict)
    gradient_error: str | None = None
    error: str | None = None
    where: str | None = None
    duration_ns: int | None = None
    trace_ns: int | None = None
    calls: list[Call] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    random: list[str] = field(default_factory=list)

    def side(self) -> Side:
        return Side(self.name, self.duration_ns, self.trace_ns, self.error, self.where)


class _Work:
    """One comparison."""

    def __init__(self, tf: Any, tolerance: Tolerance, gradients: bool, isolation: Isolation) -> None:
        self._tf = tf
        self._tolerance = tolerance
        self._wanted = gradients
        self._isolation = isolation
        self._variables: dict[Any, str] = {}

    def compare(self, recording: LiveRecording, plain: Any, graph: Any, against: Any) -> Comparison:
        name = getattr(plain, "__name__", type(plain).__name__)
        other_name = "eager" if against is None else getattr(against, "__name__", type(against).__name__)
        left, right = _Run("graph" if against is None else name), _Run(other_name)
        if graph.input_signature is not None:
            self._isolation.convert(graph.input_signature)
        before, streams = fingerprints(plain), _streams()
        with random_put_back():
            concrete = self._trace(left, graph)
            traced = [*changes(before, fingerprints(plain)), *changes(streams, _streams())]
        resources = take_resources(concrete) if concrete is not None else Resources([], 0)
        others = self._resources_of(against)

        def restore() -> None:
            resources.restore()
            others.restore()
            self._isolation.restore()

        try:
            restore()
            if concrete is not None:
                self._quietly(graph)
                restore()
                self._run(recording, left, graph, plain)
            restore()
            if against is None:
                with eagerly():
                    self._run(recording, right, graph, plain)
            else:
                self._quietly(against)
                restore()
                self._run(recording, right, against, against)
            bodies = list(_bodies(recording, (*left.calls, *right.calls), {*left.changed, *right.changed}))
        finally:
            restore()
        calls = align(left.calls, right.calls, recording.nodes(), self._tolerance, by_line=against is None)
        frozen = [] if against is not None else self._frozen(left, right, traced, plain)
        notes = [*self._notes(left, right, traced, resources, concrete, against is not None, frozen), *bodies]
        return Comparison(
            name, left.side(), right.side(), calls, tuple(self._outputs(left, right)),
            tuple(self._gradients(left, right)), tuple(notes), tuple(frozen),
        )  # fmt: skip

    # -- running ------------------------------------------------------------------------------------------------------

    def _trace(self, run: _Run, graph: Any) -> Any:
        start = time.monotonic_ns()
        try:
            args, kwargs = self._isolation.arguments()
            concrete = graph.get_concrete_function(*args, **kwargs)
        except Exception as error:
            self._failed(run, error)
            return None
        run.trace_ns = time.monotonic_ns() - start
        return concrete

    def _resources_of(self, against: Any) -> Resources:
        if against is None or not is_tf_function(against):
            return Resources([], 0)
        try:
            args, kwargs = self._isolation.arguments()
            return take_resources(against.get_concrete_function(*args, **kwargs))
        except Exception:  # its own run will say what is wrong with it
            return Resources([], 0)

    def _quietly(self, function: Any) -> None:
        """A first run, which builds the backward graph, optimises and loads: not measured."""
        with random_put_back():
            args, kwargs = self._isolation.arguments()
            try:
                with self._tf.GradientTape() as tape:
                    tape.watch([tensor for _, tensor in self._inputs(args, kwargs)])
                    function(*args, **kwargs)
            except Exception:
                pass  # the measured run fails again, and is reported

    def _run(self, recording: LiveRecording, run: _Run, function: Any, plain: Any) -> None:
        last = recording.reader.rows("SELECT coalesce(max(id), 0) FROM call")[0][0]
        state, streams = fingerprints(plain), _streams()
        with random_put_back():
            self._measure(run, function, plain, state, streams)
        threads = {thread.id: thread for thread in recording.reader.threads()}
        run.calls = [call for call in _calls_after(recording, last) if _ours(recording, threads, call)]

    def _measure(
        self, run: _Run, function: Any, plain: Any, state: dict[str, object], streams: dict[str, object]
    ) -> None:
        tf = self._tf
        args, kwargs = self._isolation.arguments()
        inputs = self._inputs(args, kwargs)
        try:
            with tf.GradientTape(persistent=False) as tape:
                tape.watch([tensor for _, tensor in inputs])
                start = time.monotonic_ns()
                returned = function(*args, **kwargs)
                run.duration_ns = time.monotonic_ns() - start
            run.changed = changes(state, fingerprints(plain))
            run.random = [name for name, now in _streams().items() if now != streams[name]]
            flat = tf.nest.flatten(returned, expand_composites=True)
            # At once: what was returned may be memory that the other run writes to.
            paths = ["out"] if len(flat) == 1 else [f"out[{index}]" for index in range(len(flat))]
            run.outputs = [self._value(path, one) for path, one in zip(paths, flat)]
            if self._wanted:
                self._differentiate(run, flat, tape, inputs)
        except Exception as error:
            run.duration_ns = None
            self._failed(run, error)

    def _failed(self, run: _Run, error: Exception) -> None:
        run.error, run.where = error_text(error)

    def _inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
        """Floating tensors among the arguments, by name."""
        tf = self._tf
        found = []
        for name, value in [
            *((f"args[{index}]", value) for index, value in enumerate(args)),
            *kwargs.items(),
        ]:
            flat = tf.nest.flatten(value)
            for index, leaf in enumerate(flat):
                if isinstance(leaf, tf.Tensor) and leaf.dtype.is_floating:
                    found.append((name if len(flat) == 1 else f"{name}[{index}]", leaf))
        return found

    def _differentiate(self, run: _Run, outputs: list[Any], tape: Any, inputs: Sequence[tuple[str, Any]]) -> None:
        tf = self._tf
        targets = [out for out in outputs if isinstance(out, tf.Tensor) and out.dtype.is_floating]
        variables = tape.watched_variables()
        for variable in variables:
            self._variables.setdefault(variable.ref(), f"{variable.name} ({len(self._variables)})")
        sources = [tensor for _, tensor in inputs] + list(variables)
        if not targets or not sources:
            return
        names = [name for name, _ in inputs] + [self._variables[variable.ref()] for variable in variables]
        try:
            found = tape.gradient(targets, sources)
            run.gradients = {name: self._value(name, one) for name, one in zip(names, found)}
        except Exception as error:
            run.gradient_error = error_text(error)[0]

    # -- results ------------------------------------------------------------------------------------------------------

    def _outputs(self, left: _Run, right: _Run) -> Iterator[ValueDifference]:
        for index in range(max(len(left.outputs), len(right.outputs))):
            if left.error or right.error:
                return
            if index >= min(len(left.outputs), len(right.outputs)):
                yield ValueDifference(
                    "output", f"out[{index}]", "missing", None, None, None, "another number of outputs"
                )
                continue
            yield self._compared("output", f"out[{index}]", left.outputs[index], right.outputs[index])

    def _gradients(self, left: _Run, right: _Run) -> Iterator[ValueDifference]:
        if left.error or right.error:
            return
        if left.gradient_error or right.gradient_error:
            same = left.gradient_error == right.gradient_error
            yield ValueDifference("gradient", "all", "equal" if same else "different",
                                  left.gradient_error or "computed", right.gradient_error or "computed")  # fmt: skip
            return
        for name in dict.fromkeys([*left.gradients, *right.gradients]):
            yield self._compared("gradient", name, left.gradients.get(name), right.gradients.get(name))

    def _compared(self, role: str, path: str, left: Value | None, right: Value | None) -> ValueDifference:
        values = [left, right]
        missing = [value is None for value in values]
        if all(missing):
            return ValueDifference(role, path, "equal", None, None)
        if any(missing):
            present = values[0] or values[1]
            assert present is not None
            zero = role == "gradient" and not present.array().any()
            texts = [value.text if value is not None else "None" for value in values]
            return ValueDifference(
                role, path, "equal" if zero else "different", texts[0], texts[1], None, "None and zeros" if zero else ""
            )
        assert left is not None
        assert right is not None
        return compare_values(role, left, right, self._tolerance)

    def _value(self, path: str, thing: Any) -> Value | None:
        tf = self._tf
        return _value(
            path, tf.convert_to_tensor(thing) if isinstance(thing, (tf.IndexedSlices, tf.Variable)) else thing
        )

    def _frozen(self, left: _Run, right: _Run, traced: list[str], plain: Any) -> list[str]:
        """What is drawn from each time eagerly, and was drawn from once for the graph, when it was traced."""
        drawn = [name for name, thing in reachable(plain).items() if is_random(thing) and name in right.changed]
        # Traced before this comparison: then only the graph's run shows it, which a body may have drawn in.
        run = (*left.random, *left.changed)
        return [name for name in (*right.random, *drawn) if name in traced or name not in run]

    def _notes(
        self, left: _Run, right: _Run, traced: list[str], resources: Resources, concrete: Any, other: bool,
        frozen: list[str],
    ) -> Iterator[str]:  # fmt: skip
        if not other:
            eager_only = [name for name in right.changed if name not in left.changed and name not in frozen]
            for name in eager_only:
                how = "changed once, when traced" if name in traced else "did not change"
                yield f"Python state `{name}` changes each time it runs eagerly; as a graph it {how}"
            for name in left.changed:
                if name not in right.changed:
                    yield f"Python state `{name}` changes when it runs as a graph, not eagerly"
            for name in frozen:
                yield f"{name} is drawn from each time eagerly; the graph keeps what was drawn when it was traced"
        types = op_types(concrete) if concrete is not None else frozenset()
        if any(kind.startswith(_RANDOM) for kind in types):
            yield "it draws TensorFlow's random numbers: each run has a stream of its own, so values may differ"
        if any("Dataset" in kind for kind in types):
            yield "tf.data inside it runs as a graph in both"
        if resources.others:
            yield f"{resources.others} resources (tables, iterators) could not be put back between the runs"


def _value(path: str, thing: Any) -> Value | None:
    """A value of the comparison, made like a recorded one, with its elements."""
    if thing is None:
        return None
    array = np.asarray(thing.numpy() if hasattr(thing, "numpy") else thing)
    summary = summarize(Held(array), Policy.FULL)
    return Value(
        path, summary.dtype, summary.shape, summary.nbytes, summary.min, summary.max, summary.mean, summary.std,
        summary.nan, summary.inf, summary.zeros, summary.text, summary.sampled, summary.histogram, summary.note, "full",
        summary.digest.hex() if summary.digest is not None else None, lambda: array,
    )  # fmt: skip


def _bodies(recording: LiveRecording, calls: Sequence[Call], changed: set[str]) -> Iterator[str]:
    """What is to be known of the bodies: which write into their inputs, and which keep state that a run changed."""
    nodes = {node.id: node for node in recording.nodes()}
    reported: set[str] = set()
    for call in calls:
        node = nodes[call.node]
        if call.kind == "gradient" or call.status == "running" or node.body in reported:
            continue
        found = examine_body(call)
        if found is None:
            continue
        reported.add(node.body)
        where = source_line(node.file, node.line)
        name = f"body `{node.body}`" + (f" ({where})" if where else "")
        for path in found.written:
            yield (
                f"{name} writes into its input `{path}`: in a graph that is TensorFlow's own memory, which others "
                "read too. Write into a copy"
            )
        kept = [f"`{one}`" for one in found.state if one in changed]
        if kept:
            yield f"{name} keeps state in {', '.join(kept)}: each run found what the one before it left"


def _calls_after(recording: LiveRecording, last: int) -> list[Call]:
    ids = [row[0] for row in recording.reader.rows("SELECT id FROM call WHERE id > ? ORDER BY id", (last,))]
    return [recording.call(number) for number in ids]


def _ours(recording: LiveRecording, threads: dict[int, Thread], call: Call) -> bool:
    """Whether a call is this comparison's: not when it belongs to a run, or an eager call, of another Python thread."""
    mine = threading.get_native_id()
    if call.run is not None:
        run = recording.reader.rows("SELECT thread FROM run WHERE id = ?", (call.run,))
        return not run or threads[run[0][0]].native_id == mine
    thread = threads[call.thread]
    return thread.native_id == mine or thread.name.startswith("TF-")


def _streams() -> dict[str, object]:
    state = np.random.get_state()
    return {
        "random": hash(random.getstate()),
        "numpy.random": [part.tobytes() if isinstance(part, np.ndarray) else part for part in state],
    }
