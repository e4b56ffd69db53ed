"""Runs a matrix: `python -m tests.doctor.matrix NAME [--only RE] [-j N] [-v]`."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
from collections import Counter, defaultdict

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from tests.doctor.matrix.engine import BAD, FOLDER, OK, Outcome, Program, outcome, programs, warm


def main() -> None:
    """Prints a table of pieces and places, then each program that is not right, with what was said of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.doctor.matrix")
    parser.add_argument("name", choices=sorted(one.stem for one in FOLDER.glob("*.txt")))
    parser.add_argument("--only", default="", help="a regular expression for piece/place")
    parser.add_argument("-j", type=int, default=1, help="programs at once")
    parser.add_argument("-v", action="store_true", help="print those that are right, too")
    options = parser.parse_args()
    chosen = [one for one in programs(options.name) if re.search(options.only, f"{one.piece}/{one.place}")]
    warm()
    with multiprocessing.get_context("fork").Pool(options.j) as pool:
        found = []
        for program, what in zip(chosen, pool.imap(outcome, chosen)):
            found.append((program, what))
            if what.verdict in BAD or (options.v and what.verdict == OK):
                print(_told(program, what), flush=True)
    rows: dict[str, list[str]] = defaultdict(list)
    for program, what in found:
        rows[program.piece].append(what.verdict)
    print(*(" ".join([f"{piece:45}", *(f"{one:12}" for one in row)]).rstrip() for piece, row in rows.items()), sep="\n")
    print(dict(Counter(what.verdict for _, what in found)), f"of {len(found)}")


def _told(program: Program, what: Outcome) -> str:
    """A program, what was said of it in each round, and what became of it. What all of them begin with is left out."""
    lines = [f"##### {program.piece}/{program.place}: {what.verdict}: {what.difference[:300]}"]
    text = program.text.rstrip("\n").split("\n")
    lines += [f"{number:3} {line}" for number, line in enumerate(text, 1) if number > program.above]
    lines += [f"  >>> {told or '(nothing)'}" for told, _ in what.rounds]
    return "\n".join([*lines, ""])


main()
