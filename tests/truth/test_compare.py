"""`compare` tells graph from eager, names what differs, and changes nothing: generated programs."""

from __future__ import annotations

from tests.truth import comparisons
from tests.truth.command import seed_of_a_test


def test_generated_programs_are_told_apart_and_nothing_of_the_callers_changes():
    kinds, wrong = comparisons.check_all(10, seed_of_a_test(comparisons.__file__, 10))
    assert not wrong, "\n".join(wrong)
    assert kinds
