"""Nodes on other devices than their values, in replicas, and asked for by workers: told with the line, else silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyfunc_debug.api.recording import Recording
from tests import forked
from tests.doctor.recordings import call, node, written

SAID = {
    "a_node_in_each_replica": ("distribution", "note", "the py_function of double once for each of 2 replicas"),
    "numpy_in_each_replica": ("distribution", "note", "the numpy_function of doubled once for each of"),
    "a_step_for_a_worker": ("distribution", "warning", "the py_function of double runs in this process"),
    "numpy_for_a_worker": ("distribution", "warning", "the numpy_function of doubled runs in this"),
    "a_node_in_a_function_that_a_worker_runs": ("distribution", "warning", "was sent to /job:worker/task:0, but"),
    "an_input_from_another_device": ("devices", "note", "its values are not: x from CPU:0. That is 1,440.0 kB"),
    "an_output_to_another_device": ("devices", "note", "doubled is on CPU:0, and its values are not: out to CPU:1"),
    "there_and_back": ("devices", "note", "x from CPU:1, out to CPU:1. That is 1,280.0 kB a call from device"),
    "a_map_that_stays_a_graph": ("eager-switch", "note", "does not reach tf.data: double was traced all"),
    "a_filter_that_stays_a_graph": ("eager-switch", "note", "the lambda at placed_programs.py:"),
    "a_map_with_python_that_stays_a_graph": ("eager-switch", "note", "was traced all the same"),
}  # fmt: skip
SILENT = {
    "replicas_without_python", "one_replica", "python_in_the_input_of_replicas", "a_step_without_python_for_a_worker",
    "python_beside_the_worker", "one_device", "little_from_another_device", "a_device_that_is_not_there",
    "a_dataset_without_functions", "a_dataset_without_the_switch", "a_dataset_in_debug_mode",
}  # fmt: skip


@pytest.fixture(scope="module")
def told():
    """What is found in each program: one process runs them all."""
    done = forked.run("-m", "tests.doctor.placed_programs", cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))


@pytest.mark.slow
def test_each_program_hears_of_its_nodes_alone(told):
    assert set(told) == SILENT | set(SAID)
    assert {name: told[name] for name in SILENT if told[name]} == {}
    for name, (rule, severity, says) in SAID.items():
        ((found, how_severe, line, message, fix),) = told[name]
        assert (found, how_severe) == (rule, severity), message
        assert says in message
        assert line
        assert fix.endswith("    tf.data.experimental.enable_debug_mode()") if rule == "eager-switch" else fix


def test_a_tpu_is_told_of_as_likely(tmp_path):
    facts = {"name": "pyfunc_1", "strategy": "TPUStrategyV2", "device": "/device:TPU:0", "replicas": 8}
    notice = {"id": 1, "rule": "replica", "node": 1, "facts": json.dumps(facts)}
    (found,) = Recording(written(tmp_path / "a.pfrec", node=[node()], call=[call(1)], notice=[notice])).findings()
    assert (found.rule, found.severity, found.confidence) == ("distribution", "error", "likely")
