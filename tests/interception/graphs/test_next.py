"""What iterators take is added up alike by C and by Python, and `next` is as without us."""

from __future__ import annotations

import random
import runpy
import sys
import weakref
from types import SimpleNamespace

import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.interception.graphs import inputs

pytest.importorskip("pyfunc_debug.interception._next", reason="the C extension was not built")


def test_c_and_python_have_the_same_sums(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyfunc_debug.interception._next", None)
    in_python = runpy.run_path(inputs.__file__)["Asked"]
    assert (inputs.Asked.__module__, in_python.__module__) == ("pyfunc_debug.interception._next", "<run_path>")
    loop = SimpleNamespace()
    owner = type("Iterator", (), {})()
    one, other = (kind(loop, weakref.ref(owner)) for kind in (inputs.Asked, in_python))
    chosen, clock = random.Random(7), 10**12
    for _ in range(5):
        for _ in range(20):
            begin = clock + chosen.randrange(1000)
            clock = begin + chosen.randrange(1000)
            times = (begin, clock) if chosen.random() < 0.8 else (0, 0)
            one.note(*times)
            other.note(*times)
        sums = one.drain()
        assert sums == other.drain()
        assert sums[2] > 0
        assert (one.took, bool(one.noted), bool(other.noted)) == (other.took, False, False)


def test_next_is_timed_where_it_takes_an_element_and_not_where_it_makes_an_op():
    with pfd.record() as recording:
        data = iter(tf.data.Dataset.range(5))
        assert type(vars(type(data))["_next_internal"]) is inputs.Next
        found = [int(one) for one in data]

        @tf.function
        def in_a_graph(iterator):
            return next(iterator)

        again = iter(tf.data.Dataset.range(5))
        assert int(in_a_graph(again)) == 0
        with pytest.raises(StopIteration):
            next(data)
    assert found == [0, 1, 2, 3, 4]
    assert [loop.taken for loop in recording.loops()] == [5]
    assert type(vars(type(data))["_next_internal"]) is not inputs.Next
