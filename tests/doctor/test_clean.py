"""A healthy program hears nothing."""

from __future__ import annotations

import pytest

from tests.doctor import clean_more, clean_programs, clean_tasks
from tests.doctor.alone import alone, loaded
from tests.doctor.test_programs import findings
from tests.share import some


def test_there_are_more_than_a_hundred_of_them():
    assert clean_more.progress_counted_in_a_variable in clean_programs.PROGRAMS
    assert clean_tasks.slow_reads_in_parallel in clean_programs.PROGRAMS
    assert len(clean_programs.PROGRAMS) >= 110


@pytest.mark.parametrize("program", some(((one.__name__, one) for one in clean_programs.PROGRAMS), 4))
def test_nothing_is_found_in_a_healthy_program(program, tmp_path, monkeypatch):
    program = loaded(alone(program), program, tmp_path, monkeypatch)
    assert [(one.rule, one.message, one.line) for one in findings(program)] == []
