"""The ledger as text, of recordings that hold nothing."""

from __future__ import annotations

import contextlib
import dataclasses

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


def test_that_nothing_was_made_is_no_all_clear_where_keras_traced_functions(tmp_path):
    ledger = Recording(written(tmp_path / "a.pfrec", meta={"gil": GIL})).ledger()
    assert "known traps only" not in ledger_text(ledger)
    assert "known traps only" in " ".join(ledger_text(dataclasses.replace(ledger, hidden=3)).split())


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
    assert "step did not run: its graph trace failed with " in text
    assert "nobody counts" not in text
    assert "No call of a py_function" not in text, "it has none"


def test_nothing_is_said_to_have_started_where_no_call_was_seen(tmp_path):
    with tf.Graph().as_default(), pfd.record(tmp_path / "a.pfrec", gil=False) as recording:
        tf.compat.v1.py_func(lambda x: x, [1.0], tf.float32)
    text = " ".join(ledger_text(recording.ledger()).split())
    recording.close()
    assert "runs -: none was seen; a Session starts them in C++, where nobody counts" in text


def test_an_interrupted_trace_is_not_said_to_have_failed():
    @tf.function
    def wait_until_ready(x):
        raise KeyboardInterrupt

    with pfd.record(gil=False) as recording, contextlib.suppress(KeyboardInterrupt):
        wait_until_ready(tf.constant(1.0))
    text = " ".join(ledger_text(recording.ledger(), short=True).split())
    recording.close()
    assert "wait_until_ready did not run: it was interrupted while TensorFlow traced it" in text
    assert "graph trace failed" not in text


def test_what_a_program_is_told_at_its_end_has_no_costs_below_a_tenth(tmp_path):
    cost = {"hook_ns": 1000, "calls": 3, "values_ns": 0, "writer_cpu_ns": 50_000_000}
    meta = {"gil": GIL, "cost": cost, "others": 0.9, "clock": {"monotonic_ns": 0, "wall_ns": 0}}
    for seconds, said in ((10, False), (0.2, True)):
        path = written(tmp_path / f"{seconds}.pfrec", meta={**meta, "end_ns": int(seconds * 1e9)}, node=[node()])
        ledger = Recording(path).ledger()
        whole, short = (" ".join(ledger_text(ledger, short=one).split()) for one in (False, True))
        assert "hook ~1 us a call" in whole
        assert "other processes" in whole
        assert ("recording cost ~25 % of 200 ms: times are longer by it" in short) is said
        assert "hook" not in short
        assert "other processes" not in short


LONG = "normalize_the_colours_of_an_image_with_numpy"


def test_a_row_with_long_names_is_one_line_of_80_columns(tmp_path):
    bodies = [LONG, "short", "Pipeline.of_my_model.run_every_step_of_it"]
    nodes = [node(id=number, body=body, line=number) for number, body in enumerate(bodies, 1)]
    ledger = Recording(written(tmp_path / "a.pfrec", node=nodes)).ledger()
    lines = ledger_text(ledger).splitlines()
    rows = [line for line in lines if " 0    0 " in line]
    assert len(rows) == 3
    assert max(map(len, lines)) <= 80
    assert all(f":{number} " in row for number, row in enumerate(rows, 1)), "each has its line"
    assert LONG[:8] in rows[0]
    assert "with_numpy" in rows[0]
    assert LONG in ledger_text(ledger, 160)
