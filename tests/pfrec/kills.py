"""Kills recorded programs at random moments and counts what their recordings lost: `python -m tests.faults kills`.

`python -m tests.faults beginnings` kills them while their recording begins, also while its file is made.
"""

from __future__ import annotations

import contextlib
import os
import random
import struct
import textwrap
import time
from collections import Counter
from pathlib import Path

from pyfunc_debug.api.recording import Recording
from pyfunc_debug.errors import PyfuncDebugError
from tests import forked
from tests.pfrec.test_last_moments import PROGRAM, run_to_death

_BEGINNING_S = 1.5


def run(kills: int, seed: int, folder: Path) -> list[str]:
    """Kills so many programs, every third by SIGTERM, which must be named; prints what became of their calls.

    Returns:
      What went wrong.
    """
    chance = random.Random(seed)
    ended = stored = inputs = in_progress = terms = 0
    wrong = []
    program = folder / "train.py"
    program.write_text(textwrap.dedent(PROGRAM))
    for number in range(kills):
        place = folder / str(number)
        place.mkdir()
        how = "term" if number % 3 == 2 else "signal"
        path, calls, _ = run_to_death(program, place, how, 10 ** chance.uniform(-3, 0.5))
        with contextlib.closing(Recording(str(path))) as recording:
            found = [call for call in recording.calls() if call.status == "ok"]
            death = recording.meta["death"]
        named = death["signal"] == "SIGTERM"
        in_progress += bool(death["running"])
        inputs += sum(bool(call.inputs) for call in found)
        terms += named
        if len(found) < calls or [call.id for call in found] != [*range(1, len(found) + 1)] or death["missing"]:
            wrong.append(f"kill {number} of seed {seed}: {calls:,} calls had ended, {len(found):,} are stored")
        if named != (how == "term"):
            wrong.append(f"kill {number} of seed {seed}: the signal is {death['signal']}")
        ended, stored = ended + calls, stored + len(found)
    print(f"{kills} kills, {terms} of them named as SIGTERM: {ended:,} calls had ended, {stored:,} are stored, "
          f"{inputs:,} of them with inputs; {in_progress} programs died in a call, the others between two")  # fmt: skip
    return wrong


def beginnings(kills: int, seed: int, folder: Path) -> list[str]:
    """Kills so many programs within 1.5 s after they called `pfd.record`: there is no file then, or a whole one.

    Returns:
      What went wrong.
    """
    chance = random.Random(seed)
    became: Counter[str] = Counter()
    ended = stored = 0
    wrong = []
    program = folder / "train.py"
    program.write_text(textwrap.dedent(PROGRAM))
    for number in range(kills):
        place = folder / str(number)
        place.mkdir()
        path, counter = place / "train.pfrec", place / "counter"
        counter.write_bytes(bytes(8))
        with open(os.devnull, "r+b") as null, contextlib.ExitStack() as stack:
            reading, writing = os.pipe()
            told = stack.enter_context(os.fdopen(reading, "rb"))
            killed = forked.Program(
                [program, "beginning", path, counter], stdin=null.fileno(), stdout=writing, stderr=null.fileno()
            )
            os.close(writing)
            told.readline()
            time.sleep(chance.uniform(0, _BEGINNING_S))
            killed.kill()
            killed.wait()
        calls = struct.unpack("<q", counter.read_bytes())[0]
        left = sorted({*os.listdir(place)} - {"counter"})
        if not path.exists():
            became[f"no file, {len(left)} parts" if left else "no file"] += 1
            if calls:
                wrong.append(f"kill {number} of seed {seed}: {calls:,} calls had ended, and there is no file: {left}")
            continue
        try:
            with contextlib.closing(Recording(str(path))) as recording:
                recording.ledger()
                found = sum(call.status == "ok" for call in recording.calls())
                became["a recording of calls" if found else "a recording without a call"] += 1
        except PyfuncDebugError as error:
            wrong.append(f"kill {number} of seed {seed}: {error}")
            continue
        if found < calls:
            wrong.append(f"kill {number} of seed {seed}: {calls:,} calls had ended, {found:,} are stored")
        ended, stored = ended + calls, stored + found
    print(f"{kills} kills in the first {_BEGINNING_S} s: "
          + ", ".join(f"{what} {count}" for what, count in sorted(became.items()))
          + f"; {ended:,} calls had ended, {stored:,} are stored")  # fmt: skip
    return wrong
