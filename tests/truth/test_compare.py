"""`compare` tells graph from eager, names what differs, and changes nothing: generated programs, each time others."""

from __future__ import annotations

import random

from tests.truth import comparisons


def test_generated_programs_are_told_apart_and_nothing_of_the_callers_changes():
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"python -m tests.truth.comparisons --programs 10 --seed {seed}")
    kinds, wrong = comparisons.check_all(10, seed)
    assert not wrong, "\n".join(wrong)
    assert kinds
