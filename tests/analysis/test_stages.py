"""What is known of a tf.data stage when not every call was measured."""

from __future__ import annotations

import numpy as np
import pytest

from pyfunc_debug.analysis.contention import NodeContention
from pyfunc_debug.analysis.inputs import Setting
from pyfunc_debug.analysis.stages import body_ns, mean_cpu_ns, stage_answer, waits_ns
from pyfunc_debug.records import Node


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


def test_a_call_that_was_not_measured_waits_before_as_long_and_inside_as_much_of_its_time_as_the_others():
    before, inside = waits_ns(
        np.array([100.0, 300.0, 1000.0]), np.array([10.0, 30.0, np.nan]), np.array([50.0, 150.0, np.nan])
    )
    assert before.tolist() == [10.0, 30.0, 20.0]
    assert inside.tolist() == [50.0, 150.0, 500.0]


def make_contention_of(grade, calls, measured):
    node = Node(1, "pyfunc_0", "py_function", "body", None, None, None, None, 1, (), (), (), (), "user")
    return NodeContention(node, grade, calls, measured, 0, 0, 1, None, None, None, None, None, ())


def test_the_shares_of_a_stage_sum_to_its_time_whatever_was_measured():
    random = np.random.default_rng(7)
    for _ in range(200):
        calls, threads = int(random.integers(1, 40)), int(random.integers(1, 9))
        duration = random.exponential(1e6, calls)
        wait = random.exponential(10 ** random.uniform(2, 8), calls)
        reacquire = duration * random.uniform(0, 1, calls)
        for one in (wait, reacquire):
            one[random.uniform(0, 1, calls) < random.uniform(0, 1)] = np.nan
        start = np.cumsum(random.exponential(1e6, calls)) + 1e9
        measured = int((~np.isnan(wait)).sum())
        answer = stage_answer(
            make_contention_of("native", calls, measured), "f", (start, start + duration, wait, reacquire), threads,
            None, 4, 4,
        )  # fmt: skip
        if not measured:
            assert answer.wait_share is None
            continue
        assert min(answer.python_share, answer.wait_share, answer.pool_share) >= 0
        assert answer.python_share + answer.wait_share + answer.pool_share == pytest.approx(1)


@pytest.mark.parametrize(("present", "asked"), [(3, [1, 2, 3, 4, 8]), (4, [1, 2, 4, 8]), (-1, [1, 2, 4, 8])])
def test_what_if_has_the_present_setting_among_its_answers(present, asked):
    times = tuple(np.array(one, np.float64) for one in ([1e9], [2e9], [0], [0]))
    setting = Setting(present, None, False, None)
    answer = stage_answer(make_contention_of("native", 1, 1), "f", times, 1, None, 4, 4, setting=setting)
    assert [one.calls for one in answer.ceilings] == asked
    assert ("num_parallel_calls=3: as now" in str(answer)) is (present == 3)
