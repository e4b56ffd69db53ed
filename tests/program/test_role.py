"""What a process is in its job, from what launchers set."""

import json
import multiprocessing
import os

import pytest

from pyfunc_debug.program.role import role, take_role


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    for name in (
        "TF_CONFIG",
        "RANK",
        "SLURM_PROCID",
        "OMPI_COMM_WORLD_RANK",
        "PMI_RANK",
        "JAX_PROCESS_ID",
        "JOB_COMPLETION_INDEX",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYFUNC_DEBUG_ROLE", "")


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("TF_CONFIG", json.dumps({"cluster": {}, "task": {"type": "worker", "index": 3}}), ("worker-3", 3)),
        ("TF_CONFIG", json.dumps({"task": {"type": "a/b", "index": "0"}}), ("a_b-0", 0)),
        ("TF_CONFIG", "no json", ("train", None)),
        ("TF_CONFIG", "[]", ("train", None)),
        ("RANK", "12", ("rank-12", 12)),
        ("SLURM_PROCID", "0", ("rank-0", 0)),
        ("RANK", "", ("train", None)),
        ("JOB_COMPLETION_INDEX", "5", ("rank-5", 5)),
    ],
)
def test_a_launcher_says_it(monkeypatch, variable, text, expected):
    monkeypatch.setenv(variable, text)
    monkeypatch.setattr("sys.argv", ["/home/u/train.py", "--fast"])
    assert role() == expected


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["/home/u/my train.py"], "my_train"),
        (["-c"], "python"),
        ([], "python"),
        (["x/pyfunc-debug", "record", "t.py"], "main"),
    ],
)
def test_else_its_program(monkeypatch, argv, expected):
    monkeypatch.setattr("sys.argv", argv)
    assert role() == (expected, None)


def test_a_child_of_multiprocessing_has_the_name_it_was_given(monkeypatch):
    monkeypatch.setattr(multiprocessing.process.current_process(), "_name", "loader 2")
    assert role() == ("loader_2", None)


def test_a_process_that_inherits_a_role_has_its_own_name_behind_it(monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setattr("sys.argv", ["train.py"])
    take_role()
    assert role() == ("rank-3", 3)
    monkeypatch.setattr(os, "getpid", lambda: -1)  # a child, which has the same variables
    assert role() == ("rank-3-train", 3)
    monkeypatch.setattr(multiprocessing.process.current_process(), "_name", "loader 2")
    assert role() == ("rank-3-loader_2", 3)
    take_role()
    assert role() == ("rank-3-loader_2", 3)
    monkeypatch.setenv("RANK", "4")  # it was started as another one
    assert role() == ("rank-4", 4)
