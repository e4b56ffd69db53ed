"""A few of the random programs; `python -m tests.interception.random_programs` runs hundreds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import forked


@pytest.mark.slow
def test_random_programs_do_as_without_us():
    command = ["-m", "tests.interception.random_programs", "--count=2", "--modes=4", "--seed=100"]
    done = forked.run(*command, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    assert "2 programs, 8 runs in 11 modes: 0 differ from stock" in done.stdout
