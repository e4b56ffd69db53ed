"""The one seed of all that tests draw: the suite does the same each time it runs.

`PYFUNC_DEBUG_TEST_SEED=NUMBER` in the environment gives another one. What a fixed seed would hide is looked for by
`python -m tests.truth.NAME`, which takes a new seed each time.
"""

from __future__ import annotations

import os
import random
import sys


def suite_seed() -> int:
    """The seed of this run."""
    return int(os.environ.get("PYFUNC_DEBUG_TEST_SEED", "21"))


def begin() -> None:
    """Seeds Python's and NumPy's generators, which bodies in tests draw from. TensorFlow's seed is part of programs:
    those that are about seeds set it."""
    random.seed(suite_seed())
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(suite_seed() % 2**32)
