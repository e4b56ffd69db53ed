"""`diff` says equal, and different, only of what is: generated pairs."""

from __future__ import annotations

from tests.truth import diffs
from tests.truth.command import seed_of_a_test


def test_generated_pairs_are_told_apart_without_a_false_equal_or_different():
    found, wrong = diffs.check_all(12, seed_of_a_test(diffs.__file__, 12, "pairs"))
    assert not wrong, "\n".join(wrong)
    assert sum(found.values()) == 12 * diffs.CALLS * len(diffs.POLICIES)
