"""A program under coverage.py: what is stopped, stepped through and aborted is measured, and so is all that follows."""

from __future__ import annotations

import json
import os

import pytest

from tests import forked

pytest.importorskip("coverage")

PROGRAM = """
import sys
import tensorflow as tf, pyfunc_debug as pfd

def stepped(x):
    y = x * 2
    z = helper(y)
    return z

def helper(v):
    w = sorted([v], key=lambda one: -one)
    return w[0]

def own(x):
    breakpoint()
    y = helper(x)
    return y

def call(body):
    result = tf.py_function(body, [1.0], tf.float32)
    after = result + 1
    return after

def aborted(body):
    try:
        call(body)
    except tf.errors.OpError as error:
        kind = type(error.pyfunc_exception).__name__
        return kind

before = sys.gettrace()

def during(*lines, run, body):
    with pfd.answers(*lines) as dialogue:
        found = run(body)
    assert not dialogue.left, str(dialogue)
    assert sys.gettrace() is before
    return found

one = pfd.break_on("stepped")
during("n", "s", "s", "n", "c", run=call, body=stepped)
during("c", run=call, body=stepped)
during("n", "s", "n", "q", run=aborted, body=stepped)
one.remove()
two = pfd.break_on("stepped", when="after")
during("q", run=aborted, body=stepped)
three = pfd.break_on("program.py:12")
during("p w", "n", "n", "c", "c", run=call, body=stepped)
during("q", run=aborted, body=stepped)
two.remove()
three.remove()
with pfd.record(gil=False):
    during("n", "s", "c", run=call, body=own)
    during("n", "n", "n", run=call, body=own)
    during("n", "q", run=aborted, body=own)
call(stepped)
print("measured to the end")
"""


@pytest.mark.parametrize("core", ["ctrace", "pytrace"])
def test_no_line_is_lost_around_a_stop(tmp_path, core):
    """Coverage's tracer in C keeps a stack of files, which a call or a return that it misses puts out of step."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "COVERAGE_CORE": core, "TF_CPP_MIN_LOG_LEVEL": "3"}

    def run(*arguments):
        return forked.run("-m", "coverage", *arguments, cwd=tmp_path, env=environment)

    done = run("run", str(program))
    assert "measured to the end" in done.stdout, done.stderr
    done = run("json", "-q", "-o", "found.json", f"--include={program}")
    assert done.returncode == 0, done.stderr + done.stdout
    (file,) = json.loads((tmp_path / "found.json").read_text())["files"].values()
    assert file["missing_lines"] == []
