"""Does interception see what it should on a TensorFlow that is not known? A tiny graph, forward and gradient, shows it.

Never in the user's program: it would move the numbers in tokens and in the names of graphs, and start TensorFlow's
devices. builds.py starts it in a process of its own, and reads the verdict from its last line.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from pyfunc_debug.errors import UnsupportedTensorFlowError
from pyfunc_debug.events import FunctionFacts, NodeFacts, Notice, RunFacts, TraceFacts
from pyfunc_debug.interception import builds, names
from pyfunc_debug.interception.bodies import SourceMaps
from pyfunc_debug.interception.builds import Verdict
from pyfunc_debug.interception.calls import registry_call
from pyfunc_debug.interception.failures import Failures
from pyfunc_debug.interception.finite import NotFinite
from pyfunc_debug.interception.gradients.hub import Gradients, Use
from pyfunc_debug.interception.graphs.functions import Functions
from pyfunc_debug.interception.graphs.library import Library
from pyfunc_debug.interception.graphs.nodes import Nodes
from pyfunc_debug.interception.names import TensorFlowNames, private
from pyfunc_debug.interception.patches import Patch, Patches


def main() -> None:
    """Tries out the installed TensorFlow and prints the verdict, with TensorFlow's version, as one line of JSON."""
    import tensorflow as tf

    try:
        found = names.load()
        builds.trust(found.folder)
        calls = _try_calls(found)
        verdict = Verdict(calls) if calls else Verdict("", _try_construction(found), _try_gradients())
    except UnsupportedTensorFlowError as error:
        verdict = Verdict(calls=str(error))
    print(json.dumps({"version": tf.__version__, **asdict(verdict)}), flush=True)


class _Listener:
    """Counts what is reported to it."""

    def __init__(self) -> None:
        self.calls = 0
        self.left = 0
        self.nodes: list[NodeFacts] = []
        self.traces: list[TraceFacts] = []
        self.runs: list[RunFacts] = []
        self.troubles: list[str] = []

    def enter(self, token: str, args: Any) -> int:
        self.calls += 1
        return self.calls

    def leave(self, ticket: Any, outputs: Any) -> Any:
        self.left += 1
        return outputs

    def fail(self, ticket: Any, error: BaseException) -> None: ...

    def node_made(self, node: NodeFacts) -> None:
        self.nodes.append(node)

    def node_gone(self, token: str) -> None: ...

    def keras_takes(self, node: NodeFacts) -> None: ...

    def taking(self) -> Any: ...

    def trace_began(self, trace: int, function: FunctionFacts) -> None: ...

    def trace_ended(self, trace: TraceFacts) -> None:
        self.traces.append(trace)

    def run_began(self, run: RunFacts) -> None:
        self.runs.append(run)

    def run_ended(self, run: RunFacts) -> None: ...

    def returned(self, ticket: Any, value: Any, declared: Any) -> None: ...

    def converted(self, returned: Any, outputs: Any) -> None: ...

    def rejected(self, ticket: Any, error: BaseException) -> None: ...

    def paired(self, ticket: Any, own: Any, used: Any, dy: Any, dx: Any) -> None: ...

    def gradient_notice(self, rule: Notice, token: str, ticket: Any, **facts: Any) -> None: ...

    def notice(self, rule: Notice, token: str | None, call: int | None, **facts: Any) -> None: ...

    def trouble(self, where: str, error: BaseException) -> None:
        self.troubles.append(f"{where}: {error}")


def _try_calls(found: TensorFlowNames) -> str:
    """Why calls cannot be seen here; an empty text when they can, with nothing but the run-time tier's patch."""
    listener = _Listener()
    return _run([Patch(found.registry_type, "__call__", registry_call(listener, Failures()))]) or (
        "" if listener.calls == listener.left == 2 else
        f"bodies are not called through script_ops.FuncRegistry.__call__ ({listener.calls} of 2 calls seen)"
    )  # fmt: skip


def _try_construction(found: TensorFlowNames) -> str:
    """Why nodes, graph traces and runs cannot be seen here; an empty text when they can."""
    if not found.construction:
        return "some private names moved"
    listener = _Listener()
    library, maps = Library(found), SourceMaps(found)
    functions = Functions(found, listener, library, maps, NotFinite(found, listener, lambda file, line: (file, line)))
    nodes = Nodes(found, listener, functions, library, maps)
    return _run(
        [
            Patch(found.registry_type, "__call__", registry_call(listener, Failures())),
            Patch(found.registry_type, "insert", nodes.insert),
            Patch(found.script_ops, private.INTERNAL_PY_FUNC, nodes.internal_py_func),
            Patch(found.tracing_compilation, private.CREATE_CONCRETE_FUNCTION, functions.create_concrete_function),
            Patch(found.concrete_function_type, private.CALL_FLAT, functions.call_flat),
            Patch(found.context_type, "call_function", functions.call_function),
        ]
    ) or _judge(listener)


def _run(wanted: list[Patch]) -> str:
    """Runs the program with these patches; what went wrong, in words."""
    patches = Patches()
    try:
        patches.apply(wanted)
        found = _program()
    except Exception as error:
        return f"its tiny program failed ({type(error).__name__}: {error})"
    finally:
        patches.revert()
    return "" if found == (9.0, 6.0) else f"its tiny program got {found[0]} and {found[1]} for 9 and 6"


def _program() -> tuple[float, float]:
    import tensorflow as tf

    def square(x: Any) -> Any:
        return x * x

    def graph(x: Any) -> Any:
        y = tf.py_function(square, [x], tf.float32)
        return y, tf.gradients(y, x)[0]

    with tf.device("CPU:0"):
        three = tf.constant(3.0)
        # Through the concrete function: TensorFlow warns about a tf.function that it sees retraced again and again.
        value, gradient = tf.function(graph, autograph=False).get_concrete_function(three)(three)
        return float(value), float(gradient)


def _judge(seen: _Listener) -> str:
    if seen.troubles:
        return seen.troubles[0]
    forward = [node for node in seen.nodes if node.body.name.endswith("_program.square")]
    if len(forward) != 1 or forward[0].name is None:
        return "nodes are not made by script_ops._internal_py_func"
    if not any(node.gradient_of == forward[0].token for node in seen.nodes):
        return "gradient nodes do not lead to their forward node"
    if not any(forward[0].token in trace.tokens for trace in seen.traces):
        return "graph traces are not made by _create_concrete_function"
    if not any(run.tokens and forward[0].token in run.tokens for run in seen.runs):
        return "runs do not pass through Context.call_function"
    return ""


def _try_gradients() -> str:
    """Why gradients cannot be exact here; an empty text when they can: a node called twice before its gradient."""
    gradients = Gradients()
    if gradients.missing:
        return ""  # the hub says so itself
    try:
        use = gradients.acquire(Use(exact=True))
        try:
            found = _two_calls()
        finally:
            gradients.release(use)
    except Exception as error:
        return f"exact gradients failed in a tiny program ({type(error).__name__}: {error})"
    if found != 30.0 or gradients.tapes.kept:
        return f"exact gradients got {found} for 30 in a tiny program ({len(gradients.tapes.kept)} tapes left)"
    return ""


def _two_calls() -> float:
    """The derivative of x² + (2x)² at 3, both squares by one node: 30."""
    import tensorflow as tf

    def square(x: Any) -> Any:
        return x * x

    def graph(x: Any) -> Any:
        node = tf.function(lambda x: tf.py_function(square, [x], tf.float32), autograph=False).get_concrete_function(
            tf.TensorSpec([], tf.float32)
        )
        return tf.gradients(node(x) + node(x + x), x)[0]

    with tf.device("CPU:0"):
        return float(tf.function(graph, autograph=False)(tf.constant(3.0)))
