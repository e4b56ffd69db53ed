"""A few of the random programs; `python -m tests.interception.random_programs` runs hundreds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_random_programs_do_as_without_us():
    command = [sys.executable, "-m", "tests.interception.random_programs", "--count=2", "--modes=4", "--seed=100"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:]
    assert "2 programs, 8 runs in 11 modes: 0 differ from stock" in done.stdout
