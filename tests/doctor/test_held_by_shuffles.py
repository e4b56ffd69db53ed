"""A shuffle that holds large elements is named, with what it would hold before the map that makes them."""

from __future__ import annotations

import pytest

from tests.doctor.pasting import pasted
from tests.doctor.recordings import FILE
from tests.doctor.test_recomputed import SOURCE, found, stage

MAP = "map(lambda x: tf.py_function(bad, [x], tf.float32))"
MB = 1_000_000


def named(tmp_path, made, stages, nbytes=20 * MB, given=40, iterators=1):
    """The findings of memory for a third line that makes the dataset, of which a call returned as many bytes."""
    source = SOURCE.replace(f"data = names.{MAP}", made)
    loop = {"site": [FILE, 3, ""], "stages": [*stages, stage("TensorSlice")], "iterators": iterators, "taken": 15}
    told = found(
        tmp_path, range(20), source=source, inputs=[loop], nbytes=nbytes, given_bytes=given,
        rules=["memory", "doctor-trouble"],
    )  # fmt: skip
    return source, told


def shuffle(buffer):
    return {**stage("ShuffleV3"), "buffer": buffer}


BODY = stage("Map", ["pyfunc_1"])


@pytest.mark.parametrize(
    ("made", "between", "after"),
    [
        (f"data = names.{MAP}.shuffle(50)", [], f"data = names.shuffle(50).{MAP}"),
        (f"data = names.{MAP}.map(str).shuffle(50, seed=1).batch(2)", [stage("ParallelMapV2")],
         f"data = names.shuffle(50, seed=1).{MAP}.map(str).batch(2)"),
    ],
)  # fmt: skip
def test_the_shuffle_goes_before_the_maps(tmp_path, made, between, after):
    source, (one,) = named(tmp_path, made, [shuffle(50), *between, BODY])
    assert (one.rule, one.severity, one.line) == ("memory", "note", 3)
    assert "a .shuffle(50) behind the map holds in memory what bad gave for 20 elements, some 400 MB" in one.message
    assert "Before the map it holds what bad gets, 1 kB" in one.message
    assert pasted(source, one.fix) == source.replace(made, after)


def test_a_buffer_that_is_smaller_than_the_data_is_counted(tmp_path):
    _, (one,) = named(tmp_path, f"data = names.{MAP}.shuffle(16)", [shuffle(16), BODY])
    assert "what bad gave for 16 elements, some 320 MB" in one.message


def test_a_shuffle_of_batches_stays_where_it_is(tmp_path):
    _, (one,) = named(tmp_path, f"data = names.{MAP}.batch(2).shuffle(9)", [shuffle(9), stage("Batch", batch=2), BODY])
    assert "what bad gave for 18 elements, some 360 MB" in one.message
    assert one.fix == ".shuffle(9) before the map: of paths or numbers"


@pytest.mark.parametrize(
    ("stages", "options"),
    [
        ([shuffle(50), BODY], {"nbytes": 2 * MB}),
        ([shuffle(5), BODY], {}),
        ([shuffle(50), BODY], {"iterators": 4}),  # five elements in a pass
        ([shuffle(50), BODY], {"given": 10 * MB}),  # before the map it holds half of that
        ([shuffle(50), stage("Cache"), BODY], {}),  # the cache holds the same arrays
        ([shuffle(50), stage("Filter"), BODY], {}),  # which may have dropped them
        ([BODY, shuffle(50)], {}),
    ],
)
def test_nothing_is_said_of_a_shuffle_that_holds_little_more(tmp_path, stages, options):
    _, told = named(tmp_path, f"data = names.{MAP}.shuffle(50)", stages, **options)
    assert [one.message for one in told if ".shuffle(" in one.message or one.rule != "memory"] == []
