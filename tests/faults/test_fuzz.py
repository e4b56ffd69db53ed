"""What Hypothesis thinks of: damaged recordings in every command, and random arrays against NumPy.

The examples are few and the same each time; `python -m tests.faults fuzz --count 500` tries others.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pyfunc_debug.pfrec.contents import decode, encode
from pyfunc_debug.values import Policy, hold, summarize
from tests.faults import files

COUNT = int(os.environ.get("PYFUNC_DEBUG_FUZZ", "0"))
SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


def examples(count: int) -> settings:
    return settings(
        max_examples=COUNT or count, deadline=None, derandomize=not COUNT, database=None, suppress_health_check=SLOW
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return files.base(tmp_path_factory.mktemp("whole"))


@examples(8)
@given(chance=st.randoms(use_true_random=False))
def test_a_file_damaged_anyhow_is_answered_or_refused_in_one_line(whole, chance):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.pfrec"
        shutil.copy(chance.choice(whole), path)
        files.damage(path, chance)
        assert files.read(path, whole[0], Path(folder) / "report.html").total() >= 15


@examples(8)
@given(content=st.binary(max_size=300), begin=st.booleans())
def test_a_file_of_any_content_is_refused_in_one_line(whole, content, begin):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.pfrec"
        path.write_bytes((whole[1].read_bytes()[:100] if begin else b"") + content)
        found = files.read(path, whole[0], Path(folder) / "report.html")
        assert set(found) == {"refused"}


KINDS = st.sampled_from(
    ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">f4", ">i2", "c8", "c16"]
)


@examples(150)
@given(data=st.data())
def test_what_is_said_of_any_array_is_what_numpy_says(data):
    array = data.draw(KINDS.flatmap(lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, min_side=0))))
    if array.ndim and data.draw(st.booleans()):
        array = array[data.draw(arrays.basic_indices(array.shape))]
        if not isinstance(array, np.ndarray):
            array = np.asarray(array)
    array = data.draw(st.sampled_from([array, array.T, np.asfortranarray(array)]))
    before = array.copy()
    for policy in (Policy.SUMMARY, Policy.FULL):
        (held,), _ = hold((array,), policy, 1 << 30)
        summary = summarize(held, policy)
        assert summary.shape == array.shape
        assert summary.nbytes == array.nbytes
        assert np.dtype(summary.dtype) == array.dtype.newbyteorder("=")
        if array.dtype.kind != "c":
            finite = array[np.isfinite(array)].astype(np.longdouble)
            assert (summary.nan, summary.inf) == (np.isnan(array).sum(), np.isinf(array).sum())
            if array.size:
                assert summary.zeros == (array == 0).sum()
            extremes = (float(finite.min()), float(finite.max())) if finite.size else (None, None)
            assert (summary.min, summary.max) == extremes
            largest = float(np.abs(finite).max()) if finite.size else 0.0
            if 1e-140 < largest < 1e140:  # beyond that squares are not float64's
                assert summary.mean == pytest.approx(float(finite.mean()), rel=1e-9, abs=1e-9 * largest)
                assert summary.std == pytest.approx(float(finite.std()), rel=1e-6, abs=1e-6 * largest)
        if policy == Policy.FULL:
            _, encoding, dtype, shape, stored = encode(summary.data)
            np.testing.assert_array_equal(decode(encoding, dtype, shape, stored), before)
    np.testing.assert_array_equal(array, before)
