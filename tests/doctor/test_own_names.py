"""A program that is called as a module which it imports is told so, also where TensorFlow was not imported yet."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.limits import HANG_S


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("statistics", "import statistics\nprint(statistics.mean([1.0]))\n", "the name of Python's module statistics"),
        ("glob", "import glob\nglob.glob('*')\n", "the name of Python's module glob"),
        ("lines", "import lines\nlines()\n", ""),
        ("rows", "import rows\nprint(rows.mean)\n", ""),  # nothing else has that name
    ],
)
def test_a_program_with_the_name_of_a_module_is_told_so(name, text, said, tmp_path):
    (tmp_path / f"{name}.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pyfunc_debug", "record", f"{name}.py"], cwd=tmp_path, capture_output=True, text=True,
        timeout=HANG_S,
    )  # fmt: skip
    told = " ".join(done.stderr.split())
    assert ("this file has the name of" in told) == bool(said), done.stderr
    assert said in told
    assert f"Call {name}.py by another name." in told or not said
    assert done.returncode == 1
