"""Runs the failing programs in other shapes: `python -m tests.doctor.reshaped SHAPE [...] [--only RE] [-j N]`."""

from __future__ import annotations

import argparse
import os
import re
from collections import Counter

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from tests.doctor.reshaped.engine import LESS, outcomes, tasks
from tests.doctor.reshaped.shapes import SHAPES
from tests.doctor.reshaped.silent import outcome, silent


def main() -> None:
    """Prints the programs of which less is told than of those that they were, and counts of each shape."""
    parser = argparse.ArgumentParser(prog="python -m tests.doctor.reshaped")
    parser.add_argument("shapes", nargs="+", choices=list(SHAPES))
    parser.add_argument("--only", default="", help="a regular expression for a program's name")
    parser.add_argument("--one-of", type=int, default=1, help="one of so many programs")
    parser.add_argument("--first", type=int, default=0, help="where the count of --one-of begins")
    parser.add_argument("--once", action="store_true", help="only look at what is told, and paste nothing")
    parser.add_argument("--silent", action="store_true", help="those that do not fail: the programs of the rules")
    parser.add_argument("-j", type=int, default=2, help="programs at once")
    options = parser.parse_args()
    for shape in options.shapes:
        every = silent(shape) if options.silent else tasks(shape)
        chosen = [one for one in every if re.search(options.only, one.name)][options.first :: options.one_of]
        counts: Counter[str] = Counter()
        for task, what in outcomes(chosen, options.j, not options.once, outcome if options.silent else None):
            counts[what.verdict] += 1
            if what.verdict in LESS:
                print(f"##### {shape}: {task.name}: {what.verdict} (expected {task.expected})")
                for file, text in task.files.items():
                    print(*(f"  {file}:{n:<3} {line}" for n, line in enumerate(text.split("\n"), 1)), sep="\n")
                print(f"  error: {what.error[:300]}")
                print(*(f"  >>> {told or '(nothing)'}" for told in what.told), sep="\n", flush=True)
        print(f"===== {shape}: {dict(counts)} of {len(chosen)}", flush=True)


main()
