"""Two loops whose datasets are made of one, as to train and to evaluate: what is said of each is its own."""

from __future__ import annotations

import contextlib
import json
import sqlite3

import pytest

from pyfunc_debug.api.recording import Recording
from tests.doctor.recordings import FILE
from tests.doctor.test_time import MS, loop_over_data

SOURCE = """import tensorflow as tf
data = tf.data.Dataset.range(9).map(lambda x: tf.py_function(bad, [x], tf.float32), num_parallel_calls=8)
training = data.take(80)
validation = data.skip(80)
model.fit(training)
model.evaluate(validation)"""


def recording(tmp_path, pools, sites=(5, 6), run_sites=(1, 2)):
    """A loop of 100 steps, of which the last 20 are those of another line; both bodies are the same."""
    path = loop_over_data(
        tmp_path, 100, 97 * MS, 3 * MS, taken=False, cpu_ns=0, source=SOURCE, stack=3, parallel=8,
        kinds=("Map", "Range"), at=sites[0],
        rows={"stack": [{"id": number, "frames": json.dumps([[FILE, line, "train", ""]])}
                        for number, line in ((1, 5), (2, 6), (3, 2))]},
    )  # fmt: skip
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        (first,) = json.loads(file.execute("SELECT value FROM meta WHERE key = 'inputs'").fetchone()[0])
        first["site"] = [FILE, sites[0], "train"]
        second = {**first, "site": [FILE, sites[1], "train"]}
        first["stages"] = [{"kind": "Take", "parallel": None, "batch": None, "tokens": []}, *first["stages"]]
        second["stages"] = [{"kind": "Skip", "parallel": None, "batch": None, "tokens": []}, *second["stages"]]
        first["pool"], second["pool"] = pools
        file.execute("UPDATE meta SET value = ? WHERE key = 'inputs'", (json.dumps([first, second]),))
        file.execute("UPDATE run SET site = CASE WHEN id <= 80 THEN ? ELSE ? END", run_sites)
    return path


def told(path):
    """What is said of each loop: its message and its cure."""
    found = Recording(path).findings(select=["input-bound", "doctor-trouble"])
    return {one.line: (one.message, one.fix) for one in found}


def test_each_loop_has_the_steps_of_its_own_line(tmp_path):
    found = told(recording(tmp_path, (None, None)))
    assert "of the 79 steps of the loop at train.py:5" in found[5][0]
    assert "of the 20 steps of the loop at train.py:6" in found[6][0]


def test_a_loop_whose_steps_run_at_another_line_has_those_of_no_other_loop(tmp_path):
    found = told(recording(tmp_path, (None, None), sites=(4, 6)))
    assert "of the 79 steps of the loop at train.py:4" in found[4][0]
    assert "of the 20 steps of the loop at train.py:6" in found[6][0]


def test_steps_of_which_no_line_is_known_count_for_both(tmp_path):
    found = told(recording(tmp_path, (None, None), run_sites=(None, None)))
    assert all("of the 99 steps" in message for message, _ in found.values())


@pytest.mark.parametrize(("pools", "asked"), [((8, None), [6]), ((None, 8), [5]), ((8, 8), []), ((None, None), [5, 6])])
def test_a_pool_is_offered_to_the_datasets_that_have_none(tmp_path, pools, asked):
    found = told(recording(tmp_path, pools))
    assert sorted(found) == [5, 6]
    assert [line for line, (_, fix) in sorted(found.items()) if "private_threadpool_size = 8" in fix] == asked
