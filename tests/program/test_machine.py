"""The CPU time of other processes, by a clock that the test drives."""

from __future__ import annotations

import pytest

from pyfunc_debug.program import machine


@pytest.mark.parametrize(
    ("elapsed_s", "all_s", "own_s", "share"),
    [
        (10.0, 12.0, 4.0, 0.4),  # of two cores
        (10.0, 4.0, 4.0, 0.0),
        (10.0, 3.9, 4.0, 0.0),  # counted in hundredths
        (10.0, 40.0, 4.0, 1.0),
        (0.4, 0.5, 0.1, None),  # too short
    ],
)
def test_it_is_what_all_used_less_what_this_process_used(monkeypatch, elapsed_s, all_s, own_s, share):
    clock = {"now": 100.0, "all": 5000.0, "own": 30.0}
    monkeypatch.setattr(machine.time, "monotonic", lambda: clock["now"])
    monkeypatch.setattr(machine, "_all_s", lambda: clock["all"])
    monkeypatch.setattr(machine, "_own_s", lambda: clock["own"])
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 2)
    beside = machine.Beside()
    clock.update(now=100.0 + elapsed_s, all=5000.0 + all_s, own=30.0 + own_s)
    assert beside.share() == share


def test_what_linux_counts_is_read_and_nothing_is_known_elsewhere(monkeypatch):
    counted = machine._all_s()
    assert counted is not None
    assert counted >= machine._own_s()

    def nothing(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(machine, "open", nothing, raising=False)
    assert machine._all_s() is None
    assert machine.Beside().share() is None


def test_a_recording_keeps_it(tmp_path, monkeypatch):
    import pyfunc_debug as pfd

    monkeypatch.setattr(machine.Beside, "share", lambda self: 0.25)
    with pfd.record(tmp_path / "a.pfrec", gil=False) as recording:
        pass
    assert recording.meta["others"] == 0.25
    recording.close()
