"""Importing the package is cheap: neither TensorFlow nor IPython comes with it, and nothing is patched."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from tests import forked

ROOT = Path(__file__).parents[1]
HEAVY = ("tensorflow", "keras", "IPython", "ipykernel", "ipywidgets", "anywidget", "pandas")


def loaded_by(statement: str) -> set[str]:
    program = f"import sys\n{statement}\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("statement", [
    "import pyfunc_debug",
    "import pyfunc_debug as pfd; pfd.record",
    "import pyfunc_debug as pfd; pfd.open",
    "import pyfunc_debug as pfd; pfd.record()",
    "import pyfunc_debug as pfd; recording = pfd.record().start(); recording.ledger(); recording.stop()",
    "import pyfunc_debug; dir(pyfunc_debug)",
])  # fmt: skip
def test_neither_tensorflow_nor_ipython_is_imported(statement):
    assert loaded_by(statement) == set()


def test_a_process_that_waits_for_tensorflow_loads_next_to_nothing(tmp_path):
    program = (
        "import os, sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "os.rmdir(os.getcwd())\n"  # and it needs no folder to stand in
        "before = {*sys.modules}\n"
        "from pyfunc_debug.job.waiter import wait\n"
        "wait()\n"
        "print(type(sys.meta_path[0]).__name__, *sorted({*sys.modules} - before - {'__future__'}))\n"
    )
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=tmp_path / "gone", capture_output=True, text=True,
        env={"PYFUNC_DEBUG": f"record:{tmp_path}/run/"}, check=False,
    )  # fmt: skip
    own = "pyfunc_debug pyfunc_debug.job pyfunc_debug.job.waiter pyfunc_debug.program pyfunc_debug.program.file_lines"
    assert done.stdout.split() == ["Waiter", *own.split()], done.stderr


RECORDED = """
import sys
import tensorflow as tf
import pyfunc_debug as pfd
def doctors():
    return [name for name in ("failures.causes", "rules.every") if f"pyfunc_debug.doctor.{name}" in sys.modules]
with pfd.record("a.pfrec", values="full") as recording:
    for number in range(3):
        tf.numpy_function(lambda x: x * 2, [float(number)], tf.float64)
print(doctors())
recording.findings()
print(doctors())
try:
    with pfd.record("b.pfrec"):
        tf.data.Dataset.range(3).map(lambda x: x.numpy())
except AttributeError:
    print(doctors())
"""


def test_what_explains_and_all_rules_are_imported_as_they_are_needed(tmp_path):
    (tmp_path / "program.py").write_text(RECORDED)
    done = forked.run("program.py", cwd=tmp_path)
    every = ["rules.every"]
    assert done.stdout.splitlines() == [str(one) for one in ([], every, ["failures.causes", *every])], done.stderr
    assert "pyfunc-debug: program.py:" in done.stderr


def test_every_public_name_is_there():
    import pyfunc_debug

    for name in pyfunc_debug.__all__:
        assert getattr(pyfunc_debug, name) is not None
    assert pyfunc_debug.__version__ == metadata.version("pyfunc-debug")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pyfunc_debug.nothing  # noqa: B018  # the access is the test


def test_tensorflow_that_is_waited_for_can_be_looked_up(tmp_path):
    program = (
        "import importlib.util, sys, pyfunc_debug as pfd\n"
        "plain = importlib.util.find_spec('tensorflow').loader.get_filename('tensorflow')\n"
        "recording = pfd.record(sys.argv[1], gil=False).start()\n"
        "print(importlib.util.find_spec('tensorflow').loader.get_filename('tensorflow') == plain)\n"
        "recording.stop()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "a.pfrec")], capture_output=True, text=True, check=False
    )
    assert done.stdout == "True\n", done.stderr
