"""Offsets of clocks: the truth of simulated machines lies inside what is said, and nothing is said without grounds."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

import pyfunc_debug as pfd
from pyfunc_debug.analysis.clocks import MOST_DRIFT, Clocks, ProcessClock
from tests.doctor.recordings import written
from tests.report import recordings
from tests.report.test_processes import overview

MS = 1_000_000
STEP = ("step", "/home/u/train.py", 7, 1)


class Machine:
    """A clock that was started some time ago, and runs too fast or too slow by up to 500 ppm, changing every second."""

    def __init__(self, chance: random.Random, seconds: int) -> None:
        rates = [1 + chance.uniform(-MOST_DRIFT, MOST_DRIFT) / 2 for _ in range(seconds)]
        self._times = np.arange(seconds + 1) * 1e9
        self._clock = chance.randrange(10**14) + np.concatenate([[0], np.cumsum(rates) * 1e9])

    def at(self, true_ns: float) -> int:
        return int(np.interp(true_ns, self._times, self._clock))


def simulated(seed: int, steps: int = 40, seconds: int = 60) -> tuple[list[Machine], list[ProcessClock]]:
    """Three machines whose runs wait for one another somewhere inside, with delays and pauses as chance has them."""
    chance = random.Random(seed)
    machines = [Machine(chance, seconds + 1) for _ in range(3)]
    runs: list[list[tuple[int, int]]] = [[], [], []]
    now = [chance.uniform(0, 3e9) for _ in machines]
    for _ in range(steps):
        begins = [one + chance.expovariate(1 / 5e6) + (chance.random() < 0.1) * 1e9 for one in now]
        met = max(begins)
        now = [met + chance.expovariate(1 / 3e6) for _ in machines]
        for own, machine, begin, end in zip(runs, machines, begins, now, strict=True):
            own.append((machine.at(begin), machine.at(end)))
    cut = chance.randrange(steps // 2, steps)  # the last machine was killed in a run
    runs[2] = [*runs[2][:cut], (runs[2][cut][0], -1)]
    return machines, [
        ProcessClock(
            f"boot-{number}", True, f"host-{number}", (machine.at(0), machine.at(seconds * 1e9)),
            np.zeros((0, 3), np.int64), {STEP: (3, np.array(own, np.int64))},
        )
        for number, (machine, own) in enumerate(zip(machines, runs, strict=True))
    ]  # fmt: skip


def test_the_truth_is_within_what_is_said_and_that_is_as_narrow_as_the_runs_allow():
    for seed in range(60):
        check(*simulated(seed))


def check(machines: list[Machine], processes: list[ProcessClock]) -> None:
    clocks = Clocks(processes)
    for number in (1, 2):
        for true_ns in np.linspace(0, 60e9, 25):
            here = machines[number].at(true_ns)
            found = clocks.offset(number, here)
            truth = here - machines[0].at(true_ns)
            assert abs(found.ns - truth) <= found.error_ns + 2  # ns that rounding took
        runs = processes[number].steps[STEP][1]
        mine = processes[0].steps[STEP][1][: len(runs)]
        whole = (runs[:, 1] - runs[:, 0] + mine[:, 1] - mine[:, 0])[runs[:, 1] > 0]
        best = int(whole.argmin())
        assert clocks.offset(number, int(runs[best, 0])).error_ns <= whole[best] / 2 * 1.02 + 1e4
    assert len(clocks.remarks()) == 2


def test_runs_that_cannot_have_waited_for_one_another_say_nothing():
    _, (first, second, third) = simulated(3)
    shifted = ProcessClock(**{**second.__dict__, "steps": {STEP: (3, second.steps[STEP][1][::-1].copy())}})
    other = ProcessClock(**{**second.__dict__, "steps": {STEP: (2, second.steps[STEP][1])}})
    alone = ProcessClock(**{**second.__dict__, "steps": {}})
    for process, why in ((shifted, "contradicts itself"), (other, "no graph run"), (alone, "no graph run")):
        clocks = Clocks([first, process, third])
        assert clocks.offset(1, process.span[0]) is None
        assert why in clocks.remarks()[0]


def job(folder, hosts, boots=None, dropped=0, ordinal=1):
    """Recordings of two processes with five runs each that wait for one another."""
    paths = []
    for number, (host, lead_ms) in enumerate(hosts.items()):
        begins = [(lead_ms + 100 * one + 3 * number) * MS for one in range(1, 6)]
        end_ns, boot = (lead_ms + 1000) * MS, boots[number] if boots else host
        meta = {
            "host": host, "role": f"worker-{number}", "process": {"boot": boot}, "end_ns": end_ns,
            "clock": {"monotonic_ns": lead_ms * MS, "wall_ns": 10**18},
            "anchors": [[lead_ms * MS, 10**18, 100], [end_ns, 10**18 + (1000 - 2500 * number) * MS, 100]],
            "dropped": {"runs": dropped},
        }  # fmt: skip
        trace = {
            "id": 1, "function": 1, "object": 1, "ordinal": ordinal, "name": "step", "signature": "()", "reason": "[]",
            "thread": 1, "start_ns": lead_ms * MS, "duration_ns": MS,
        }  # fmt: skip
        runs = [
            {"id": one, "trace": 1, "function": 1, "kind": "forward", "name": "step", "thread": 1, "start_ns": begin,
             "duration_ns": 10 * MS}
            for one, begin in enumerate(begins)
        ]  # fmt: skip
        paths.append(written(
            folder / f"{number}.pfrec", meta=meta,
            function=[{"id": 1, "name": "step", "kind": "tf.function", "file": "/a.py", "line": 1, "origin": "user"}],
            trace=[trace], notice=[{"rule": "collective", "facts": '{"trace": 1, "group": 2}'}], run=runs,
        ))  # fmt: skip
    return paths


def test_a_folder_of_two_machines_says_how_well_their_clocks_are_known_and_draws_by_it(tmp_path):
    paths = job(tmp_path, {"ada": 1000, "bob": 500_000})
    told, jump = pfd.open([str(tmp_path)]).ledger().remarks
    # A run of 10 ms on each side bounds the offset to 10 ms either way; the ends lie 0.6 s away, at 1 ms a second.
    assert told == (
        "The times of bob are moved to ada's clock: right to 10.5 ms (at the recordings' ends; from 5 graph runs that "
        "waited for one another)"
    )
    assert jump == "The wall clock of bob was set back by 2.5 s during the recording"
    data = overview(paths)
    assert data["axis"]["starts"][1] - data["axis"]["starts"][0] == pytest.approx(3 * MS, abs=10.5 * MS)
    assert data["notes"] == [told, jump]


@pytest.mark.parametrize("reason", [{"dropped": 1}, {"ordinal": 2}], ids=["runs lost", "recorded from later on"])
def test_runs_of_which_some_are_missing_are_not_counted_off_against_one_another(tmp_path, reason):
    job(tmp_path, {"ada": 1000, "bob": 500_000}, **reason)
    told = pfd.open([str(tmp_path)]).ledger().remarks[0]
    assert told == (
        "How far the clocks of bob and ada are apart is not known: no graph run in both waited for the other"
    )


def test_processes_of_one_machine_share_its_clock_whatever_the_wall_clock_did(tmp_path):
    paths = job(tmp_path, {"ada": 1000, "ada.local": 1200}, boots=["boot", "boot"])
    recordings.change(paths[1], clock={"monotonic_ns": 1200 * MS, "wall_ns": 17 * 10**17})
    data = overview(paths)
    first, second = data["axis"]["starts"]
    assert second - first == 200 * MS
    assert not any("not known" in note for note in data["notes"])


def test_anchors_stay_few_and_go_on(monkeypatch):
    from pyfunc_debug.recorder import anchors

    now = iter(range(0, 10**15, 10**9))
    monkeypatch.setattr(anchors.time, "monotonic_ns", lambda: next(now))
    taken = anchors.Anchors()
    for _ in range(3000):
        if taken.due():
            taken.take()
    times = [one[0] for one in taken.taken]
    assert 64 <= len(times) <= 128
    assert all(early < late for early, late in pairwise(times))
    assert times[0] < 10**10
    assert times[-1] > 10**12
