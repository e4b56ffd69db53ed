"""Switching a recording on and off: whatever happens meanwhile, the file is complete and TensorFlow as it was."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import warnings

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.interception import Interception
from pyfunc_debug.interception.builds import Verdict
from tests.limits import LIGHT


def test_a_warning_made_an_exception_does_not_leave_a_recording_open(tf, tmp_path):
    recording = pfd.record(tmp_path / "a.pfrec", lines=True, gil=False).start()
    tf.py_function(lambda x: x, [1.0], tf.float32)
    recording._instruments.interception.lines.python_limits = "another tool is tracing"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="another tool is tracing"):
            recording.stop()
    assert (recording.reader.state(), recording.meta["limits"]) == ("complete", "another tool is tracing")
    assert not [one for one in threading.enumerate() if one.name == "pyfunc_debug writer"]
    recording.close()


@pytest.mark.parametrize("gradients", ["stock", "exact"])
def test_a_start_that_fails_leaves_nothing_on(tf, tmp_path, monkeypatch, gradients):
    def fail(self, graph):
        raise RuntimeError("no lines today")

    monkeypatch.setattr(Interception, "start_lines", fail)
    with pytest.raises(RuntimeError, match="no lines today"):
        pfd.record(tmp_path / "a.pfrec", lines=True, gradients=gradients).start()
    monkeypatch.undo()
    with pfd.record(tmp_path / "b.pfrec", gil=False) as recording:  # and tests/conftest.py looks at TensorFlow
        tf.py_function(lambda x: x, [1.0], tf.float32)
    assert len(list(recording.calls())) == 1
    recording.close()


@pytest.mark.slow
def test_a_warning_made_an_exception_does_not_break_the_import_of_tensorflow(tmp_path):
    program = """
        import sys, warnings
        warnings.simplefilter("error", UserWarning)
        import pyfunc_debug as pfd

        def fail():
            raise pfd.UnsupportedTensorFlowError("moved")

        recording = pfd.record(sys.argv[1], gil=False).start()
        sys.meta_path[0].callback.__self__._instruments._plug_in = fail
        import tensorflow as tf
        print(float(tf.constant(1.0)))
        recording.stop()
        print(recording.meta["limits"])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "a.pfrec")],
        env={**os.environ, "PYTHONPATH": LIGHT}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["1.0", "not recording: moved"], done.stderr


def test_what_does_not_work_on_this_tensorflow_is_told(tf, tmp_path, monkeypatch):
    monkeypatch.setattr("pyfunc_debug.interception.verdict", lambda *_: Verdict(construction="runs are not seen"))
    with pytest.warns(UserWarning, match="runs are not seen: only calls are recorded"):
        recording = pfd.record(tmp_path / "a.pfrec", gil=False).start()
    tf.function(lambda x: tf.py_function(lambda y: y, [x], tf.float32))(1.0)
    recording.stop()
    assert "runs are not seen" in recording.meta["limits"]
    assert len(list(recording.calls())) == 1
    recording.close()


def test_a_recording_that_is_moved_while_it_is_made_is_read_where_it_is(tf, tmp_path):
    def threads(function):
        found = []
        thread = threading.Thread(target=lambda: found.append(function()))
        thread.start()
        thread.join()
        return found

    with pfd.record(tmp_path / "a.pfrec", gil=False) as recording:
        tf.py_function(lambda x: x, [1.0], tf.float32)
        assert len(list(recording.calls())) == 1
        (tmp_path / "a.pfrec").rename(tmp_path / "b.pfrec")
        tf.py_function(lambda x: x, [1.0], tf.float32)
        assert threads(lambda: len(list(recording.calls()))) == [2]
        assert recording.path == str(tmp_path / "b.pfrec")
    assert threads(lambda: len(list(recording.calls()))) == [2]
    assert [one.name for one in tmp_path.iterdir()] == ["b.pfrec"]
    recording.close()
