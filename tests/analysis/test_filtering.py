"""A condition picks the same calls of a recording as it stops in the program; what was not kept is not guessed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pyfunc_debug as pfd
from pyfunc_debug.cli import main
from pyfunc_debug.report import sieve
from pyfunc_debug.report.answers import Answers
from tests.report import recordings

INPUTS = [[1.0, np.nan], [1.0, np.nan], [np.inf, 2.0], [3.0, 2.0], [2.0, 2.0], [2.0, 2.0]]
CONDITIONS = [
    "nan(x)", "nan(inputs) == 1", "inf(x)", "changed(x)", "changed(shape(x))", "shape(x) == (2,) and not nan(x)",
    "x.max() > 1", "x.max() != x.max()", "x[0] == 2", "np.isnan(x).any()", "k == 2 and call.id > 2", "nan(out)",
    "out.min() > 3",
]  # fmt: skip


def body(x, k):
    return x * k


@pytest.fixture(scope="module", params=["full", "summary"])
def recorded(request, tmp_path_factory):
    """A recording, and how often each condition held while it was made."""
    import tensorflow as tf

    path = tmp_path_factory.mktemp("filtering") / "train.pfrec"
    traced = tf.function(lambda x: tf.py_function(body, [x, tf.constant(2.0)], tf.float32))
    with pfd.record(path, values=request.param, gil=False):
        rules = [pfd.break_on("body", condition=one, when="after", log="k") for one in CONDITIONS]
        for value in INPUTS:
            traced(tf.constant(value))
        for rule in rules:
            rule.remove()
    assert [rule.error for rule in rules] == [""] * len(rules)
    return request.param, path, {rule.condition: rule.hits for rule in rules}


def test_calls_take_the_conditions_of_breakpoints(recorded):
    kept, path, hits = recorded
    assert hits == {
        "nan(x)": 2, "nan(inputs) == 1": 2, "inf(x)": 1, "changed(x)": 3, "changed(shape(x))": 0,
        "shape(x) == (2,) and not nan(x)": 4, "x.max() > 1": 4, "x.max() != x.max()": 2, "x[0] == 2": 2,
        "np.isnan(x).any()": 2, "k == 2 and call.id > 2": 4, "nan(out)": 2, "out.min() > 3": 4,
    }  # fmt: skip
    recording = pfd.open(path)
    for condition, count in hits.items():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = [call.id for call in recording.calls("body", condition=condition)]
        if kept == "full" or not said:
            assert len(found) == count, condition
        else:  # of the calls that could not be judged it says how many
            assert len(found) + int(str(said[0].message).split()[0]) >= count >= len(found), condition
    recording.close()


def test_without_elements_a_condition_says_what_it_lacks(recorded):
    kept, path, _ = recorded
    recording = pfd.open(path)
    if kept == "summary":
        with pytest.warns(pfd.PyfuncDebugWarning, match=r"4 calls could not be judged. Call #1, x: its elements"):
            assert [call.id for call in recording.calls(condition="x[0] == 2")] == [5, 6]
    with pytest.raises(pfd.BadOptionError, match=r"no call has 'y'. There are: out, x, k, inputs, outputs, call, np"):
        list(recording.calls(condition="y > 1"))
    with pytest.raises(pfd.BadOptionError, match=r"changed takes one value"):
        recording.calls(condition="changed()")
    recording.close()


def test_the_shell_shows_the_calls_for_which_it_holds(recorded, capsys):
    _, path, _ = recorded
    assert main(["show", str(path), "--if", "inf(x)"]) == 0
    line, count = capsys.readouterr().out.splitlines()
    assert line.startswith("body #3 ok, Inf out ")
    assert count == "1 of 6 calls"
    assert main(["show", str(path), "--if", "nan(x)", "--node", "body", "--json"]) == 0
    assert capsys.readouterr().out.count('"status": "ok"') == 2


def test_the_panel_asks_again_until_all_calls_were_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(sieve, "AT_ONCE", 100)
    answers = Answers(recordings.small(tmp_path / "train.pfrec"))
    with answers.reading():
        total = len(answers.columns)
        page = answers.ask("calls", {"condition": "call.id % 2", "limit": 3})[0]
        assert page["more"]
        assert page["total"] <= 100 < total
        while page["more"]:
            page = answers.ask("calls", {"condition": "call.id % 2", "limit": 3, "sort": "duration"})[0]
        assert page["total"] == sum(number % 2 for number in answers.columns.id.tolist())
        assert all(row["id"] % 2 for row in page["rows"])
        assert answers.ask("calls", {"limit": 3})[0]["total"] == total
        with pytest.raises(pfd.BadOptionError, match="is not a Python expression"):
            answers.ask("calls", {"condition": "x >"})
