"""Kills recorded programs at random moments and counts what their recordings lost.

python -m tests.pfrec.kills --kills 30 --seed 1 [--sigterm]
"""

from __future__ import annotations

import argparse
import contextlib
import random
import tempfile
import textwrap
from pathlib import Path

from pyfunc_debug.api.recording import Recording
from tests.pfrec.test_last_moments import PROGRAM, run_to_death


def main() -> int:
    """The exit code is 0 when no call that had ended is missing, and each recording could be read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10_000))
    parser.add_argument("--sigterm", action="store_true", help="SIGTERM, which must be named, instead of SIGALRM")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    chance = random.Random(options.seed)
    ended = stored = missing = in_progress = named = 0
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "train.py"
        program.write_text(textwrap.dedent(PROGRAM))
        for number in range(options.kills):
            place = Path(folder) / str(number)
            place.mkdir()
            path, calls, _ = run_to_death(
                program, place, "term" if options.sigterm else "signal", 10 ** chance.uniform(-3, 0.5)
            )
            with contextlib.closing(Recording(str(path))) as recording:
                found = [call.id for call in recording.calls() if call.status == "ok"]
                named += recording.meta["death"]["signal"] == "SIGTERM"
                in_progress += len(recording.meta["death"]["running"])
            ended, stored = ended + calls, stored + len(found)
            missing += max(0, calls - len(found)) + (found != [*range(1, len(found) + 1)])
    print(f"{options.kills} kills: {ended:,} calls had ended, {stored:,} are stored, {missing:,} are missing")
    print(f"{in_progress:,} programs were killed in a call; the others between two")
    print(f"{named:,} recordings say that SIGTERM ended the program")
    return int(missing > 0 or named != options.sigterm * options.kills)


if __name__ == "__main__":
    raise SystemExit(main())
