"""What is known of a tf.data stage when not every call was measured."""

from __future__ import annotations

import numpy as np
import pytest

from pyfunc_debug.analysis.stages import body_ns, mean_cpu_ns


@pytest.mark.parametrize(
    ("cpu", "mean"),
    [
        ([4.0, 6.0], 5.0),
        ([np.nan] * 2, None),
        ([], None),
        ([2.0] * 9 + [np.nan], 2.0),
        ([2.0] * 8 + [np.nan] * 2, None),
    ],
)
def test_a_mean_of_few_measured_calls_is_not_known(cpu, mean):
    assert mean_cpu_ns(np.array(cpu)) == mean


@pytest.mark.parametrize(
    ("duration", "reacquire", "body", "inside"),
    [
        ([100.0, 300.0], [10.0, 30.0], 360.0, 40.0),
        ([100.0, 300.0], [10.0, np.nan], 360.0, 40.0),
        ([100.0, 300.0], [np.nan, np.nan], 400.0, 0.0),
        ([1000.0, 1.0, 1.0], [900.0, np.nan, np.nan], 100.2, 901.8),
        ([1.0, 100.0, 1.0], [np.nan, 100.0, np.nan], 3.0, 99.0),  # nothing but waiting
        ([0.0], [0.0], 1.0, 0.0),
    ],
)
def test_waits_inside_are_never_more_than_the_time_that_passed(duration, reacquire, body, inside):
    assert body_ns(np.array(duration), np.array(reacquire)) == pytest.approx((body, inside))
