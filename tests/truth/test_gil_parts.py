"""No impossible number: the parts of a call's time are never below 0, and sum to it, in whatever program.

More programs, and known holds compared with the clock: python -m tests.truth.gil_programs --programs 300
"""

from __future__ import annotations

from tests.truth import gil_programs
from tests.truth.command import seed_of_a_test
from tests.truth.gil_programs import breaches, generate, recorded

PROGRAMS = 24
"""With the suite's seed: all modes, kinds, steps and numbers of parallel calls are among them."""


def test_the_parts_of_every_call_sum_to_its_time_in_random_programs(tmp_path):
    measured = broken = 0
    for program in generate(seed_of_a_test(gil_programs.__file__, PROGRAMS), PROGRAMS):
        recording = recorded(program, str(tmp_path))
        assert breaches(program, recording) == []
        measured += sum(call.gil is not None for call in recording.calls())
        broken += recording.meta["gil"]["broken"]
        recording.close()
    assert measured > PROGRAMS, "programs without measured calls prove nothing"
    assert broken == 0, "nothing was lost, so all can be told"
