"""A TensorFlow that is not known is tried out once, in a process of its own, and what is missing is named."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from pyfunc_debug.interception import builds
from tests import forked
from tests.limits import LIGHT

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, os, sys, types, warnings
from pyfunc_debug.interception import builds
builds.KNOWN.clear()
real = builds.subprocess.run
started, tried = [], None

def run(*args, **kwargs):
    # The first trial is real; what it said is said again where a second one is wanted.
    global tried
    if "selftest" not in str(args):
        return real(*args, **kwargs)
    started.append(1)
    tried = tried or real(*args, **kwargs)
    return tried

builds.subprocess.run = run
import tensorflow as tf
import pyfunc_debug as pfd

def record(cache):
    started.clear()
    builds._here.clear()  # as in a new process
    os.environ["XDG_CACHE_HOME"] = cache
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with pfd.record(sys.argv[1], gil=False, overwrite=True) as recording:
            f = tf.function(lambda x: tf.py_function(lambda v: v * 2, [x], tf.float32))
            value = float(f(tf.constant(2.0)))
    print(json.dumps([value, len(started), len(list(recording.calls())), recording.meta["limits"],
                      [str(one.message) for one in said if "pyfunc_debug" in str(one.message)]]))

"""
MOVED = """
import inspect
from pyfunc_debug.program.imports import when_imported

def move():
    # Nodes are made by another function than the one of this name.
    from tensorflow.python.ops import script_ops

    hidden = script_ops._internal_py_func
    for function in list(vars(script_ops).values()):
        function = inspect.unwrap(function) if callable(function) else None
        code = getattr(function, "__code__", None)
        if code is not None and "_internal_py_func" in code.co_names and function is not hidden:
            names = tuple("_hidden" if one == "_internal_py_func" else one for one in code.co_names)
            function.__code__ = code.replace(co_names=names)
    script_ops._hidden = hidden

when_imported("tensorflow", move)
"""


NEW = """
from pathlib import Path
cache = sys.argv[2]
record(cache)
(file,) = (Path(cache) / "pyfunc_debug").iterdir()
print(file.read_text())
record(cache)
file.write_text("{ broken")
record(cache)
record(str(file))  # a file where the folder should be
"""


def _run(tmp_path, program, moved=""):
    folder = tmp_path / "path"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(moved)  # for the process of the trial; the program has it here
    done = forked.run(
        "-c", moved + PROGRAM + program, str(tmp_path / "a.pfrec"), str(tmp_path / "cache"),
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), LIGHT, str(ROOT)])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_new_build_is_tried_out_once_and_the_verdict_kept(tmp_path):
    first, kept, second, broken, nowhere = _run(tmp_path, NEW)
    assert first == [4, 1, 1, "", []]
    assert kept == {"calls": "", "construction": "", "gradients": ""}
    assert second == [4, 0, 1, "", []], "the second time the cache is asked"
    assert broken == [4, 1, 1, "", []], "a broken file counts as none"
    assert nowhere == [4, 1, 1, "", []], "where nothing can be kept it is tried out each time"


def test_what_does_not_work_is_named_and_calls_are_recorded_all_the_same(tmp_path):
    [(value, started, calls, limits, said)] = _run(tmp_path, "record(sys.argv[2])", MOVED)
    assert (value, started, calls) == (4, 1, 1)
    assert re.fullmatch(
        r"TensorFlow [\w.]+: nodes are not made by script_ops._internal_py_func: only calls are recorded", limits
    )
    assert said == [f"pyfunc_debug: {limits}"]


def test_the_installed_build_is_known(tf):
    """Else every user of it waits for a trial: tests/compatibility/known_builds adds it."""
    assert builds.digest(os.path.dirname(tf.__file__)) in builds.KNOWN
