"""Workers of one job compared: the same node in the same step, and who differs since when."""

from __future__ import annotations

import pyfunc_debug as pfd
from pyfunc_debug.cli import main
from tests.doctor.recordings import call, node, written

STEPS = 6


def worker(folder, number, wrong_from=None, first_ordinal=1):
    """Six steps of two calls: `data` has another input in each process, `weights` the same until something is wrong."""
    calls, values, runs = [], [], []
    for step in range(1, STEPS + 1):
        runs.append({"id": step, "trace": 1, "function": 1, "kind": "forward", "name": "f", "thread": 1,
                     "start_ns": step * 10_000_000, "duration_ns": 9_000_000})  # fmt: skip
        bad = wrong_from is not None and step >= wrong_from
        for body, content in ((1, 10 * step + number), (2, 1000 + step + bad)):
            calls.append(call(2 * step + body, node=body, run=step))
            values.append({"call": 2 * step + body, "role": "input", "position": 0, "path": "x", "dtype": "float32",
                           "shape": "[]", "text": f"float32 {content}", "note": "", "kept": "",
                           "digest": content.to_bytes(16, "little")})  # fmt: skip
    return written(
        folder / f"{number}.pfrec", meta={"role": f"worker-{number}", "host": "h"},
        node=[node(1, "data"), node(2, "weights")],
        function=[{"id": 1, "name": "f", "kind": "tf.function", "file": "/a.py", "line": 1, "origin": "user"}],
        trace=[{"id": 1, "function": 1, "object": 1, "ordinal": first_ordinal, "name": "f", "signature": "()",
                "reason": "[]", "thread": 1, "start_ns": 0, "duration_ns": 1}],
        run=runs, call=calls, value=values,
    )  # fmt: skip


def test_the_process_that_differs_is_named_with_the_step_and_the_values(tmp_path, capsys):
    for number in range(3):
        worker(tmp_path, number, wrong_from=4 if number == 1 else None)
    diverged, data = pfd.open(str(tmp_path)).differences().values
    assert (diverged.body, diverged.first, diverged.equal, diverged.steps) == ("weights", 4, 3, 6)
    assert diverged.groups == (("worker-0", "worker-2"), ("worker-1",))
    assert (data.body, data.equal, data.diverged) == ("data", 0, False)
    assert main(["diff", str(tmp_path)]) == 1
    assert capsys.readouterr().out == (
        "input x of weights (train.py:1): equal in 3 of 6 steps, first different in step 4\n"
        "  worker-0, worker-2: float32 1004\n"
        "  worker-1: float32 1005\n"
        "input x of data (train.py:1): different in all 6 steps, as where each process has its own data\n"
    )


def test_the_doctor_names_who_differs_once_the_value_was_equal_in_three_steps(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "run"
    folder.mkdir()
    for number in range(3):
        worker(folder, number, wrong_from=4 if number == 1 else None)
    assert main(["doctor", "run", "--select", "diverged-replicas"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "train.py:1: input x of weights was equal in all processes and is not from step 4 on: worker-1 differs from "
        "worker-0, worker-2 [diverged-replicas] worker-0, worker-2: float32 1004 worker-1: float32 1005"
    ) in said
    assert "-> pyfunc-debug diff run # every value" in said
    worker(folder, 1, wrong_from=3)
    assert main(["doctor", "run", "--select", "diverged-replicas"]) == 0
    assert capsys.readouterr().out == "No findings.\n"


def test_what_is_equal_in_all_is_said_and_what_cannot_be_counted_is_left_out(tmp_path, capsys):
    for number in range(2):
        worker(tmp_path, number)
    assert main(["diff", str(tmp_path)]) == 0
    assert "input x of weights (train.py:1): equal in all 6 steps" in capsys.readouterr().out
    worker(tmp_path, 1, first_ordinal=2)
    found = pfd.open(str(tmp_path)).differences()
    assert found.values == ()
    assert str(found) == (
        "Without a value in a step that can be counted from the first: worker-1\n"
        "No two processes have a value of the same node in the same step"
    )


def test_one_recording_is_not_a_job(tmp_path, capsys):
    path = worker(tmp_path, 0)
    assert main(["diff", path]) == 2
    assert "compares two recordings or more" in capsys.readouterr().err
