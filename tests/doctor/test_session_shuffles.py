"""A shuffle that a session of TensorFlow 1 waits for is named, as is one that was never full; others are left alone."""

from __future__ import annotations

import json

import pytest

from pyfunc_debug.api.recording import Recording
from pyfunc_debug.records import FROM_GENERATOR
from tests.doctor.pasting import pasted
from tests.doctor.recordings import FILE, call, node, written

MS = 1_000_000
HEAD = "import tensorflow.compat.v1 as tf\n"
GENERATOR = (
    HEAD
    + """SIZE = 600
def bad():
    while True:
        yield read()
def input_fn():
    ds = tf.data.Dataset.from_generator(bad, tf.float32)
    ds = ds.map(parse)
    ds = ds.shuffle({size})
    ds = ds.batch(8)
    return tf.data.make_one_shot_iterator(ds).get_next()
x = input_fn()
"""
)
MAPPED = (
    HEAD
    + """ds = tf.data.Dataset.range(5000).map(lambda i: tf.py_func(bad, [i], tf.float32)).shuffle(600).batch(8)
x = tf.data.make_one_shot_iterator(ds).get_next()
"""
)


def found(tmp_path, source: str, calls: int, *, line: int, generates: bool = True, begins: tuple[int, ...] = (0,)):
    """Findings of a recording: a call each 10 ms, and when passes began, after how many calls."""
    stack = {"id": 1, "frames": json.dumps([[FILE, line, "input_fn", ""]])}
    origin = "tensorflow" if generates else "user"
    functions = [
        {"id": 1, "name": FROM_GENERATOR, "kind": "tf.data", "file": FILE, "line": line, "origin": "tensorflow"},
        {"id": 2, "name": "next", "kind": "tf.data", "file": FILE, "line": line, "origin": "tensorflow"},
    ]
    nodes = [node(1, "bad", line=3, stack=1, function=1 if generates else 2, origin=origin)]
    rows = [call(one + 1, start_ns=10 * MS * one, end_ns=10 * MS * one + 9 * MS) for one in range(calls)]
    if generates:
        nodes.append(node(2, "_GeneratorState.get_next_id", stack=1, function=2, origin=origin))
        rows += [
            call(calls + 1 + at, 2, start_ns=10 * MS * begin - 1, end_ns=10 * MS * begin)
            for at, begin in enumerate(begins)
        ]
    path = written(
        tmp_path / "a.pfrec", source, {"clock": {"monotonic_ns": 0, "wall_ns": 0}}, node=nodes, call=rows,
        stack=[stack], function=functions,
    )  # fmt: skip
    return Recording(path).findings(select=["late-shuffle", "doctor-trouble"])


@pytest.mark.parametrize("size", ["600", "SIZE", "buffer_size=SIZE"])
def test_a_shuffle_of_a_generator_is_named_with_a_smaller_buffer(tmp_path, size):
    source = GENERATOR.format(size=size)
    (one,) = found(tmp_path, source, 700, line=7)
    assert (one.rule, one.line) == ("late-shuffle", 9)
    assert one.message.startswith("the first element came no sooner than after 6.0 s")
    assert "shuffle(600) gives nothing until it holds as many elements" in one.message
    assert one.message.endswith("bad takes 9.0 ms for each. Of 700 elements at most 101 left it")
    smaller = f"shuffle({size})".replace("600", "256").replace("SIZE", "256")
    assert pasted(source, one.fix) == source.replace(f"shuffle({size})", smaller)
    assert "mixes 256 elements at a time, not 600" in one.evidence[0]


def test_one_that_was_never_full_is_named_where_the_program_ended(tmp_path):
    (one,) = found(tmp_path, GENERATOR.format(size=65536), 700, line=7)
    assert one.message.startswith("no element came in 7.0 s")
    assert "It held 700 when the program ended, and was still being filled" in one.message
    assert "ds.shuffle(256)" in one.fix


def test_one_behind_a_map_is_named(tmp_path):
    (one,) = found(tmp_path, MAPPED, 700, line=2, generates=False)
    assert "the first element came no sooner than after 6.0 s" in one.message
    assert ".shuffle(256).batch(8)" in one.fix


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ds = ds.shuffle", "ds.shuffle"),  # a dataset that nobody reads
        ("ds = ds.shuffle", "mixed = ds.shuffle"),
        ("ds.map(parse)", "ds.batch(2)"),
        ("ds.map(parse)", "ds.filter(parse)"),
        ("ds.map(parse)", "ds.flat_map(parse)"),
        ("tf.data.make_one_shot_iterator(ds).get_next()", "ds"),
        ("SIZE", "size()"),
        ("SIZE)", "SIZE) if mixed else ds"),
        ("x = input_fn()", "x = input_fn()\ny = tf.data.make_one_shot_iterator(other).get_next()"),
    ],
)
def test_what_the_source_does_not_show_is_left_alone(tmp_path, old, new):
    source = GENERATOR.format(size="SIZE")
    changed = source[: source.index("def")] + source[source.index("def") :].replace(old, new)
    assert changed != source
    assert found(tmp_path, changed, 700, line=7) == []


def test_a_buffer_that_holds_all_of_a_pass_is_left_alone(tmp_path):
    assert found(tmp_path, GENERATOR.format(size=600), 1200, line=7, begins=(0, 400, 800)) == []


def test_a_later_pass_changes_nothing(tmp_path):
    (one,) = found(tmp_path, GENERATOR.format(size=600), 1400, line=7, begins=(0, 900))
    assert "the first element came no sooner than after 6.0 s" in one.message


@pytest.mark.parametrize(("calls", "size"), [(700, 100), (15, 600), (700, 10)])
def test_a_short_wait_is_left_alone(tmp_path, calls, size):
    assert found(tmp_path, GENERATOR.format(size=size), calls, line=7) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [(".batch(8)", ".batch(8).repeat()"), ("make_one_shot_iterator", "make_initializable_iterator")],
)
def test_a_map_whose_passes_are_not_known_is_left_alone(tmp_path, old, new):
    assert found(tmp_path, MAPPED.replace(old, new), 700, line=2, generates=False) == []
