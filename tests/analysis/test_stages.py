"""What is known of a tf.data stage's CPU time when it was not measured for every call."""

from __future__ import annotations

import numpy as np
import pytest

from pyfunc_debug.analysis.stages import mean_cpu_ns


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
