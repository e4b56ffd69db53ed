"""The long form of the injected faults; each prints its seed, with which it does the same again.

python -m tests.faults files --count 400 [--seed N]
python -m tests.pfrec.kills --kills 30 [--sigterm] [--seed N]
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path

from tests.faults import files


def main() -> int:
    """The exit code is 0 when nothing went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["files"])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10_000))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory() as folder:
        counts, wrong = files.run(options.count, options.seed, Path(folder))
    longest = counts.pop("longest ms")
    print(f"{options.count} damaged files, {sum(counts.values()):,} questions: {counts['done']:,} answered, "
          f"{counts['refused']:,} refused in one line, {counts['net']:,} more by the last resort; "
          f"the longest file took {longest / 1000:.2g} s of CPU time")  # fmt: skip
    print("\n".join(wrong) or "nothing went wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
