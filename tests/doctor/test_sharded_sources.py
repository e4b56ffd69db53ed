"""Shards of a generator that takes from one queue drop items: told with how many, and the paste brings all of them."""

from __future__ import annotations

import contextlib
import io

import pytest

import pyfunc_debug as pfd
from tests.doctor.pasting import pasted

QUEUE = """
import queue
import tensorflow as tf
q = queue.Queue()
for item in [*range(12), None, None]:
    q.put(item)
def gen():
    while True:
        item = q.get()
        if item is None:
            return
        yield item
dataset = tf.data.Dataset.from_generator(gen, output_signature=tf.TensorSpec((), tf.int32))
first = dataset.shard(num_shards=2, index=0)
second = dataset.shard(num_shards=2, index=1)
out = []
for pair in tf.data.Dataset.zip((first, second)):
    out += [int(one) for one in pair]
"""
FILE = """
import tensorflow as tf
with open("rows.txt", "w") as file:
    file.writelines(f"{row}\\n" for row in range(20))
rows = open("rows.txt")

def read():
    for row in rows:
        yield float(row)
ds = tf.data.Dataset.from_generator(read, output_signature=tf.TensorSpec((), tf.float32))
runs, out = [iter(ds.shard(2, i)) for i in range(2)], []
for _ in range(21):
    out += [float(item) for run in runs if (item := next(run, None)) is not None]
"""
OBJECT = """
import collections
import tensorflow as tf
class Jobs:
    def __init__(self, count):
        self.left = collections.deque(range(count))

    def __call__(self):
        while self.left:
            yield self.left.popleft()
jobs = tf.data.Dataset.from_generator(Jobs(12), output_signature=tf.TensorSpec((), tf.int32))
parts, out = [jobs.shard(3, place) for place in range(3)], []
for one in tf.data.Dataset.zip(tuple(parts)):
    out += map(int, one)
"""
STREAM = """
import tensorflow as tf
def numbers():
    yield from range(12)
class Stream:
    def __init__(self):
        self.rows = iter(sorted(numbers()))
    def items(self):
        for _ in range(12):
            row = next(self.rows, None)
            if row is None:
                return
            yield row
stream = tf.data.Dataset.from_generator(Stream().items, output_signature=tf.TensorSpec((), tf.int32))
a, b = stream.shard(2, 0), stream.shard(2, 1)
runs, out = [iter(a), iter(b)], []
for _ in range(13):
    out += [int(item) for run in runs if (item := next(run, None)) is not None]
"""
BY_TURNS = """
runs = [iter(first), iter(second)]
for _ in range(7):
    out += [int(item) for run in runs if (item := next(run, None)) is not None]
"""
IN_TURN = """
import queue
import tensorflow as tf
todo = queue.Queue()
for item in [*range(12), None, None]:
    todo.put(item)

def gen():
    yield from iter(todo.get, None)
dataset = tf.data.Dataset.from_generator(gen, output_signature=tf.TensorSpec((), tf.int32))
out = []
for x in dataset.shard(2, 0):
    out.append(int(x))
for x in dataset.shard(2, 1):
    out.append(int(x))
"""


def found(source, path):
    """What is found in a program, and its names."""
    path.write_text(source)
    names = {}
    with contextlib.redirect_stdout(io.StringIO()), pfd.record(gil=False) as recording:
        exec(compile(source, str(path), "exec"), names)
    return [one for one in recording.findings() if one.rule in ("shared-state", "doctor-trouble")], names


@pytest.mark.parametrize(
    ("source", "says", "count"),
    [
        (QUEUE, "2 runs of gen were open at once, and all take their items from q: what one has taken", 12),
        (FILE, "all take their items from rows: what one has taken no other sees. shard keeps one of 2 items", 20),
        (OBJECT, "3 runs of Jobs were open at once, and all take their items from self.left", 12),
        (STREAM, "all take their items from self.rows", 12),
    ],
    ids=["queue", "file", "object", "stream"],
)
def test_items_that_reach_nobody_are_told_of_and_the_paste_brings_them(source, says, count, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (one,), names = found(source, tmp_path / "program.py")
    assert says in one.message
    assert len(names["out"]) < count
    better = pasted(source, one.fix)
    assert "shard" not in better
    after, names = found(better, tmp_path / "better.py")
    assert after == []
    assert sorted(names["out"]) == list(range(count))


def test_how_many_came_out_is_counted_where_shard_is_the_last_stage(tmp_path):
    source = QUEUE.partition("for pair")[0] + BY_TURNS
    (one,), names = found(source, tmp_path / "program.py")
    assert f"The runs took 12 items, and {len(names['out'])} came out of the datasets" in one.message


def test_shards_one_after_the_other_leave_nothing_to_the_second(tmp_path):
    (one,), names = found(IN_TURN, tmp_path / "program.py")
    assert names["out"] == list(range(0, 12, 2))
    assert "the first run of gen took all items from todo, and the later ones got none. shard keeps" in one.message
    assert "enumerate(dataset)" in one.fix


SILENT = {
    "a_queue_of_work": QUEUE.replace(".shard(num_shards=2, index=0)", "").replace(".shard(num_shards=2, index=1)", ""),
    "a_queue_for_each_run": QUEUE.replace(
        "    while True:\n", "    q = queue.Queue()\n    [q.put(one) for one in [*range(12), None]]\n    while True:\n"
    ),
    "filled_by_each_run": IN_TURN.replace(
        "    yield from", "    for one in [*range(12), None]:\n        todo.put(one)\n    yield from"
    ).replace("[*range(12), None, None]:\n    todo", "[]:\n    todo"),
    "a_list": FILE.replace('open("rows.txt")\n', 'list(open("rows.txt"))\n'),
    "begun_again": FILE.replace("    for row in rows:", "    rows.seek(0)\n    for row in rows.readlines():"),
    "a_dict": OBJECT.replace("while self.left:", "for one in range(12):")
    .replace("self.left.popleft()", "self.left.get(one)")
    .replace("collections.deque(range(count))", "dict.fromkeys(range(count), 1)"),
    "without_an_end": STREAM.replace("iter(sorted(numbers()))", "itertools.count()")
    .replace("import tensorflow", "import itertools\nimport tensorflow"),
}  # fmt: skip


@pytest.mark.parametrize("name", SILENT)
def test_else_there_is_silence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found_, names = found(SILENT[name], tmp_path / f"{name}.py")
    assert names["out"]
    assert [one.message for one in found_] == []
