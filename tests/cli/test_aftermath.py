"""A program that is killed leaves one whole file, and what it was doing is said: real processes, really killed."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time

import pytest

import pyfunc_debug as pfd
from tests.limits import HANG_S

pytestmark = pytest.mark.slow

ENDLESS = """
import time
import tensorflow as tf

def double(x):
    return 2 * x

print(tf.numpy_function(double, [tf.ones([2])], tf.float32))

@tf.function
def wait_until_ready(x):
    while True:
        open("traces", "a").close()
        time.sleep(0.02)

wait_until_ready(tf.ones([2]))
"""
COMMAND = (sys.executable, "-m", "pyfunc_debug", "record", "endless.py")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "endless.py").write_text(ENDLESS)
    return tmp_path


WRITES = """
import time
import tensorflow as tf

def shift(x):
    x += 1
    return x

for _ in range(3):
    tf.numpy_function(shift, [tf.zeros([2])], tf.float32)
while True:
    open("traces", "a").close()
    time.sleep(0.02)
"""


def wait_for(holds):
    until = time.monotonic() + HANG_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def found_in(path):
    with contextlib.closing(pfd.open(str(path))) as recording:
        return recording.findings()


def left(folder):
    return sorted(one.name for one in folder.glob("endless.pfrec*"))


@pytest.mark.parametrize(
    ("number", "ended"),
    [(signal.SIGTERM, "was ended by SIGTERM"), (signal.SIGKILL, "died")],
)
def test_a_killed_program_leaves_one_file_and_says_what_it_did(folder, number, ended):
    with subprocess.Popen(COMMAND, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        wait_for((folder / "traces").exists)
        program.send_signal(number)
        _, said = program.communicate(timeout=HANG_S)  # until nobody holds the pipe
    assert program.returncode == -number, "as ever"
    # The last finished call is in the file, or beside it: then a sentence says so behind this one.
    assert f" pyfunc-debug: the program {ended} while TensorFlow traced wait_until_ready (endless.py:10)" in " ".join(
        said.split()
    )
    *_, where = said.splitlines()
    assert where == "recorded in endless.pfrec"
    assert left(folder) == ["endless.pfrec"]
    recording = pfd.open(str(folder / "endless.pfrec"))
    assert len(list(recording.calls("double"))) == 1
    recording.close()


@pytest.mark.parametrize("quiet", [False, True])
def test_what_was_found_is_said_of_a_killed_program_too(folder, quiet):
    (folder / "writes.py").write_text(WRITES)
    asked = [*COMMAND[:-1], *["-q"] * quiet, "writes.py"]
    with subprocess.Popen(asked, cwd=folder, stderr=subprocess.PIPE, text=True) as program:
        wait_for((folder / "traces").exists)
        wait_for(lambda: found_in(folder / "writes.pfrec"))  # the file has all of its calls
        program.terminate()
        _, said = program.communicate(timeout=HANG_S)
    if quiet:
        assert said.endswith("the program was ended by SIGTERM outside any call\nrecorded in writes.pfrec\n")
        return
    assert "the program was ended by SIGTERM outside any call\n\nwarning: writes.py:6: likely: shift writes" in said
    assert said.endswith("  -> Put above writes.py:6:\n    x = x.copy()\n\nrecorded in writes.pfrec\n")


def test_a_closed_terminal_leaves_one_file_too(folder):
    program, terminal = pty.fork()
    if not program:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup pytest` ignores it, and a child inherits that
        os.chdir(folder)
        os.execv(COMMAND[0], COMMAND)
    wait_for((folder / "traces").exists)
    os.close(terminal)
    _, status = os.waitpid(program, 0)
    assert os.WTERMSIG(status) == signal.SIGHUP
    wait_for(lambda: left(folder) == ["endless.pfrec"])
    recording = pfd.open(str(folder / "endless.pfrec"))
    assert "was ended by SIGHUP (its terminal was closed) while TensorFlow traced wait_until_ready" in " ".join(
        str(recording.ledger()).split()
    )
    recording.close()


def test_the_program_has_no_child_and_one_that_ends_well_is_told_once(folder):
    (folder / "children.py").write_text(
        "import os\ntry:\n    os.wait()\nexcept ChildProcessError:\n    print('none')\n"
    )
    done = subprocess.run(
        [*COMMAND[:-1], "children.py"], cwd=folder, capture_output=True, text=True, timeout=HANG_S, check=True
    )
    assert done.stdout == "none\n"
    assert done.stderr.splitlines()[-1] == "recorded in children.pfrec"
