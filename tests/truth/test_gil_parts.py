"""No impossible number: the parts of a call's time are never below 0, and sum to it, in whatever program.

More programs, and known holds compared with the clock: python -m tests.truth.gil_programs --programs 300
"""

from __future__ import annotations

import random

from tests.truth.gil_programs import breaches, generate, recorded

PROGRAMS = 40


def test_the_parts_of_every_call_sum_to_its_time_in_random_programs(tmp_path):
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}: python -m tests.truth.gil_programs --programs {PROGRAMS} --seed {seed}")
    measured = broken = 0
    for program in generate(seed, PROGRAMS):
        recording = recorded(program, str(tmp_path))
        assert breaches(program, recording) == []
        measured += sum(call.gil is not None for call in recording.calls())
        broken += recording.meta["gil"]["broken"]
        recording.close()
    assert measured > PROGRAMS, "programs without measured calls prove nothing"
    assert broken == 0, "nothing was lost, so all can be told"
