"""Generators side by side that wait for each other's Python, by numbers and not by a clock."""

from __future__ import annotations

import json

import pytest

from pyfunc_debug.api.recording import Recording
from pyfunc_debug.gil.blame import by_call
from pyfunc_debug.records import FROM_GENERATOR
from tests.doctor.recordings import call, node, written

MS = 1_000_000
SOURCE = "def load():\n    for i in range(9):\n        yield i\nds = tf.data.Dataset.from_generator(load)\n"


def recording(tmp_path, *, threads=2, held_ns=10 * MS, released_ns=0, wait_ns=8 * MS, cpu_ns=10 * MS, blamed="load"):
    """A generator of 60 calls on some threads, each of which waited so long."""
    took, period = held_ns + released_ns, (held_ns + released_ns + wait_ns) // threads
    calls, gil = [], []
    for i in range(1, 61):
        start = i * period + wait_ns
        calls.append(call(i, start_ns=start, end_ns=start + took, cpu_ns=cpu_ns, thread=1 + i % threads))
        blame = json.dumps([[by_call("load", max(i - 1, 1)) if blamed == "load" else blamed, wait_ns]])
        gil.append(
            {"call": i, "grade": "native", "wait_ns": wait_ns, "held_ns": held_ns, "released_ns": released_ns,
             "reacquire_ns": 0, "blame": blame}
        )  # fmt: skip
    function = {"id": 1, "name": FROM_GENERATOR, "kind": "tf.data", "file": None, "line": None, "origin": "tensorflow"}
    return written(
        tmp_path / "a.pfrec",
        meta={"cores": 4, "gil": {"grade": "native", "why": "a test"}, "end_ns": 62 * period + wait_ns,
              "clock": {"monotonic_ns": 0, "wall_ns": 0}},
        thread=[{"id": 1 + i, "name": f"TF-{i}", "native_id": 1 + i} for i in range(threads)], function=[function],
        node=[node(function=1, origin="tensorflow", body="load", line=1)], call=calls, gil=gil,
        source=SOURCE,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({}, True),
        ({"threads": 4, "wait_ns": 30 * MS}, True),
        ({"released_ns": 4 * MS}, True),  # of a thread that had to give the GIL up
        ({"threads": 1}, False),  # one after the other
        ({"wait_ns": 2 * MS}, False),
        ({"held_ns": 2 * MS, "released_ns": 9 * MS, "cpu_ns": 2 * MS}, False),  # it sleeps, or reads
        ({"held_ns": 7 * MS, "released_ns": 3 * MS}, False),  # NumPy works without the GIL
        ({"blamed": "other Python threads: MainThread"}, False),
    ],
)
def test_generators_that_wait_for_each_other_are_told(tmp_path, numbers, said):
    found = Recording(recording(tmp_path, **numbers)).findings(select=["parallel-calls", "doctor-trouble"])
    assert [one.rule for one in found] == ["parallel-calls"] * said
    for one in found:
        assert "several generators of load run at once" in one.message
        assert "num_parallel_calls" not in one.fix
