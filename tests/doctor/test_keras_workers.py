"""A PyDataset that threads or processes of Keras' own read: nobody says that it gives one element at a time."""

from __future__ import annotations

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.rules import input_bound
from pyfunc_debug.events import Notice

PROGRAM = """
import time
import keras
import numpy as np

class Batches(keras.utils.PyDataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        time.sleep(0.25)
        return np.ones((4, 3), np.float32), np.ones((4, 1), np.float32)

model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit({batches}, epochs=2, verbose=0)
"""


def found(tmp_path, monkeypatch, batches):
    monkeypatch.setattr(Facts, "least_ns", lambda self, idle_ns: idle_ns)  # beside other tests, too
    text = PROGRAM.format(batches=batches)
    path = tmp_path / "program.py"
    path.write_text(text, encoding="utf-8")
    with pfd.record(tmp_path / "program.pfrec") as recording:
        exec(compile(text, str(path), "exec"), {"__name__": "program"})
    told = recording.findings(select=["input-bound", "doctor-trouble"])
    noticed = Facts(recording.reader).notices[Notice.KERAS_WORKERS]
    recording.close()
    return told, [facts for _, _, facts in noticed]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("batches", "who"),
    [
        ("Batches(workers=2)", "threads"),
        ("Batches(workers=1, use_multiprocessing=True)", "processes"),
    ],
)
def test_batches_of_workers_are_not_said_to_come_one_at_a_time(tmp_path, monkeypatch, batches, who):
    told, noticed = found(tmp_path, monkeypatch, batches)
    assert noticed == [{"processes": who == "processes"}]
    (finding,) = told
    assert f"which {who} of Keras' make (workers= of the PyDataset) by Batches.__getitem__" in finding.message
    assert "one thread" not in finding.message
    assert finding.fix.startswith("make a batch cost less in Batches.__getitem__")


@pytest.mark.slow
def test_workers_that_wait_for_the_gil_are_told_of_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(input_bound, "_waiting", lambda facts, node: 2.5)  # as it was measured: no clock here
    ((finding,), _) = found(tmp_path, monkeypatch, "Batches(workers=2)")
    assert any("waited for the GIL, 2.5 of them at a time" in one for one in finding.evidence)
    assert finding.fix.startswith("use_multiprocessing=True for the PyDataset")


@pytest.mark.slow
def test_a_py_dataset_that_nobody_else_reads_still_gives_one_element_at_a_time(tmp_path, monkeypatch):
    ((finding,), noticed) = found(tmp_path, monkeypatch, "Batches()")
    assert noticed == []
    assert "__getitem__, which gives one element at a time, on one thread" in finding.message
