"""Tickets and held values: the same with and without the C extension; with it, nothing for the garbage collector."""

from __future__ import annotations

import gc
import importlib.util
import sys

import numpy as np
import pytest

from pyfunc_debug.events import MANY_RUNS, TOO_MANY, LiveRuns, RunFacts
from pyfunc_debug.recorder import hot, ticket
from pyfunc_debug.values import capture

EXTENSIONS = ("pyfunc_debug.recorder._hot", "pyfunc_debug.values._statistics")


def anew(module, name, plain, monkeypatch):
    """A class of a module as it is with the extensions, or without them."""
    for extension in () if plain else EXTENSIONS:
        monkeypatch.setitem(sys.modules, extension, None)
    spec = importlib.util.spec_from_file_location("anew", module.__file__)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return getattr(found, name)


@pytest.mark.parametrize("plain", [True, False])
def test_a_ticket_begins_empty_and_keeps_what_it_is_given(monkeypatch, plain):
    one = anew(ticket, "Ticket", plain, monkeypatch)()
    assert (one.room, one.values_ns, one.end_ns) == (0, 0, 0)
    assert (one.inputs, one.outputs, one.failure, one.pair) == (None, None, None, None)
    one.start_ns, one.thread, one.ident, one.policy, one.token = 2**62, 2**31, 2**47, -1, "pyfunc_3"
    one.runs = runs = [object()]
    assert (one.start_ns, one.thread, one.ident, one.policy, one.token) == (2**62, 2**31, 2**47, -1, "pyfunc_3")
    assert one.runs is runs
    assert gc.is_tracked(one) is not plain
    with pytest.raises(AttributeError):
        one.unknown = 1


@pytest.mark.parametrize("plain", [True, False])
def test_a_held_value_is_what_it_was_made_of(monkeypatch, plain):
    kind = anew(capture, "Held", plain, monkeypatch)
    thing = np.ones(3)
    one = kind(thing, nbytes=24)
    assert one.thing is thing
    assert (one.dtype, one.shape, one.note, one.nbytes) == (None, None, "", 24)
    one = kind(None, np.dtype("i4"), (2, 3), "dropped")
    assert (one.thing, one.dtype, one.shape, one.note, one.nbytes) == (None, np.dtype("i4"), (2, 3), "dropped", 0)
    assert gc.is_tracked(one) is not plain
    with pytest.raises(TypeError):
        kind()


def test_what_they_hold_is_released():
    thing = np.ones(3)
    before = sys.getrefcount(thing)
    held = [capture.Held(thing, thing, thing, "") for _ in range(5)]
    one = ticket.Ticket()
    one.inputs = one.outputs = one.runs = one.pair = one.failure = one.recorder = one.token = thing
    assert sys.getrefcount(thing) == before + 22
    one.inputs = None
    del held, one
    assert sys.getrefcount(thing) == before


def test_the_extensions_are_built_where_the_tests_run():
    assert (ticket.Ticket.__module__, hot.HotPath.__module__, capture.Held.__module__) == (
        *EXTENSIONS[:1] * 2,
        EXTENSIONS[1],
    )


def test_calls_share_the_list_of_runs_until_one_begins_or_ends():
    live = LiveRuns()
    first, second = (RunFacts(number, "forward", "f", None, None, None, 1, 0) for number in (1, 2))
    assert live.now() == []
    live.begin(first)
    assert live.now() == [first]
    assert live.now() is live.now()
    live.begin(second)
    assert live.now() == [first, second]
    live.end(first)
    assert live.now() == [second]
    live.end(second)
    live.end(second)
    assert live.now() == []


def test_of_very_many_runs_none_is_listed():
    live = LiveRuns()
    for number in range(MANY_RUNS + 1):
        live.begin(RunFacts(number, "forward", "f", None, None, None, 1, 0))
    assert live.now() is TOO_MANY
    live.end(RunFacts(0, "forward", "f", None, None, None, 1, 0))
    assert len(live.now()) == MANY_RUNS
