"""Kills recorded programs at random moments and counts what their recordings lost: `python -m tests.faults kills`."""

from __future__ import annotations

import contextlib
import random
import textwrap
from pathlib import Path

from pyfunc_debug.api.recording import Recording
from tests.pfrec.test_last_moments import PROGRAM, run_to_death


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
