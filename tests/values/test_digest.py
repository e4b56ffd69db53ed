"""A digest stands for all elements of a value in their order, whichever way they were read."""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.values import digest as digests
from pyfunc_debug.values.digest import digest_of

NUMBERS = [
    np.float32, np.float64, np.float16, tf.bfloat16.as_numpy_dtype, np.int8, np.uint8, np.int16, np.int32, np.int64,
    np.uint64, bool, np.complex64, np.complex128,
]  # fmt: skip


def record_value(array, dtype, values="summary"):
    def body():
        return array

    with pfd.record(values=values, gil=False) as recording:
        tf.numpy_function(body, [], dtype)
    return recording.call(1).outputs[0]


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("size", [2, 1000, 70_000])
def test_another_order_has_another_digest(kind, size):
    array = (np.arange(size) % 2).astype(kind)
    assert digest_of(array) == digest_of(array.copy())
    assert digest_of(array) != digest_of(array[::-1])


def test_each_bit_each_place_and_each_length_count():
    array = np.random.default_rng(3).integers(0, 256, 2100, np.uint8)
    found = {digest_of(array)}
    for place, bit in itertools.product(range(0, 2100, 7), range(8)):
        changed = array.copy()
        changed[place] ^= 1 << bit
        found.add(digest_of(changed))
    found |= {digest_of(np.zeros(size, np.uint8)) for size in range(2100)}
    assert len(found) == 1 + 300 * 8 + 2100


def test_any_two_swapped_elements_are_seen():
    array = np.arange(300, dtype=np.float64)
    found = {digest_of(array)}
    for one, other in itertools.combinations(range(300), 2):
        swapped = array.copy()
        swapped[[one, other]] = swapped[[other, one]]
        found.add(digest_of(swapped))
    assert len(found) == 1 + 300 * 299 // 2


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, tf.bfloat16.as_numpy_dtype, np.complex64])
def test_equal_numbers_of_other_bits_have_one_digest(kind):
    one = np.array([0.0, np.nan, 1.0, np.inf] * 200, kind)
    other = np.array([-0.0, -np.nan, 1.0, np.inf] * 200, kind)
    assert one.tobytes() != other.tobytes()
    assert digest_of(one) == digest_of(other)
    other[3] = -np.inf
    assert digest_of(one) != digest_of(other)


@pytest.mark.parametrize(("kind", "size"), [(np.float32, 300_001), (np.float64, 70_003), (np.float32, 1500)])
def test_statistics_and_digest_of_one_reading_are_those_of_two(kind, size):
    """Above 65536 elements most statistics are of a sample; NaN, Inf and the digest are of all."""
    array = np.random.default_rng(2).normal(size=size).astype(kind)
    places = np.random.default_rng(3).permutation(size)
    array[places[:7]], array[places[7:9]], array[places[9:10]], array[places[10:30]] = np.nan, np.inf, -np.inf, -0.0
    for value in (array, np.where(array == 0, kind(0), array), np.abs(np.nan_to_num(array))):
        found = record_value(value, tf.as_dtype(kind))
        assert (found.nan, found.inf) == (np.isnan(value).sum(), np.isinf(value).sum())
        assert found.digest == digest_of(value).hex()


def test_a_payload_of_a_nan_does_not_count():
    one, other = np.array([0x7FC00000, 0x3F800000], np.uint32), np.array([0xFF812345, 0x3F800000], np.uint32)
    assert digest_of(one.view(np.float32)) == digest_of(other.view(np.float32))


def test_where_one_string_ends_and_the_next_begins_counts():
    def strings(*items):
        return digest_of(np.array(items, object))

    assert strings(b"ab", b"c") != strings(b"a", b"bc")
    assert strings(b"a", b"b") != strings(b"b", b"a")
    assert strings("käse") == strings("käse".encode())
    assert strings() is not None
    assert digest_of(np.array(["a", "bc"])) == strings(b"a", b"bc")


def test_a_python_object_and_a_huge_value_have_none(monkeypatch):
    assert digest_of(np.array([{1: 2}], object)) is None
    monkeypatch.setattr(digests, "LARGEST_BYTES", 100)
    assert digest_of(np.zeros(200, np.uint8)) is None
    assert digest_of(np.array([b"x" * 200], object)) is None


def test_it_is_the_same_on_every_machine():
    """As values/_digest.h describes it, in Python's whole numbers."""
    mask = (1 << 64) - 1

    def mix(word):
        word = (word + 0x9E3779B97F4A7C15) & mask
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & mask
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
        return word ^ (word >> 31)

    keys = [mix(i * 0x9E3779B97F4A7C15 & mask) for i in range(17 * 8)]
    data = np.random.default_rng(5).bytes(3001)
    lanes, at = [0] * 8, 0

    def stir():
        lanes[:] = [((lane ^ (lane >> 47) ^ key) * 0x9E3779B1) & mask for lane, key in zip(lanes, keys[128:])]

    for start in range(0, len(data), 64):
        words = np.frombuffer(data[start : start + 64].ljust(64, b"\0"), "<u8").tolist()
        for i, word in enumerate(words):
            mixed = word ^ keys[8 * at + i]
            lanes[i ^ 1] = (lanes[i ^ 1] + word) & mask
            lanes[i] = (lanes[i] + (mixed & 0xFFFFFFFF) * (mixed >> 32)) & mask
        at += 1
        if at == 16:
            stir()
            at = 0
    stir()
    first, second = len(data), ~len(data) & mask
    for i in range(8):
        first = ((first ^ lanes[i]) * 0xBF58476D1CE4E5B9) & mask
        second = ((second ^ lanes[7 - i]) * 0x94D049BB133111EB) & mask
        first, second = first ^ (first >> 29), second ^ (second >> 31)
    first, second = mix(first), mix(second)
    expected = first.to_bytes(8, "little") + second.to_bytes(8, "little")
    assert digest_of(np.frombuffer(data, np.uint8)) == expected


def test_without_the_extension_it_says_the_same_of_equality(monkeypatch):
    monkeypatch.setattr(digests, "_digest", None)
    one, other = np.array([0.0, np.nan], np.float32), np.array([-0.0, -np.nan], np.float32)
    assert digest_of(one) == digest_of(other) == hashlib.blake2b(np.float32([0, np.nan]), digest_size=20).digest()
    assert digest_of(one) != digest_of(one[::-1])


@pytest.mark.parametrize("values", ["summary", "sample", "full"])
def test_a_recorded_value_has_the_digest_of_its_elements(values):
    array = np.random.default_rng(1).normal(size=(200, 400)).astype(np.float32)
    expected = digest_of(array)
    assert expected is not None
    assert record_value(array, tf.float32, values).digest == expected.hex()
    assert record_value(array.T, tf.float32, values).digest == digest_of(array.T).hex()


def test_without_values_there_is_none():
    assert record_value(np.float32([1, 2]), tf.float32, "shape").digest is None


def test_ragged_and_tensors_have_the_digest_of_what_they_hold():
    ragged = tf.ragged.constant([[1.0, 2.0], [3.0]])
    with pfd.record(gil=False) as recording:
        tf.py_function(lambda x: x.flat_values, [ragged], tf.float32)
    flat = digest_of(np.float32([1, 2, 3])).hex()
    (call,) = recording.calls()
    assert flat in [value.digest for value in call.inputs]
    assert [value.digest for value in call.outputs] == [flat]
