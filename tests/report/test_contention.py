"""The GIL tab says what `recording.contention()` and `recording.stages()` say, each number with its grade."""

from __future__ import annotations

import json
import sqlite3

import pytest

from pyfunc_debug.api.recording import Recording
from pyfunc_debug.cli import main
from pyfunc_debug.report.answers import Answers
from tests.report import recordings


def ask(path, method="gil", **params):
    answers = Answers(path)
    with answers.reading():
        return answers.ask(method, params)[0]


@pytest.fixture
def path(tmp_path):
    """Holders are named with their calls, as real recordings do; augment's own first call waits for #2."""
    path = recordings.small(tmp_path / "train.pfrec", steps=30, values="none")
    with sqlite3.connect(path) as connection:
        blame = json.dumps([["decode (#1)", 1_500_000], ["outside py_function", 20_000]])
        connection.execute("UPDATE gil SET blame = ? WHERE call IN (SELECT id FROM call WHERE node = 2)", (blame,))
    return path


def grade(path, name, wait=None):
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE gil SET grade = ?, held_ns = NULL, released_ns = NULL, reacquire_ns = NULL", (name,))
        if wait is not None:
            connection.execute("UPDATE gil SET wait_ns = ?", (wait,))
    recordings.change(path, gil={"grade": name, "why": "for a test", "held": {"augment": [0.9, 44]}})


def same(path):
    page, contention = ask(path), Recording(path).contention()
    assert [node["sentence"] for node in page["nodes"]] == [one.sentence for one in contention.nodes]
    assert [worst["call"] for worst in page["worst"]] == [one.call for one in contention.worst]
    matrix: dict = {}
    for row in page["matrix"]:
        for holder, ns in row["blame"].items():
            key = row["name"].removeprefix("∇ "), holder
            matrix[key] = matrix.get(key, 0) + ns
    assert matrix == contention.matrix
    stages = Recording(path).stages()
    assert [stage["name"] for stage in page["stages"]] == [one.contention.node.body for one in stages]
    for stage, one in zip(page["stages"], stages):
        assert stage["python_share"] == pytest.approx(one.python_share)
        assert stage["at_once"] == pytest.approx(one.at_once)
        assert [c["why"] for c in stage["ceilings"]] == [c.why for c in one.ceilings]
        assert [c["speedup"] for c in stage["ceilings"]] == [pytest.approx(c.speedup) for c in one.ceilings]
    return page


def test_the_tab_and_the_terminal_say_the_same(path):
    page = same(path)
    assert page["grade"] == "native"
    assert page["grades"] == [{"name": "native", "words": "measured"}]
    sentence = next(node["sentence"] for node in page["nodes"] if node["name"] == "augment")
    assert ", for `decode` (TF-" in sentence, "the holder's call says which thread it was; 95 % is not only mostly"
    assert page["series"]["waiting"] is not None
    assert page["series"]["held"] is not None


def test_where_graphs_were_traced_is_drawn_behind_what_bodies_held(path):
    series, overview = ask(path)["series"], ask(path, "overview")
    traces = ask(path, "timeline", start_ns=overview["start_ns"], end_ns=overview["end_ns"], width=100)["traces"]
    width = (series["end_ns"] - series["start_ns"]) / len(series["traces"])
    assert max(series["traces"]) == 1
    outer = sum(trace["duration_ns"] for trace in traces if trace["parent"] is None)
    assert sum(series["traces"]) * width == pytest.approx(outer, rel=0.01)


def test_what_other_python_held_is_drawn_over_the_same_axis_without_what_is_folded(path):
    columns = 100
    origin, series = Recording(path).reader.meta["clock"]["monotonic_ns"], ask(path)["series"]
    assert series["elsewhere"] is None, "not measured is not 0"
    wide = series["end_ns"] // columns
    band = {"start_ns": origin, "width_ns": wide, "us": [wide // 2000] * columns}
    recordings.change(path, gil={"grade": "native", "elsewhere": band})
    drawn = ask(path)["series"]["elsewhere"]
    assert len(drawn) == len(series["held"])
    assert sum(drawn) / len(drawn) == pytest.approx(0.5, abs=0.02)
    for damaged in ({"us": "x"}, {**band, "width_ns": 0}, {**band, "us": [None]}, 7):
        recordings.change(path, gil={"grade": "native", "elsewhere": damaged})
        assert ask(path)["series"]["elsewhere"] is None


def test_an_estimate_says_from_how_many_samples(path):
    grade(path, "op-start")
    page = same(path)
    sentence = next(node["sentence"] for node in page["nodes"] if node["name"] == "augment")
    assert sentence.endswith("an estimated 90 % of its time holds the GIL (44 samples)")
    assert page["series"]["held"] is None
    assert ask(path, "overview")["resolution_ns"] == 50_000


def test_a_bound_is_never_drawn_as_a_measurement(path):
    grade(path, "bound")
    page = same(path)
    assert all("waits at most" in node["sentence"] for node in page["nodes"])
    assert page["series"]["waiting"] is None
    assert page["grades"] == [{"name": "bound", "words": "at most: executor queue + GIL"}]
    assert [stage["wait_share"] for stage in page["stages"]] == [None, None]


def test_waits_below_the_resolution_are_no_worst_calls(path):
    grade(path, "op-start", 40_000)
    page = same(path)
    assert page["worst"] == []
    assert "< 50 us" in page["nodes"][0]["sentence"]


def test_calls_without_a_measurement_are_counted(path):
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM gil WHERE call > 200")
    page = same(path)
    assert page["measured"] == 200
    assert page["calls"] == 540
    assert "calls measured)" in page["nodes"][0]["sentence"]


def test_a_stage_whose_first_graph_never_ran_is_told(path):
    # A retrace makes a map function's node again; all calls may be of the second.
    with sqlite3.connect(path) as connection:
        connection.execute(
            "INSERT INTO node SELECT 9, 'pyfunc_9', kind, body, file, line, name, graph, function, stack, tout, paths,"
            " out_paths, origin FROM node WHERE id = 2"
        )
        connection.execute("UPDATE call SET node = 9 WHERE node = 2")
    assert [stage["name"] for stage in same(path)["stages"]] == ["decode", "augment"]


def test_without_a_probe_the_tab_says_why(tmp_path):
    path = recordings.small(tmp_path / "plain.pfrec", steps=5, gil=False, values="none")
    recordings.change(path, gil={"grade": "none", "why": "this Python has no GIL"})
    page = ask(path)
    assert (page["grade"], page["why"]) == (None, "this Python has no GIL")


def test_the_terminal_shows_time_blame_worst_calls_and_what_if(path, capsys):
    assert main(["show", str(path), "--gil"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("GIL: measured (native; self-test passed)")
    for part in (
        "calls waiting, over time",
        "rows waited while columns ran",
        "longest waits",
        "what would help: at most this much faster than",
        "num_parallel_calls=8: at most x1.2: the body holds the GIL 85 % of the time",
        "< 10 us",
    ):
        assert part in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert main(["show", str(path), "--gil", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["resolution_ns"] == 10_000
    assert told["stages"][0]["at_most"][3]["num_parallel_calls"] == 8


def test_the_terminal_says_not_measured(tmp_path, capsys):
    path = recordings.small(tmp_path / "plain.pfrec", steps=5, gil=False, values="none")
    recordings.change(path, gil=None)
    assert main(["show", str(path), "--gil"]) == 0
    text = capsys.readouterr().out
    assert "`decode`: not measured" in text
    assert "longest waits" not in text
