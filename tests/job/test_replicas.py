"""Workers of one job compared: the same node in the same step, and who differs since when."""

from __future__ import annotations

import textwrap

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.cli import main
from tests import forked
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


MIRRORED = """
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    import pyfunc_debug as pfd

    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def look(x):
        return x

    @tf.function
    def step(x):
        tf.numpy_function(look, [tf.constant(7.0)], tf.float32)  # once in a step

        def replica(x):
            for _ in tf.range(2):
                x = tf.ensure_shape(tf.numpy_function(look, [x], tf.float32), [])
            return tf.numpy_function(lambda v: v, [x], tf.float32)

        return strategy.run(replica, args=(x,))

    with pfd.record("train.pfrec"):
        for one in range(6):
            step(strategy.experimental_distribute_values_from_function(
                lambda context: tf.constant(float(one) + (one == 4) * context.replica_id_in_sync_group)))
"""


@pytest.mark.slow
def test_replicas_of_one_process_are_told_apart_and_compared(tmp_path, monkeypatch, capsys):
    (tmp_path / "train.py").write_text(textwrap.dedent(MIRRORED))
    done = forked.run("train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir(tmp_path)
    assert main(["diff", "train.pfrec"]) == 1
    assert capsys.readouterr().out.splitlines()[:3] == [
        "input x of look (train.py:10): equal in 5 of 6 steps, first different in step 5",
        "  replica 0: float32[] 4.0",
        "  replica 1: float32[] 5.0",
    ]
    (look, other) = pfd.open("train.pfrec").findings(select=["diverged-replicas"], ignore=[])
    assert look.message == (
        "input x of look was equal in all replicas and is not from step 5 on: replica 0, replica 1 differ"
    )
    assert "lambda" in other.message
    assert look.fix.startswith("print(pyfunc_debug.open(['train.pfrec']).differences())")
