"""The gutter while coverage or debugpy is active: both keep working, or the recording says which lines are missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests import forked

PROGRAM = """
import os, sys, threading
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import json
BEFORE
import tensorflow as tf
import pyfunc_debug as pfd


def body(v):
    w = v + 1.0
    return w


def plain_helper(x):
    y = x * 2.0
    return y


@tf.function
def step(x):
    x = tf.autograph.experimental.do_not_convert(plain_helper)(x)
    return tf.ensure_shape(tf.numpy_function(body, [x], tf.float32), [])


def trace_function():
    return sys.gettrace(), threading._trace_hook


before = trace_function()
with pfd.record(sys.argv[1], gil=False, lines=True) as recording:
    for _ in range(3):
        step(tf.constant(1.0))
same = all(one is other for one, other in zip(before, trace_function()))
print(json.dumps({
    "counts": {line.line: [line.traced, line.ran] for line in recording.reader.lines(__file__) if line.kind == "line"},
    "limits": recording.meta["limits"], "troubles": recording.meta["troubles"], "same": same,
    "result": float(step(tf.constant(1.0))),
}))
"""
NEW = sys.version_info >= (3, 12)  # sys.monitoring: many tools at once
ROOT = str(Path(__file__).parents[3])


def run(tmp_path, command, before=""):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM).replace("BEFORE", before))
    done = forked.run(
        *command, path, tmp_path / "r.pfrec", cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([ROOT, *sys.path]), "PYDEVD_DISABLE_FILE_VALIDATION": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    lines = path.read_text().splitlines()
    return said, {text.strip(): number for number, text in enumerate(lines, 1)}, done.stderr


def check_counts(said, lines):
    assert said["counts"][str(lines["w = v + 1.0"])] == [None, 3]
    assert said["counts"][str(lines["y = x * 2.0"])] == [1, None]
    assert said["limits"] == ""


def test_coverage_sees_its_lines_and_the_gutter_its_own(tmp_path):
    pytest.importorskip("coverage")
    said, lines, _ = run(tmp_path, ["-m", "coverage", "run", "--data-file", "covered", "--include", "*/program.py"])
    assert said["result"] == 3.0
    assert said["same"]
    assert said["troubles"] == {}
    if NEW:
        check_counts(said, lines)
    else:
        assert "coverage" in said["limits"]
        assert said["counts"].get(str(lines["y = x * 2.0"])) is None, "what coverage traces is not counted"
    report = ["-m", "coverage", "json", "-i", "--data-file", "covered", "-o", "covered.json"]
    subprocess.run([sys.executable, *report], cwd=tmp_path, check=True, capture_output=True,
                   env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})  # fmt: skip
    files = json.loads((tmp_path / "covered.json").read_text())["files"]
    (covered,) = [found for name, found in files.items() if name.endswith("program.py")]
    assert lines["y = x * 2.0"] in covered["executed_lines"]
    assert lines["before = trace_function()"] in covered["executed_lines"]


def test_debugpy_stays_attached_and_the_gutter_counts_or_says_why_not(tmp_path):
    pytest.importorskip("debugpy")
    said, lines, errors = run(tmp_path, [], "import debugpy; debugpy.listen(('127.0.0.1', 0))")
    assert said["result"] == 3.0
    assert said["same"]
    assert said["troubles"] == {}
    assert "should not be used when the debugger is being used" not in errors
    if said["limits"]:
        assert not NEW
        assert "debugpy" in said["limits"]
    else:
        check_counts(said, lines)
