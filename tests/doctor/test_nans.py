"""Where NaN begins is claimed only where the inputs were seen to be finite."""

from __future__ import annotations

import numpy as np

from pyfunc_debug.api.recording import Recording
from pyfunc_debug.recorder import Budget, Recorder
from pyfunc_debug.values import Policies
from tests.recorder.test_recorder import call, node

LARGE = np.full(200_000, np.nan)  # more than the queue of the smallest budget holds


def born(tmp_path, *inputs: object) -> list[str]:
    """Rules of what is found in a recording of one body that returns NaN for these inputs."""
    recorder = Recorder(str(tmp_path / "a.pfrec"), Policies("full"), Budget(1_000_000), {"pid": 1})
    recorder.node_made(node("graph"))
    call(recorder, "graph", *inputs, result=np.array([np.nan]))
    recorder.close({})
    recording = Recording(recorder.path)
    found = [finding.rule for finding in recording.findings()]
    recording.close()
    return found


def test_nan_from_finite_inputs_is_found(tmp_path):
    assert born(tmp_path, np.ones(3), np.array([b"text"], object)) == ["nan-born"]


def test_nan_from_inputs_that_were_dropped_is_not_claimed(tmp_path):
    assert born(tmp_path, np.ones(3), LARGE) == []
