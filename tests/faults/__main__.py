"""The long form of the injected faults; each prints its seed, with which it does the same again.

python -m tests.faults all [--count N] [--seed N]      everything below, but for the sanitizers
python -m tests.faults files --count 400 [--seed N]    damaged recordings in every command
python -m tests.faults fuzz --count 500                Hypothesis: damaged files, any content, any array against NumPy
python -m tests.faults kills --count 30 [--seed N]     programs killed at random moments, every third by SIGTERM
python -m tests.faults beginnings --count 200          the same in the first 1.5 s, also while the file is made
python -m tests.faults losses --count 40 [--seed N]    locks, a full disk, a used-up budget, a deleted file
python -m tests.faults sanitizers [-- PYTEST ARGUMENT ...]
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.faults import files, losses, sanitizers
from tests.pfrec import kills


def _files(count: int, seed: int, folder: Path) -> list[str]:
    counts, wrong = files.run(count, seed, folder)
    longest = counts.pop("longest ms")
    print(f"{count} damaged files, {sum(counts.values()):,} questions: {counts['done']:,} answered, "
          f"{counts['refused']:,} refused in one line, {counts['net']:,} more by the last resort; "
          f"the longest file took {longest / 1000:.2g} s of CPU time")  # fmt: skip
    return wrong


def _fuzz(count: int, seed: int, folder: Path) -> list[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "0",
        "-q",
        "-p",
        "_hypothesis_pytestplugin",  # which the suite goes without: it knows --hypothesis-seed
        "tests/faults/test_fuzz.py",
        f"--hypothesis-seed={seed}",
    ]
    environment = {**os.environ, "PYFUNC_DEBUG_FUZZ": str(count)}
    code = subprocess.run(command, cwd=losses.ROOT, env=environment).returncode
    print(f"Hypothesis: {count} damaged files, {count} files of any content and {count} arrays against NumPy")
    return ["Hypothesis found something: see above"] if code else []


def _losses(count: int, seed: int, folder: Path) -> list[str]:
    counts, wrong = losses.run(count, seed, folder)
    print(f"{count} faults while recording: " + ", ".join(f"{what} {number:,}" for what, number in counts.items()))
    return wrong


WHAT = {"files": _files, "fuzz": _fuzz, "kills": kills.run, "beginnings": kills.beginnings, "losses": _losses}


def main() -> int:
    """The exit code is 0 when nothing went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["all", *WHAT, "sanitizers"])
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10_000))
    parser.add_argument("arguments", nargs="*", help="for pytest, under the sanitizers")
    options = parser.parse_args()
    if options.what == "sanitizers":
        return sanitizers.run(options.arguments)
    print(f"seed {options.seed}", flush=True)
    wrong: list[str] = []
    for name in WHAT if options.what == "all" else [options.what]:
        with tempfile.TemporaryDirectory() as folder:
            wrong += WHAT[name](options.count, options.seed, Path(folder))
    print("\n".join(wrong) or "nothing went wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
