"""Looking for graphs among a program's objects disturbs none of them."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import pyfunc_debug as pfd
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


COLLECTS = """
import gc
import tensorflow as tf
from pyfunc_debug.interception import names
from pyfunc_debug.interception.graphs import library
found = names.load()
gc.disable()
made = [tf.data.Dataset.range(3) for _ in range(60)]  # the walk makes a dict for each of them
gc.set_threshold(gc.get_count()[0] + 30, 100, 100)
gc.enable()
library.live_graphs(found)
assert gc.isenabled()
gc.disable()
library.live_graphs(found)
print(gc.isenabled())
"""


def test_no_collection_starts_in_the_walk():
    """It crashed the process: the walk went on into memory that is no object."""
    ran = subprocess.run([sys.executable, "-c", COLLECTS], capture_output=True, text=True, timeout=HANG_S)
    assert (ran.returncode, ran.stdout) == (0, "False\n"), ran.stderr


def _doubling(tf):
    return tf.function(lambda x: tf.numpy_function(lambda y: y * 2, [x], tf.float32))


def test_nodes_of_functions_that_ran_are_found_without_a_search(tf, monkeypatch):
    inner = _doubling(tf)
    step = tf.function(lambda x: inner(x) + 1)
    step(tf.ones([2]))
    monkeypatch.setattr(library, "live_graphs", lambda found: pytest.fail("a search through all objects"))
    with pfd.record(gil=False) as recording:
        step(tf.ones([2]))
        inner(tf.ones([2]))
    nodes = recording.nodes()
    assert [(node.name, node.stack[-1].file) for node in nodes] == [("PyFunc", __file__)] * len(nodes)
    assert nodes


def test_a_search_rests_for_no_longer_than_it_works(tf, monkeypatch):
    """After each graph, it kept who asked waiting for 30 s where a process had 30,000."""

    class Clock:
        worked = rested = 0.0

        def thread_time(self):
            self.worked += 0.0001
            return self.worked

        def sleep(self, seconds):
            self.rested += seconds

    clock = Clock()
    data = tf.data.Dataset.range(1).map(lambda i: tf.numpy_function(lambda y: y * 2, [i], tf.int64))
    graphs = [tf.Graph() for _ in range(500)]
    monkeypatch.setattr(library, "time", clock)
    with pfd.record(gil=False) as recording:
        list(data)
    assert recording.nodes()[0].stack[-1].file == __file__
    assert 0 < clock.rested <= clock.worked
    assert len(graphs) * 0.0001 < clock.worked
