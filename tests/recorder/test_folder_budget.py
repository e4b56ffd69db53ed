"""One budget for all recordings of a folder: kept without asking anybody, said when it is used up."""

from __future__ import annotations

import os

import numpy as np
import pytest

import pyfunc_debug as pfd
from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.recorder import Budget, folder_budget, parse_budget
from pyfunc_debug.recorder.folder_budget import FolderBudget
from tests.recorder.test_recorder import call, make, node  # noqa: F401 - `make` is a fixture

TOGETHER = 8_000_000


def test_recordings_of_one_folder_stay_below_its_budget_and_the_job_says_that_it_was_used_up(
    make, monkeypatch, tmp_path  # noqa: F811
):  # fmt: skip
    monkeypatch.setattr(folder_budget, "_PERIOD_NS", 0)
    recorders = [make(values="full", budget=4_000_000, limits=lambda own: Budget(own, TOGETHER)) for _ in range(3)]
    generator = np.random.default_rng(0)
    for one in recorders:
        one.node_made(node("graph"))
    for number in range(900):
        call(recorders[number % 3], "graph", generator.random(2000))
        recorders[number % 3].flush()
        assert (
            sum(os.path.getsize(one) for one in tmp_path.iterdir() if one.suffix in (".pfrec", ".pfrec-wal"))
            <= TOGETHER
        )
    for one in recorders:
        one.close({"folder_budget": TOGETHER})
    job = pfd.open(str(tmp_path))
    remarks = " ".join(job.ledger().remarks)
    assert "the budget of 8,000,000 bytes for the folder was used up: values or calls of 0, 1, 2 are counted" in remarks
    assert [one.calls for one in job.ledger().processes] == [300] * 3  # counted all the same
    kept = [sum(value.kept == "full" for each in one.calls() for value in each.inputs) for one in job]
    assert all(50 < one < 200 for one in kept), kept  # of 16 kB each
    assert "the budget of 8000000 bytes for all recordings in its folder was used up" in " ".join(
        str(job[0].ledger()).split()
    )
    job.close()


def test_what_others_leave_is_there_for_a_recording_that_goes_on(tmp_path):
    (tmp_path / "a.pfrec-wal").touch()
    for name, size in (("a.pfrec", 1_000_000), ("b.pfrec", 5_000_000), ("b.pfrec-wal", 1_000_000), ("c.txt", 10**7)):
        (tmp_path / name).write_bytes(bytes(size))
    budget = Budget(4_000_000, 10_000_000)
    one = FolderBudget(budget)
    assert one.now(str(tmp_path / "a.pfrec"), 1_000_000).file_bytes == 1_000_000 + 3_000_000 // 4
    os.remove(tmp_path / "b.pfrec")
    os.remove(tmp_path / "b.pfrec-wal")
    assert one.now(str(tmp_path / "a.pfrec"), 1_000_000).file_bytes == 1_750_000, "not before the next look"
    one = FolderBudget(budget)
    assert one.now(str(tmp_path / "a.pfrec"), 1_000_000) == budget


@pytest.mark.parametrize(("folder", "said"), [("3MB", "at least 4MB"), ("much", "folder_budget='much' is not")])
def test_a_budget_that_holds_no_recordings_is_refused(folder, said):
    assert parse_budget("256MB", "100MB") == Budget(25_000_000, 100_000_000)
    with pytest.raises(BadOptionError, match=said):
        parse_budget("256MB", folder)
