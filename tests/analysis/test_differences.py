"""Two recordings of the same program, and of programs that differ in one planted thing."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pyfunc_debug as pfd


def record(values, body, inputs, parallel=1, **options):
    def twice(x):
        return body(x)

    data = tf.data.Dataset.from_tensor_slices(np.asarray(inputs, np.float32))
    mapped = data.map(
        lambda x: tf.numpy_function(twice, [x], tf.float32), num_parallel_calls=parallel, deterministic=False
    )
    with pfd.record(values=values, gil=False) as recording:
        list(mapped)
    return recording


def double(x):
    return x * np.float32(2)


def off_at_three(x):
    return x * np.float32(2) + (np.float32(1) if x == 3 else np.float32(0))


def nearly(x):
    return x * np.float32(2) * np.float32(1 + 1e-6)


@pytest.mark.parametrize("values", ["summary", "full"])
def test_equal_programs_are_equal(values):
    left, right = (record(values, double, range(5)) for _ in range(2))
    found = left.diff(right)
    assert dict(found.counts) == {"equal": 5}
    assert not found
    assert found.first is None
    assert "5 equal" in str(found)


@pytest.mark.parametrize("values", ["summary", "full"])
def test_first_different_call_is_found_with_both_values(values):
    found = record(values, double, range(5)).diff(record(values, off_at_three, range(5)))
    assert dict(found.counts) == {"equal": 4, "different": 1}
    assert found
    assert (found.first.number, found.first.left, found.first.right) == (4, 4, 4)
    (output,) = [value for value in found.first.values if value.status != "equal"]
    assert (output.role, output.status) == ("output", "different")
    assert "6" in output.left
    assert "7" in output.right
    assert output.largest == (1.0 if values == "full" else None)
    assert "different" in str(found)
    assert "<table>" in found._repr_html_()


@pytest.mark.parametrize("values", ["summary", "full"])
def test_close_is_told_from_equal_and_different(values):
    left, right = record(values, double, range(1, 4)), record(values, nearly, range(1, 4))
    assert dict(left.diff(right).counts) == {"close": 3}
    assert dict(left.diff(right, rtol=1e-9).counts) == {"different": 3}


def test_missing_calls_are_told_on_their_side():
    left, right = record("summary", double, range(5)), record("summary", double, range(3))
    found = left.diff(right)
    assert dict(found.counts) == {"equal": 3, "missing": 2}
    assert [(row.left, row.right) for row in found.rows] == [(4, None), (5, None)]
    assert dict(right.diff(left).counts) == {"equal": 3, "missing": 2}


def test_parallel_calls_are_paired_by_inputs():
    left, right = record("full", double, range(40), 1), record("full", double, list(range(40))[::-1], 4)
    assert dict(left.diff(right).counts) == {"equal": 40}


def test_without_values_it_does_not_claim_equality():
    left, right = (record("shape", double, range(3)) for _ in range(2))
    assert dict(left.diff(right).counts) == {"unknown": 3}


def test_failures_differ_from_results():
    def fails(x):
        if x == 2:
            raise ValueError("two")
        return double(x)

    with pytest.raises(tf.errors.InvalidArgumentError):
        record("summary", fails, range(3))

    left = record("summary", double, range(3))
    data = tf.data.Dataset.range(3).map(lambda x: tf.cast(x, tf.float32))

    def twice(x):
        return fails(x)

    with pfd.record(gil=False) as right:
        mapped = data.map(lambda x: tf.numpy_function(twice, [x], tf.float32))
        with pytest.raises(tf.errors.InvalidArgumentError):
            list(mapped)
    row = left.diff_calls(3, right.call(3))
    assert row.status == "different"
    assert "ValueError" in row.note


def test_two_calls_of_one_recording():
    recording = record("full", double, [1.0, 1.0, 2.0])
    assert recording.diff_calls(1, 2).status == "equal"
    assert recording.diff_calls(1, 3).status == "different"
    assert "input x" in str(recording.diff_calls(1, 3))


def test_a_file_can_be_given(tmp_path):
    left = record("full", double, range(2))
    with pfd.record(tmp_path / "other.pfrec", gil=False):
        pass
    assert dict(left.diff(tmp_path / "other.pfrec").counts) == {"missing": 2}
    with pytest.raises(pfd.BadRecordingError):
        left.diff(tmp_path / "none.pfrec")


def test_nan_equals_nan_and_infinities_do_not_confuse():
    def odd(x):
        return np.array([np.nan, np.inf, x], np.float32)

    def odder(x):
        return np.array([np.nan, -np.inf, x], np.float32)

    left, right = record("full", odd, range(2)), record("full", odd, range(2))
    assert dict(left.diff(right).counts) == {"equal": 2}
    assert dict(left.diff(record("full", odder, range(2))).counts) == {"different": 2}


def test_a_kept_scalar_has_no_dimensions():
    recording = record("full", double, [3.0])
    assert recording.call(1).inputs[0].array().shape == ()
    assert recording.call(1).outputs[0].array() == 6.0
