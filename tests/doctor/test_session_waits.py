"""Runs of sessions that wait for a body are named, with what makes them shorter; others are left alone."""

from __future__ import annotations

import json

import pytest

from pyfunc_debug.api.recording import Recording
from tests.doctor.recordings import FILE, call, node, written

MS = 1_000_000
HEAD = "import time\nimport tensorflow.compat.v1 as tf\n"
BODY = "def bad(i):\n    time.sleep(0.02)\n    return i\n"
MAPPED = (
    HEAD
    + BODY
    + """def parse(i):
    return tf.py_func(bad, [i], tf.int64)
ds = tf.data.Dataset.range(100).map(parse).batch(1)
x = tf.data.make_one_shot_iterator(ds).get_next()
train = make(x)
for step in range(100):
    session.run(train)
"""
)
QUEUE = HEAD + BODY + "row = tf.py_func(bad, [row], tf.int64)\nx = tf.train.{}\nsession.run(train)\n"
DATASET = ["BatchDatasetV2", "MapDataset", "RangeDataset"]


def noticed(runs, line=11, *, late=None, kinds=None, ways=(("pyfunc_1",),), fetches=("train",)):
    """A row of what a line ran: its runs, begin and end in ms."""
    facts = {
        "file": FILE, "line": line, "function": "<module>", "fetches": list(fetches), "trains": True, "changes": True,
        "variables": True, "elements": False, "nodes": [] if late is None else [["pyfunc_1", late]],
        "read": [] if kinds is None else [{"ways": [list(one) for one in ways], "kinds": kinds}],
        "spans": [[int(begin * MS), int(end * MS)] for begin, end in runs],
    }  # fmt: skip
    return {"id": 1, "rule": "session-runs", "node": None, "call": None, "facts": json.dumps(facts)}


def found(tmp_path, source, notices, body_ms=20, *, rest_ms=5, count=40, line=6):
    """Findings of a recording: a run each 25 ms, and a call of the body in each."""
    calls = [
        call(one + 1, start_ns=(body_ms + rest_ms) * MS * one + MS // 2,
             end_ns=(body_ms + rest_ms) * MS * one + MS // 2 + int(body_ms * MS))
        for one in range(count)
    ]  # fmt: skip
    stack = {"id": 1, "frames": json.dumps([[FILE, line + 1, "<module>", ""], [FILE, line, "parse", ""]])}
    path = written(
        tmp_path / "a.pfrec", source, {"clock": {"monotonic_ns": 0, "wall_ns": 0}}, stack=[stack], call=calls,
        node=[node(1, "bad", line=3, stack=1, kind="py_func")],
        notice=[{**one, "id": place + 1} for place, one in enumerate(notices)],
    )  # fmt: skip
    return Recording(path).findings(select=["input-bound", "doctor-trouble"])


def runs(count=40, each=25):
    return [(each * one, each * one + each - 0.1) for one in range(count)]


def test_a_map_without_anything_ahead(tmp_path):
    (one,) = found(tmp_path, MAPPED, [noticed(runs(), kinds=DATASET)], line=7)
    assert "bad ran for 80 % of the time of the session's runs at train.py:11 (20.00 of 24.90 ms a run, 39 runs)" in (
        one.message
    )
    assert "they wait for it, as nothing in its Dataset works ahead" in one.message
    assert "range(100).map(parse, num_parallel_calls=tf.data.AUTOTUNE).batch(1)" in one.fix


def test_a_prefetch_where_the_step_takes_as_long(tmp_path):
    (one,) = found(
        tmp_path, MAPPED.replace("    time", "    global seen\n    time"), [noticed(runs(), 12, kinds=DATASET)], 15,
        rest_ms=10, line=7,
    )  # fmt: skip
    assert "without it they would be x2.5" in one.message
    assert "tf.data.make_one_shot_iterator(ds.prefetch(1)).get_next()" in one.fix


@pytest.mark.parametrize(
    ("late", "words"),
    [(False, "nothing of the model comes into bad"), (True, "it gets what the model gives, and cannot run ahead")],
)
def test_a_body_in_the_graph_of_the_step(tmp_path, late, words):
    (one,) = found(tmp_path, MAPPED, [noticed(runs(), late=late)])
    assert "it is a part of the graph that they run, and a faster model would not help" in one.message
    assert words in one.fix


@pytest.mark.parametrize(
    ("batch", "fix"),
    [
        ("shuffle_batch([row], 8, 64, 16)", "x = tf.train.shuffle_batch([row], 8, 64, 16, num_threads=4)"),
        ("shuffle_batch([row], 8, 64, 16, num_threads=1)", "tf.train.shuffle_batch([row], 8, 64, 16, num_threads=4)"),
        ("batch([row], 8)", "num_threads=4 for tf.train.batch, if its elements may come in another order"),
        ("batch([row], 8, num_threads=8)", "make a call of bad cost less, or let several of its calls run at once"),
    ],
)
def test_a_queue(tmp_path, batch, fix):
    (one,) = found(tmp_path, QUEUE.format(batch), [noticed(runs(), 8, kinds=["Queue"])], 24, rest_ms=1)
    assert "the input sets their pace, a faster model would not help" in one.message
    assert one.confidence == "likely"
    assert fix in one.fix


@pytest.mark.parametrize(
    ("notices", "body_ms", "rest_ms"),
    [
        ([noticed(runs(), kinds=DATASET)], 5, 20),  # a fifth of each run
        ([noticed(runs(), late=True)], 5, 20),
        ([noticed(runs(), kinds=["Queue"])], 17, 8),  # it rests: nobody waits for it
        ([noticed(runs(), kinds=[*DATASET, "PrefetchDataset"])], 17, 8),
        ([noticed(runs(8), kinds=DATASET)], 20, 5),  # few runs
        ([noticed(runs(40, 2), kinds=DATASET)], 1, 1),  # a short time
        ([noticed(runs(), kinds=DATASET, ways=(("pyfunc_1",), ()))], 20, 5),  # of two iterators, one has no body
        ([noticed([(5000 + begin, 5000 + end) for begin, end in runs()], kinds=DATASET)], 20, 5),  # between the runs
    ],
)
def test_runs_that_do_not_wait(tmp_path, notices, body_ms, rest_ms):
    assert not list(found(tmp_path, MAPPED, notices, body_ms, rest_ms=rest_ms))


def test_it_is_said_once_where_it_waits_longest(tmp_path):
    both = [noticed(runs()[:14], 3, kinds=DATASET, fetches=["loss"]), noticed(runs()[14:], kinds=DATASET)]
    (one,) = found(tmp_path, MAPPED, both, line=7)
    assert one.line == 11
