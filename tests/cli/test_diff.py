"""`diff` says what changed between two recordings, and reading commands find the newest recording."""

from __future__ import annotations

import json
import os
import sqlite3

import pytest

from pyfunc_debug.cli import main
from tests.report import recordings


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_diff_says_which_values_and_which_bodies_changed(folder, capsys):
    recordings.small(folder / "a.pfrec", steps=6)
    after = recordings.small(folder / "b.pfrec", steps=6)
    assert main(["diff", "a.pfrec", "b.pfrec"]) == 0
    assert "slower" not in capsys.readouterr().out
    with sqlite3.connect(after) as database:
        of_augment = "node = (SELECT id FROM node WHERE body = 'augment')"
        database.execute(f"UPDATE call SET end_ns = start_ns + (end_ns - start_ns) * 20 WHERE {of_augment}")
        database.execute("UPDATE value SET digest = x'00', kept = '', blob = NULL, mean = mean + 1 WHERE call = 1")
    database.close()
    assert main(["diff", "a.pfrec", "b.pfrec"]) == 1
    told = capsys.readouterr().out
    assert "\naugment: " in told
    assert "20x slower" in told
    assert told.count("slower") == 1


def test_the_ledger_may_begin_with_the_largest(folder, capsys):
    recordings.small(folder / "a.pfrec", steps=6)
    assert main(["show", "a.pfrec", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["functions"]
    assert main(["show", "a.pfrec", "--json", "--sort", "calls"]) == 0
    by_calls = json.loads(capsys.readouterr().out)["functions"]
    counts = [[node["calls"] + node["gradients"] for node in row["nodes"]] for row in by_calls]
    assert all(row == sorted(row, reverse=True) for row in counts)
    assert [max(row, default=-1) for row in counts] == sorted((max(row, default=-1) for row in counts), reverse=True)
    assert sorted(map(str, by_calls)) == sorted(map(str, rows))
    capsys.readouterr()
    assert main(["show", "a.pfrec", "--sort", "total"]) == 0
    table = capsys.readouterr().out.partition("\n\n")[0]
    assert table.splitlines()[0].split()[-2:] == ["total", "share"]
    shares = [float(line.split()[-1][:-1]) for line in table.splitlines() if line.endswith("%")]
    assert len(shares) > 2
    assert sum(shares) == pytest.approx(100, abs=0.05 * len(shares))
    assert shares[0] == max(shares), "the largest first"


def test_without_a_file_the_newest_here_is_shown(folder, capsys):
    assert main(["show"]) == 2
    assert capsys.readouterr().err == "pyfunc-debug: which recording? There is none (*.pfrec) in this folder\n"
    for order, name in enumerate(("b", "a", "c")):
        recordings.small(folder / f"{name}.pfrec", steps=1)
        os.utime(folder / f"{name}.pfrec", ns=(order % 2, order % 2))  # a is the newest
    assert main(["show", "--node", "augment"]) == 0
    shown = capsys.readouterr()
    assert shown.err == "pyfunc-debug: a.pfrec, the newest here\n"
    assert shown.out.startswith("node ")
