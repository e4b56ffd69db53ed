"""Graph traces and runs of tf.functions.

Everything that Python starts ends in `Context.call_function` (eager/context.py); `ConcreteFunction._call_flat` tells
which function it is, and when it is not executing eagerly it is a call site put into a graph, not a run. A graph trace
is `tracing_compilation._create_concrete_function`. What C++ starts (tf.data, Session, nested functions) is not seen.
"""

from __future__ import annotations

import _thread
import inspect
import itertools
import re
import sys
import threading
import time
import types
import weakref
from typing import Any

from pyfunc_debug.events import FunctionFacts, LiveRuns, Notice, Observer, RunFacts, TraceFacts
from pyfunc_debug.interception.bodies import SourceMaps, closure, find_body
from pyfunc_debug.interception.calls import drop_our_frame
from pyfunc_debug.interception.finite import NotFinite
from pyfunc_debug.interception.graphs.broadcasts import picked, squared
from pyfunc_debug.interception.graphs.library import Library, imported_nodes, python_ops
from pyfunc_debug.interception.graphs.listed_results import listed_results
from pyfunc_debug.interception.graphs.outside import Outside, function_of
from pyfunc_debug.interception.graphs.placement import Placement
from pyfunc_debug.interception.graphs.reshapes import permuting
from pyfunc_debug.interception.graphs.retraces import Reason, Retraces
from pyfunc_debug.interception.graphs.signatures import of_element, signature
from pyfunc_debug.interception.graphs.static_shapes import is_blind, loses_rank, node_shapes
from pyfunc_debug.interception.graphs.text_tables import text_tables
from pyfunc_debug.interception.graphs.unread_writes import unread_writes
from pyfunc_debug.interception.names import TensorFlowNames, private
from pyfunc_debug.program.error_text import kept_text
from pyfunc_debug.program.frames import RepeatedCaller, failure_frames, is_generated, is_tensorflow
from pyfunc_debug.records import FROM_GENERATOR, Frame, RunKind

_FUNCTION_NAME = re.compile(r"^__(inference|forward)_(__backward_)?(.*?)(_\d+)?_\d+$")


_MOST_ENDS = 1000
"""Runs that ended at the end of their data, of which a notice is made: one an epoch."""
_MESSAGE = 2000
"""Characters that are kept of an exception's text."""
_GENERATOR_NEXT = "generator_next_fn"
"""The function in which Dataset.from_generator asks the user's generator (data/ops/from_generator_op.py)."""
FROM_GENERATOR_FACTS = FunctionFacts(FROM_GENERATOR, "tf.data", None, None, internal=True)
TF_DATA = ("Dataset_", "tf_data_experimental_")
"""How names of tf.data's graphs begin (data/ops/structured_function.py)."""


class Functions:
    """Sees graph traces and runs, and knows which traced function a graph belongs to."""

    def __init__(
        self, names: TensorFlowNames, observer: Observer, library: Library, maps: SourceMaps, finite: NotFinite
    ) -> None:
        self.finite = finite
        self.retraces = Retraces(names, observer, maps)
        self._names = names
        self._observer = observer
        self._library = library
        self._maps = maps
        self._here = threading.local()  # .trace: id of the innermost graph trace; .function: ConcreteFunction to be run
        self._trace_ids = itertools.count(1)
        self._run_ids = itertools.count(1)
        self._started_at = RepeatedCaller()
        self._by_graph: weakref.WeakKeyDictionary[Any, tuple[int, FunctionFacts, Outside | None]] = (
            weakref.WeakKeyDictionary()
        )
        self._imported: dict[str, list[tuple[str, str, str]]] = {}  # nodes from files, by the function that holds them
        self._clashes: set[tuple[str, str, str]] = set()
        self._rank_lost = False  # whether some dataset's elements have no rank
        self.live = LiveRuns()
        self.placement = Placement(names, observer, maps)

    @property
    def innermost(self) -> int | None:
        """The graph trace that is going on in this thread."""
        trace: int | None = getattr(self._here, "trace", None)
        return trace

    # -- graph traces -------------------------------------------------------------------------------------------------

    def alive(self) -> int:
        """How many graphs that were traced while on are still in memory."""
        return len(self._by_graph)

    def create_concrete_function(self, original: Any) -> Any:
        """The replacement of `tracing_compilation._create_concrete_function`."""

        def _create_concrete_function(
            function_type: Any, type_context: Any, func_graph: Any, tracing_options: Any
        ) -> Any:
            trace = next(self._trace_ids)
            parent = getattr(self._here, "trace", None)
            reason = self.retraces.take(tracing_options)
            try:
                function = self._describe(tracing_options.python_function, tracing_options.name)
                self._by_graph[func_graph] = (trace, function, None)
            except Exception as trouble:
                self._observer.trouble("describing a traced function", trouble)
                return original(function_type, type_context, func_graph, tracing_options)
            self._observer.trace_began(trace, function)
            self._here.trace = trace
            around, self._here.parts = getattr(self._here, "parts", []), []
            start = time.monotonic_ns()
            error: BaseException | None = None
            concrete = None
            try:
                concrete = original(function_type, type_context, func_graph, tracing_options)
                return concrete
            except BaseException as raised:
                error = raised
                drop_our_frame(raised)
                raise
            finally:
                duration = time.monotonic_ns() - start
                self._here.trace = parent
                parts, self._here.parts = self._here.parts, around
                try:
                    self._trace_ended(
                        trace,
                        parent,
                        function,
                        function_type,
                        tracing_options,
                        concrete,
                        start,
                        duration,
                        error,
                        reason,
                        parts,
                    )
                except Exception as trouble:
                    self._observer.trouble("describing a graph trace", trouble)
                error = None  # no cycle with this frame

        return _create_concrete_function

    def _trace_ended(
        self, trace: int, parent: int | None, function: FunctionFacts, function_type: Any, options: Any, concrete: Any,
        start: int, duration: int, raised: BaseException | None, reason: Reason, parts: list[Outside],
    ) -> None:  # fmt: skip
        error = None if raised is None else type(raised).__name__
        made = self.retraces.object(options)
        reason = self.retraces.complete(reason, options, function, made, error)
        name = _text(concrete.name) if concrete is not None else None
        tokens = self._library.tokens(name) if name is not None else None
        if name is not None and tokens:
            self._tell_clashes(name, concrete)  # a Dataset's graph is run by C++: this is the only time it is seen
        if concrete is not None and function.kind == "tf.function":
            self._tell_squares(trace, concrete.graph)
            self._tell_call(options.python_function, made, concrete.graph)
            self._look_outside(trace, function, options.python_function, concrete.graph, tokens or frozenset(), parts)
        if concrete is not None and function.kind == "tf.data" and not function.internal:
            own = _tf_data_function(options.python_function) or options.python_function
            self._look_outside(trace, function, own, concrete.graph, tokens or frozenset(), [])
        if concrete is not None:
            self._tell_reshapes(concrete.graph)
            self._tell_unread(concrete.graph)
        group = self._library.group(name) if name is not None else None
        if group is not None and function.kind == "tf.function":
            self._observer.notice(Notice.COLLECTIVE, None, None, trace=trace, group=group)
        shapes = node_shapes(concrete.graph) if tokens else {}
        if function.kind == "tf.data":
            self._rank_lost = self._rank_lost or (bool(tokens) and loses_rank(concrete.graph))
        elif self._rank_lost and concrete is not None and is_blind(concrete.graph):
            self._observer.notice(Notice.UNKNOWN_ELEMENTS, None, None, trace=trace)
        self._observer.trace_ended(
            TraceFacts(
                id=trace, function=function, object=made, name=name,
                signature=_signature(function, function_type, options.python_function),
                reason=reason.sentences, start_ns=start, duration_ns=duration, error=error, parent=parent,
                tokens=tokens or frozenset(), closest=reason.closest, avoid=reason.avoid,
                failure=None if raised is None else self._failure(raised), shapes=shapes,
            )
        )  # fmt: skip
        if concrete is not None:
            self.placement.traced(function, concrete, tokens or ())
        ops = [op for _, op in python_ops(concrete.graph)] if tokens and concrete is not None else []
        for token, site in listed_results(ops):
            self._observer.notice(
                Notice.LISTED_RESULT, token, None, trace=trace, file=site.file, line=site.line, sources=[site.file]
            )
        for token, tables in text_tables(ops, self._names):
            self._observer.notice(Notice.TEXT_TABLES, token, None, tables=tables)

    def _tell_squares(self, trace: int, graph: Any) -> None:
        """Tells of labels and predictions whose difference is one of all pairs."""
        for site, one, other in squared(graph):
            self._observer.notice(
                Notice.BROADCAST, None, None, trace=trace, file=site.file, line=site.line, shapes=[one, other],
                sources=[site.file],
            )  # fmt: skip

        for site, use, params, indices in picked(graph):
            self._observer.notice(
                Notice.PICKED, None, None, trace=trace, file=site.file, line=site.line, used=[use.file, use.line],
                shapes=[params, indices], sources=[site.file, use.file],
            )  # fmt: skip

    def _tell_call(self, python_function: Any, made: int | None, graph: Any) -> None:
        """Tells of a Keras layer's own `call` that was traced, and what its graph has of its weights.

        `initial`: Keras was building it, and weights without a value gave their initializer's.
        """
        function, owner = function_of(python_function, self._names.function_type)
        if function is None or function.__name__ != "call" or not private.keras_trained(owner):
            return
        code = function.__code__
        self._observer.notice(
            Notice.LAYER_CALL, None, None, object=made, reads=bool(graph.variables), layer=type(owner).__name__,
            initial=private.keras_building() and private.keras_initial(graph),
            file=code.co_filename, line=code.co_firstlineno, sources=[code.co_filename],
        )  # fmt: skip

    def _tell_unread(self, graph: Any) -> None:
        """Tells of values that are written to a TensorArray and lost."""
        for site in unread_writes(graph):
            self._observer.notice(
                Notice.UNREAD_WRITE, None, None, file=site.file, line=site.line, sources=[site.file]
            )  # fmt: skip

    def _tell_reshapes(self, graph: Any) -> None:
        """Tells of reshapes that are taken for transposes."""
        for site, before, after in permuting(graph):
            self._observer.notice(
                Notice.RESHAPED, None, None, file=site.file, line=site.line, before=before, after=after,
                sources=[site.file],
            )  # fmt: skip

    def _look_outside(
        self, trace: int, function: FunctionFacts, python_function: Any, graph: Any, tokens: frozenset[str],
        parts: list[Outside],
    ) -> None:  # fmt: skip
        """Notes the Python values from outside with which a graph was traced."""
        registered = [self._names.registry.get(token) for token in tokens]
        bodies = [find_body(one, self._names, self._maps) for one in registered if one is not None]
        outside = Outside(
            python_function, bodies, self._names.function_type, graph, self._maps, parts if function.internal else ()
        )
        if outside:
            self._by_graph[graph] = (trace, function, outside)
            getattr(self._here, "parts", []).append(outside)

    def _tell_changes(self, trace: int | None, run: int, function: FunctionFacts, outside: Outside) -> None:
        """Tells of Python values that changed since a graph was traced, now that it runs."""
        for one in outside.changed():
            self._observer.notice(
                Notice.STALE_CLOSURE, None, None, trace=trace, run=run, function=function.name, reader=one.function,
                name=one.name, file=one.file, line=one.line, then=one.then, now=one.now,
                **({"other_object": True} if one.other_object else {}),
            )  # fmt: skip

    def passed(self, graph: Any) -> None:
        """Tells of Python values that changed between two passes over a dataset, which keeps what they were at trace.

        Args:
          graph: That of one of the dataset's functions; None where it has none.
        """
        known = self._by_graph.get(graph) if graph is not None else None
        trace, function, outside = known or (None, None, None)
        if function is not None and outside is not None and function.kind == "tf.data":
            for one in outside.passed():
                self._observer.notice(
                    Notice.STALE_CLOSURE, None, None, trace=trace, function=function.name, reader=one.function,
                    name=one.name, file=one.file, line=one.line, then=one.then, now=one.now,
                )  # fmt: skip

    def _failure(self, error: BaseException) -> tuple[str, tuple[tuple[str, int, str], ...]]:
        """Message and user frames of an exception that ended a graph trace."""
        frames = []
        for file, line, name in failure_frames(error.__traceback__):
            if is_generated(file):
                found = self._maps.find(file, line)
                if found is None:
                    continue
                file, line = found
            frames.append((file, line, name.removeprefix("tf__")))
        return kept_text(error, _MESSAGE), tuple(frames)

    def _describe(self, python_function: Any, name: str) -> FunctionFacts:
        """The user's function behind what is being traced."""
        function = _tf_data_function(python_function)
        kind: Any = "tf.function" if function is None else "tf.data"
        body = find_body(python_function if function is None else function, self._names, self._maps)
        if body.internal and function is not None and body.name.rpartition(".")[2] == _GENERATOR_NEXT:
            return FROM_GENERATOR_FACTS
        if body.file is None:
            return FunctionFacts(name, kind, None, None, body.internal)
        return FunctionFacts(body.name, kind, body.file, body.line, body.internal)

    def holding(self, graph: Any, stack: tuple[Frame, ...] = ()) -> FunctionFacts | None:
        """The innermost traced function around a graph; for a plain tf.Graph the code that made the op (`stack`)."""
        seen, traced = 0, None
        while graph is not None and seen < 100:
            known = self._by_graph.get(graph)
            if known is not None:
                return known[1]
            if getattr(graph, "name", "").startswith("scratch_graph"):  # Keras asks a layer for its output's shape
                return FunctionFacts("(Keras, shapes only)", "graph", None, None, internal=True)
            if traced is None and type(graph).__name__ == "FuncGraph":  # not a branch or a loop's body
                traced = graph
            outer = getattr(graph, "outer_graph", None)
            if outer is None or outer is graph:
                break
            graph, seen = outer, seen + 1
        return _older(traced, stack) if traced is not None else self._unseen(graph, stack)

    def _unseen(self, graph: Any, stack: tuple[Frame, ...]) -> FunctionFacts | None:
        """A graph that no graph trace made: a v1 graph."""
        if graph is None:
            return None
        if type(graph).__name__ == "Graph":
            if not stack:
                return FunctionFacts("(graph)", "graph", None, None, internal=False)
            maker = stack[-1]
            name = "(graph)" if maker.function == "<module>" else maker.function
            return FunctionFacts(name, "graph", maker.file, None, internal=False)
        return FunctionFacts(getattr(graph, "name", "?"), "tf.function", None, None, internal=False)

    # -- runs ---------------------------------------------------------------------------------------------------------

    def call_flat(self, original: Any) -> Any:
        """The replacement of `ConcreteFunction._call_flat`: which function `call_function` is about to run."""
        here = self._here
        eagerly = self._names.context_module.executing_eagerly

        def _call_flat(self: Any, tensor_inputs: Any, captured_inputs: Any) -> Any:
            if not eagerly():
                return original(self, tensor_inputs, captured_inputs)
            before = getattr(here, "function", None)
            here.function = self
            try:
                return original(self, tensor_inputs, captured_inputs)
            except BaseException as error:
                drop_our_frame(error)
                raise
            finally:
                here.function = before

        return _call_flat

    def call_function(self, original: Any) -> Any:
        """The replacement of `Context.call_function`: a run."""
        live, here, observer = self.live, self._here, self._observer
        ends: list[int] = []

        def call_function(context: Any, name: Any, tensor_inputs: Any, num_outputs: Any) -> Any:
            run = self._begin(context, name, getattr(here, "function", None))
            if run is None:
                return original(context, name, tensor_inputs, num_outputs)
            live.begin(run)
            observer.run_began(run)
            try:
                outputs = original(context, name, tensor_inputs, num_outputs)
            except BaseException as error:
                if not _ends_data(error):
                    run.error = type(error).__name__
                elif len(ends) < _MOST_ENDS:
                    ends.append(run.id)
                    observer.notice(Notice.DATA_ENDED, None, None, run=run.id, asked=_asked_steps())
                drop_our_frame(error)
                raise
            finally:
                run.duration_ns = time.monotonic_ns() - run.start_ns
                live.end(run)
                observer.run_ended(run)
            try:
                self.finite.ran(run, outputs)
            except Exception as trouble:
                observer.trouble("looking at what a run gave", trouble)
            return outputs

        return call_function

    def _begin(self, context: Any, raw_name: Any, concrete: Any) -> RunFacts | None:
        try:
            name = _text(raw_name)
            kind: RunKind = "backward" if name.startswith("__inference___backward_") else "forward"
            trace, function, outside = self._of(concrete, name)
            number = next(self._run_ids)
            if outside is not None and function is not None:
                self._tell_changes(trace, number, function, outside)
            tokens = self._library.tokens(name)
            if tokens and concrete is not None and self._imported.get(name) != []:
                self._tell_clashes(name, concrete)
            if tokens:
                self.placement.ran(context, function, tokens)
                if trace is None and concrete is not None:
                    self._library.ran(name, concrete.graph)
            return RunFacts(
                number, kind, name, trace, function, tokens, _thread.get_native_id(),
                time.monotonic_ns(), self._started_at(raw_name),
            )  # fmt: skip
        except Exception as error:
            self._observer.trouble("describing a run", error)
            return None

    def _of(self, concrete: Any, name: str) -> tuple[int | None, FunctionFacts | None, Outside | None]:
        """Graph trace and function of a ConcreteFunction; those of a backward function are found by its nodes later."""
        graph = getattr(concrete, "graph", None)
        known = self._by_graph.get(graph) if graph is not None else None
        return known or (None, FunctionFacts(readable(name), "tf.function", None, None, internal=False), None)

    def _tell_clashes(self, name: str, concrete: Any) -> None:
        """Tells of nodes from a file whose tokens belong to functions of this process: those are what will run."""
        found = self._imported.get(name)
        if found is None:
            found = self._imported[name] = imported_nodes(concrete.graph)
        for node in found:
            if node not in self._clashes and self._names.registry.get(node[0]) is not None:
                self._clashes.add(node)
                token, op, graph = node
                self._observer.notice(Notice.SERIALIZATION, token, None, name=token, op=op, function=readable(graph))


_STEPS = {"fit": "steps_per_epoch", "evaluate": "steps", "predict": "steps"}


def _asked_steps() -> bool | None:
    """Whether the call of Keras' that is going on was given a number of steps; None outside of one."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        word = _STEPS.get(frame.f_code.co_name)
        if word is not None and "keras" in frame.f_code.co_filename and word in frame.f_locals:
            return frame.f_locals[word] is not None
        frame = frame.f_back
    return None


def _ends_data(error: BaseException) -> bool:
    """Whether a run was only at the end of its data: so every epoch of a Dataset without a known size ends.

    The text is that of TensorFlow's own iterators (kernels/data/iterator_ops.cc). A StopIteration that left a body also
    becomes an OutOfRangeError, with another text.
    """
    return type(error).__name__ == "OutOfRangeError" and "End of sequence" in str(error)


def _older(graph: Any, stack: tuple[Frame, ...]) -> FunctionFacts:
    """The function whose graph was traced before we were there: named by its graph, or by tf.data's transformation."""
    name = getattr(graph, "name", "?")
    if stack and name.startswith(TF_DATA):
        return FunctionFacts(stack[-1].function, "tf.data", stack[-1].file, None, internal=False)
    return FunctionFacts(name, "tf.function", None, None, internal=False)  # the same as of its runs


def _tf_data_function(python_function: Any) -> Any:
    """The user's function inside tf.data's `wrapped_fn` (data/ops/structured_function.py), or None for any other."""
    return private.body(_tf_data_wrapper(python_function))


def _tf_data_wrapper(python_function: Any) -> Any:
    """TensorFlow's object around a function of tf.data, which knows the structure of its elements."""
    python_function = inspect.unwrap(python_function)
    if not isinstance(python_function, types.FunctionType):
        return None
    if not is_tensorflow(python_function.__code__.co_filename):
        return None
    helper = closure(python_function).get("wrapper_helper")
    return closure(helper).get("self") if isinstance(helper, types.FunctionType) else None


def _signature(function: FunctionFacts, function_type: Any, python_function: Any) -> str:
    """A trace's signature; of tf.data's, whose FunctionType is flat, with an argument for each component."""
    given = private.element_structure(_tf_data_wrapper(python_function)) if function.kind == "tf.data" else None
    return signature(function_type) if given is None else of_element(given)


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def readable(name: str) -> str:
    """`__inference_train_step_42` -> `train_step`."""
    match = _FUNCTION_NAME.match(name)
    return match.group(3) if match else name
