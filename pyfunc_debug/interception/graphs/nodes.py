"""Construction: every node is made by `script_ops._internal_py_func`, where it gets its identity.

Its token is taken from `FuncRegistry.insert`; op, graph and call site from the op that comes back. Nodes that were
made before recording began are described at their first call from the registry and the live graphs.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FrameType
from typing import Any, TypeVar

from pyfunc_debug.events import Body, FunctionFacts, NodeFacts, Observer
from pyfunc_debug.interception.bodies import SourceMaps, closure, find_body, input_names, unwrap, user_generator
from pyfunc_debug.interception.calls import drop_our_frame
from pyfunc_debug.interception.graphs import structures
from pyfunc_debug.interception.graphs.functions import FROM_GENERATOR_FACTS, Functions
from pyfunc_debug.interception.graphs.library import Library
from pyfunc_debug.interception.names import TensorFlowNames, private
from pyfunc_debug.interception.tokens import plain
from pyfunc_debug.interception.yields import Yields
from pyfunc_debug.program.frames import caller, is_tensorflow, user_frames
from pyfunc_debug.records import NodeKind

_T = TypeVar("_T")
_MOST_KEPT = 4096
EAGER = FunctionFacts("(eager)", "eager", None, None, internal=False)


class Nodes:
    """Makes NodeFacts, at construction or at a first call."""

    def __init__(
        self, names: TensorFlowNames, observer: Observer, functions: Functions, library: Library, maps: SourceMaps
    ) -> None:
        self._names = names
        self._observer = observer
        self._functions = functions
        self._library = library
        self._maps = maps
        self._making = threading.local()
        self.yields = Yields(observer)
        self._kept: dict[Any, Any] = {}  # what nodes have in common
        self._eager_numbers = iter(range(1, 1 << 62))

    # -- patches ------------------------------------------------------------------------------------------------------

    def insert(self, original: Any) -> Any:
        """The replacement of `FuncRegistry.insert`: reports the token of the node being made on this thread."""
        making = self._making

        def insert(registry: Any, func: Any) -> Any:
            token = original(registry, func)
            inserted = getattr(making, "inserted", None)
            if inserted is not None:
                making.inserted = None  # only the first: a body that runs eagerly may make nodes of its own
                inserted(token, func)
            return token

        return insert

    def internal_py_func(self, original: Any) -> Any:
        """The replacement of `script_ops._internal_py_func`."""
        making = self._making

        def _internal_py_func(
            func: Any, inp: Any, Tout: Any, stateful: Any = None, use_eager_py_func: bool = False,  # noqa: N803
            is_grad_func: bool = False, name: Any = None,
        ) -> Any:  # fmt: skip
            made = _Making(func, inp, Tout, _kind(use_eager_py_func, stateful), is_grad_func)
            eager = self._names.context_module.executing_eagerly()
            before = getattr(making, "inserted", None)

            def inserted(token: str, _registered: Any) -> None:
                made.token = token
                if eager:  # the body runs before the op comes back: the observer must know the node now
                    self._tell(self._eager_facts, made)

            making.inserted = inserted
            try:
                result = original(func, inp, Tout, stateful, use_eager_py_func, is_grad_func, name)
            except BaseException as error:
                if eager and made.token is not None:
                    self._observer.node_gone(made.token)
                drop_our_frame(error)
                raise
            finally:
                making.inserted = before
            if not eager:
                made.result = result
                self._tell(self._graph_facts, made)
            return result

        return _internal_py_func

    def eager_numpy(self, func: Any, inp: Any, Tout: Any, stateful: bool) -> str:  # noqa: N803
        """Tells of an eager numpy_function or py_func, which TensorFlow does not register.

        Returns:
          A token of ours, which cannot be one of TensorFlow's.
        """
        kind = _kind(False, stateful)
        if kind == "numpy_function" and sys._getframe(2).f_code.co_name == "py_func":
            kind = "py_func"
        made = _Making(func, inp, Tout, kind, False)
        made.token = f"eager_{next(self._eager_numbers)}"
        self._tell(self._eager_facts, made)
        return made.token

    # -- facts --------------------------------------------------------------------------------------------------------

    def _tell(self, describe: Callable[[_Making], NodeFacts | None], made: _Making) -> None:
        try:
            facts = describe(made)
            if facts is not None:
                self._observer.node_made(facts)
                if facts.body.internal and made.result is not None:
                    self._watch_elements(facts, unwrap(made.func, self._names))
                if made.result is not None and not made.is_grad:
                    self._functions.placement.made(facts.token, self._op(made.result))
        except Exception as error:
            self._observer.trouble("describing a node", error)

    def _watch_elements(self, facts: NodeFacts, function: Any) -> None:
        """Lets what a generator yields be looked at, if the node takes its elements."""
        generator = user_generator(function)
        state = private.generator_state(closure(function)) if generator is not None and generator.asks else None
        if state is not None:
            self.yields.watch(facts.token, state, facts.tout)

    def _eager_facts(self, made: _Making) -> NodeFacts:
        body = find_body(made.func, self._names, self._maps)
        tout, paths, out_paths = self._paths(made, body)
        return NodeFacts(
            token=made.token or "", kind=made.kind, body=body, name=None, graph=None, function=EAGER, stack=(),
            tout=tout, paths=paths, out_paths=out_paths, internal=body.internal and _called_by_tensorflow(),
            gradient_of=gradient_of(made.func, self._names) if made.is_grad else None, site=caller(),
        )  # fmt: skip

    def _graph_facts(self, made: _Making) -> NodeFacts | None:
        op = self._op(made.result)
        if made.token is None:
            return None
        body = self._shared(find_body(made.func, self._names, self._maps))
        tout, paths, out_paths = map(self._shared, self._paths(made, body))
        graph = self._names.ops.get_default_graph() if op is None else op.graph
        entries = () if op is None else op.traceback
        stack = self._shared(self._maps.right_frames(user_frames(entries)))
        function = self._functions.holding(graph, stack)
        unused = function is not None and function.kind == "graph" and function.internal
        return NodeFacts(
            token=made.token, kind=_public_kind(made.kind, entries), body=body, name=None if op is None else op.name,
            graph=getattr(graph, "name", None), function=function, stack=stack, tout=tout, paths=paths,
            out_paths=out_paths, internal=unused or (body.internal and _called_by_tensorflow()),
            gradient_of=gradient_of(made.func, self._names) if made.is_grad else None,
            site=None,
        )  # fmt: skip

    def _shared(self, value: _T) -> _T:
        """One object for equal ones: a node's facts stay as long as we are on, and there may be thousands of nodes."""
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        kept: _T = self._kept.setdefault(value, value)
        return kept

    def _op(self, result: Any) -> Any:
        """The op behind what `_internal_py_func` returned; None where it returned nothing that leads to it."""
        if isinstance(result, self._names.ops.Operation):
            return result
        flat = self._names.nest.flatten(result, expand_composites=True)
        return next((one.op for one in flat if one is not None and hasattr(one, "op")), None)

    def _paths(self, made: _Making, body: Body) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        if made.is_grad:
            return (), (), ()  # named after the forward node's inputs and outputs
        try:
            tout, out_paths = structures.output_paths(made.tout, self._names)
            inputs = [] if isinstance(made.inp, Iterator) else list(made.inp)  # a generator can be read only once
        except (TypeError, ValueError):  # the user's mistake, which TensorFlow will report
            return (), (), ()
        paths = [
            path
            for name, value in zip(input_names(body.parameters, len(inputs)), inputs)
            # TensorFlow makes one tensor of a list.
            for path in (
                [name] if isinstance(value, (list, tuple)) else structures.leaf_paths(name, value, self._names)
            )
        ]
        return tuple(tout), tuple(paths), tuple(out_paths)

    def older(self, token: str, arguments: int) -> NodeFacts:
        """Describes a node made before recording began, at its first call, which may be the program's last.

        In a program with many graphs that is the body at first, and all else comes in `locate`.
        """
        facts = self._registered(token, arguments)
        return self._located(facts, self._library.locate_at_once(token)) if self._names.construction else facts

    def _registered(self, token: str, arguments: int) -> NodeFacts:
        registered = self._names.registry.get(token)
        is_eager_func = isinstance(registered, self._names.eager_func_type)
        if registered is None:  # a restored node: TensorFlow is about to say that it finds no function
            body = Body(f"{token} (its function is not in this process)", None, None, (), internal=False)
        else:
            body = find_body(registered, self._names, self._maps)
        tout: tuple[str, ...] = ()
        forward = None
        if is_eager_func:
            tout = tuple(getattr(dtype, "name", str(dtype)) for dtype in private.output_dtypes(registered))
            forward = gradient_of(registered, self._names) if private.is_gradient(registered) else None
        return NodeFacts(
            token=token, kind="py_function" if is_eager_func else "numpy_function", body=body, name=None, graph=None,
            function=FROM_GENERATOR_FACTS if body.elements else None, stack=(), tout=tout,
            paths=() if forward else tuple(input_names(body.parameters, arguments)),
            out_paths=() if forward else _outs(len(tout)),
            internal=body.internal, gradient_of=forward, site=None,
        )  # fmt: skip

    def locate(self, facts: NodeFacts) -> NodeFacts:
        """The same node with its op, graph and call site, found among the live graphs. Slow: not on a hot path."""
        return self._located(facts, self._library.locate(facts.token))

    def _located(self, facts: NodeFacts, op: Any) -> NodeFacts:
        if op is None:
            return facts
        kind: NodeKind = "py_func_stateless" if op.type == "PyFuncStateless" else facts.kind
        kind = _public_kind(kind, op.traceback)
        stack = user_frames(op.traceback)
        declared = tuple(dtype.name for dtype in op.get_attr("Tout"))
        if facts.tout and len(declared) == len(facts.tout) + 1:
            declared = declared[:-1]  # the call id of a node made while exact gradients were on
        return replace(
            facts, kind=kind, name=op.name, graph=getattr(op.graph, "name", None),
            function=facts.function or self._functions.holding(op.graph, stack), stack=stack, tout=declared,
            out_paths=facts.out_paths or _outs(len(declared)),
        )  # fmt: skip


class _Making:
    """A node while TensorFlow makes it."""

    __slots__ = ("func", "inp", "is_grad", "kind", "result", "token", "tout")

    def __init__(self, func: Any, inp: Any, tout: Any, kind: NodeKind, is_grad: bool) -> None:
        self.func = func
        self.inp = inp
        self.tout = tout
        self.kind = kind
        self.is_grad = is_grad
        self.token: str | None = None
        self.result: Any = None


def _kind(eager: bool, stateful: Any) -> NodeKind:
    if eager:
        return "py_function"
    return "numpy_function" if stateful else "py_func_stateless"


def _public_kind(kind: NodeKind, stack: Any) -> NodeKind:
    """tf.numpy_function and a stateful tf.compat.v1.py_func make the very same op: the stack shows which was called."""
    if kind == "numpy_function" and any(
        entry.name == "py_func" and os.path.basename(entry.filename) == "script_ops.py" for entry in stack
    ):
        return "py_func"
    return kind


_PLUMBING = tuple(
    os.path.join("tensorflow", "python", *path)
    for path in (("ops", "script_ops.py"), ("util", ""), ("autograph", ""), ("framework", ""), ("eager", ""))
)


def _called_by_tensorflow() -> bool:
    """Whether TensorFlow or Keras make the node, and not the user with a body of TensorFlow's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file != __file__ and not any(part in file for part in _PLUMBING):
            return is_tensorflow(file)
        frame = frame.f_back
    return True


def _outs(count: int) -> tuple[str, ...]:
    return ("out",) if count == 1 else tuple(f"out[{index}]" for index in range(count))


def gradient_of(func: Any, names: TensorFlowNames) -> str | None:
    """The forward node's token, from the closure of TensorFlow's `eagerly_executed_grad` (script_ops.py)."""
    function = unwrap(func, names)
    if not hasattr(function, "__closure__"):
        return None
    token = closure(function).get("token")
    return None if token is None else plain(token)
