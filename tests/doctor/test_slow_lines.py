"""The line that a body was seen in, of real recordings, and what is said of it."""

from __future__ import annotations

import gc
import threading
from itertools import takewhile

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.doctor.bodies import slow_lines
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.recorder.seen_lines import SeenLines
from tests.doctor.pasting import pasted

HEAD = """
import gc, json, os, time
import numpy as np
import pandas as pd
import tensorflow as tf

"""
MAPPED = """
data = tf.data.Dataset.range(12).map(lambda i: tf.numpy_function(body, [i], tf.float32))
for epoch in epochs():
    for one in data:
        pass
"""
SEARCHED = """
kept = [[] for _ in range(2_000_000)]

def body(i):
    x = np.float32(i)
    gc.collect()
    return x
"""
INDEXED = """
words = [f"w{i}" for i in range(400_000)]

def body(i):
    found = 0
    for word in words[-20:]:
        found += words.index(word)
    return np.float32(found)
"""
LOADED = """
with open("table.json", "w") as file:
    json.dump([list(range(20_000))] * 40, file)

def load(name):
    with open(name) as file:
        return json.load(file)

def body(i):
    table = load("table.json")
    return np.float32(table[0][i])
"""
ROWS = """
table = pd.DataFrame(np.ones((400, 4)), columns=list("abcd"))

def rows():
    for _, row in table.iterrows():
        yield np.float32([row[name] + row.drop(name).sum() for name in "abcd"].pop())
"""
GENERATED = """
data = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((), tf.float32))
for epoch in epochs():
    for one in data:
        pass
"""
ENOUGH = 20
"""Looks at a body, on a machine of any speed, after which its program may end."""
EVEN = """
def body(i):
    time.sleep(0.013)
    time.sleep(0.013)
    time.sleep(0.013)
    time.sleep(0.013)
    time.sleep(0.013)
    return np.float32(i)
"""


def recorded(text, tmp_path, monkeypatch):
    """Facts of a program, and its one body of the user's or generator."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "program.py"
    path.write_text(text)
    gc.collect()  # the objects of programs before this one, which would else be looked for while a line is at work
    looks, look = [0], SeenLines.look

    def counted(self):
        look(self)
        looks[0] = max((body.looks for body in self._seen.values()), default=0)

    monkeypatch.setattr(SeenLines, "look", counted)
    with pfd.record(gil=False) as recording:
        epochs = lambda: takewhile(lambda epoch: looks[0] < ENOUGH, range(1000))  # noqa: E731
        exec(compile(text, str(path), "exec"), {"__name__": "__main__", "epochs": epochs})
    facts = Facts(recording._reader)
    facts.recording = recording  # which would be closed when it is gone
    (node,) = [one for one in facts.nodes.values() if one.body in ("body", "rows")]
    return facts, node


@pytest.mark.parametrize(
    ("program", "line", "fix"),
    [
        (HEAD + SEARCHED + MAPPED, "gc.collect()", "without gc.collect()"),
        (HEAD + INDEXED + MAPPED, "found += words.index(word)", "found += place_in_words[word]"),
        (HEAD + LOADED + MAPPED, "return json.load(file)", ""),
        (HEAD + ROWS + GENERATED, "", "itertuples(index=False) in place of iterrows()"),
    ],
    ids=["search", "index", "load", "rows"],
)
def test_the_line_is_named(program, line, fix, tmp_path, monkeypatch):
    facts, node = recorded(program, tmp_path, monkeypatch)
    if line:
        found = slow_lines.slowest(facts, node)
        assert found is not None
        assert line in program.split("\n")[found.line - 1]
        assert f"was in line {found.line} for some" in slow_lines.said(facts, node)
    cure = slow_lines.cure(facts, node)
    assert fix in cure
    if cure.startswith(("Put", "Replace")):
        mended = pasted(program, cure)
        assert mended != program
        if "words" in cure:  # the same as before
            values = {}
            exec(program.split("data =")[0] + "a = body(0)", values)
            before = values["a"]
            exec(mended.split("data =")[0] + "a = body(0)", values)
            assert values["a"] == before


PARALLEL = """
def body(i):
    x = np.zeros(40)
    rows = [list(range(400)) for _ in range(8)]
    for _ in range(6):
        for row in rows:
            for one in row:
                x[one % 40] += one
    return np.float32(x[0])

data = tf.data.Dataset.range(300).map(lambda i: tf.numpy_function(body, [i], tf.float32), num_parallel_calls=4)
for epoch in epochs():
    for one in data:
        pass
"""


def test_nothing_is_said_of_bodies_that_wait_for_each_other(tmp_path, monkeypatch):
    facts, node = recorded(HEAD + PARALLEL, tmp_path, monkeypatch)
    found = slow_lines.slowest(facts, node)
    assert found is None or "x[one % 40]" in (HEAD + PARALLEL).split("\n")[found.line - 1]


def test_a_body_without_one_slow_line_has_none(tmp_path, monkeypatch):
    facts, node = recorded(HEAD + EVEN + MAPPED, tmp_path, monkeypatch)
    assert slow_lines.slowest(facts, node) is None
    assert slow_lines.said(facts, node) == slow_lines.cure(facts, node) == ""


def test_nobody_looks_any_more_when_it_is_over():
    with pfd.record():
        names = {one.name for one in threading.enumerate()}
        assert "pyfunc_debug lines" in names
    assert "pyfunc_debug lines" not in {one.name for one in threading.enumerate()}
