"""The Traces tab gives the reasons that `recording.explain` gives."""

from __future__ import annotations

import json
import sqlite3

import pytest

from pyfunc_debug.report import html, traces
from pyfunc_debug.report.answers import Answers
from tests.report import recordings
from tests.report.test_html import unpack


def ask(path, method, **params):
    answers = Answers(path)
    with answers.reading():
        return answers.ask(method, params)[0]


@pytest.fixture
def path(tmp_path):
    return recordings.small(tmp_path / "train.pfrec", steps=60, values="none")


def test_each_graph_trace_has_its_reason_the_closest_signature_and_what_would_have_avoided_it(path):
    page = ask(path, "traces", function=1)
    assert (page["name"], page["kind"], page["hidden"]) == ("train_step", "tf.function", 0)
    first, second = page["rows"]
    assert first["said"] == [["first", "first graph trace"]]
    assert second["said"] == [
        ["reason", "lr, a Python number, went from 0.001 to 0.0005"],
        ["closest", "closest before: (x: float32[8, 64, 64, 3], lr=0.001)"],
        ["avoid", "to avoid it: pass lr as a tensor"],
    ]
    assert (first["runs"], second["runs"]) == (51, 9)
    assert [node["calls"] for node in first["nodes"]] == [51]
    assert second["nodes"] == [{"key": "n3", "name": "log_huber", "calls": 9}], "a retrace makes the same line's node"


def test_runs_that_nobody_saw_are_not_zero(path):
    assert [row["runs"] for row in ask(path, "traces", function=2)["rows"]] == [None, None]


def test_objects_of_one_function_are_told_apart(path):
    assert ask(path, "traces", function=1)["rows"][0]["object"] is None
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE trace SET object = 2 WHERE id = 4")
    assert [row["object"] for row in ask(path, "traces", function=1)["rows"]] == [1, 2]


def test_many_graph_traces_are_cut_in_the_middle(path, monkeypatch):
    monkeypatch.setattr(traces, "MAX_TRACES", 10)
    with sqlite3.connect(path) as connection:
        for i in range(100, 130):
            values = (i, 1, 1, i, f"t{i}", "(x)", json.dumps(["x changed"]), 1, recordings.ORIGIN, 1000, None, None)
            connection.execute(f"INSERT INTO trace ({recordings.TRACE}) VALUES ({','.join('?' * 12)})", values)
    page = ask(path, "traces", function=1)
    assert len(page["rows"]) == 10
    assert page["hidden"] == 22
    assert page["rows"][-1]["ordinal"] == 129


def test_an_unknown_function_has_no_page(path):
    assert ask(path, "traces", function=99) is None


def test_the_report_holds_them_within_bounds(path, monkeypatch):
    assert set(unpack(html.page(path))["explained"]) == {"1", "2"}
    monkeypatch.setattr(html, "EXPLAINED_BYTES", 100)
    assert unpack(html.page(path))["explained"] == {}
