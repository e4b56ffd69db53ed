"""Does interception see what it should on this TensorFlow? A tiny graph, forward and gradient, tells.

It runs with every patch applied to a private observer and puts everything back before the real recording begins. It
draws no random numbers and leaves nothing in TensorFlow's registry; only the numbers in op tokens move on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyfunc_debug.errors import UnsupportedTensorFlowError
from pyfunc_debug.events import NodeFacts, RunFacts, TraceFacts
from pyfunc_debug.interception.bodies import SourceMaps
from pyfunc_debug.interception.calls import registry_call
from pyfunc_debug.interception.failures import Failures
from pyfunc_debug.interception.graphs.functions import Functions
from pyfunc_debug.interception.graphs.library import Library
from pyfunc_debug.interception.graphs.nodes import Nodes
from pyfunc_debug.interception.names import TensorFlowNames
from pyfunc_debug.interception.outside import executing_eagerly, outside
from pyfunc_debug.interception.patches import Patch, Patches


@dataclass(frozen=True)
class SelfTest:
    """Which tier works; `why` names the first thing that did not."""

    construction: bool
    why: str


_PASSED: list[SelfTest] = []
"""The result, once it passed: one TensorFlow a process, one test."""


class _Listener:
    """Counts what it is told."""

    def __init__(self) -> None:
        self.calls = 0
        self.returned = 0
        self.nodes: list[NodeFacts] = []
        self.traces: list[TraceFacts] = []
        self.runs: list[RunFacts] = []
        self.troubles: list[str] = []

    def enter(self, token: str, args: Any) -> None:
        self.calls += 1

    def leave(self, ticket: Any, outputs: Any) -> Any:
        self.returned += 1
        return outputs

    def fail(self, ticket: Any, error: BaseException) -> None: ...

    def node_made(self, node: NodeFacts) -> None:
        self.nodes.append(node)

    def trace_ended(self, trace: TraceFacts) -> None:
        self.traces.append(trace)

    def run_began(self, run: RunFacts) -> None:
        self.runs.append(run)

    def run_ended(self, run: RunFacts) -> None: ...

    def paired(self, ticket: Any, own: Any, used: Any, dy: Any, dx: Any) -> None: ...

    def gradient_notice(self, rule: str, token: str, ticket: Any, **facts: Any) -> None: ...

    def trouble(self, where: str, error: BaseException) -> None:
        self.troubles.append(f"{where}: {error}")


def run_self_test(names: TensorFlowNames) -> SelfTest:
    """Records a function with one differentiable node, forward and gradient.

    Raises:
      UnsupportedTensorFlowError: not even calls are seen, or a result is wrong.
    """
    if _PASSED:
        return _PASSED[0]
    if not outside(executing_eagerly):
        return SelfTest(names.construction, "" if names.construction else "some private names moved")
    listener = _Listener()
    patches = Patches()
    wanted = [Patch(names.registry_type, "__call__", registry_call(listener, Failures()))]
    if names.construction:
        library, maps = Library(names), SourceMaps(names)
        functions = Functions(names, listener, library, maps)
        nodes = Nodes(names, listener, functions, library, maps)
        wanted += [
            Patch(names.registry_type, "insert", nodes.insert),
            Patch(names.script_ops, "_internal_py_func", nodes.internal_py_func),
            Patch(names.tracing_compilation, "_create_concrete_function", functions.create_concrete_function),
            Patch(names.concrete_function_type, "_call_flat", functions.call_flat),
            Patch(names.context_type, "call_function", functions.call_function),
        ]
    patches.apply(wanted)
    try:
        value, gradient = outside(_program)
    except Exception as error:
        raise UnsupportedTensorFlowError(
            f"the self-test failed on TensorFlow {names.version} ({type(error).__name__}: {error}). Nothing was changed"
        ) from error
    finally:
        patches.revert()
    if (value, gradient) != (9.0, 6.0):
        raise UnsupportedTensorFlowError(
            f"the self-test on TensorFlow {names.version} got {value}, {gradient} for 9, 6. Nothing was changed"
        )
    if listener.calls < 2 or listener.returned < 2:  # more when other threads of the program run bodies meanwhile
        raise UnsupportedTensorFlowError(
            f"TensorFlow {names.version} does not call bodies through script_ops.FuncRegistry.__call__ "
            f"({listener.calls} of 2 calls seen). Nothing was changed"
        )
    if not names.construction:
        return SelfTest(False, "some private names moved")
    result = _judge(listener)
    if result.construction:
        _PASSED.append(result)
    return result


def _program() -> tuple[float, float]:
    import tensorflow as tf

    def square(x: Any) -> Any:
        return x * x

    def graph(x: Any) -> Any:
        y = tf.py_function(square, [x], tf.float32)
        return y, tf.gradients(y, x)[0]

    with tf.device("CPU:0"):
        three = tf.constant(3.0)
        # Through the concrete function: TensorFlow warns about a tf.function that it sees traced anew time and again.
        value, gradient = tf.function(graph, autograph=False).get_concrete_function(three)(three)
        return float(value), float(gradient)


def _judge(seen: _Listener) -> SelfTest:
    if seen.troubles:
        return SelfTest(False, seen.troubles[0])
    forward = [node for node in seen.nodes if node.body.name.endswith("_program.square")]
    if len(forward) != 1 or forward[0].name is None:
        return SelfTest(False, "nodes are not made by script_ops._internal_py_func")
    if not any(node.gradient_of == forward[0].token for node in seen.nodes):
        return SelfTest(False, "gradient nodes do not lead to their forward node")
    if not any(forward[0].token in trace.tokens for trace in seen.traces):
        return SelfTest(False, "graph traces are not made by _create_concrete_function")
    if not any(run.tokens and forward[0].token in run.tokens for run in seen.runs):
        return SelfTest(False, "runs do not pass through Context.call_function")
    return SelfTest(True, "")
