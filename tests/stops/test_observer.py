"""What the observer of stops keeps of nodes, however many there are."""

from __future__ import annotations

import pyfunc_debug as pfd
from pyfunc_debug.interception.tokens import token_of
from pyfunc_debug.stops import Broker, Rules, StopObserver
from pyfunc_debug.stops.observer import _MOST_EAGER
from tests.recorder.test_recorder import node


class Counted(dict):
    """Counts how often all of it is looked at."""

    looks = 0

    def items(self):
        self.looks += 1
        return super().items()


def test_nodes_of_graphs_stay_known_and_eager_calls_only_the_newest_without_a_look_at_all_for_each():
    observer = StopObserver(Rules(), Broker(), None)
    observer._nodes = Counted()
    for number in range(_MOST_EAGER + 50):
        observer.node_made(node(f"graph {number}"))
        observer.node_made(node(f"eager {number}", site=("a.py", 1)))
    kept = sorted(observer._nodes)
    assert len(kept) == 2 * _MOST_EAGER + 50
    assert "graph 0" in kept
    assert not {"eager 0", "eager 49"} & set(kept)
    assert observer._nodes.looks == 0


def test_a_call_that_no_breakpoint_names_asks_nobody_wherever_its_graph_was_traced(tf, monkeypatch):
    asked = []
    enter = StopObserver.enter
    monkeypatch.setattr(StopObserver, "enter", lambda self, *args: asked.append(args[0]) or enter(self, *args))

    def body(x):
        return x * x

    def traced():
        function = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
        function(tf.constant(2.0))
        return function

    before = traced()
    with pfd.record(gil=False, values="none"):
        recorded = traced()
    rule = pfd.break_on("another")
    armed = traced()
    (mine, outputs), *others = [
        (token_of(one), len(one.outputs)) for function in (armed, before, recorded)
        for one in function.get_concrete_function(tf.constant(2.0)).graph.get_operations() if one.type == "EagerPyFunc"
    ]  # fmt: skip
    assert outputs == 1, "no call id"
    for function in (before, recorded, armed):
        for _ in range(3):
            assert float(function(tf.constant(3.0))) == 9.0
    ours = {mine, *(token for token, _ in others)}  # pipelines of other tests may still run
    assert sorted(one for one in asked if one in ours) == sorted(ours), "once for each node"
    with tf.GradientTape() as tape:
        x = tf.constant(3.0)
        tape.watch(x)
        y = recorded(x)
    assert float(tape.gradient(y, x)) == 6.0
    rule.remove()
