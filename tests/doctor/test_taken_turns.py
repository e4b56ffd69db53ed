"""Bodies in a graph that run beside each other and share the GIL, by numbers and not by a clock."""

from __future__ import annotations

import pytest

from pyfunc_debug.api.recording import Recording
from tests.doctor.recordings import call, node, written

MS = 1_000_000
SOURCE = "def crunch(x):\n    return [one for one in x]\ndef other(x):\n    return x\ncrunch(x)\n"


def recording(tmp_path, *, bodies=("crunch", "crunch"), held_ns=50 * MS, cpu_ns=50 * MS, took_ns=100 * MS, alone=10,
              beside=20, kind="graph", later_ns=0, same_thread=False, grade="native"):  # fmt: skip
    """Calls of two nodes that begin together, or one `later_ns` after the other, behind calls of the first alone."""
    calls, gil, at = [], [], 1000 * MS
    for i in range(alone + beside):
        both = i >= alone
        for number in (1, 2) if both else (1,):
            own, start = len(calls) + 1, at + (number - 1) * later_ns
            thread = 1 if same_thread else number
            calls.append(call(own, number, start_ns=start, end_ns=start + (took_ns if both else held_ns),
                              cpu_ns=cpu_ns, thread=thread))  # fmt: skip
            waited = max(took_ns - held_ns, 0) // 2 if both else 0
            gil.append({"call": own, "grade": grade, "wait_ns": 0, "held_ns": held_ns, "released_ns": waited,
                        "reacquire_ns": waited, "blame": "[]"})  # fmt: skip
        at += took_ns + later_ns + MS
    return written(
        tmp_path / "a.pfrec",
        meta={"cores": 2, "gil": {"grade": grade, "why": "a test"}, "end_ns": at + MS,
              "clock": {"monotonic_ns": 0, "wall_ns": 0}},
        thread=[{"id": 1 + i, "name": f"TF-{i}", "native_id": 1 + i} for i in range(2)],
        function=[{"id": 1, "name": "tower", "kind": kind, "file": None, "line": None, "origin": "user"}],
        node=[node(1 + i, body, 1 + 2 * (body == "other"), function=1, kind="py_func")
              for i, body in enumerate(bodies)],
        call=calls, gil=gil, source=SOURCE,
    )  # fmt: skip


def told(path):
    """What is said of waiting."""
    return Recording(path).findings(select=["gil-wait", "inside-waits", "parallel-calls", "doctor-trouble"])


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({}, ["40 calls of crunch", "2.0 at once", "100 ms each; the 10 that ran alone took 50 ms"]),
        ({"alone": 0}, ["40 calls of crunch", "of 100 ms each held the GIL for 50 ms"]),
        ({"bodies": ("crunch", "other"), "alone": 0}, ["crunch and other, in 2 ops"]),
        ({"later_ns": 20 * MS, "held_ns": 55 * MS, "cpu_ns": 55 * MS}, ["40 calls of crunch", "1.7 at once"]),
    ],
)
def test_bodies_that_take_turns_have_one_finding(tmp_path, numbers, words):
    (found,) = told(recording(tmp_path, **numbers))
    assert found.rule == "gil-wait"
    assert all(one in found.message for one in words), found.message
    assert "num_parallel_calls" not in found.fix


@pytest.mark.parametrize(
    "numbers",
    [
        {"held_ns": 5 * MS, "cpu_ns": 90 * MS},  # NumPy works without the GIL
        {"held_ns": 5 * MS, "cpu_ns": 5 * MS},  # it sleeps, or reads
        {"cpu_ns": 80 * MS},  # a part of it works without the GIL
        {"held_ns": 30 * MS, "cpu_ns": 30 * MS},
        {"beside": 4},  # seldom
        {"took_ns": 2 * MS, "held_ns": MS, "cpu_ns": MS},  # short
        {"later_ns": 100 * MS, "held_ns": 100 * MS, "cpu_ns": 100 * MS},  # one after the other
        {"same_thread": True},  # one inside the other
        {"kind": "tf.data"},  # has rules of its own
    ],
)
def test_what_gets_on_side_by_side_is_left_alone(tmp_path, numbers):
    assert not [one for one in told(recording(tmp_path, **numbers)) if "took turns" in one.message]


def test_it_is_not_said_what_was_not_measured(tmp_path):
    assert not told(recording(tmp_path, grade="bound"))
