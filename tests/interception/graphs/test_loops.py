"""What is kept of the loops over datasets: one entry for each line and pipeline, also where sizes in it change."""

from __future__ import annotations

import contextlib

import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.pfrec.reader import Reader


def stages(program):
    """The stages of each loop that a program made."""
    recording = pfd.record()
    with recording:
        program()
    with contextlib.closing(Reader(recording.path)) as reader:
        return [loop["stages"] for loop in Facts(reader).meta["inputs"]]


def test_the_size_of_a_take_is_kept():
    found = stages(lambda: list(tf.data.Dataset.range(8).shuffle(5).take(3)))
    assert [(one.get("takes"), one.get("buffer")) for one in found[0]][:2] == [(3, None), (None, 5)]


def test_takes_of_other_sizes_are_one_loop_without_a_size():
    def program():
        for count in (1, 2, 3):
            for _ in tf.data.Dataset.range(8).shuffle(5).take(count):
                pass

    (found,) = stages(program)
    assert [(one["kind"], one.get("takes"), one.get("buffer")) for one in found][:2] == [
        ("Take", None, None), ("Shuffle", None, 5),
    ]  # fmt: skip


def test_the_sizes_of_a_skip_and_a_shard_are_kept():
    found = stages(lambda: list(tf.data.Dataset.range(8).shard(2, 1).skip(3)))
    assert [(one.get("skips"), one.get("shards")) for one in found[0]][:2] == [(3, None), (None, 2)]
