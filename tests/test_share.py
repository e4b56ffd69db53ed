"""The whole suite runs a share of the doctor's programs, and which they are stays the same."""

from __future__ import annotations

from tests.doctor import programs, test_failures, test_programs
from tests.share import ONE_OF, shared

CASES = [(f"name{number}", f"kind{number % 5}", number) for number in range(400)]


def kept(cases) -> list[str]:
    return [name for name, _, more in shared(cases) if not more]


def test_the_first_of_each_kind_and_a_share_of_the_others_are_run():
    found = kept(CASES)
    assert {name for name, _, _ in CASES[:5]} <= set(found)
    assert abs(len(found) - 5 - len(CASES) / ONE_OF) < 10


def test_a_program_that_comes_or_goes_changes_nothing_for_the_others():
    later = kept([*CASES, ("another", "kind0", None)])
    assert [name for name in later if name != "another"] == kept(CASES)
    assert set(kept(CASES[:200])) == {name for name, _, _ in CASES[:200]} & set(kept(CASES))


def test_each_rule_and_each_kind_of_failure_is_among_them():
    alone = kept((test_programs.name(case), case[0], case) for case in programs.TRIGGERS)
    assert {rule for rule, _, _ in programs.TRIGGERS} == {
        case[0] for case in programs.TRIGGERS if test_programs.name(case) in alone
    }  # fmt: skip
    every = list(test_failures.programs())
    run = set(kept(every))
    assert {rule for _, rule, _ in every} == {rule for name, rule, _ in every if name in run}
    assert len(run) < len(every) / 3
