"""Looking for graphs among a program's objects disturbs none of them."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np

from pyfunc_debug.interception import names
from pyfunc_debug.interception.graphs import library
from tests.limits import HANG_S


def test_a_tuple_that_another_thread_is_making_is_left_alone(tf, monkeypatch):
    """CPython's `tuple(...)` raises SystemError when anybody holds the tuple that it is making."""
    found = names.load()
    looked, made = threading.Event(), threading.Event()
    monkeypatch.setattr(library.time, "sleep", lambda seconds: (looked.set(), made.wait(HANG_S)))

    def look():
        library.live_graphs(found)
        looked.set()

    thread = threading.Thread(target=look)

    def items():
        for number in range(50):  # more than a tuple has room for at first: it is made larger while we look
            if number == 20:
                thread.start()
                assert looked.wait(HANG_S)
            yield number

    try:
        assert tuple(items()) == tuple(range(50))
    finally:
        made.set()
        thread.join()


def test_all_graphs_are_found(tf):
    concrete = tf.function(lambda x: x + 1).get_concrete_function(tf.TensorSpec([]))
    with tf.Graph().as_default() as graph:
        tf.constant(1)
    found = library.live_graphs(names.load())
    assert {id(graph), id(concrete.graph)} <= {id(one) for one in found}


def test_a_graph_that_is_half_made_or_half_collected_is_left_alone(tf):
    """TensorFlow crashes when the operations of the second are asked for."""
    half_made = tf.Graph.__new__(tf.Graph)
    seen: dict[str, set[int]] = {}

    class Holder:
        pass

    def look(_):
        seen["alive"] = {id(one) for one in gc.get_objects() if type(one) is tf.Graph}
        seen["found"] = {id(one) for one in library.live_graphs(names.load())}

    graph, holder = tf.Graph(), Holder()
    # The collector takes the graph apart first: it is older. The array, which is not the collector's, goes after it.
    holder.array, holder.graph, holder.itself, graph.holder = np.zeros(1), graph, holder, holder
    half_collected = id(graph)
    last = weakref.ref(holder.array, look)
    del graph, holder
    gc.collect()
    assert last() is None
    assert half_collected in seen["alive"]
    assert half_collected not in seen["found"]
    assert id(half_made) not in {id(one) for one in library.live_graphs(names.load())}
