"""Seeing every py_function of a running TensorFlow program, without changing the program.

The only code that touches TensorFlow's private names. `Interception` replaces a handful of attributes while it is on
and puts the very same objects back when it goes off; it reports what it sees to an `Observer`.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.errors import UnsupportedTensorFlowError
from pyfunc_debug.events import NO_STATEMENTS, Body, NodeFacts, Observer, RunFacts, Statements
from pyfunc_debug.interception import names as _names
from pyfunc_debug.interception.annotations import Annotations
from pyfunc_debug.interception.bodies import SourceMaps, scope, unwrap
from pyfunc_debug.interception.builds import verdict
from pyfunc_debug.interception.calls import drop_our_frame, eager_numpy_call, innermost_call, registry_call
from pyfunc_debug.interception.elements import Elements
from pyfunc_debug.interception.failures import Failures
from pyfunc_debug.interception.finite import NotFinite
from pyfunc_debug.interception.gradients.cut import CutGradients
from pyfunc_debug.interception.gradients.hub import Use, hub, stock_tapes
from pyfunc_debug.interception.gradients.mapped import MappedGradients
from pyfunc_debug.interception.gradients.minimized import Minimized
from pyfunc_debug.interception.graphs.departures import Departures
from pyfunc_debug.interception.graphs.functions import Functions
from pyfunc_debug.interception.graphs.inputs import Inputs
from pyfunc_debug.interception.graphs.library import Library
from pyfunc_debug.interception.graphs.nodes import Nodes
from pyfunc_debug.interception.graphs.registered import Entries, array_bytes, bodies_since, entries_since, next_number
from pyfunc_debug.interception.graphs.session_runs import SessionRuns
from pyfunc_debug.interception.lines.python_lines import Lines
from pyfunc_debug.interception.names import private
from pyfunc_debug.interception.patches import Patch, Patches
from pyfunc_debug.interception.returns import Returns
from pyfunc_debug.interception.texts import Texts
from pyfunc_debug.program.frames import is_generated

__all__ = ["Interception", "NodeFacts", "Observer", "RunFacts"]


_MOST_BODIES = 10_000


class Interception:
    """The switch. One at a time in a process; `pyfunc_debug.api.live` sees to that.

    Attributes:
      limits: What this TensorFlow does not allow, in words; empty when all works.
      live_runs: Runs in flight (read-only for others).
      failures: The newest exceptions that left bodies.
      inputs: What is known of the program's loops over datasets.
      lines: The counts of lines, once `start_lines` was called; they can still be read after `stop_lines`.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._use: Use | None = None
        self._gradients = hub()
        self._names = _names.load()
        maps = SourceMaps(self._names)
        library = Library(self._names)
        self._finite = NotFinite(self._names, observer, self.user_line)
        self._functions = Functions(self._names, observer, library, maps, self._finite)
        self._nodes = Nodes(self._names, observer, self._functions, library, maps)
        self.inputs = Inputs(self._names, library, observer.trouble, self._functions.passed)
        self._departures = Departures(observer)
        self._annotations = Annotations(self._names, maps, observer.trouble)
        self._maps = maps
        self._tables: Any = None
        self._runs: SessionRuns | None = None
        self._patches = Patches()
        self._line_patches = Patches()  # on top of the others, and switched on their own
        self.lines: Lines | None = None
        self.failures = Failures()
        self._elements = Elements(self._names, observer, self.failures, maps)
        self.live_runs = self._functions.live
        self.limits: str = "" if self._names.construction else _names.explain_missing(self._names)
        self._bodies: dict[str, weakref.ref[types.FunctionType]] = {}
        self.on = False

    def start(self) -> None:
        """Switches on. Nothing of TensorFlow's is run or made for it.

        Raises:
          UnsupportedTensorFlowError: calls cannot be seen on this TensorFlow; the message says why.
        """
        found = verdict(self._names.folder, self._names.version)
        if found.calls:
            raise UnsupportedTensorFlowError(f"TensorFlow {self._names.version}: {found.calls}. Nothing was changed")
        if found.construction and not self.limits:
            self.limits = f"TensorFlow {self._names.version}: {found.construction}: only calls are recorded"
        self._patches.apply(self._wanted())
        self._gradients.connect(self._observer, self.failures)
        self._elements.start()
        self.on = True

    def stop(self) -> tuple[str, ...]:
        """Switches off: every attribute is the original object again.

        Returns:
          Names of attributes that somebody else replaced meanwhile and that were therefore left alone.
        """
        self.on = False
        self.stop_lines()
        self._nodes.yields.stop()
        foreign = self._patches.revert() + self._elements.stop()
        self._gradients.connect(None, None)
        return foreign + self.stop_ids()

    def stock_tapes(self) -> dict[str, int]:
        """Nodes (tokens) whose tapes TensorFlow keeps, and the bytes that these keep alive."""
        return {} if self._gradients.limits() else stock_tapes()

    def tell_sessions(self) -> None:
        """Notices what lines that run sessions did until now."""
        if self._runs is not None:
            self._runs.lines.tell()

    def next_entry(self) -> int | None:
        """The number that TensorFlow's registry gives its next function; None where that cannot be known."""
        return next_number(self._names)

    def counts(self) -> dict[str, int]:
        """How many there are now of what may pile up: the registry's entries, graphs traced while on, stock tapes."""
        return {
            "entries": private.entries(self._names.registry), "graphs": self._functions.alive(),
            "tapes": len(self._names.script_ops.tape_cache),
        }  # fmt: skip

    def entries_since(self, number: int) -> list[Entries]:
        """What TensorFlow's registry keeps of the user's bodies since it had that number."""
        return entries_since(number, self._names, self._maps)

    @staticmethod
    def array_bytes(thing: Any) -> int:
        """What an array or an eager tensor weighs; 0 for everything else."""
        return array_bytes(thing)

    def bodies_since(self, number: int) -> Iterator[tuple[str, Body, dict[str, Any], dict[str, Any]]]:
        """The user's bodies of the registry's entries since it had that number, each with the names that it sees."""
        return bodies_since(number, self._names, self._maps)

    def start_ids(self) -> None:
        """Gives nodes that are made from now on call ids, if this TensorFlow allows it.

        For a recording: a breakpoint asks for no call's own tape, and a hidden output costs a call 5 %.
        """
        if self._use is None and not self.limits and not self._gradients.limits():
            self._use = self._gradients.acquire(Use(exact=False))

    def stop_ids(self) -> tuple[str, ...]:
        """Nodes that are made from now on are TensorFlow's again.

        Returns:
          Names of attributes that somebody else replaced meanwhile and that were therefore left alone.
        """
        use, self._use = self._use, None
        return () if use is None else self._gradients.release(use)

    def start_lines(self, graph: bool = False) -> Lines:
        """Counts lines from now on, from zero; with `graph` also how often the graph runs each."""
        self.stop_lines()
        self.lines = Lines(self._names, self._maps, lambda: self._functions.innermost, graph and not self.limits)
        if not self.limits:
            self._line_patches.apply(self.lines.patches())
        self.lines.start()
        return self.lines

    def stop_lines(self) -> None:
        """Stops counting."""
        if self.lines is not None:
            self._line_patches.revert()
            self.lines.stop()

    def older_node(self, token: str, arguments: int) -> NodeFacts:
        """Describes a node that was made before `start`, from TensorFlow's registry. Some 20 us."""
        return self._nodes.older(token, arguments)

    def locate_node(self, node: NodeFacts) -> NodeFacts:
        """Adds graph, op and call site to an older node by walking the live graphs. Slow: for a background thread."""
        return self._nodes.locate(node) if self._names.construction else node

    def scope(self, token: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The names around the body of a node: its own (closure, defaults, `self`), and its module's."""
        kept = self._bodies.get(token)
        body = kept() if kept is not None else None
        if body is None:
            call = innermost_call(entered=False)
            unregistered = call.body if call is not None and call.token == token else None
            body = unwrap(unregistered or self._names.registry.get(token), self._names)
            if isinstance(body, types.FunctionType):
                if len(self._bodies) > _MOST_BODIES:  # every eager call has a token of its own
                    self._bodies.clear()
                self._bodies[token] = weakref.ref(body)
        return scope(body)

    def user_line(self, file: str, line: int) -> tuple[str, int]:
        """The user's file and line for a line that may be AutoGraph-generated."""
        return (self._maps.find(file, line) if is_generated(file) else None) or (file, line)

    def converted(self) -> dict[tuple[str, int], str]:
        """By file and first line, the names of functions that AutoGraph made code for graphs of while on."""
        return dict(self._maps.converted)

    def statements(self, code: types.CodeType) -> Statements:
        """What the lines of AutoGraph's code stand for."""
        if self._tables is None:
            from pyfunc_debug.interception.lines.line_maps import LineTables

            self._tables = LineTables(self._maps)
        self._maps.find(code.co_filename, code.co_firstlineno)  # one that was made before is read now
        source = self._maps.of(code.co_filename)
        if source is None:
            return NO_STATEMENTS
        from pyfunc_debug.interception.lines.joined import with_joined

        return with_joined(code, {line: one.line for line, one in self._tables.of(code).source_lines.items()}, source)

    def function_number(self, function: Any) -> int | None:
        """The number that `TraceFacts.object` gives a tf.function object; None if it was not traced while on."""
        return self._functions.retraces.number(function)

    def _wanted(self) -> list[Patch]:
        found = self._names
        call = registry_call(self._observer, self.failures, self._gradients.tokens, self._annotations)
        returns = Returns(found, self._observer)
        patches = [
            Patch(
                found.registry_type,
                "__call__",
                lambda original: call(returns.registry_call(original), returns.left_out_call(original)),
            ),
            Patch(found.eager_func_type, private.EAGER_CALL, returns.eager_call),
        ]
        if found.op_error_type is not None:
            patches.append(Patch(found.op_error_type, "__init__", self.failures.op_error_init))
        if self.limits:
            return patches
        eagerly = found.context_module.executing_eagerly
        if found.iterator_type is not None:
            patches += [
                Patch(found.iterator_type, private.CREATE_ITERATOR, self.inputs.create_iterator),
                Patch(found.iterator_type, private.NEXT_INTERNAL, self.inputs.next_internal),
            ]
        if found.save_module is not None:
            save = self._departures.save_and_return_nodes
            patches.append(Patch(found.save_module, "save_and_return_nodes", save))
        if found.builder_type is not None:
            patches.append(Patch(found.builder_type, "save", self._departures.builder_save))
        if found.session_type is not None:
            minimized = Minimized(found, self._observer, self.user_line)
            self._runs = SessionRuns(self._observer, self._finite, minimized)
            patches.append(Patch(found.session_type, "run", self._runs.session_run))
            if found.graph_gradients is not None:
                patches.append(Patch(found.graph_gradients, private.GRADIENTS_HELPER, minimized.helper))
        if found.freezing is not None:
            patches.append(Patch(found.freezing, private.FREEZE, self._departures.freeze))
        if found.data_service is not None:
            patches.append(Patch(found.data_service, private.REGISTER_DATASET, self._departures.register_dataset))
        if found.mapping is not None:
            mapped = MappedGradients(found, self._observer)
            patches.append(Patch(found.mapping, private.MAP_IN_GRAPH, mapped.mapped))
            patches += [Patch(one, "type", mapped.loop_gradient) for one in found.loop_gradients]
        if found.optional_type is not None:
            patches.append(Patch(found.optional_type, "get_value", self._finite.get_value))
        if found.tensor_type is not None:
            texts = Texts(found, self._observer, self.user_line)
            patches += [Patch(found.tensor_type, name, texts.text) for name in ("__str__", "__repr__")]
        cut = CutGradients(found, self._observer, self.user_line, self._finite)
        return [
            *patches,
            Patch(found.registry_type, "insert", self._nodes.insert),
            Patch(found.script_ops, private.INTERNAL_PY_FUNC, self._nodes.internal_py_func),
            Patch(
                found.script_ops,
                "py_func_common",
                eager_numpy_call(self._observer, eagerly, self._nodes.eager_numpy, self.failures, self._annotations),
            ),
            Patch(
                found.tracing_compilation, private.CREATE_CONCRETE_FUNCTION, self._functions.create_concrete_function
            ),
            Patch(found.function_cache_type, "lookup", self._functions.retraces.lookup),
            Patch(found.function_type, "__init__", self._functions.retraces.function_init),
            Patch(found.concrete_function_type, private.CALL_FLAT, self._functions.call_flat),
            Patch(found.context_type, "call_function", self._functions.call_function),
            Patch(found.autograph_api, private.CONVERT_ACTUAL, self._convert_actual),
            Patch(found.gradient_tape_type, "gradient", cut.gradient),
        ]

    def _convert_actual(self, original: Any) -> Any:
        """The replacement of `autograph.impl.api._convert_actual`: keeps the source map with the file it belongs to."""

        def _convert_actual(entity: Any, program_ctx: Any) -> Any:
            try:
                converted = original(entity, program_ctx)
            except BaseException as error:
                drop_our_frame(error)
                raise
            try:
                self._maps.note(entity, converted)
            except Exception as error:
                self._observer.trouble("reading a source map", error)
            return converted

        return _convert_actual
