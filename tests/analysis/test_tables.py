"""The ledger as text, of recordings that hold nothing."""

from __future__ import annotations

import contextlib

import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.analysis.tables import ledger_text
from pyfunc_debug.api.recording import Recording
from tests.doctor.recordings import node, written

GIL = {"grade": "native", "why": "a test"}


@pytest.mark.parametrize("explained", [False, True])
def test_that_nothing_was_made_is_not_said_beside_a_cause(tmp_path, explained):
    ledger = Recording(written(tmp_path / "a.pfrec", meta={"gil": GIL})).ledger()
    assert ("No py_function of yours was made" in ledger_text(ledger, explained=explained)) is not explained


@pytest.mark.parametrize(("others", "said"), [(None, False), (0.1, False), (0.25, True), (0.934, True)])
def test_a_busy_machine_is_said(tmp_path, others, said):
    text = ledger_text(Recording(written(tmp_path / "a.pfrec", meta={"others": others}, node=[node()])).ledger())
    assert (f"other processes used {others or 0:.0%} of this machine's CPU" in " ".join(text.split())) is said


def test_nothing_is_said_of_the_gil_without_calls(tmp_path):
    ledger = Recording(written(tmp_path / "a.pfrec", meta={"gil": GIL}, node=[node()])).ledger()
    text = ledger_text(ledger)
    assert "No call of a py_function was recorded." in text
    assert "no calls recorded" not in text, "once is enough"
    assert "GIL:" not in text


def test_a_function_whose_trace_failed_is_said_to_have_failed_not_to_run_in_cpp():
    @tf.function
    def step(x):
        return x + "a"

    with pfd.record(gil=False) as recording, contextlib.suppress(TypeError, ValueError):
        step(tf.constant(1.0))
    text = " ".join(ledger_text(recording.ledger()).split())
    recording.close()
    assert "its trace failed" in text
    assert "nobody counts" not in text
    assert "No call of a py_function" not in text, "it has none"


def test_nothing_is_said_to_have_started_where_no_call_was_seen(tmp_path):
    with tf.Graph().as_default(), pfd.record(tmp_path / "a.pfrec", gil=False) as recording:
        tf.compat.v1.py_func(lambda x: x, [1.0], tf.float32)
    text = " ".join(ledger_text(recording.ledger()).split())
    recording.close()
    assert "runs -: none was seen; a Session starts them in C++, where nobody counts" in text
