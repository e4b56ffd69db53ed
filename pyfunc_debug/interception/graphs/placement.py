"""Where nodes are put to run: in replicas, on another device or process, by XLA; functions that were to run eagerly.

TensorFlow pins each node to the process that makes it (`host_address_space`, script_ops.py), whatever device the graph
around it gets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from pyfunc_debug.events import FunctionFacts, Notice, Observer
from pyfunc_debug.interception.bodies import SourceMaps, find_body
from pyfunc_debug.interception.graphs.library import python_ops
from pyfunc_debug.interception.names import TensorFlowNames, private
from pyfunc_debug.interception.tokens import token_of
from pyfunc_debug.program.frames import is_generated, user_frames


class Placement:
    """Tells of nodes that are put where Python cannot follow, each once.

    Args:
      names: TensorFlow's.
      observer: Gets the notices.
      maps: Lines of generated files.
    """

    def __init__(self, names: TensorFlowNames, observer: Observer, maps: SourceMaps) -> None:
        self._observer = observer
        self._context = names.context_module
        self._names = names
        self._maps = maps
        self._told: set[object] = set()

    def made(self, token: str, op: Any) -> None:
        """Tells of a node that `strategy.run` makes in a graph, for one replica."""
        import tensorflow as tf

        if op is not None and tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context():
            strategy = tf.distribute.get_strategy()
            self._observer.notice(
                Notice.REPLICA, token, None, name=token, strategy=type(strategy).__name__, device=op.device,
                replicas=strategy.num_replicas_in_sync,
            )  # fmt: skip

    def traced(self, function: FunctionFacts, concrete: Any, tokens: Collection[str]) -> None:
        """Tells of nodes that XLA is to compile, or whose values are on other devices, and of functions of tf.data.

        These were not meant to be traced where run_functions_eagerly is on.
        """
        import tensorflow as tf

        if tokens and private.must_compile(concrete):  # reads the whole definition
            for _, op in python_ops(concrete.graph):
                self._compiled(op, function)
        if tokens:
            self._crossings(concrete.graph)
        if (
            function.kind == "tf.data"
            and not function.internal
            and tf.config.functions_run_eagerly()
            and not private.data_debug_mode()
        ):
            self._tell(
                (function.file, function.line), Notice.NOT_EAGER, None, function=function.name, file=function.file,
                line=function.line,
            )  # fmt: skip

    def _compiled(self, op: Any, function: FunctionFacts) -> None:
        """Tells of one node that XLA is to compile, with its body and the line that made it."""
        token = token_of(op)
        registered = self._names.registry.get(token)
        body = None if registered is None else find_body(registered, self._names, self._maps)
        frames = [] if op.traceback is None else user_frames(op.traceback)
        file, line = (frames[-1].file, frames[-1].line) if frames else (None, None)
        if file is not None and line is not None and is_generated(file):
            file, line = self._maps.find(file, line) or (file, line)
        name = None if body is None else body.name
        self._tell(
            token, Notice.COMPILED, token, name=token, function=function.name, file=file, line=line,
            kind="py_function" if op.type == "EagerPyFunc" else "numpy_function", body=name,
        )  # fmt: skip

    def ran(self, context: Any, function: FunctionFacts | None, tokens: Iterable[str]) -> None:
        """Tells of nodes whose function is about to run in another process."""
        device = context.device_name
        if not device or "/job:" not in device:
            return
        here = self._context.context().host_address_space()
        if not device.startswith(f"{here}/") and device != here:
            name = None if function is None else function.name
            for token in tokens:
                self._tell((token, device), Notice.REMOTE, token, name=token, function=name, device=device, here=here)

    def _crossings(self, graph: Any) -> None:
        """Tells of nodes with inputs from, or outputs to, ops for which the graph asks for another device."""
        import tensorflow as tf

        every = tf.config.list_logical_devices()
        if len(every) < 2:
            return
        here = {_device(f"/{one.name.removeprefix('/')}") for one in every}
        graphics = any(one.device_type == "GPU" for one in every)
        for _, op in python_ops(graph):
            own = _device(op.device) or ("" if graphics and op.type == "EagerPyFunc" else "CPU:0")
            others = [("input", position, _device(one.op.device)) for position, one in enumerate(op.inputs)]
            for position, one in enumerate(op.outputs):
                others += [("output", position, _device(user.device)) for user in one.consumers()]
            found = [one for one in dict.fromkeys(others) if one[2] in here - {own}]
            if found and own in here:
                token = token_of(op)
                self._tell(token, Notice.CROSSING, token, device=own, values=found)

    def _tell(self, key: object, notice: Notice, token: str | None, **facts: Any) -> None:
        if (notice, key) not in self._told:
            self._told.add((notice, key))
            self._observer.notice(notice, token, None, **facts)


def _device(name: str) -> str:
    """`GPU:0` of a device's name; empty where it names none: TensorFlow chooses one later."""
    return name.rpartition("device:")[2] if "device:" in name else ""
