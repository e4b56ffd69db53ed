"""Recorders whose files cannot be written: what they lose, by reason. Calls begun must be stored or lost."""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import numpy as np

from pyfunc_debug.api.recording import Recording
from pyfunc_debug.recorder import Budget, Recorder
from pyfunc_debug.values import Policies
from tests.limits import HANG_S
from tests.recorder.test_recorder import call, node

ROOT = Path(__file__).parents[2]


class _Small(Budget):
    queue_calls = 100


def run(rounds: int, seed: int, folder: Path) -> tuple[Counter[str], list[str]]:
    """Injects so many faults.

    Returns:
      Calls begun and stored, and lost by reason; and what went wrong.
    """
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for number in range(rounds):
        chance = random.Random(f"{seed} {number}")
        fault = [_lock, _budget, _deleted, _disk][number % 4]
        place = folder / str(number)
        place.mkdir()
        begun, stored, lost = fault(place, chance)
        counts += Counter({fault.__name__[1:]: 1, "begun": begun, "stored": stored}) + Counter(
            {f"lost: {why}": count for why, count in lost.items()}
        )
        if begun != stored + sum(lost.values()):
            wrong.append(f"round {number} of seed {seed} ({fault.__name__}): {begun} != {stored} + {lost}")
    return counts, wrong


def _recorder(place: Path, budget: Budget) -> Recorder:
    recorder = Recorder(str(place / "a.pfrec"), Policies("summary"), budget, {"pid": os.getpid()})
    recorder.node_made(node("graph"))
    return recorder


def _calls(recorder: Recorder, count: int, chance: random.Random) -> int:
    for _ in range(count):
        call(recorder, "graph", np.arange(3.0), error=ValueError("x") if chance.random() < 0.01 else None)
    return count


def _closed(recorder: Recorder, begun: int) -> tuple[int, int, dict[str, int]]:
    recorder.close({})
    with contextlib.closing(Recording(recorder.path)) as recording:
        return begun, recording.reader.counts()["call"], recording.meta["dropped"]["reasons"]["calls"]


def _lock(place: Path, chance: random.Random) -> tuple[int, int, dict[str, int]]:
    recorder, heard = _recorder(place, _Small(64_000_000)), threading.Event()
    recorder._worker.say = lambda text: heard.set()
    begun = _calls(recorder, chance.randrange(1, 50), chance)
    while not recorder.flush(HANG_S):
        pass
    with contextlib.closing(sqlite3.connect(recorder.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        begun += _calls(recorder, 1, chance)
        heard.wait(HANG_S)
        begun += _calls(recorder, chance.randrange(0, 400), chance)
        other.execute("ROLLBACK")
    while not recorder.flush(HANG_S):
        pass
    return _closed(recorder, begun + _calls(recorder, chance.randrange(0, 50), chance))


def _budget(place: Path, chance: random.Random) -> tuple[int, int, dict[str, int]]:
    recorder = _recorder(place, Budget(1_000_000))
    begun = 0
    for _ in range(chance.randrange(20, 60)):
        begun += _calls(recorder, chance.randrange(1, 1000), chance)
        recorder.flush(HANG_S)
    found = _closed(recorder, begun)
    assert os.path.getsize(recorder.path) <= 1_000_000
    return found


def _deleted(place: Path, chance: random.Random) -> tuple[int, int, dict[str, int]]:
    recorder = _recorder(place, Budget(64_000_000))
    recorder._worker.say = lambda text: None
    stored = _calls(recorder, chance.randrange(1, 50), chance)
    while not recorder.flush(HANG_S):
        pass
    os.unlink(recorder.path)
    while not recorder.flush(HANG_S):
        pass
    begun = stored + _calls(recorder, chance.randrange(0, 300), chance)
    recorder.close({})
    return begun, stored, recorder._rows.allowance.losses.report()["reasons"]["calls"]


def _disk(place: Path, chance: random.Random) -> tuple[int, int, dict[str, int]]:
    """RLIMIT_FSIZE, in a process of its own."""
    command = [sys.executable, "-m", "tests.faults.disk", str(place), "--limit"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANG_S)
    found = json.loads(done.stdout)
    return found["begun"], found["stored"], found["dropped"]["reasons"]["calls"]
