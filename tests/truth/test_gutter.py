"""The gutter shows no number that is not true, and most that there are, in programs made from templates.

More of them, and by the shell command: python -m tests.truth.gutter_programs --programs 100
"""

from __future__ import annotations

from tests.truth import gutter_programs
from tests.truth.command import seed_of_a_test
from tests.truth.gutter_programs import judge, programs, run_here

PROGRAMS = 10


def test_no_line_shows_a_false_number_in_generated_programs(tmp_path):
    total, bad = 0, []
    seed = seed_of_a_test(gutter_programs.__file__, PROGRAMS)
    for number, text in enumerate(programs(seed, PROGRAMS)):
        path = tmp_path / f"program{number}.py"
        path.write_text(text)
        lines, wrong = judge(text, run_here(path, tmp_path))
        total += lines
        bad += wrong
    assert [one for one in bad if one.startswith("FALSE ")] == []
    assert len(bad) < 0.2 * total, bad
