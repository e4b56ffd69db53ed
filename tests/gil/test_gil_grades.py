"""The best grade that works is chosen, and says which it is and why; nothing is claimed where nothing was measured."""

from __future__ import annotations

import sys
import sysconfig
import threading
import time

import pytest
from gil_workloads import Turns, parallel

from pyfunc_debug import gil
from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.gil import native
from pyfunc_debug.gil.blame import Span
from pyfunc_debug.gil.canary import Canary, held_shares
from pyfunc_debug.gil.join import join
from pyfunc_debug.gil.native import AbsentError, NativeProbe
from pyfunc_debug.gil.samples import Samples, Tick
from tests.limits import HANG_S


def test_native_is_chosen_where_it_works(native):
    probe = gil.open_probe()
    probe.start()
    assert probe.grade == "native"
    assert probe.why.startswith("self-test: a wait of ")
    probe.stop()
    assert probe.report()["words"] == "measured"


@pytest.mark.parametrize(("platform", "word"), [("darwin", "this is darwin"), ("win32", "this is win32")])
def test_other_systems_say_that_native_is_absent(monkeypatch, platform, word):
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(AbsentError, match=word):
        native.load()
    probe = gil.open_probe(canary=False)
    probe.start()
    probe.stop()
    assert probe.grade == "bound"
    assert probe.why.count(word) == 2  # native, and the profiler's thread ids


def test_a_missing_extension_says_how_it_came(monkeypatch, native):
    monkeypatch.setitem(sys.modules, "pyfunc_debug.gil._native", None)
    monkeypatch.delattr("pyfunc_debug.gil._native", raising=False)
    with pytest.raises(AbsentError, match="was not built"):
        NativeProbe()


def test_a_free_threaded_python_has_no_gil(monkeypatch, calls):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    probe = gil.open_probe()
    probe.start()
    assert probe.grade == "none"
    assert probe.why == "this Python is free-threaded: there is no GIL"
    with parallel([calls.body("body", lambda: None)], 2) as run:
        run()
    probe.stop()
    assert probe.rows(calls.times, calls.name, final=True) == []
    assert probe.report()["canary"] is None


def test_the_extension_is_never_loaded_into_a_free_threaded_build(monkeypatch):
    """Loading it would switch the GIL on."""
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: 1 if name == "Py_GIL_DISABLED" else None)
    with pytest.raises(AbsentError, match="free-threaded build"):
        native.load()


def test_an_untried_python_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 15, 0))
    with pytest.raises(AbsentError, match=r"Python 3\.10 to 3\.13, this is 3\.15"):
        native.load()


def test_an_unknown_grade_is_named():
    with pytest.raises(BadOptionError, match="unknown GIL grade 'exact'"):
        gil.open_probe("exact")  # type: ignore[arg-type]


def test_native_steps_down_when_it_sees_none_of_the_calls(native, monkeypatch):
    class Blind(NativeProbe):
        def __init__(self) -> None:
            super().__init__(tensorflow=False)  # never sees an op

    monkeypatch.setattr("pyfunc_debug.gil.grade.NativeProbe", Blind)
    probe = gil.open_probe(canary=False)
    probe.start()
    assert probe.grade == "native"
    long_ago = time.monotonic_ns() - 3_600_000_000_000
    unseen = [(i, threading.get_ident(), long_ago + i * 1000, long_ago + i * 1000 + 500) for i in range(40)]
    assert probe.rows(unseen, lambda call: "body") == []
    assert probe.grade == "op-start"
    assert "of the first 32 calls it saw none" in probe.why
    probe.stop()


def test_a_stopped_probe_does_not_step_down(native, monkeypatch):
    monkeypatch.setattr("pyfunc_debug.gil.grade.NativeProbe", lambda: NativeProbe(tensorflow=False))  # sees no op
    probe = gil.open_probe()
    probe.start()
    probe.stop()
    long_ago = time.monotonic_ns() - 3_600_000_000_000
    unseen = [(i, threading.get_ident(), long_ago + i * 1000, long_ago + i * 1000 + 500) for i in range(40)]
    assert probe.rows(unseen, lambda call: "body") == []
    ours = ("pyfunc_debug canary", "pyfunc_debug gil windows")
    left = [thread.name for thread in threading.enumerate() if thread.name in ours]
    assert (probe.grade, left) == ("native", [])


def test_a_call_without_a_sample_is_not_measured():
    now = time.monotonic_ns()
    for grade in ("native", "op-start", "none"):
        assert join(Samples(grade, now), [(1, 1, now - 100, now - 50)]) == []


def test_the_bound_is_the_gap_on_the_thread():
    times = [(1, 7, 1000, 2000), (2, 7, 5000, 6000), (3, 8, 5500, 5600), (4, 7, 6000, 7000)]
    rows = dict(join(Samples("bound", 10_000), times))
    assert rows.keys() == {2, 4}, "the first call of a thread has no bound"
    assert (rows[2].grade, rows[2].wait_ns, rows[2].held_ns) == ("bound", 3000, None)
    assert rows[4].wait_ns == 0


def test_the_bound_is_never_below_the_wait(calls, no_switching, native):
    turns = Turns(3, 5000)
    with parallel([calls.body("body", turns)] * 4, 4) as run:
        run()
        calls.clear()
        probe = gil.open_probe("native")
        probe.start()
        for _ in range(3):
            turns.again()
            run()
        probe.stop()
    waits = dict(probe.rows(calls.times, calls.name, final=True))
    bounds = dict(join(Samples("bound", time.monotonic_ns()), calls.times))
    assert len(bounds) == 12 - len({thread for _, thread, _, _ in calls.times}), "the first call of a thread has none"
    assert all(bound.wait_ns >= waits[call].wait_ns for call, bound in bounds.items())
    assert sum(waits[call].wait_ns >= 5_000_000 for call in bounds) >= 5, "and there were waits"


class Clock:
    """The canary's clock, driven by the test: it sleeps until it is woken, and time passes only in `wake`."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.thread_time_ns = time.thread_time_ns
        self._pause_s = 0.0
        self._asleep, self._woken = threading.Semaphore(0), threading.Semaphore(0)

    def monotonic_ns(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self._pause_s = seconds
        self._asleep.release()
        assert self._woken.acquire(timeout=HANG_S)

    def wake(self, and_hold_ns: int) -> None:
        """Wakes the canary when it is due; the caller, who has the GIL, keeps it for some time."""
        assert self._asleep.acquire(timeout=HANG_S)
        self.now_ns += round(self._pause_s * 1e9)
        self._woken.release()
        self.now_ns += and_hold_ns


@pytest.mark.parametrize(("held_ns", "share"), [(5_000_000, 1.0), (0, 0.0)])
def test_the_canary_tells_a_taken_gil_from_a_free_one(no_switching, monkeypatch, held_ns, share):
    clock = Clock()
    monkeypatch.setattr("pyfunc_debug.gil.canary.time", clock)
    canary = Canary()
    canary.start()
    for _ in range(40):
        clock.wake(held_ns)
    assert clock._asleep.acquire(timeout=HANG_S)
    canary._stop.set()
    clock._woken.release()
    canary.stop()
    found = canary.contention()
    assert (found.share, found.samples) == (pytest.approx(share, abs=0.03), 41), "the last sample is the test's end"
    assert found.cost_ns > 0


def test_the_canary_says_nothing_with_few_samples():
    canary = Canary()
    canary.start()
    canary.stop()
    assert canary.contention() is None


def test_held_shares_come_from_late_wake_ups():
    late = [Tick(i * 10_000_000, i * 10_000_000 + 5_000_000, ((1, True), (2, False))) for i in range(50)]
    spans = [Span(0, 10**9, 1, 100), Span(0, 10**9, 2, 200)]
    assert held_shares(late, spans) == {100: (1.0, 50), 200: (0.0, 50)}
    assert held_shares(late[:29], spans) == {}, "fewer than 30 samples are not told"
    early = [Tick(i * 10_000_000, i * 10_000_000 + 50_000, ()) for i in range(50)]
    assert held_shares(early, spans)[100] == (0.0, 50)
