"""The pytest plugin, in a pytest of its own: what failing tests say, what is kept, and that nothing happens unasked."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pyfunc_debug import open as open_recording
from pyfunc_debug.pytest_plugin.hooks import _file_name
from tests import forked
from tests.limits import HANG_S

SUBJECT = """
import unittest
import pytest
import tensorflow as tf
import pyfunc_debug as pfd

def augment(x):
    if x[0] < 0:
        raise ValueError("negative pixel")
    return x * 2

def ratio(x):
    return x / x

@tf.function
def step(x):
    return tf.py_function(augment, [x], tf.float32)

def test_passes():
    step(tf.constant([1.0, 2.0]))

def test_fails():
    step(tf.constant([-1.0, 2.0]))

class TestOld(unittest.TestCase):
    def test_unit(self):
        step(tf.constant([-3.0]))

@pytest.mark.pyfunc_debug(values="full")
def test_asserts(pyfunc_recording):
    with tf.GradientTape() as tape:
        x = tf.Variable([1.0])
        y = step(x)
    tape.gradient(y, x)
    pyfunc_recording.calls("augment").ok().times(1).finite().gradients_ok()
    pyfunc_recording.calls("nothing").times(0)
    pyfunc_recording.max_traces("step", 2).no_findings("nan-born")
    assert pyfunc_recording.nodes()

def test_call_failed(pyfunc_recording):
    with pytest.raises(tf.errors.InvalidArgumentError):
        step(tf.constant([-5.0]))
    pyfunc_recording.calls("augment").failed(ValueError)
    pyfunc_recording.calls("augment").ok()

def test_not_called(pyfunc_recording):
    pyfunc_recording.calls("augment").ok()

def test_traced(pyfunc_recording):
    for n in range(3):
        step(tf.zeros([n + 4]))
    pyfunc_recording.max_traces("step", 2)

@pytest.mark.pyfunc_debug(fail_on="nan-*", values="summary")
def test_nan():
    tf.py_function(ratio, [tf.constant([0.0])], tf.float32)

@pytest.fixture
def broken():
    return step(tf.constant([-1.0]))

def test_setup(broken):
    pass

def test_own():
    with pfd.record() as recording:
        step(tf.constant([1.0]))
    assert len(list(recording.calls())) == 1
    assert False

@pytest.mark.xfail
def test_expected():
    step(tf.constant([-1.0]))
"""


def run(folder: Path, *arguments: str, stdin: str = "", fresh: bool = False) -> subprocess.CompletedProcess[str]:
    """pytest with no plugin but ours and xdist; this test may itself run in a worker of xdist's."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    plugins = ["-p", "no:cacheprovider", "-p", "xdist", "-p", "pyfunc_debug.pytest_plugin"]
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = ["-m", "pytest", "-q", "--color=no", *plugins, *arguments]
    if fresh:
        return subprocess.run(
            [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=HANG_S
        )
    return forked.run(*command, cwd=folder, env=environment, input=stdin)  # fmt: skip


@pytest.fixture(scope="module")
def subject(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("subject")
    (folder / "test_it.py").write_text(SUBJECT)
    return folder


@pytest.fixture(scope="module")
def told(subject) -> dict[str, str]:
    """What a worker of xdist's reports of each test that failed."""
    worker = f"popen//python={shlex.join(forked.python())}"
    done = run(
        subject,
        "-n",
        "0",
        "--dist",
        "load",
        "--tx",
        worker,
        "--pyfunc-debug",
        "--tb=short",
        "--show-capture=no",
        "test_it.py",
    )
    assert "7 failed, 2 passed, 1 xfailed, 1 error" in done.stdout, done.stdout + done.stderr
    parts = re.split(r"(?m)^_+ (?:ERROR at setup of )?([\w.]+) _+$", done.stdout)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.mark.parametrize("name", ["test_fails", "TestOld.test_unit", "test_setup"])
def test_a_failing_test_shows_the_body_its_inputs_and_the_original_exception(subject, told, name):
    text = told[name]
    assert 'in augment\n    raise ValueError("negative pixel")\nE   ValueError: negative pixel\n' in text
    ours = text.rpartition("- pyfunc_debug -")[2]
    assert "of augment (py test_it.py:7)" in ours
    assert re.search(r"in  x +float32\[\d\] ", ours)
    assert "execnet" not in ours
    assert re.search(r"call site when the graph was traced\n    test_it.py:\d+ ", ours)
    assert "gateway_base" not in ours
    assert re.search(r"(?m)^  augment  py test_it.py:7 +1 +1 ", ours)
    kept = subject / re.search(r"recording: (\S+)", ours)[1]
    assert [call.failure.type for call in open_recording(kept).calls(status="error")] == ["ValueError"]


def test_only_recordings_of_tests_that_failed_are_kept(subject, told):
    names = {"fails", "call_failed", "not_called", "traced", "nan", "setup", "own"}
    kept = {f"test_it.test_{name}.pfrec" for name in names} | {"test_it.TestOld.test_unit.pfrec", ".gitignore"}
    assert set(os.listdir(subject / ".pyfunc_debug")) == kept


def test_assertions_of_the_fixture_say_what_is_wrong(told):
    assert "E   AssertionError: 1 of 1 calls of augment failed\nE     #1 ValueError" in told["test_call_failed"]
    assert "E       test_it.py:9: ValueError: negative pixel" in told["test_call_failed"]
    assert "E   AssertionError: augment was not called: no node matches 'augment'" in told["test_not_called"]
    assert "E   AssertionError: step was traced 3x, at most 2x is wanted\n" in told["test_traced"]
    assert "`x`: shape (5,), was (4,)" in told["test_traced"]
    assert "recorded.py" not in "".join(told.values())


def test_a_finding_fails_a_test(told):
    assert "\nwarning: test_it.py:12: ratio returned NaN from finite inputs in 1 call" in told["test_nan"]


def test_a_test_may_record_by_itself(told):
    assert "assert False" in told["test_own"]
    assert "The test began a recording of its own: this one ended there." in told["test_own"]


def test_pdb_lands_in_the_body(subject):
    done = run(
        subject, "-n", "0", "--pyfunc-debug", "--pdb", "test_it.py::test_fails", stdin="p x.numpy().tolist()\nq\n"
    )
    assert '-> raise ValueError("negative pixel")\n(Pdb) [-1.0, 2.0]\n' in done.stdout


def test_nothing_is_imported_nor_done_unasked(tmp_path):
    (tmp_path / "test_off.py").write_text(
        "import sys\n"
        "def test_off(pytestconfig):\n"
        "    ours = {name for name in sys.modules if name.startswith('pyfunc_debug')}\n"
        "    noted = {'pyfunc_debug.program', 'pyfunc_debug.program.file_lines'}  # where the program began\n"
        "    assert ours == {'pyfunc_debug', 'pyfunc_debug.pytest_plugin'} | noted\n"
        "    assert not {'tensorflow', 'numpy'} & set(sys.modules)\n"
    )
    done = run(tmp_path, "-n", "0", "--strict-markers", "test_off.py", fresh=True)
    assert "1 passed" in done.stdout, done.stdout
    assert not (tmp_path / ".pyfunc_debug").exists()
    done = run(tmp_path, "-n", "0", "--pyfunc-fail-on=nan-brn", "test_off.py")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert done.stderr.startswith("ERROR: --pyfunc-fail-on: the doctor has no rule 'nan-brn'. There are: nan-born")


def test_names_of_kept_files_suit_a_shell():
    assert _file_name("tests/unit/test_a.py::TestB::test_c") == "tests.unit.test_a.TestB.test_c.pfrec"
    one, other = _file_name("test_a.py::test[a/b 1]"), _file_name("test_a.py::test[a b/1]")
    assert one != other
    assert re.fullmatch(r"test_a\.test-a\.b-1-[0-9a-f]{8}\.pfrec", one)
    assert len(_file_name(f"test_a.py::test_{'x' * 300}")) < 150


def test_the_entry_point_is_the_plugin():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\npyfunc_debug = "pyfunc_debug.pytest_plugin"\n' in text
