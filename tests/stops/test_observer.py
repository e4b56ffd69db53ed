"""What the observer of stops keeps of nodes, however many there are."""

from __future__ import annotations

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
