"""A generator that gives one small element at a time is told, with batches made in Python to paste."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf

from pyfunc_debug.api.recording import Recording
from tests.doctor.pasting import pasted
from tests.doctor.recordings import FILE, THREADS, call, node, written

PICKS = """import numpy as np
import tensorflow as tf
rows = np.arange(12, dtype=np.float32).reshape(6, 2)
def gen():
    for i in range(len(rows)):
        yield rows[i], np.int64(i)
SPEC = (tf.TensorSpec([2], tf.float32), tf.TensorSpec([], tf.int64))
data = tf.data.Dataset.from_generator(gen, output_signature=SPEC)
batches = [tuple(part.numpy() for part in one) for one in data.batch(4)]
"""
CHAIN = PICKS.replace("data = ", "data = (").replace("output_signature=SPEC)\n", "output_signature=SPEC).batch(4))\n")
CHAIN = CHAIN.replace("data.batch(4)", "data")
READS = PICKS.replace("yield rows[i], np.int64(i)", "yield np.load(rows[i]), np.int64(i)")


def recording(
    tmp_path,
    source,
    count=3000,
    us=700,
    kinds=("Batch", "FlatMap", "Tensor"),
    batch=4,
    others=None,
    idle_s=0.0,
    waited_s=0.0,
):
    kept = [{"kind": kind, "parallel": None, "batch": batch if kind == "Batch" else None,
             "tokens": ["pyfunc_1"] * (kind == "FlatMap")} for kind in kinds]  # fmt: skip
    entry = {"site": [FILE, 9, "<module>"], "pool": None, "iterators": 1, "taken": 0, "empty": 0, "first_ns": 0,
             "steps": 0, "step_ns": 0, "wait_ns": int(waited_s * 1e9), "longest_ns": 0, "stages": kept}  # fmt: skip
    line = source.split("\n").index("def gen():") + 1
    made = next(i for i, text in enumerate(source.split("\n"), 1) if "from_generator" in text)
    calls = [call(i, start_ns=i * us * 1000, end_ns=(i + 1) * us * 1000) for i in range(1, count + 1)]
    end = int((count + 2) * us * 1000 + (idle_s + waited_s / 3) * 1e9)
    return written(
        tmp_path / "a.pfrec", source, {"inputs": [entry], "end_ns": end, "others": others,
                                       "clock": {"monotonic_ns": 0, "wall_ns": 0}},
        thread=THREADS, call=calls, stack=[{"id": 1, "frames": json.dumps([[FILE, made, "<module>", ""]])}],
        node=[node(body="gen", line=line, stack=1, origin="tensorflow", tout=json.dumps(["float32", "int64"]))],
    )  # fmt: skip


@pytest.mark.parametrize(
    "source", [PICKS, CHAIN, PICKS.replace("(gen, ", "(lambda: gen(), ")], ids=["apart", "chain", "lambda"]
)
def test_it_is_told_and_the_paste_gives_the_same_batches(tmp_path, source):
    (found,) = Recording(recording(tmp_path, source)).findings(select=["single-elements"])
    assert "gen gives one element at a time: its 3,000 elements of 2 values took 2.1 s of 2.1 s" in found.message
    before, after = {}, {}
    exec(source, before)
    exec(pasted(source, found.fix), after)
    assert len(before["batches"]) == len(after["batches"]) == 2
    for one, other in zip(before["batches"], after["batches"]):
        for left, right in zip(one, other):
            np.testing.assert_array_equal(left, right)
            assert left.dtype == right.dtype
    assert isinstance(next(iter(after["data"]))[0], tf.Tensor)


@pytest.mark.parametrize(
    "options",
    [
        {"source": READS},  # its own work
        {"count": 1000},
        {"us": 3000},  # an element takes long
        {"us": 100},  # 0.3 s in all
        {"idle_s": 10.0},  # a small part of the program
        {"kinds": ("Batch", "Map", "FlatMap", "Tensor")},  # a map of single elements in between
        {"kinds": ("Map", "FlatMap", "Tensor")},
        {"others": 0.9},  # a busy machine
        {"us": 100, "waited_s": 0.5},
        {"us": 100, "waited_s": 3.0, "idle_s": 10.0},  # a small part of the program
    ],
)
def test_nothing_is_told_where_batches_would_not_help(tmp_path, options):
    source = options.pop("source", PICKS) if "source" in options else PICKS
    assert Recording(recording(tmp_path, source, **options)).findings(select=["single-elements"]) == []


SHARED = PICKS.replace("data.batch(4)]", "both(data)]").replace(
    "SPEC = ", "def both(one):\n    return one.batch(4)\nSPEC = "
)
SCALARS = """import numpy as np
import tensorflow as tf
count = 2
def gen():
    for i in range(6):
        yield np.float32(i), np.int64(i)
data = tf.data.Dataset.from_generator(gen, output_types=(tf.float32, tf.int64), output_shapes=((),) * count)
batches = [tuple(part.numpy() for part in one) for one in data.batch(4)]
"""


@pytest.mark.parametrize(
    "source",
    [SHARED, SCALARS, PICKS.replace("data.batch(4)", "data.batch(4, drop_remainder=True)")],
    ids=["of_any_dataset", "shapes_by_number", "whole_ones"],
)
def test_the_paste_gives_the_same_batches_where_the_batch_cannot_be_left_out(tmp_path, source):
    (found,) = Recording(recording(tmp_path, source)).findings(select=["single-elements"])
    assert (".unbatch()" in found.fix) is (source is not SCALARS)
    before, after = {}, {}
    exec(source, before)
    exec(pasted(source, found.fix), after)
    assert len(before["batches"]) == len(after["batches"])
    for one, other in zip(before["batches"], after["batches"]):
        for left, right in zip(one, other):
            np.testing.assert_array_equal(left, right)


def test_a_loop_that_waits_for_a_few_thousand_is_told(tmp_path):
    (found,) = Recording(recording(tmp_path, PICKS, us=400, waited_s=1.5)).findings(select=["single-elements"])
    assert "its 3,000 elements of 2 values kept a loop waiting 1.5 s of 1.7 s" in found.message


def test_where_it_cannot_be_pasted_it_is_said_in_words(tmp_path):
    source = PICKS.replace("output_signature=SPEC", "args=[], output_signature=SPEC")
    (found,) = Recording(recording(tmp_path, source)).findings(select=["single-elements"])
    assert found.fix == "yield arrays of 4 elements in gen, and leave out .batch(4)"


ARRAY = """import numpy as np
import tensorflow as tf
rows = np.arange(10, dtype=np.uint16)
def gen():
    return iter(rows)
data = tf.data.Dataset.from_generator(generator=gen, output_signature=tf.TensorSpec(shape=(), dtype=tf.uint16))
batches = [(one.numpy(),) for one in data.batch(4)]
"""
TABLE = ARRAY.replace("uint16)\ndef", "uint16).reshape(5, 2)\ndef").replace("shape=()", "shape=(2,)")
LOOP = ARRAY.replace("return iter(rows)", "for row in rows:\n        yield row")
INDEX = ARRAY.replace("return iter(rows)", "for i in range(len(rows)):\n        yield rows[i]")
OLDER = ARRAY.replace(
    "output_signature=tf.TensorSpec(shape=(), dtype=tf.uint16)", "output_types=tf.uint16, output_shapes=[]"
)


@pytest.mark.parametrize("source", [ARRAY, TABLE, LOOP, INDEX, OLDER], ids=["iter", "table", "loop", "index", "older"])
def test_slices_of_an_array_give_the_same_batches(tmp_path, source):
    (found,) = Recording(recording(tmp_path, source)).findings(select=["single-elements"])
    assert "in_batches" not in found.fix
    assert ".unbatch()" in found.fix
    assert "4096" in found.fix
    before, after = {}, {}
    exec(source, before)
    exec(pasted(source, found.fix), after)
    assert len(before["batches"]) == len(after["batches"])
    for one, other in zip(before["batches"], after["batches"]):
        np.testing.assert_array_equal(one[0], other[0])
        assert one[0].dtype == other[0].dtype


@pytest.mark.parametrize(
    "source",
    [
        ARRAY.replace("np.arange(10, dtype=np.uint16)", "[1, 2, 3]"),  # a list has no rows of one dtype
        ARRAY.replace("def gen", "rows = list(rows)\ndef gen"),
        LOOP.replace("yield row\n", "yield row + 1\n"),
        INDEX.replace("range(len(rows))", "range(5)"),
        ARRAY.replace("shape=()", "shape=(600, 600)"),  # few of them are large already
    ],
    ids=["list", "rebound", "computed", "some", "large"],
)
def test_other_generators_are_not_cut_into_slices(tmp_path, source):
    found = Recording(recording(tmp_path, source)).findings(select=["single-elements"])
    assert all("4096" not in one.fix for one in found)
