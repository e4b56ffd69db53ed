"""The gutter shows no number that is not true, and most that there are, in programs made from templates.

More of them, and by the shell command: python -m tests.truth.gutter_programs --programs 100
"""

from __future__ import annotations

import random

from tests.truth.gutter_programs import judge, programs, run_here

PROGRAMS = 10


def test_no_line_shows_a_false_number_in_generated_programs(tmp_path):
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}: python -m tests.truth.gutter_programs --programs {PROGRAMS} --seed {seed}")
    total, bad = 0, []
    for number, text in enumerate(programs(seed, PROGRAMS)):
        path = tmp_path / f"program{number}.py"
        path.write_text(text)
        lines, wrong = judge(text, run_here(path, tmp_path))
        total += lines
        bad += wrong
    assert [one for one in bad if one.startswith("FALSE ")] == []
    assert len(bad) < 0.2 * total, bad
