"""What is kept of a value: every dtype, odd shapes, and elements that come back as they were."""

from __future__ import annotations

import ctypes
import gc
import math
import subprocess
import sys
import warnings

import numpy as np
import pytest

from pyfunc_debug.api.recording import Recording
from pyfunc_debug.errors import BadOptionError, NotKeptError
from pyfunc_debug.pfrec.contents import decode, encode
from pyfunc_debug.recorder import Budget, Recorder
from pyfunc_debug.records import Value
from pyfunc_debug.values import Policies, Policy, hold, hold_quickly, summarize
from pyfunc_debug.values import capture as capture_module
from pyfunc_debug.values import summary as summary_module
from pyfunc_debug.values._statistics import register_type
from pyfunc_debug.values.summary import EXACT_ELEMENTS, SAMPLE_ELEMENTS
from tests.recorder.test_recorder import call, node

QUANTISED = {"qint8": "int8", "quint8": "uint8", "qint16": "int16", "quint16": "uint16", "qint32": "int32"}


def told(value, policy=Policy.SUMMARY, room=1 << 40):
    """The summary of one value that was taken hold of."""
    (held,), _ = hold([value], policy, room)
    return summarize(held, policy)


def dtypes():
    """Every element type that this TensorFlow has."""
    import tensorflow as tf
    from tensorflow.python.framework import dtypes as module

    found = {one.name: one for one in vars(module).values() if isinstance(one, tf.DType)}
    untold = ("resource", "variant")  # they have a test of their own
    return sorted((name, one) for name, one in found.items() if not name.endswith("_ref") and name not in untold)


@pytest.mark.parametrize(("name", "dtype"), dtypes())
@pytest.mark.parametrize("count", [1, 4, EXACT_ELEMENTS + 1000])
def test_every_dtype_is_summarised_and_its_elements_come_back(tf, name, dtype, count):
    numbers = np.arange(count) % 2
    if name == "string":
        tensor = tf.constant([b"text"] * count)
    elif name in QUANTISED:
        tensor = tf.bitcast(tf.constant(numbers, QUANTISED[name]), dtype)
    else:
        try:
            tensor = tf.cast(tf.constant(numbers, tf.float32), dtype)
        except (TypeError, ValueError, tf.errors.OpError):  # there is no kernel to make one: take NumPy's
            tensor = numbers.astype(np.int8).astype(dtype.as_numpy_dtype)
    summary = told(tensor, Policy.FULL)
    assert summary.note == ""
    assert summary.shape == (count,)
    assert summary.text.startswith(f"{name}[{count}]")
    if name != "string":
        assert (summary.min, summary.max) == (0, min(1, count - 1))
        assert (summary.nan, summary.inf) == (0, 0)
    assert summary.kept == "full"
    back = decode(*encode(summary.data)[1:])
    assert back.tolist() == summary.data.tolist()
    assert back.dtype == (object if name == "string" else summary.data.dtype)


def test_variants_and_resources_are_named_and_not_read(tf):
    variant = tf.data.Dataset.range(3)._variant_tensor
    resource = tf.Variable(1.0).handle
    for tensor, name in ((variant, "variant"), (resource, "resource")):
        for policy in (Policy.SHAPE, Policy.SUMMARY, Policy.FULL):
            summary = told(tensor, policy)
            assert (summary.dtype, summary.nbytes, summary.kept) == (name, None, "")
    assert told(variant).text == "variant[] (not read)"


@pytest.mark.parametrize("policy", [Policy.SUMMARY, Policy.SAMPLE, Policy.FULL])
def test_strings_are_shown_without_control_characters(tf, policy):
    odd = [b"\x1b[31mred\x07", "\u202eright to left".encode(), b"\xff\xfe", "zeichen äöü".encode(), b"x" * 10_000]
    for value in (tf.constant(odd), np.array(odd, object), np.array(odd[:3])):
        text = told(value, policy).text
        assert text.isprintable(), text
        assert "\\x1b[31mred\\x07" in text
        assert len(text) < 300


@pytest.mark.parametrize("items", [[], [b""], [b"a\x00b", b"\xff"], ["ä", "\udcff"], [[b"a", b"b"], [b"c", b"d"]]])
def test_strings_are_kept_byte_for_byte(items):
    array = np.array(items, object)
    back = decode(*encode(array)[1:])
    wanted = [item if isinstance(item, bytes) else item.encode(errors="surrogatepass") for item in array.reshape(-1)]
    assert back.reshape(-1).tolist() == wanted
    assert back.shape == array.shape


@pytest.mark.parametrize("array", [
    np.float32(3), np.zeros((0, 3), np.float32), np.zeros(()), np.arange(24.0).reshape(2, 3, 4)[:, ::2, ::-1],
    np.arange(6).reshape(2, 3).T, np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(4, dtype=">f4"),
    np.broadcast_to(np.float32(2), (3, 2)), np.array([True, False]), np.array([1 + 2j]), np.arange(3, dtype=np.uint64),
], ids=lambda array: f"{array.dtype}{array.shape}")  # fmt: skip
def test_arrays_of_any_layout_are_kept_element_for_element(array):
    summary = told(array, Policy.FULL)
    assert summary.note == ""
    back = decode(*encode(summary.data)[1:])
    np.testing.assert_array_equal(back, array)
    assert back.shape == np.shape(array)


def test_statistics_are_over_finite_elements():
    summary = told(np.array([1, 2, 3, 0, np.nan, np.inf, -np.inf, np.inf]))
    assert (summary.min, summary.max, summary.mean) == (0, 3, 1.5)
    assert summary.std == pytest.approx(np.std([1, 2, 3, 0]))
    assert (summary.nan, summary.inf, summary.zeros) == (1, 3, 1)
    assert sum(summary.histogram) in (0, 4)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_nan_and_inf_of_huge_arrays_are_counted_exactly(dtype):
    array = np.ones(EXACT_ELEMENTS * 5 + 7, dtype)
    array[1::1000] = np.nan
    array[2::1000] = np.inf
    summary = told(array)
    assert summary.nan == np.isnan(array).sum()
    assert summary.inf == np.isinf(array).sum()
    assert summary.zeros is None, "an estimate is no count"
    assert summary.sampled is not None
    assert summary.sampled <= EXACT_ELEMENTS
    assert "elements)" in summary.text, "it does not say that the range is an estimate"


def test_of_a_sample_nothing_is_said_of_every_element():
    array = np.ones(EXACT_ELEMENTS * 5 + 7)
    assert told(array[:EXACT_ELEMENTS]).text.endswith("x=1 everywhere")
    summary = told(array)
    assert summary.text.endswith(f"x=1 in all {summary.sampled:,} elements looked at")
    array[3] = np.nan
    assert "x=1 NaN 1 (range from" in told(array).text


@pytest.mark.parametrize("shape", [(300, 300, 3), (600, 400), (200, 100, 6), (7, 30_000), (90_000, 2)])
def test_a_sample_of_a_large_array_is_not_in_step_with_its_columns(shape):
    array = np.broadcast_to(np.arange(shape[-1], dtype=np.float32), shape)
    summary = told(array.copy())
    assert summary.sampled is not None
    assert (summary.min, summary.max) == (0, shape[-1] - 1)


NUMBERS = ("float32", "float64", "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
SIZES = (0, 1, 2, 7, 32, 33, 511, 512, 513, 2047, 2049, EXACT_ELEMENTS, EXACT_ELEMENTS + 1, 300_001)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("size", SIZES)
def test_the_extension_and_numpy_say_the_same(monkeypatch, dtype, size):
    random = np.random.default_rng(size)
    array = (random.standard_normal(size) * 50).astype(dtype)
    if array.dtype.kind == "f" and size > 2:
        array[random.integers(0, size, size // 100 + 1)] = np.nan
        array[random.integers(0, size, size // 100 + 1)] = -np.inf
    assert summary_module.statistics is not None, "the extension was not built: a C compiler is needed for this test"
    assert summary_module.statistics(array) is not None
    ours = told(array)
    monkeypatch.setattr(summary_module, "statistics", None)
    monkeypatch.setattr(capture_module, "statistics", None)
    numpys = told(array)
    for field in ("dtype", "shape", "nbytes", "min", "max", "nan", "inf", "zeros", "sampled", "text", "note"):
        assert getattr(ours, field) == getattr(numpys, field), field
    for field in ("mean", "std"):
        mine, other = getattr(ours, field), getattr(numpys, field)
        assert mine == other or mine == pytest.approx(other, rel=1e-9, abs=1e-9), field
    if size > 32:  # for a handful plain Python puts an element on an edge into the other bin now and then
        assert ours.histogram == numpys.histogram


@pytest.mark.parametrize(
    "array",
    [
        np.full(5000, 0.1), np.linspace(1.7e9, 1.7e9 + 5000, 5000), np.append(1e15, np.ones(5000)),
        np.append(np.ones(512), np.full(4000, 1e9)), np.append(np.full(700, np.nan), np.full(700, -3.0)),
        np.append(np.inf, np.arange(2000.0)),
    ],
    ids=["equal", "far from zero", "an outlier first", "a step", "NaN first", "Inf first"],
)  # fmt: skip
def test_statistics_that_are_added_up_block_by_block_lose_no_digits(array):
    finite = array[np.isfinite(array)]
    summary = told(array)
    assert summary.mean == pytest.approx(finite.mean(), rel=1e-12)
    assert summary.std == pytest.approx(finite.std(), rel=1e-9, abs=1e-12)


def test_a_small_tensor_is_read_at_once_and_not_kept_alive(tf):
    tensor = tf.constant([1.0, 2.0])
    before = sys.getrefcount(tensor)
    (held,), size = hold([tensor], Policy.SUMMARY, 1 << 20)
    assert sys.getrefcount(tensor) == before
    assert size == 512
    assert summarize(held, Policy.SUMMARY).text == "float32[2] x∈[1, 2] μ=1.5 σ=0.5"


@pytest.mark.parametrize("policy", [Policy.SUMMARY, Policy.SAMPLE, Policy.FULL])
def test_what_is_written_into_a_tensors_memory_afterwards_does_not_show(tf, policy):
    """As a numpy_function body does whose input is its own result of a moment ago."""
    tensor = tf.constant([1.0, 2.0])
    (held,), _ = hold([tensor], policy, 1 << 20)
    memory = np.frombuffer((ctypes.c_char * 8).from_address(np.asarray(memoryview(tensor)).ctypes.data), np.float32)
    memory[:] = 7
    assert tensor.numpy().tolist() == [7, 7]
    assert summarize(held, policy).text == "float32[2] x∈[1, 2] μ=1.5 σ=0.5"


def test_an_array_of_nans_has_no_range_and_all_are_counted():
    summary = told(np.full(10, np.nan))
    assert (summary.min, summary.mean, summary.nan) == (None, None, 10)
    assert told(np.float32("nan")).nan == 1


@pytest.mark.parametrize("array", [
    np.array([np.finfo(np.float64).max] * 4), np.array([5e-324, 0.0, 1e-323]), np.array([-1.7e308, 1.7e308]),
    np.array([1e200 + 1e200j, 1]), np.array([2**63 - 1, -(2**63)]), np.array([2**64 - 1, 0], np.uint64),
])  # fmt: skip
def test_extreme_numbers_warn_nobody(array):
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        summary = told(array)
    assert summary.note == ""
    assert summary.mean is None or math.isfinite(summary.mean)


def test_what_a_body_does_to_its_array_does_not_show():
    for size in (3, 2_000_000):
        array = np.zeros(size)
        (held,), _ = hold([array], Policy.FULL, 1 << 40)
        array += 1
        assert summarize(held, Policy.FULL).max == 0
    array = np.array([b"before"], object)
    (held,), _ = hold([array], Policy.SUMMARY, 1 << 40)
    array[0] = b"after"
    assert "before" in summarize(held, Policy.SUMMARY).text


def test_each_policy_keeps_what_it_says():
    array = np.arange(5000.0)
    assert told(array, Policy.SHAPE).text == "float64[5000]"
    assert told(array, Policy.SHAPE).nbytes == 40_000
    assert told(array, Policy.SUMMARY).kept == ""
    sample = told(array, Policy.SAMPLE)
    assert sample.kept == "sample"
    assert 500 < sample.data.size <= SAMPLE_ELEMENTS
    assert set(sample.data) <= set(array)
    assert told(array[:10], Policy.SAMPLE).kept == "full", "all that there is"
    assert told(array, Policy.FULL).data.size == 5000


def test_what_finds_no_room_says_so():
    for value in (np.zeros(100), np.array([b"x" * 1000], object)):
        summary = told(value, Policy.FULL, room=10)
        assert summary.note.startswith("dropped")
        assert summary.shape == value.shape
        assert summary.nan is None


def test_long_strings_count_against_the_room():
    for policy in (Policy.SAMPLE, Policy.FULL):
        _, size = hold([np.array([b"x" * 1_000_000], object)], policy, 1 << 40)
        assert size > 1_000_000
    _, size = hold([np.array([b"x" * 1_000_000], object)], Policy.SUMMARY, 1 << 40)
    assert size < 1000


def test_structures_and_objects_are_told_somehow():
    class Hostile:
        shape = property(lambda self: 1 / 0)

        def __str__(self):
            raise RuntimeError

    for thing in ({"a": 1}, object(), "text", None, 3, [[1, 2], [3]], Hostile()):
        try:
            (held,), _ = hold([thing], Policy.SUMMARY, 1 << 40)
        except ZeroDivisionError:
            continue  # the recorder counts it as trouble; see below
        assert isinstance(summarize(held, Policy.SUMMARY).text, str)


def test_values_that_were_not_kept_say_why():
    value = Value("x", "float32", (2,), 8, 0, 1, 0.5, 0.5, 0, 0, 1, "float32[2]")
    with pytest.raises(NotKeptError, match="values='full'"):
        value.array()


def test_a_policy_for_each_glob():
    policies = Policies({"augment*": "full", "*loss": "none", "*": "shape"})
    assert policies.of("model.augment_left") is Policy.FULL
    assert policies.of("train.log_loss", "EagerPyFunc") is Policy.NONE
    assert policies.of("other") is Policy.SHAPE
    with pytest.raises(BadOptionError, match="Did you mean 'summary'"):
        Policies("sumary")


def test_values_are_stored_with_their_call_and_dropped_before_calls(tmp_path):
    recorder = Recorder(str(tmp_path / "a.pfrec"), Policies("full"), Budget(2_000_000), {})
    recorder.node_made(node("graph"))
    generator = np.random.default_rng(0)
    for _ in range(300):
        call(recorder, "graph", generator.random(5000))
        recorder.flush()
    recorder.close({})
    recording = Recording(tmp_path / "a.pfrec")
    calls = list(recording.calls())
    assert len(calls) == 300, "calls were dropped although only values are large"
    with_values = [one for one in calls if one.inputs]
    assert 10 < len(with_values) < 300
    kept = [one for one in with_values if one.inputs[0].kept == "full"]
    assert kept == calls[: len(kept)]
    assert len(kept) > 10
    assert with_values[0].inputs[0].array().shape == (5000,)
    assert "values were not stored" in str(recording.ledger())


OTHERS_WRITE = """
import threading

import numpy as np

from pyfunc_debug.values.summary import summarize_array
from pyfunc_debug.values import Policy

array = np.zeros(400_000)
done = threading.Event()


def write():
    while not done.is_set():
        array.fill(0.5)
        array[::3] = 0.7
        array.fill(-1e300)


thread = threading.Thread(target=write)
thread.start()
for _ in range(3000):
    summarize_array(array, Policy.SUMMARY)
done.set()
thread.join()
print("alive")
"""


@pytest.mark.slow
def test_an_array_that_another_thread_writes_to_meanwhile_does_no_harm():
    done = subprocess.run([sys.executable, "-c", OTHERS_WRITE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


@pytest.mark.parametrize("policy", [Policy.SHAPE, Policy.SUMMARY])
def test_common_values_are_held_in_c_as_they_are_in_python(tf, policy):
    tensor = tf.constant([[1.0, np.nan], [3.0, 0.0]])
    for values in (
        [np.arange(6).reshape(2, 3)], (np.array(2.5), np.zeros(0)), np.ones(3000, np.float32),
        [tensor, tensor], [tf.constant(3, tf.int8)], [tf.constant(True)], [], (), tensor,
        [tf.constant(["text", "more"])], [tf.ones(1 << 17)], [tf.constant([1.5], tf.bfloat16)], [tf.zeros((2, 0))],
        [np.float32(0.1)], np.int64(3), [np.bytes_(b"text"), tensor],
    ):  # fmt: skip
        slow, size = hold(values, policy, 10**6)  # and so it learns of the tensors
        held, quick = hold_quickly(values, policy, 10**6)
        assert type(held) is tuple
        assert not gc.is_tracked(held) or not held
        assert quick == size
        assert [(type(one.thing), one.dtype, one.nbytes, one.note) for one in held] == [
            (type(one.thing), one.dtype, one.nbytes, one.note) for one in slow
        ]
        assert all(one.thing is other.thing for one, other in zip(held, slow) if tf.is_tensor(one.thing))
        assert [str(summarize(one, policy)) for one in held] == [str(summarize(one, policy)) for one in slow]


def test_what_is_uncommon_is_left_to_python(tf):
    number, large = np.ones(3), tf.ones(1 << 17)
    hold([tf.ones(3)], Policy.SUMMARY, 10**6)
    for values in (
        [number, np.array(["text"], object)], [np.array([b"x"])], [np.asfortranarray(np.ones((2, 2)))], None, 3.0,
        "text", [np.ma.masked_array([1.0])], [number, None], [tf.ragged.constant([[1.0]])],
    ):  # fmt: skip
        assert hold_quickly(values, Policy.SUMMARY, 10**6) is None, values
    assert hold_quickly([np.array(None)], Policy.SHAPE, 10**6) is None, "a body without results"
    assert hold_quickly([number], Policy.FULL, 10**6) is None, "a policy that keeps elements"
    assert hold_quickly([number, number], Policy.SUMMARY, 1000) is None, "no room"
    assert hold_quickly([large], Policy.SUMMARY, 1000) is None, "no room"
    assert hold_quickly([number], Policy.SUMMARY, 512) is not None


def test_what_cannot_be_asked_for_its_shape_is_left_to_python(tf):
    """As the output of an asynchronous operation that failed."""

    class Odd:
        dtype = np.dtype("f4")

        def _shape_tuple(self):
            raise wrong

    wrong: BaseException = ValueError("no shape")
    register_type(Odd(), 4)
    assert hold_quickly([Odd()], Policy.SHAPE, 10**6) is None
    wrong = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        hold_quickly([Odd()], Policy.SHAPE, 10**6)


def test_only_types_that_stay_the_same_are_met(tf):
    masked, text, own = np.ma.masked_array([1.0]), np.array(["text"]), np.ones(2, np.dtype("f4", metadata={"a": 1}))
    for array in (masked, text, own, np.ones(2, ">f4"), np.ones(1, [("a", "f4")])):
        for _ in range(2):
            (held,), _ = hold([array], Policy.SHAPE, 10**6)
        assert hold_quickly([array], Policy.SHAPE, 10**6) is None
        assert summarize(held, Policy.SHAPE).shape == array.shape


@pytest.mark.parametrize("policy", [Policy.SHAPE, Policy.SUMMARY])
def test_a_variable_that_a_body_returns_is_not_recorded_with_a_later_value(tf, policy):
    variable = tf.Variable([1.0])
    for _ in range(2):
        (held,), size = hold([variable], policy, 10**6)
    assert size == 0
    assert hold_quickly([variable], policy, 10**6) is None
    variable.assign([2.0])
    summary = summarize(held, policy)
    assert (summary.dtype, summary.shape, summary.max) == ("float32", (1,), None)
    assert ("variable" in summary.note) is (policy is Policy.SUMMARY)


def test_holding_numbers_leaks_nothing(tf):
    number, tensor = np.ones(3), tf.ones(3)
    hold([tensor], Policy.SUMMARY, 10**6)
    things = (number, tensor, number.dtype, tensor.dtype)
    before = [sys.getrefcount(one) for one in things]
    for _ in range(100):
        hold_quickly([number, tensor], Policy.SUMMARY, 10**6)
        hold_quickly([number, tensor], Policy.SUMMARY, 10**6)
        hold_quickly([number, tensor], Policy.SHAPE, 10**6)
        hold_quickly([number, "text"], Policy.SUMMARY, 10**6)
    # A leak is there a hundred times: dtypes belong to the whole process, whose garbage may let them go meanwhile.
    assert all(sys.getrefcount(one) < count + 100 for one, count in zip(things, before))


@pytest.mark.parametrize("value", [b"a\x00", b"\x00", b""])
def test_text_keeps_the_zeros_at_its_end(tf, value):
    for given in (value, np.bytes_(value), tf.constant(value)):
        (held,), _ = hold([given], Policy.FULL, 10**6)
        summary = summarize(held, Policy.FULL)
        assert decode(*encode(summary.data)[1:]).item() == value
        assert summary.digest == summarize(hold([tf.constant(value)], Policy.FULL, 10**6)[0][0], Policy.FULL).digest
