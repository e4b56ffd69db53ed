"""The way past Python of calls that sampling leaves out or nobody asks for: it takes no others, and does the same."""

from __future__ import annotations

from _thread import get_ident
from types import SimpleNamespace

import numpy as np
import pytest

from tests.recorder.test_recorder import finish, make, node  # noqa: F401 - `make` is a fixture

hot = pytest.importorskip("pyfunc_debug.recorder._hot", reason="the C extension was not built")
NS = 10**15
pytestmark = pytest.mark.parametrize("make", ["C"], indirect=True)


@pytest.fixture
def way(make):  # noqa: F811
    """A shortcut of a recorder that samples, past a full way that counts; its first four calls took very long."""
    recorder = make(values="summary")
    recorder._hot.first, recorder._hot.every = 4, 100
    recorder._worker._running = lambda batch: None  # else it may look while a test makes a call slow
    recorder.node_made(node("t"))
    way = SimpleNamespace(recorder=recorder, full=0, others=set(), profiled=False, calls={}, body=None, raised=[])

    def original(registry, token, device, args):
        return way.body(*args)

    def full(registry, token, device, args):
        way.full += 1
        ticket = recorder.enter(token, args)
        if way.full <= 4:
            ticket.start_ns -= NS
        return recorder.leave(ticket, original(registry, token, device, args))

    def raised(error, token, ticket, path):
        way.raised.append((error, token, ticket and ticket.call, path))
        if ticket is not None:
            recorder.fail(ticket, error)
        raise error

    way.shortcut = hot.Shortcut(full, original, way.others, lambda: way.profiled, way.calls, raised)
    way.path = recorder.enter, recorder.leave, recorder.fail
    way.shortcut.take(recorder._hot, way.path, ())
    way.call = type("Registry", (), {"__call__": way.shortcut})()

    def innermost():
        way.shortcut.show(way.calls)
        return way.calls[get_ident()]

    way.innermost = innermost
    way.body = lambda *args: args
    for _ in range(4):
        way.call("t", None, ())
    return way


def test_a_call_that_is_left_out_takes_the_shortcut_and_is_counted(way):
    seen = []
    way.body = lambda x: seen.append(way.innermost()) or x
    for _ in range(99):
        way.call("t", None, (1.5,))
    assert way.full == 4
    outer, token, args, ticket = seen[0]
    assert (outer, token, args, ticket.call, ticket.light) == (None, "t", (1.5,), 5, True)
    assert way.calls == {get_ident(): None}
    assert way.call("t", None, (1.5,)) == 1.5
    assert way.full == 5  # the hundredth after the first four
    recording = finish(way.recorder)
    assert recording.meta["dropped"]["reasons"]["calls"] == {"sampled": 99}
    assert [one.id for one in recording.calls()] == [1, 2, 3, 4, 104]


@pytest.mark.parametrize("why", ["other", "profiled", "unknown", "another", "nobody", "all", "unwanted"])
def test_every_other_call_goes_the_full_way(way, why):
    token = "t"
    if why == "other":
        way.others.add("t")
    elif why == "profiled":
        way.profiled = True
    elif why == "unknown":
        token = "new"
    elif why == "another":
        way.shortcut.take(object(), way.path, ())
    elif why == "nobody":
        way.shortcut.take(None, None, ())
    elif why == "all":
        way.recorder._hot.every = 0
    else:
        way.recorder._known["t"] = -1
        way.recorder._ask_again()
        way.body = lambda x: x
        way.recorder.enter = lambda token, args: None
        way.recorder.leave = lambda ticket, outputs: outputs
    before = way.recorder._hot.calls
    assert way.call(token, None, (1.5,)) in (1.5, (1.5,))
    assert way.full == 5
    assert way.recorder._hot.calls == before + (why != "unwanted")


def test_what_fails_is_nan_or_slow_on_the_shortcut_is_stored(way):
    failure = ValueError("x")

    def fail(x):
        raise failure

    for number in range(5, 60):
        way.body = lambda x: x
        if number == 20:
            way.body = fail
            with pytest.raises(ValueError, match="x") as caught:
                way.call("t", None, (1.0,))
            assert caught.value is failure
        elif number == 30:
            way.body = lambda x: np.array([x, np.nan], np.float32)
            way.call("t", None, (1.0,))
        elif number == 40:

            def late(x):
                way.innermost()[3].start_ns -= 2 * NS
                return x

            way.body = late
            way.call("t", None, (1.0,))
        else:
            way.call("t", None, (1.0,))
    assert way.full == 4
    assert way.raised == [(failure, "t", 20, way.path)]
    recording = finish(way.recorder)
    assert recording.reader.extra_calls() == {20: "failed", 30: "NaN", 40: "slow"}
    assert recording.meta["dropped"]["reasons"]["calls"] == {"sampled": 55 - 3}


def test_calls_inside_of_calls_are_each_in_progress(way):
    seen = []

    def inner(x):
        call = way.innermost()
        seen.append((call[2], call[0][2]))
        return x

    def outer(x):
        way.body = inner
        return way.call("t", None, (2.0,))

    way.body = outer
    assert way.call("t", None, (1.0,)) == 2.0
    assert seen == [((2.0,), (1.0,))]
    assert way.calls == {get_ident(): None}
    assert finish(way.recorder).meta["dropped"]["reasons"]["calls"] == {"sampled": 2}


def test_an_interrupt_goes_through(way):
    def stop(x):
        raise KeyboardInterrupt

    way.body = stop
    with pytest.raises(KeyboardInterrupt):
        way.call("t", None, (1.0,))
    way.shortcut.show(way.calls)
    assert way.calls == {}
    way.body = lambda x: x
    assert way.call("t", None, (1.0,)) == 1.0


def test_a_call_that_is_left_out_is_open_when_somebody_asks(way):
    seen = []

    def body(x):
        seen.append(dict(way.recorder._open))
        way.recorder._hot.gather(NS)
        seen.append(dict(way.recorder._open))
        seen.append(way.recorder.now()["open"])
        return x

    way.body = body
    way.call("t", None, (1.0,))
    assert seen == [{}, {}, 1]
    assert way.recorder.now()["open"] == 0
    assert way.recorder._hot.tallies["t"].left == 1


def test_a_call_that_goes_the_full_way_has_the_one_around_it_in_progress(way):
    seen = []

    def inner(x):
        seen.append(way.calls[get_ident()])
        return x

    def outer(x):
        way.body = inner
        assert way.calls == {}
        return way.call("another", None, (2.0,))

    way.body = outer
    assert way.call("t", None, (1.0,)) == 2.0
    assert [(fields[0], *fields[1:3], fields[3].call) for fields in seen] == [(None, "t", (1.0,), 5)]
    assert way.calls == {get_ident(): None}


def test_a_call_that_nobody_asks_for_takes_the_shortcut_and_is_in_progress(way):
    unwanted, seen = {"t"}, []
    way.shortcut.take(None, way.path, unwanted)
    way.body = lambda x: seen.append(way.calls[get_ident()]) or x
    assert way.call("t", None, (1.5,)) == 1.5
    assert (way.full, seen, way.calls) == (4, [(None, "t", (1.5,), None)], {get_ident(): None})
    failure = ValueError("x")

    def fail(x):
        raise failure

    way.body = fail
    with pytest.raises(ValueError, match="x") as caught:
        way.call("t", None, (1.0,))
    assert caught.value is failure
    assert way.raised == [(failure, "t", None, way.path)]
    assert way.calls == {get_ident(): None}


@pytest.mark.parametrize("why", ["other", "profiled", "wanted", "changed"])
def test_a_call_that_somebody_asks_for_goes_the_full_way(way, why):
    way.shortcut.take(None, way.path, {"t"})
    if why == "other":
        way.others.add("t")
    elif why == "profiled":
        way.profiled = True
    elif why == "changed":
        way.shortcut.take(None, way.path, set())
    way.body = lambda x: x
    assert way.call("another" if why == "wanted" else "t", None, (1.5,)) == 1.5
    assert way.full == 5
