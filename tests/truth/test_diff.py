"""`diff` says equal, and different, only of what is: generated pairs, each time with a new seed."""

from __future__ import annotations

import random

from tests.truth import diffs


def test_generated_pairs_are_told_apart_without_a_false_equal_or_different():
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"python -m tests.truth.diffs --pairs 12 --seed {seed}")
    found, wrong = diffs.check_all(12, seed)
    assert not wrong, "\n".join(wrong)
    assert sum(found.values()) == 12 * diffs.CALLS * len(diffs.POLICIES)
