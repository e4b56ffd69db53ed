"""The command line of all modules here: how many to generate, and from which seed.

    python -m tests.truth.NAME --programs 100 --seed 7

Without a seed each run takes another one and prints it first, so that a failure can be repeated. In the suite the
seed is the same each time (tests/seeds.py).
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from tests.seeds import suite_seed


def arguments(doc: str | None, what: str = "programs", count: int = 100, **more: int) -> argparse.Namespace:
    """What was typed. `seed` is printed.

    Args:
      doc: The module's docstring: the help.
      what: What is generated: the name of the option.
      count: How many by default.
      **more: Other options, each a number with its default.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {what: count, **more}.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default: {default}")
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(10**6), help="default: another one each time"
    )
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    return given


def seed_of_a_test(file: str, count: int, what: str = "programs") -> int:
    """The suite's seed, printed as the command that repeats what it does.

    Args:
      file: The generating module's `__file__`.
      count: How many the test generates.
      what: What is generated.
    """
    seed = suite_seed()
    print(f"python -m tests.truth.{Path(file).stem} --{what} {count} --seed {seed}")
    return seed
